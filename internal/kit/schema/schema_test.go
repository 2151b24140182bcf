package schema

import (
	"strings"
	"sync"
	"testing"
)

const in7 = `"$schema":"http://json-schema.org/draft-07/schema#",`

// TestWords shows what is said of values that do not fit. "" is nothing.
func TestWords(t *testing.T) {
	for _, tt := range []struct{ schema, value, want string }{
		{`{"type":"integer"}`, `1.0`, ""},
		{`{"type":"integer"}`, `9007199254740993`, ""},
		{`{"type":"integer"}`, `18446744073709551615`, ""},
		{`{"type":"integer"}`, `"1"`, `type: 1 has type "string", want "integer"`},
		{`{"type":["string","null"]}`, `[1]`, `type: [1] has type "array", want one of "string, null"`},
		{
			`{"properties":{"a":{"type":"integer"}}}`, `{"a":"x"}`,
			`/properties/a: type: x has type "string", want "integer"`,
		},
		{
			`{"properties":{"a":{"items":{"properties":{"n":{"type":"integer"}}}}}}`, `{"a":[{"n":"x"}]}`,
			`/properties/a/items/properties/n: type: x has type "string", want "integer"`,
		},
		{`{"required":["b"]}`, `{}`, `required: missing properties: ["b"]`},
		{`{"items":{"enum":[1,"x",null]}}`, `[1,"y"]`, `/items: enum: y does not equal any of: [1 x null]`},
		{
			`{"$defs":{"p":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/p"}}}`, `{"n":1.5}`,
			`/properties/n: /$defs/p: type: 1.5 has type "number", want "integer"`,
		},
		{
			`{"properties":{},"additionalProperties":false}`, `{"d":1}`, `unexpected additional properties ["d"]`,
		},
		{`{"anyOf":[{"const":1},{"const":2}]}`, `3`, `; `},
		{`{"multipleOf":0.01}`, `4.35`, ""},
		{`{"items":{"anyOf":[{"type":"null"},{"multipleOf":0.1,"minimum":0}]}}`, `[0.3,null,0.7,1.1]`, ""},
		{`{"items":{"multipleOf":0.1}}`, `[0.3,0.35]`, `/items: multipleOf: `},
		{`{"multipleOf":0.1}`, `9.05`, `multipleOf: `},
		{
			`{"minimum":9007199254740994}`, `9007199254740993`,
			`minimum: 9007199254740993/1 is less than 900719925474099`,
		},
		{`{"maximum":-1.50}`, `-1.5e0`, ""},
		{`{"dependencies":{"a":["b"]}}`, `{"a":1}`, `dependentRequired["a"]: missing properties ["b"]`},
		{`{"dependencies":{"a":{"required":["b"]}}}`, `{"a":1}`, `/dependentSchemas/a: required: `},
		{
			`{` + in7 + `"items":[{"type":"string"}],"additionalItems":{"type":"null"}}`, `["a",1]`,
			`/additionalItems: type: `,
		},
		{`{` + in7 + `"definitions":{"a":{"type":"string"}},"$ref":"#/definitions/a","minLength":2}`, `"a"`, ``},
		{`{"format":"date","contentEncoding":"base64","contentSchema":false}`, `"%"`, ``},
		{`{"exclusiveMinimum":1}`, `1.0`, `exclusiveMinimum: `},
		{`{"maxLength":1}`, `"😀"`, ""},
		{`{"uniqueItems":true}`, `[{"a":1,"b":2},1,{"b":2.0,"a":1e0}]`, `uniqueItems: `},
		{`{"type":"string","pattern":"^a"}`, `"b\u001b[31m"`, `pattern: "b\x1b[31m" does not match`},
		{`{"properties":{"\u001b[31mx":{"type":"null"}}}`, `{"\u001b[31mx":1}`, `/properties/x: type: `},
		{`{}`, ``, `there is no JSON in it`},
		{`{}`, `{`, `invalid JSON: unexpected EOF`},
		{`{}`, `1 2`, `invalid JSON: more follows the first value`},
		{`{}`, `{"a":[1,1e99999]}`, `the number 1e99999 is out of range`},
	} {
		s, err := Parse([]byte(tt.schema))
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		message := ""
		if err := s.Validate([]byte(tt.value)); err != nil {
			message = err.Error()
		}
		if (message == "") != (tt.want == "") || !strings.Contains(message, tt.want) ||
			strings.HasPrefix(tt.want, "/") && !strings.HasPrefix(message, tt.want) {
			t.Errorf("%s on %s:\n%s\n%s", tt.schema, tt.value, message, tt.want)
		}
	}
}

