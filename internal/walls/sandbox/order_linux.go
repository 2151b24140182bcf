package sandbox

import "encoding/json"

// exact is a list of file names, which need not be UTF-8. encoding/json would replace invalid bytes.
type exact []string

// MarshalJSON implements json.Marshaler.
func (e exact) MarshalJSON() ([]byte, error) {
	names := make([][]byte, len(e))
	for i, name := range e {
		names[i] = []byte(name)
	}
	return json.Marshal(names)
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *exact) UnmarshalJSON(text []byte) error {
	var names [][]byte
	if err := json.Unmarshal(text, &names); err != nil {
		return err
	}
	*e = make(exact, len(names))
	for i, name := range names {
		(*e)[i] = string(name)
	}
	return nil
}

// wire is the JSON form of an order.
type wire struct {
	Order *plain
	Paths exact // the single paths of order
}

type plain order

// MarshalJSON implements json.Marshaler.
func (o order) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{(*plain)(&o), exact{o.Root, o.Temp, o.Program, o.LinkedHome, o.Dir}})
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *order) UnmarshalJSON(text []byte) error {
	w := wire{Order: (*plain)(o)}
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	for i, path := range []*string{&o.Root, &o.Temp, &o.Program, &o.LinkedHome, &o.Dir} {
		if i < len(w.Paths) {
			*path = w.Paths[i]
		}
	}
	return nil
}
