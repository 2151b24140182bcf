package contract

import (
	"reflect"
	"strings"
	"time"
)

// schemaOf derives the JSON Schema (draft-07) of a Go type from what the walker writes, so that the two cannot
// disagree. A field's `doc` tag becomes its description, `enum:"a,b"` its values, and `plain:"yes"` says that it is not
// a secret, whatever its name.
func schemaOf(t reflect.Type) object {
	if t == nil {
		return object{{"type", "object"}}
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}
	case reflect.TypeFor[time.Duration]():
		return object{{"type", "integer"}}
	case reflect.TypeFor[[]byte]():
		return object{{"type", "object"}}
	}
	if t.Implements(reflect.TypeFor[foreigner]()) {
		return foreignSchema(t)
	}
	if t.Implements(reflect.TypeFor[foreignList]()) {
		return schemaOf(reflect.TypeOf(reflect.Zero(t).Interface().(foreignList).marked()))
	}
	if t.Implements(reflect.TypeFor[rower]()) {
		return object{{"type", "array"}, {"items", schemaOf(reflect.Zero(t).Interface().(rower).row())}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		inner := schemaOf(t.Elem())
		if name, ok := inner.get("type"); ok {
			if word, single := name.(string); single {
				return inner.set("type", []any{word, "null"})
			}
		}
		return inner
	case reflect.Struct:
		return structSchema(t)
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", schemaOf(t.Elem())}}
	case reflect.Slice, reflect.Array:
		return object{{"type", "array"}, {"items", schemaOf(t.Elem())}}
	case reflect.String:
		return object{{"type", "string"}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Float32, reflect.Float64:
		return object{{"type", "number"}}
	case reflect.Interface:
		return object{}
	}
	return object{{"type", "integer"}}
}

func foreignSchema(t reflect.Type) object {
	inner := schemaOf(t.Field(0).Type)
	properties, ok := inner.get("properties")
	if !ok {
		inner = object{{"type", "object"}, {"properties", object{{"value", inner}}}}
		properties, _ = inner.get("properties")
	}
	tagged := properties.(object).set("_source", object{{"const", "external"}}).set("_trusted",
		object{{"const", false}})
	return inner.set("properties", tagged)
}

func structSchema(t reflect.Type) object {
	properties, required := object{}, []any{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, optional := wireName(field)
		if !field.IsExported() && !field.Anonymous || name == "-" {
			continue
		}
		if field.Anonymous && field.Tag.Get("json") == "" {
			inner := structSchema(field.Type)
			if p, ok := inner.get("properties"); ok {
				properties = append(properties, p.(object)...)
			}
			if r, ok := inner.get("required"); ok {
				required = append(required, r.([]any)...)
			}
			continue
		}
		s := schemaOf(field.Type)
		if doc := field.Tag.Get("doc"); doc != "" {
			s = s.set("description", doc)
		}
		if values := field.Tag.Get("enum"); values != "" {
			list := []any{}
			for v := range strings.SplitSeq(values, ",") {
				list = append(list, v)
			}
			s = s.set("enum", list)
		}
		properties = append(properties, member{name, s})
		if !optional {
			required = append(required, name)
		}
	}
	out := object{{"type", "object"}, {"properties", properties}}
	return out.when(len(required) > 0, "required", required)
}
