package schema

import (
	"encoding/json"
	"os"
	"regexp"
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

// FuzzValidate: the answer is the same with and without somebody who asks why, and the reason has words.
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
		decoded, err := decode(value)
		if err != nil {
			return
		}
		quiet := validation{dynamic: s.dynamic, work: mostWork}
		told := problems{most: mostTold}
		loud := validation{dynamic: s.dynamic, work: mostWork}
		a, b := quiet.fits(s.root, decoded, nil, nil), loud.fits(s.root, decoded, nil, &told)
		if quiet.over != nil || loud.over != nil {
			return
		}
		if a != b || b != (len(told.list) == 0) || len(loud.at) != 0 || loud.frames != 0 || len(loud.scope) != 0 ||
			loud.trials != 0 {
			t.Fatalf("%v, %v, %v", a, b, &told)
		}
		if err := s.Validate(value); (err == nil) != a || err != nil && err.Error() == "" {
			t.Fatalf("%v, %v", a, err)
		}
	})
}

// FuzzPattern: what is not refused compiles, and what is given to Go means what it says where both have the same words.
func FuzzPattern(f *testing.F) {
	for _, seed := range []string{
		`^a+$`, `[^\d-z]{2,}`, `\u{1F600}\cA|(?<x>\p{L})`, `[]|[^]`, `a{,2}]}`, `\0[\b]\S`,
		`(?=x)`, `\1`,
	} {
		f.Add(seed, "aé\n")
	}
	plain := regexp.MustCompile(`^[a-z0-9*+?|()]*$`)
	f.Fuzz(func(t *testing.T, source, text string) {
		p, err := newPattern(source)
		if err != nil || len(text)*p.size > 1<<16 { // Validate counts it, and stops
			return
		}
		if plain.MatchString(source) {
			if again := regexp.MustCompile(source); again.MatchString(text) != p.match.MatchString(text) {
				t.Fatalf("%q on %q", source, text)
			}
		}
	})
}
