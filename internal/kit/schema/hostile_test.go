package schema

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// TestHostile: no schema and no value takes long, and each ends with an answer. The limits of time are generous: what
// is not bounded takes hours.
func TestHostile(t *testing.T) {
	hermetic.Long(t)
	nested := func(open, inside, end string, times int) string {
		return strings.Repeat(open, times) + inside + strings.Repeat(end, times)
	}
	var doubled strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubled, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	objects := func(n int) string {
		return `[` + strings.Repeat(`{"id":12345,"name":"somebody or other","tags":["a","b"]},`, n) + `null]`
	}
	large, smaller := objects(180_000), objects(18_000) // 10 MB and one
	const alternatives = `{"$defs":{"n":{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#/$defs/n"},"maxItems":1},{"type":"array","items":{"$ref":"#/$defs/n"}}]}},"$ref":"#/$defs/n"}`
	const sums = `{"$defs":{"n":{"anyOf":[{"type":"number"},` +
		`{"properties":{"op":{"const":"-"},"left":{"$ref":"#/$defs/n"},"right":{"$ref":"#/$defs/n"}},"required":["op","left"],"type":"object"},` +
		`{"properties":{"op":{"const":"+"},"left":{"$ref":"#/$defs/n"},"right":{"$ref":"#/$defs/n"}},"required":["op","left"],"type":"object"}]}},"$ref":"#/$defs/n"}`
	const tree = `{"items":{"$ref":"#"},"type":"array"}`
	const long = "takes too long"
	for _, tt := range []struct {
		name, schema, value string
		want                string // a part of the error; "" if there is none
	}{
		{
			"1 MB that fits",
			`{"items":{"type":["object","null"],"properties":{"id":{"type":"integer"},"tags":{"items":{"type":"string"},"uniqueItems":true}},"required":["id"]}}`, smaller, "",
		},
		{
			"10 MB that do not fit", `{"items":{"type":"object","properties":{"name":{"pattern":"^[a-z ]+$"}}}}`, large,
			`/items: type: null has type "null", want "object"`,
		},
		{"1 MB that is all wrong", `{"items":{"type":"string"}}`, smaller, `has type "object", want "string"`},
		{"1 MB by a const", `{"const":[1]}`, smaller, `const: [map[id:12345 name:somebody or other`},
		{
			"a string of 10 MB", `{"pattern":"^a*$","minLength":3}`, `"` + strings.Repeat("a", 10<<20) + `b"`,
			"pattern: \"aaaaa",
		},
		{"10 MB of digits", `{"multipleOf":3}`, strings.Repeat("3", 10<<20), "out of range"},
		{"a large exponent", `{"multipleOf":3}`, `1e999999999`, "out of range"},
		{
			"10,000 digits each", `{"items":{"multipleOf":0.` + strings.Repeat("0", 9000) + `7}}`,
			`[` + strings.Repeat(strings.Repeat("7", 9999)+",", 999) + `0]`, "multipleOf must be greater than 0",
		},
		{"a nested value", tree, nested("[", "", "]", 900), ""},
		{"a deep value", tree, nested("[", "", "]", 9999), long},
		{
			"a nested value that does not fit", tree, nested("[", "1", "]", 900),
			`/items: …: /items: /items: /items: type: 1 has type "integer", want "array"`,
		},
		{"a value that is too deep", tree, nested("[", "", "]", 10_001), "exceeded max depth"},
		{"a deep schema", nested(`{"not":`, "true", "}", 199), `1`, "not: validated against"},
		{"a schema that is too deep", nested(`{"not":`, "true", "}", 201), ``, "nested deeper than 200 levels"},
		{
			"both deep", `{"items":{"$ref":"#"},"allOf":[` + nested(`{"allOf":[`, "true", "]}", 90) + `]}`,
			nested("[", "", "]", 9999), long,
		},
		{"in place and deep", `{"properties":{"a":{"$ref":"#"}},"anyOf":[` + nested(`{"anyOf":[`,
			`{"items":{"$ref":"#"}}`, "]}", 90) + `]}`, nested("[", "", "]", 9999), long},
		{"doubled", `{"$defs":{` + doubled.String() + `"d40":true},"$ref":"#/$defs/d0"}`, `1`, long},
		{"doubled and wrong", `{"$defs":{` + strings.ReplaceAll(doubled.String(), "allOf", "anyOf") +
			`"d40":false},"$ref":"#/$defs/d0"}`, `1`, long},
		{
			"alternatives all the way", alternatives, nested("[", "1", "]", 5000), long,
		},
		{"alternatives that fit", alternatives, nested("[", "null", "]", 10), ""},
		{"sums", sums, nested(`{"op":"+","left":`, "1", "}", 12), ""},
		{"wrong sums", sums, nested(`{"op":"+","left":`, `"x"`, "}", 12), "anyOf: did not validate"},
		{
			"uniqueness all the way", `{"items":{"$ref":"#"},"uniqueItems":true}`,
			nested("[", `"`+strings.Repeat("x", 1<<20)+`"`, "]", 9000), long,
		},
		{
			"a long enum of long strings", `{"items":{"enum":["` + strings.Repeat("x", 1<<20) + `"]}}`,
			`["y"` + strings.Repeat(`,"y"`, 100_000) + `]`, "enum: y does not equal any of: [xxx",
		},
		{
			"many errors", `{"additionalProperties":{"anyOf":[{"type":"null"},{"const":1}]}}`,
			`{` + strings.Repeat(`"`+strings.Repeat("k", 1000)+`1":2,`, 1) + `"a":2,"b":2,"c":2,"d":2,"e":2,"f":2}`,
			"/additionalProperties: anyOf: did not validate against any of",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			var err error
			if s, refused := Parse([]byte(tt.schema)); refused != nil {
				err = refused
			} else {
				err = s.Validate([]byte(tt.value))
			}
			took := time.Since(begin)
			t.Logf("%v", took)
			if took > hermetic.Patience {
				t.Errorf("it takes %v", took)
			}
			switch {
			case tt.want == "" && err != nil, tt.want != "" && err == nil:
				t.Errorf("%.200v", err)
			case err != nil && (!strings.Contains(err.Error(), tt.want) || len(err.Error()) > 4000):
				t.Errorf("%.400v", err)
			}
		})
	}
}

// TestMemory: names along the way are not kept for each schema within, and refused patterns are not kept at all.
func TestMemory(t *testing.T) {
	name := strings.Repeat("n", 500_000)
	for what, schema := range map[string]string{
		"deep below a long name": `{"properties":{"` + name + `":` + strings.Repeat(`{"not":`, 9000) + "true" +
			strings.Repeat("}", 9001) + "}",
		"patterns": `{"allOf":[` + strings.Repeat(`{"pattern":"(?:\\p{L}\\P{L}[^\\w]){300}"},`, 10_000) +
			`true]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse([]byte(schema))
		runtime.ReadMemStats(&after)
		took := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d MiB, %.80v", what, took, err)
		if took > 500 {
			t.Errorf("%s: %d MiB", what, took)
		}
	}
}
