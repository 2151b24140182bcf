package xnl

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// MarshalJSON returns the node in the form that programs get: kind, tag, metadata, and the parts that it has.
func (n *Node) MarshalJSON() ([]byte, error) {
	o := Object{{"kind", n.Kind.String()}, {"tag", n.Tag}, {"metadata", n.Metadata}}
	if n.Attributes != nil {
		o = append(o, Member{"attributes", n.Attributes})
	}
	if n.Body != nil {
		o = append(o, Member{"body", n.Body})
	}
	if n.Extend != nil {
		children, order := Object{}, []any{}
		for _, child := range n.Extend {
			children, order = append(children, Member{child.Tag, child}), append(order, child.Tag)
		}
		o = append(o, Member{"extend", Object{{"children", children}, {"order", order}}})
	}
	if n.Kind != Data {
		o = append(o, Member{"text", n.Text})
	}
	if n.Marker != "" {
		o = append(o, Member{"textMarker", n.Marker})
	}
	return o.MarshalJSON()
}

// MarshalJSON returns the object with its keys in their order.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(m.Key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(m.Value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// FromJSON reads a JSON value as a value of XNL, with the keys of objects in their order. It refuses nesting beyond the
// depth that Parse accepts.
func FromJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := fromJSON(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return v, nil
}

func fromJSON(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		if n, err := token.Int64(); err == nil {
			return n, nil
		}
		return token.Float64()
	case json.Delim:
		if depth >= maxDepth {
			return nil, errors.New("the JSON value is nested too deeply")
		}
		if token == '[' {
			return listFromJSON(d, depth)
		}
		return objectFromJSON(d, depth)
	}
	return token, nil
}

func listFromJSON(d *json.Decoder, depth int) (any, error) {
	items := []any{}
	for d.More() {
		item, err := fromJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := d.Token()
	return items, err
}

func objectFromJSON(d *json.Decoder, depth int) (any, error) {
	o := Object{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		value, err := fromJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		o = append(o, Member{name, value})
	}
	_, err := d.Token()
	return slices.Clip(o.distinct()), err
}
