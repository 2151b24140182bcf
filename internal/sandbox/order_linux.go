package sandbox

import "encoding/json"

// exact are names of files, which need not be text. JSON by itself would replace the bytes that are none.
type exact []string

// MarshalJSON is the part of json.Marshaler.
func (e exact) MarshalJSON() ([]byte, error) {
	names := make([][]byte, len(e))
	for i, name := range e {
		names[i] = []byte(name)
	}
	return json.Marshal(names)
}

// UnmarshalJSON is the part of json.Unmarshaler.
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

// wire is an order on its way to the stage.
type wire struct {
	Order *plain
	Paths exact // those of Order that stand alone
}

type plain order

// MarshalJSON is the part of json.Marshaler.
func (o order) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{(*plain)(&o), exact{o.Root, o.Temp, o.Program}})
}

// UnmarshalJSON is the part of json.Unmarshaler.
func (o *order) UnmarshalJSON(text []byte) error {
	w := wire{Order: (*plain)(o)}
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	for i, path := range []*string{&o.Root, &o.Temp, &o.Program} {
		if i < len(w.Paths) {
			*path = w.Paths[i]
		}
	}
	return nil
}
