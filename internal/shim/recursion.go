package shim

import (
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// endless refuses a schema that comes back to itself without a step into the value, such as {"$ref":"#"}: nothing fits or fails it, and
// the library would follow it until the stack is full, which ends the process.
//
// What a reference leads to is read from the library's own table, which it does not publish. To resolve references a second time would
// be to resolve one of them differently some day, and that one would end the process. Without the table no schema is accepted.
func endless(r *jsonschema.Resolved) error {
	w := inPlace{infos: map[uintptr]reflect.Value{}, anchors: map[string][]reflect.Value{}, seen: map[uintptr]bool{}}
	table := reflect.ValueOf(r).Elem().FieldByName("resolvedInfos")
	if table.Kind() != reflect.Map {
		return errUnknownLibrary()
	}
	var schemas []reflect.Value
	for each := table.MapRange(); each.Next(); {
		schema, info := each.Key(), each.Value().Elem()
		schemas = append(schemas, schema)
		w.infos[schema.Pointer()] = info
		if anchor := schema.Elem().FieldByName("DynamicAnchor").String(); anchor != "" {
			w.anchors[anchor] = append(w.anchors[anchor], schema)
		}
	}
	for _, schema := range schemas {
		if err := w.follow(schema); err != nil {
			return err
		}
	}
	return nil
}

func errUnknownLibrary() error { return fmt.Errorf("its references cannot be followed") }

// inPlace goes through the schemas that apply to the same value. Values of reflection are pointers to schemas.
type inPlace struct {
	infos   map[uintptr]reflect.Value  // what the library knows of a schema
	anchors map[string][]reflect.Value // by $dynamicAnchor
	seen    map[uintptr]bool           // true: on the way to where we are; false: done
}

func (w *inPlace) follow(schema reflect.Value) error {
	at := schema.Pointer()
	if onTheWay, seen := w.seen[at]; onTheWay {
		return fmt.Errorf("%s refers to itself without a step into the value", printable(w.infos[at].FieldByName("path").String()))
	} else if seen {
		return nil
	}
	w.seen[at] = true
	next, err := w.next(schema)
	for i := 0; err == nil && i < len(next); i++ {
		err = w.follow(next[i])
	}
	w.seen[at] = false
	return err
}

// next are the schemas that a schema applies to the same value, always or under a condition.
func (w *inPlace) next(schema reflect.Value) (next []reflect.Value, err error) {
	info := w.infos[schema.Pointer()]
	anchor := info.FieldByName("dynamicRefAnchor")
	fields := []reflect.Value{info.FieldByName("resolvedRef"), info.FieldByName("resolvedDynamicRef")}
	if anchor.Kind() != reflect.String {
		return nil, errUnknownLibrary()
	}
	if anchor.String() != "" { // which of them is known only on the way
		next = append(next, w.anchors[anchor.String()]...)
	}
	for _, name := range []string{"AllOf", "AnyOf", "OneOf", "Not", "If", "Then", "Else", "DependentSchemas", "DependencySchemas"} {
		fields = append(fields, schema.Elem().FieldByName(name))
	}
	for _, field := range fields {
		switch field.Kind() {
		case reflect.Pointer:
			if !field.IsNil() {
				next = append(next, field)
			}
		case reflect.Slice:
			for i := range field.Len() {
				next = append(next, field.Index(i))
			}
		case reflect.Map:
			for each := field.MapRange(); each.Next(); {
				next = append(next, each.Value())
			}
		default:
			return nil, errUnknownLibrary()
		}
	}
	return next, nil
}
