package literal

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSetJSON(t *testing.T) {
	for _, c := range []struct{ name, in, path, want string }{
		{"empty", "", "a", "{\n  \"a\": 1\n}\n"},
		{"empty, deep", "", "a.b", "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n"},
		{"empty object", "{}", "a", "{\n  \"a\": 1\n}"},
		{"comment in an empty object", "{\n  // mine\n}\n", "a", "{\n  // mine\n  \"a\": 1\n}\n"},
		{"one line", `{"b": 2}`, "a", `{"b": 2, "a": 1}`},
		{"one line, comma at the end", `{"b": 2,}`, "a", `{"b": 2, "a": 1,}`},
		{"lines", "{\n\t\"b\": 2\n}", "a", "{\n\t\"b\": 2,\n\t\"a\": 1\n}"},
		{"comma at the end", "{\n  b: 2, // two\n}", "a", "{\n  b: 2, // two\n  \"a\": 1,\n}"},
		{"comment at the end", "{\n  \"b\": 2 // two\n  // end\n}", "a", "{\n  \"b\": 2, // two\n  \"a\": 1\n  // end\n}"},
		{"comment before the comma", "{\n  \"b\": 2 /* x */,\n}", "a", "{\n  \"b\": 2 /* x */,\n  \"a\": 1,\n}"},
		{"brace on the line", "{\n  \"b\": 2}", "a", "{\n  \"b\": 2,\n  \"a\": 1}"},
		{"CRLF", "{\r\n  \"b\": 2\r\n}\r\n", "a", "{\r\n  \"b\": 2,\r\n  \"a\": 1\r\n}\r\n"},
		{"replace", "{ a : 'x' /*y*/ }", "a", "{ a : 1 /*y*/ }"},
		{"equal", "{ a : 0x1 }", "a", "{ a : 0x1 }"},
		{"four blanks", "{\n    \"b\": {}\n}", "b.a", "{\n    \"b\": {\n        \"a\": 1\n    }\n}"},
		{"byte order mark", "\uFEFF{\"b\": 2}", "a", "\uFEFF{\"b\": 2, \"a\": 1}"},
	} {
		got, err := SetJSON([]byte(c.in), strings.Split(c.path, "."), 1)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	for _, c := range []struct{ in, path, want string }{
		{"[1]", "a", "1:1: the document is not an object"},
		{"{\n  \"a\": 3\n}", "a.b", "2:8: a is not an object"},
		{"{\n  \"a\": \n}", "a", "3:1: "},
		{`{"a": 1, "a": 2}`, "a", "given twice"},
	} {
		if _, err := SetJSON([]byte(c.in), strings.Split(c.path, "."), 1); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.in, err, c.want)
		}
	}
}

func TestUnsetJSON(t *testing.T) {
	for _, c := range []struct{ name, in, path, want string }{
		{"only one", "{\n  \"a\": 1\n}\n", "a", "{}\n"},
		{"last", "{\n  \"b\": 2,\n  \"a\": {\n    \"x\": 1\n  }\n}", "a", "{\n  \"b\": 2\n}"},
		{"first", "{\n  \"a\": 1,\n  \"b\": 2\n}", "a", "{\n  \"b\": 2\n}"},
		{"comment of its own", "{\n  \"a\": 1, // mine\n  \"b\": 2\n}", "a", "{\n  // mine\n  \"b\": 2\n}"},
		{"comment above", "{\n  // mine\n  \"a\": 1\n}", "a", "{\n  // mine\n}"},
		{"one line, first", `{"a": 1, "b": 2}`, "a", `{"b": 2}`},
		{"one line, last", `{"b": 2, "a": 1}`, "a", `{"b": 2}`},
		{"comma at the end", "{\n  \"b\": 2,\n  \"a\": 1,\n}", "a", "{\n  \"b\": 2,\n}"},
		{"comment before the comma", "{\n  \"a\": 1 /* x */,\n  \"b\": 2\n}", "a", "{\n  /* x */\n  \"b\": 2\n}"},
		{"deep", "{\n  \"a\": {\n    \"b\": 1,\n    \"c\": 2\n  }\n}", "a.c", "{\n  \"a\": {\n    \"b\": 1\n  }\n}"},
		{"missing", "{\n}", "a.b", "{\n}"},
		{"empty", "", "a", ""},
	} {
		got, found, err := UnsetJSON([]byte(c.in), strings.Split(c.path, "."))
		if err != nil || string(got) != c.want || found != (c.in != c.want) {
			t.Errorf("%s: %q, %t, %v, want %q", c.name, got, found, err, c.want)
		}
	}
}

// TestJSONEditsAreTakenBack sets a new member in documents of all forms: everything that was there is still there, in
// its order, and without the new member the document is as it was.
func TestJSONEditsAreTakenBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := func() string {
			return rapid.SampledFrom([]string{"", " ", "\n  ", "\n", " // word\n ", " /* word */ "}).Draw(t, "space")
		}
		in := space() + "{" + space()
		for i := range rapid.IntRange(0, 3).Draw(t, "members") {
			if i > 0 {
				in += "," + space()
			}
			in += `"k` + string(rune('0'+i)) + `"` + space() + ":" + space() +
				rapid.SampledFrom([]string{"1", `"x"`, `{"y":[1,{}]}`, "[]"}).Draw(t, "value") + space()
		}
		if strings.Contains(in, "k0") && rapid.Bool().Draw(t, "comma") {
			in += "," + space()
		}
		in += "}" + space()
		out, err := SetJSON([]byte(in), []string{"new"}, map[string]any{"command": "c", "args": []string{"a"}})
		if err != nil {
			t.Fatalf("%q: %v", in, err)
		}
		back, found, err := UnsetJSON(out, []string{"new"})
		if err != nil || !found {
			t.Fatalf("%q: %q: %v", in, out, err)
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if squeeze(string(back)) != squeeze(in) {
			t.Fatalf("%q became %q, and then %q", in, out, back)
		}
	})
}
