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
		{`{"type":"integer"}`, `"1"`, `the whole value must be an integer, not the string "1"`},
		{`{"type":["string","null"]}`, `[1]`, `the whole value must be null or a string, not an array`},
		{
			`{"required":["a","b"],"properties":{"a":{"type":"integer"},"c":{"minLength":3,"pattern":"^a"}},"additionalProperties":false}`, `{"a":{},"c":"é","d":1}`,
			`the whole value must have the property "b"; /a must be an integer, not an object; /c must have at least 3 characters, not 1; ` +
				`/c must match the pattern "^a", but is "é"; the whole value must not have the property "d", only "a", "c"`,
		},
		{`{"items":{"enum":[1,"x",null]}}`, `[1,"y"]`, `/1 must be one of 1, "x", null, not "y"`},
		{`{"items":{"enum":[]}}`, `[1]`, `/0 cannot be anything: the enum is empty`},
		{
			`{"properties":{"a/b~":{"const":{"x":[1,null]}}}}`, `{"a/b~":{"x":[1,true]}}`,
			`/a~1b~0 must be {"x":[1,null]}, not {"x":[1,true]}`,
		},
		{
			`{"anyOf":[{"type":"string"},{"properties":{"x":{"type":"integer"}}}]}`, `{"x":"s"}`,
			`the whole value must fit one of the 2 schemas of anyOf, but fits none; schema 1: must be a string, not an object; schema 2: /x must be an integer, not the string "s"`,
		},
		{
			`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `3`,
			`the whole value must fit one schema of oneOf only, but fits schemas 1 and 2`,
		},
		{`{"anyOf":[{"items":{"type":"integer"}}]}`, `["x"]`, `/0 must be an integer, not the string "x"`},
		{`{"not":{"type":"string"}}`, `"<&>"`, `the whole value must not fit {"type":"string"}`},
		{
			`{"contains":{"const":"<"},"minContains":2}`, `["<"]`,
			`the whole value must have at least 2 items that fit {"const":"<"}, not 1`,
		},
		{
			`{"contains":{"const":1},"maxContains":1}`, `[1,1]`,
			`the whole value must have at most 1 items that fit {"const":1}, not 2`,
		},
		{
			`{"uniqueItems":true}`, `[{"a":1,"b":2},1,{"b":2.0,"a":1e0}]`,
			`the whole value must not have the same item twice, but items 0 and 2 are both {"a":1e0,"b":2.0}`,
		},
		{`{"prefixItems":[{}],"items":false}`, `[1,2]`, `the whole value must have at most 1 items, not 2`},
		{`{"prefixItems":[{}],"unevaluatedItems":false}`, `[1,2]`, `the whole value must not have the item 1, 2`},
		{
			`{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"a":1,"b":1}`,
			`the whole value must not have the property "b"`,
		},
		{
			`{"prefixItems":[true],"allOf":[{"unevaluatedItems":false}],"unevaluatedItems":true}`, `[1]`,
			`the whole value must not have the item 0, 1`,
		},
		{
			`{"allOf":[{"properties":{"a":{"type":"string"}}}],"unevaluatedProperties":false}`, `{"a":1}`,
			`/a must be a string, not the number 1`,
		},
		{
			`{"propertyNames":{"maxLength":2}}`, `{"abc":1}`,
			`the whole value must not have a property of the name "abc", which must have at most 2 characters, not 3`,
		},
		{
			`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`,
			`the whole value must have the property "b", since it has "a"`,
		},
		{`{"dependencies":{"a":["b"]}}`, `{"a":1}`, `the whole value must have the property "b", since it has "a"`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `/a is not allowed`},
		{`{"multipleOf":0.01}`, `4.35`, ""},
		{`{"multipleOf":0.1}`, `9.05`, `the whole value must be a multiple of 0.1, not the number 9.05`},
		{
			`{"minimum":9007199254740993}`, `9007199254740992`,
			`the whole value must be at least 9007199254740993, not the number 9007199254740992`,
		},
		{`{"maximum":-1.50}`, `-1.5e0`, ""},
		{`{"exclusiveMinimum":1}`, `1.0`, `the whole value must be greater than 1, not the number 1.0`},
		{`{"exclusiveMaximum":1}`, `1`, `the whole value must be less than 1, not the number 1`},
		{`{"maxLength":1}`, `"😀"`, ""},
		{
			`{"type":"string","pattern":"^a"}`, `"b\u001b[31m"`,
			`the whole value must match the pattern "^a", but is "b\u001b[31m"`,
		},
		{`{"properties":{"\u001b[31mx":{"type":"null"}}}`, `{"\u001b[31mx":1}`, `/x must be null, not the number 1`},
		{`{}`, ``, `there is no JSON in it`},
		{`{}`, `{`, `it is no JSON: unexpected EOF`},
		{`{}`, `1 2`, `it is no JSON: more follows the first value`},
		{`{}`, `{"a":[1,1e99999]}`, `/a/1: the number 1e99999 is out of range: at most 10000 digits and powers of ten`},
	} {
		s, err := Parse([]byte(tt.schema))
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		said := ""
		if err := s.Validate([]byte(tt.value)); err != nil {
			said = err.Error()
		}
		if said != tt.want {
			t.Errorf("%s on %s:\n%s\n%s", tt.schema, tt.value, said, tt.want)
		}
	}
}

// TestRefused shows schemas that are none, with the place and the reason.
func TestRefused(t *testing.T) {
	for schema, want := range map[string]string{
		``:                                      "there is no JSON in it",
		`{"type":`:                              "it is no JSON: unexpected EOF",
		`{} {}`:                                 "more follows",
		`1`:                                     "the schema: a schema is an object, true or false, not the number 1",
		`{"type":"strange"}`:                    `/type: there is no type "strange"`,
		`{"anyOf":[{"type":["null",7]}]}`:       `/anyOf/0/type: there is no type 7`,
		`{"type":[]}`:                           `/type: it is the name of a type`,
		`{"properties":{"a":{"minLength":-1}}}`: `/properties/a/minLength: it is a whole number from 0, not -1`,
		`{"maxItems":1.5}`:                      `/maxItems: it is a whole number`,
		`{"minLength":"x"}`:                     `/minLength: it is a number, not the string "x"`,
		`{"multipleOf":0}`:                      `/multipleOf: it is greater than 0`,
		`{"minimum":1e99999}`:                   `/minimum: the number 1e99999 is out of range`,
		`{"exclusiveMinimum":true}`:             `/exclusiveMinimum: it is a number, not true`,
		`{"enum":1}`:                            `/enum: it is an array`,
		`{"required":"a"}`:                      `/required: it is an array of strings, not "a"`,
		`{"required":[1]}`:                      `/required: it is an array of strings, not [1]`,
		`{"uniqueItems":1}`:                     `/uniqueItems: it is true or false`,
		`{"properties":[]}`:                     `/properties: it is an object, not an array`,
		`{"properties":{"a":1}}`:                `/properties/a: a schema is an object`,
		`{"dependentRequired":{"a":{}}}`:        `/dependentRequired/a: it is an array of strings`,
		`{"dependentSchemas":{"a":["b"]}}`:      `/dependentSchemas/a: a schema is an object`,
		`{` + in7 + `"dependencies":{"a":1}}`:   `/dependencies/a: a schema is an object`,
		`{"allOf":[]}`:                          `/allOf: it is an array of schemas`,
		`{"allOf":{}}`:                          `/allOf: it is an array of schemas`,
		`{"not":[]}`:                            `/not: a schema is an object`,
		`{"items":[{}]}`:                        `/items: it is one schema in draft 2020-12`,
		`{"$ref":7}`:                            `/$ref: it is a string`,
		`{"$ref":"#/$defs/none"}`:               `/$ref: "#/$defs/none" leads nowhere`,
		`{"$ref":"#none"}`:                      `/$ref: "#none" leads nowhere`,
		`{"$ref":"#/allOf/00","allOf":[true]}`:  `leads nowhere`,
		`{"items":{"$ref":"https://example.com/x"}}`:           `/items/$ref: "https://example.com/x" leads out of this document, and nothing is fetched`,
		`{"$dynamicRef":"https://example.com/x#a"}`:            `nothing is fetched`,
		`{"$ref":"x.json"}`:                                    `nothing is fetched`,
		`{"$ref":"%"}`:                                         `/$ref: "%" is no URI`,
		`{"$id":"http://[x"}`:                                  `/$id: "http://[x" is no URI`,
		`{"$id":"http://x/y#z"}`:                               `must not have a fragment`,
		`{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}`:          `/$defs/b/$id: "x" is that of /$defs/a too`,
		`{"$anchor":"x","not":{"$anchor":"x"}}`:                `/not/$anchor: "x" is the name of the schema too`,
		`{"$schema":"http://json-schema.org/schema#"}`:         `/$schema: "http://json-schema.org/schema#" is neither of draft 2020-12 nor of draft-07`,
		`{"$ref":"#"}`:                                         `the schema: it refers to itself without a step into the value`,
		`{"properties":{"n":{"$ref":"#/properties/n"}}}`:       `/properties/n: it refers to itself`,
		`{"$ref":"#/x","x":{"$ref":"#/y"},"y":{"$ref":"#/x"}}`: `refers to itself`,
		`{"$id":"http://x/r","$dynamicAnchor":"a","$ref":"l","$defs":{"l":{"$id":"l","$dynamicRef":"#a","$defs":{"d":{"$dynamicAnchor":"a"}}}}}`: `refers to itself`,
		`{"properties":{"\u001b[31mx":1}}`:                                       `/properties/x: a schema is`,
		`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`:                              `refers to itself`,
		`{"$defs":{"b":{"$id":"b","$dynamicAnchor":"a","$dynamicRef":"#a"}}}`:    `refers to itself`,
		`{"patternProperties":{"(":true}}`:                                       `/patternProperties: the pattern "(": missing closing )`,
		`{"pattern":"` + strings.Repeat("a", longestPattern+1) + `"}`:            `it is longer than`,
		`{"pattern":"((a{100}){100}){100}"}`:                                     `repetition`,
		`{"allOf":[` + strings.Repeat(`{"pattern":"a{999}b"},`, 2000) + `true]}`: `too large together`,
	} {
		if s, err := Parse([]byte(schema)); err == nil || s != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, not %s", schema, err, want)
		}
	}
}

// TestDrafts: what is a keyword depends on $schema.
func TestDrafts(t *testing.T) {
	const in2020 = `"$schema":"https://json-schema.org/draft/2020-12/schema#",`
	for _, tt := range []struct {
		schema, value string
		fits          bool
	}{
		{`{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a","minLength":2}`, `"a"`, false},
		{`{` + in2020 + `"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a","minLength":2}`, `"a"`, false},
		{`{` + in7 + `"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a","minLength":2}`, `"a"`, true},
		{
			`{` + in7 + `"definitions":{"a":{"type":"string"}},"$ref":"#/definitions/a","minLength":"ignored"}`, `1`,
			false,
		},
		{`{` + in7 + `"items":[{"type":"string"}],"additionalItems":{"type":"null"}}`, `["a",null]`, true},
		{`{` + in7 + `"items":[{"type":"string"}],"additionalItems":{"type":"null"}}`, `["a",1]`, false},
		{`{` + in7 + `"prefixItems":[false],"dependentRequired":{"a":["b"]},"unevaluatedItems":false}`, `[1]`, true},
		{`{"dependencies":{"a":{"required":["b"]}}}`, `{"a":1}`, false},
		{`{"format":"date","contentEncoding":"base64","contentSchema":false}`, `"%"`, true},
		{`{"components":{"x":{"type":"null"}},"properties":{"a":{"$ref":"#/components/x"}}}`, `{"a":1}`, false},
	} {
		s, err := Parse([]byte(tt.schema))
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
		} else if err = s.Validate([]byte(tt.value)); (err == nil) != tt.fits {
			t.Errorf("%s on %s: %v", tt.schema, tt.value, err)
		}
	}
}

