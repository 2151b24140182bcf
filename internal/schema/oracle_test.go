package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"omniagent/internal/schema"
)

// TestSecondOpinion holds our answers against those of another library, on random schemas and values. What it is known
// to do otherwise is left out: numbers that floats do not hold, patterns that Go and ECMA read differently,
// dependencies in draft 2020-12.
func TestSecondOpinion(t *testing.T) {
	fitting, compared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		draft7 := rapid.Bool().Draw(t, "draft7")
		g := generator{t: t, draft7: draft7}
		document := g.schema(3).(map[string]any)
		document["$defs"] = map[string]any{
			"a": g.schema(1),
			"b": map[string]any{"items": map[string]any{"$ref": "#/$defs/b"}, "type": []any{"array", "integer"}},
		}
		if draft7 {
			document["$schema"] = "http://json-schema.org/draft-07/schema#"
		}
		text, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := schema.Parse(text)
		if err != nil && strings.Contains(err.Error(), "refers to itself") {
			return // theirs would not come back
		} else if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var theirs jsonschema.Schema
		if err := json.Unmarshal(text, &theirs); err != nil {
			t.Fatal(err)
		}
		resolved, err := theirs.Resolve(&jsonschema.ResolveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			value := g.value(3)
			written, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			var decoded any
			if err := json.Unmarshal(written, &decoded); err != nil {
				t.Fatal(err)
			}
			a, b := ours.Validate(written), resolved.Validate(decoded)
			if (a == nil) != (b == nil) {
				t.Fatalf("%s on %s:\nours: %v\ntheirs: %v", text, written, a, b)
			}
			if compared++; a == nil {
				fitting++
			}
		}
	})
	t.Logf("%d of %d fit", fitting, compared)
	if fitting*20 < compared || fitting*20 > compared*19 {
		t.Error("the answers are too one-sided to say much")
	}
}

// generator makes small schemas and values of a few names and numbers, so that they meet.
type generator struct {
	t      *rapid.T
	draft7 bool
}

func (g *generator) among(words ...string) string { return rapid.SampledFrom(words).Draw(g.t, "word") }
func (g *generator) upTo(n int) int               { return rapid.IntRange(0, n).Draw(g.t, "n") }
func (g *generator) name() string                 { return g.among("a", "b", "ab", "c") }
func (g *generator) number() any {
	return rapid.SampledFrom([]any{-1, 0, 1, 1.5, 2, 3, 4.5, 10, json.Number("1.0"), json.Number("2e0")}).Draw(g.t,
		"number")
}

func (g *generator) value(depth int) any {
	switch g.upTo(6 + min(depth, 1)*4) {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(g.t, "truth")
	case 2, 3:
		return g.number()
	case 4, 5, 6:
		return g.among("", "a", "ab", "é", "abc", "b")
	case 7, 8:
		list := []any{}
		for range g.upTo(3) {
			list = append(list, g.value(depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range g.upTo(3) {
		object[g.name()] = g.value(depth - 1)
	}
	return object
}

func (g *generator) sub(depth int) any {
	switch {
	case g.upTo(9) == 0:
		return rapid.Bool().Draw(g.t, "schema")
	case g.upTo(7) == 0:
		return map[string]any{"$ref": g.among("#/$defs/a", "#/$defs/b")}
	}
	return g.schema(depth - 1)
}

func (g *generator) subs(depth int) (list []any) {
	for range 1 + g.upTo(2) {
		list = append(list, g.sub(depth))
	}
	return list
}

func (g *generator) schema(depth int) any {
	s := map[string]any{}
	for range 1 + g.upTo(2) {
		if depth <= 0 || g.upTo(2) == 0 {
			g.assertion(s)
		} else {
			g.applicator(s, depth)
		}
	}
	return s
}

func (g *generator) assertion(s map[string]any) {
	switch word := g.among("type", "types", "enum", "const", "number", "count", "pattern", "uniqueItems", "required",
		"dependentRequired"); word {
	case "type":
		s["type"] = g.among("object", "array", "string", "number", "integer", "null", "boolean")
	case "types":
		s["type"] = []any{"object", "array", g.among("string", "number", "integer")}
	case "enum":
		s["enum"] = []any{g.value(1), g.value(2), g.value(0)}
	case "const":
		s["const"] = g.value(2)
	case "number":
		s[g.among("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")] = g.number()
		s["multipleOf"] = rapid.SampledFrom([]any{1, 2, 0.5, 1.5}).Draw(g.t, "multiple")
	case "count":
		s[g.among("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")] = g.upTo(3)
	case "pattern":
		s["pattern"] = g.among("^a", "b$", "^(a|b)*$", "[^a]", "é")
	case "uniqueItems":
		s["uniqueItems"] = true
	case "required":
		s["required"] = []any{g.name()}
	case "dependentRequired":
		if !g.draft7 {
			s[word] = map[string]any{g.name(): []any{g.name()}}
		}
	}
}

func (g *generator) applicator(s map[string]any, depth int) {
	words := []string{
		"allOf", "anyOf", "oneOf", "not", "if", "properties", "properties", "patternProperties",
		"additionalProperties", "propertyNames", "items", "contains",
	}
	if g.draft7 {
		words = append(words, "array", "dependencies")
	} else {
		words = append(words, "prefixItems", "minContains", "dependentSchemas", "unevaluatedProperties",
			"unevaluatedItems", "unevaluatedProperties", "unevaluatedItems")
	}
	switch word := g.among(words...); word {
	case "allOf", "anyOf", "oneOf", "prefixItems":
		s[word] = g.subs(depth)
	case "if":
		s["if"], s["then"], s["else"] = g.sub(depth), g.sub(depth), g.sub(depth)
	case "properties", "dependentSchemas":
		s[word] = map[string]any{g.name(): g.sub(depth), g.name(): g.sub(depth)}
	case "dependencies":
		s[word] = map[string]any{"a": g.sub(depth), "b": []any{g.name()}}
	case "patternProperties":
		s[word] = map[string]any{g.among("^a", "b", "c$"): g.sub(depth)}
	case "array":
		s["items"], s["additionalItems"] = g.subs(depth), g.sub(depth)
	case "minContains":
		s["contains"], s[word], s["maxContains"] = g.sub(depth), g.upTo(2), 1+g.upTo(2)
	default:
		s[word] = g.sub(depth)
	}
}

func ExampleSchema_Validate() {
	s, err := schema.Parse(
		[]byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.ReplaceAll(s.Validate([]byte(`{"city":7,"land":"Norway"}`)).Error(), "; ", "\n"))
	// Output:
	// /city must be a string, not the number 7
	// the whole value must not have the property "land", only "city"
}