// TestRefused shows what is not a schema, and what is one that cannot be applied.
func TestRefused(t *testing.T) {
	for schema, want := range map[string]string{
		``:                                      "there is no JSON in it",
		`{"type":`:                              "invalid JSON: unexpected EOF",
		`{} {}`:                                 "more follows",
		`1`:                                     "cannot unmarshal number",
		`{"type":"strange"}`:                    `there is no type "strange"`,
		`{"anyOf":[{"type":["null","x"]}]}`:     `/anyOf/0: there is no type "x"`,
		`{"anyOf":[{"type":["null",7]}]}`:       `cannot unmarshal number`,
		`{"minLength":"x"}`:                     `cannot be unmarshaled into an int`,
		`{"multipleOf":0}`:                      `multipleOf must be greater than 0`,
		`{"enum":1}`:                            `enum`,
		`{"properties":{"a":1}}`:                `cannot unmarshal number`,
		`{"$ref":"#/$defs/none"}`:               `the reference "#/$defs/none" leads nowhere within this document`,
		`{"$ref":"#none"}`:                      `leads nowhere`,
		`{"items":{"$ref":"https://x.test/x"}}`: `/items: the reference "https://x.test/x" leads nowhere within this document`,
		`{"$dynamicRef":"https://x.test/x#a"}`:  `leads nowhere`,
		`{"$ref":"x.json"}`:                     `leads nowhere`,
		`{"$ref":"%"}`:                          `the reference "%" is not a URI`,
		`{"$schema":"http://json-schema.org/schema#"}`: `is neither draft 2020-12 nor draft-07`,
		`{"$ref":"#"}`: `the schema: it refers to itself without a step into the value`,
		`{"properties":{"n":{"$ref":"#/properties/n"}}}`:                `/properties/n: it refers to itself`,
		`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`:                     `refers to itself`,
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`: `refers to itself`,
		`{"$id":"http://x/r","$dynamicAnchor":"a","$ref":"l","$defs":{"l":{"$id":"l","$dynamicRef":"#a","$defs":{"d":{"$dynamicAnchor":"a"}}}}}`: `refers to itself`,
		`{"patternProperties":{"(":true}}`:                              `missing closing )`,
		`{"pattern":"((a{100}){100}){100}"}`:                            `invalid repeat count`,
		`{"pattern":"(?!x)"}`:                                           `invalid`,
		strings.Repeat(`{"not":`, 201) + "1" + strings.Repeat("}", 201): `nested deeper than 200 levels`,
	} {
		if s, err := Parse([]byte(schema)); err == nil || s != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, not %s", schema, err, want)
		}
	}
}

// TestAtOnce: a schema is not changed by what it is used for.
func TestAtOnce(t *testing.T) {
	s, err := Parse([]byte(`{"$dynamicAnchor":"n","properties":{"n":{"$dynamicRef":"#n"},"x":{"multipleOf":0.1}},` +
		`"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				if err := s.Validate([]byte(`{"n":{"n":{"x":0.3}}}`)); err != nil {
					t.Error(err)
				}
				if err := s.Validate([]byte(`{"n":{"n":{"x":0.35}}}`)); err == nil {
					t.Error("0.35 fits")
				}
			}
		})
	}
	all.Wait()
}