// TestTriedBefore: an answer is used again only where nothing but the schema and the value counts.
func TestTriedBefore(t *testing.T) {
	const list = `"list":{"$id":"list","items":{"$dynamicRef":"#i"},"$defs":{"i":{"$dynamicAnchor":"i"}}}`
	for schema, value := range map[string]string{
		`{"$defs":{"a":{"properties":{"x":true}}},"allOf":[{"not":{"not":{"$ref":"#/$defs/a"}}},{"anyOf":[{"$ref":"#/$defs/a"}]}],"unevaluatedProperties":false}`: `{"x":1}`,
		`{"$id":"http://x/r","anyOf":[{"$ref":"s"},{"$ref":"n"}],"$defs":{"s":{"$id":"s","$ref":"list","$defs":{"i":{"$dynamicAnchor":"i","type":"string"}}},` +
			`"n":{"$id":"n","$ref":"list","$defs":{"i":{"$dynamicAnchor":"i","type":"number"}}},` + list + `}}`: `[1]`,
	} {
		s, err := Parse([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate([]byte(value)); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// TestAtOnce: a schema is not changed by what it is used for.
func TestAtOnce(t *testing.T) {
	s, err := Parse(
		[]byte(`{"$dynamicAnchor":"n","properties":{"n":{"$dynamicRef":"#n"}},"additionalProperties":false,"patternProperties":{"^x":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				if err := s.Validate([]byte(`{"n":{"n":{"x":"y"}}}`)); err != nil {
					t.Error(err)
				}
				if err := s.Validate([]byte(`{"n":{"n":{"x":1}}}`)); err == nil ||
					err.Error() != "/n/n/x must be a string, not the number 1" {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
