package schema

import (
	"encoding/json"
	"os"
	"testing"
)

func seeds(f *testing.F) [][]byte {
	f.Helper()
	var list [][]byte
	for _, name := range []string{
		"ref", "dynamicRef", "anchor", "unevaluatedItems", "unevaluatedProperties",
		"infinite-loop-detection",
	} {
		data, err := os.ReadFile("testdata/suite/draft2020-12/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		var groups []suiteGroup
		if err := json.Unmarshal(data, &groups); err != nil {
			f.Fatal(err)
		}
		for _, g := range groups {
			list = append(list, g.Schema)
		}
	}
	return append(list,
		[]byte(`{"$dynamicAnchor":"n","properties":{"n":{"$dynamicRef":"#n"}},"unevaluatedProperties":false}`),
		[]byte(`{"$id":"http://x/y","$defs":{"a":{"$id":"z","$anchor":"b"}},"$ref":"z#b","pattern":"[^\\d-z]+$","multipleOf":0.1,"enum":[1,{}]}`),
		[]byte(`{"anyOf":[{"type":"null"},{"items":{"$ref":"#"},"contains":{"const":1},"unevaluatedItems":false}],"if":true,"then":{"not":false}}`),
		[]byte(`{`+in7+
			`"items":[{"$ref":"#/definitions/a"}],"definitions":{"a":{"type":"integer"}},"dependencies":{"a":["b"]}}`),
	)
}

// FuzzParse: whatever is given, there is a schema or an error, and a schema can be used.
func FuzzParse(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if (s == nil) == (err == nil) {
			t.Fatal(s, err)
		}
		if s != nil {
			_ = s.Validate([]byte(`{"n":{"n":[1,2.5,"x",null]},"a":[]}`))
			_ = s.Validate(data)
		}
	})
}

// FuzzValidate: whatever is checked, the check comes back, and an error has words.
func FuzzValidate(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed, []byte(`{"n":{"n":{}},"a":[1,[null,1]]}`))
		f.Add(seed, []byte(`[1.0,[1,"x"],-0]`))
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		s, err := Parse(schema)
		if err != nil {
			return
		}
		if err := s.Validate(value); err != nil && (err.Error() == "" || len(err.Error()) > 2*maxMessage) {
			t.Fatalf("%q", err)
		}
	})
}
