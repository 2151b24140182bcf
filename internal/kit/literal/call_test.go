package literal_test

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/kit/literal"
)

// TestParseCall reads the calls of seed 2's vectors. A call with an unknown name parses; that there is no such function
// is for others to say. What the engine of JavaScript there accepted beyond literals is refused.
func TestParseCall(t *testing.T) {
	t.Parallel()
	var cases []struct {
		ID, Level, Code, Error string
		Calls                  []struct {
			Route string
			Input any
		}
	}
	data, err := os.ReadFile("testdata/calls.json")
	if err == nil {
		err = json.Unmarshal(data, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	parses := map[string]bool{
		"unknown-tool": true, "wrong-namespace": true, "namespace-case": true,
		"trailing-semicolon": true,
	}
	for _, c := range cases {
		call, err := literal.ParseCall([]byte(c.Code))
		if c.Error != "" || len(c.Calls) > 1 {
			var syntax *literal.SyntaxError
			if (err == nil) != parses[c.ID] || err != nil && !errors.As(err, &syntax) {
				t.Errorf("%s: %+v, %v", c.ID, call, err)
			}
			continue
		}
		var input any
		if len(call.Args) == 1 && err == nil {
			err = json.Unmarshal(call.Args[0].JSON(), &input)
		}
		if want := c.Calls[0]; err != nil || call.Name != want.Route || !reflect.DeepEqual(input, want.Input) {
			t.Errorf("%s (%s): %s %v, %v", c.ID, c.Level, call.Name, input, err)
		}
	}
}

// TestParseCallLeniency: what models write, and what stays an error.
func TestParseCallLeniency(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"A.b({ x: 1\n  y: 2 })":               `{"x":1,"y":2}`,
		"A.b({ x: 'a' // one\n  y: ['b'] });": `{"x":"a","y":["b"]}`,
		"A.b({ x: 1 y: 2 })":                  "expected ','",
		"A.b({ x: [1\n 2] })":                 "expected ','",
		"A.b({ x: ['a', 'b'].join() + `c` })": `{"x":"a,bc"}`,
		"A.b({ x: ['a', 1].join() })":         "only strings",
		"A.b({ x: ['a'].join(1) })":           "takes a string",
		"A.b({ x: 'a' + 1 })":                 "only strings",
		"A.b({ x: [1].length })":              "expected ','",
		"A.b({ x: f() })":                     "arguments of a call",
		"A.b({ x: `${y}` })":                  "arguments of a call",
		"A.b({ x: undefined, y: [null] })":    `{"y":[null]}`,
		"A.b({ x: 1 }) A.b({})":               "expected nothing",
		"A.b({ x: 1 }":                        "found end of input",
		"A.b({}, {})":                         "2 arguments",
		"A.b({},)":                            "{}",
		"A.b":                                 "expected '('", "A.(": "name of a function", "(A.b({})": "expected ')'",
		"b({})":                                 "expected a call",
		"A.b({ x: " + strings.Repeat("[", 5000): "nested deeper",
	} {
		call, err := literal.ParseCall([]byte(code))
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(call.Args) != 1:
			got = "2 arguments"
		default:
			got = string(call.Args[0].JSON())
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", code, got, want)
		}
	}
}

func FuzzParseCall(f *testing.F) {
	f.Add("await A.b({ x: ['a'].join('') + \"b\", y: -1.5 });")
	f.Fuzz(func(t *testing.T, code string) {
		call, err := literal.ParseCall([]byte(code))
		for _, v := range call.Args {
			if err != nil || !json.Valid(v.JSON()) {
				t.Errorf("%q: %s, %v", code, v.JSON(), err)
			}
		}
	})
}
