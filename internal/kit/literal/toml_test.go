package literal

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"

	"github.com/pelletier/go-toml/v2"
)

func TestParseTOML(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", `{}`},
		{"\uFEFF# only a comment", `{}`},
		{"\uFEFFa = 1", `{"a":1}`},
		{"a = 1\r\nb = 'x' # c\r\n", `{"a":1,"b":"x"}`},
		{"a.b.c = 1\na.b.d = 2", `{"a":{"b":{"c":1,"d":2}}}`},
		{"\"x y\".'z' = true", `{"x y":{"z":true}}`},
		{"[a.b]\nc = 1\n[a]\nd = 2", `{"a":{"b":{"c":1},"d":2}}`},
		{"[a]\nb.c = 1\n[a.b.d]\ne = 2", `{"a":{"b":{"c":1,"d":{"e":2}}}}`},
		{"[[a]]\nb = 1\n[a.c]\nd = 2\n[[a]]\nb = 3\n[a.c]\nd = 4", `{"a":[{"b":1,"c":{"d":2}},{"b":3,"c":{"d":4}}]}`},
		{"a = {b = 1, c.d = [1, {e = 2}]}", `{"a":{"b":1,"c":{"d":[1,{"e":2}]}}}`},
		{"a = [\n 1, # one\n 2,\n]", `{"a":[1,2]}`},
		{"a = 0x1F\nb = 0o17\nc = 0b11\nd = 1_000\ne = +5", `{"a":31,"b":15,"c":3,"d":1000,"e":5}`},
		{"a = 1.5\nb = -inf\nc = nan\nd = 1_0.5e1", `{"a":1.5,"b":"-inf","c":"nan","d":10.5e1}`},
		{"a = +nan\nb = -nan\nc = +inf", `{"a":"nan","b":"-nan","c":"inf"}`},
		{
			"a = 2024-02-29\nb = 10:20:30.5\nc = 2024-01-01T00:00:00Z\nd = 2024-01-01 00:00:00.123-07:00",
			`{"a":"2024-02-29","b":"10:20:30.5","c":"2024-01-01T00:00:00Z","d":"2024-01-01 00:00:00.123-07:00"}`,
		},
		{"a = \"\"\"\nx\\\n   y\"\"\"\nb = '''z'''", `{"a":"xy","b":"z"}`},
		{"a = \"\\u00e9\\t\"", `{"a":"é\t"}`},
	} {
		v, err := ParseTOML([]byte(c.in))
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if got := string(v.JSON()); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

func TestParseTOMLNamesThePlace(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a = 1\n\nbcd = \n", `3:7: expected a value, found end of line`},
		{"a = ", `1:5: expected a value, found end of input`},
		{"a = 1\r\nb = \r\n", `2:5: expected a value, found end of line`},
		{"a", `1:2: expected '=' after the key, found end of input`},
		{"a b", `1:3: expected '=' after the key, found 'b'`},
		{"= 1", `1:1: expected a key, found '='`},
		{"\uFEFFä = 1", `1:1: expected a key, found 'ä'`},
		{"a = 1 b = 2", `1:7: expected the end of the line, found 'b'`},
		{"a = [1, 2", `1:10: array is incomplete`},
		{"a = \"x", `1:7: expected the string to be closed, found end of input`},
		{"a = 1\na = 2", `2:1: key "a" is given twice, first at 1:1`},
		{"[a]\n[b]\n[a]", `3:2: table "a" is given twice, first at 1:2`},
		{"a = 1\n[a]", `2:2: "a" is a value and not a table`},
		{"a = {b = 1}\n[a.c]", `2:2: "a" is a value and not a table`},
		{"a = {b = 1}\na.c = 2", `2:1: key "a" is given twice, first at 1:1`},
		{"a = {b = 1, b = 2}", `1:13: key "b" is given twice, first at 1:6`},
		{"a = [{b = 1, b = 2}]", `1:14: key "b" is given twice, first at 1:7`},
		{"[a.b]\n[a]\nb.c = 1", `3:1: key "b" is given twice, first at 1:4`},
		{"a.b = 1\n[a]", `2:2: table "a" is given twice, first at 1:1`},
		{"[a]\n[[a]]", `2:3: key "a" is given twice, first at 1:2`},
		{"a = 9223372036854775808", `1:5: the number does not fit in 64 bits`},
		{"a = 2023-02-29", `1:5: there is no such date or time`},
		{"a = 24:00:00", `1:5: there is no such date or time`},
		{"a = \"x\x00y\"", `1:7: basic strings cannot have control characters`},
		{"a = 'ä\xff'", `1:7: invalid UTF-8 character in literal string`},
		{"# \x00", `1:3: control characters are not allowed in comments`},
		{"\x00", `1:1: expected a key, found U+0000`},
		{"a = " + strings.Repeat("[", 300) + strings.Repeat("]", 300), `1:205: nested deeper than 200 levels`},
		{strings.Repeat("a.", 300) + "a = 1", `1:601: nested deeper than 200 levels`},
	} {
		if _, err := ParseTOML([]byte(c.in)); err == nil || err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.in, err, c.want)
		}
	}
}

func TestTOMLValuesKnowTheirPlaces(t *testing.T) {
	text := "\uFEFFa.b = 1\r\n\r\n[ t . 'u' ] # c\r\n  é = 0\n"
	text = strings.Replace(text, "é", "\"é\"", 1) +
		"list = [ [1, 2], # x ]\n  {k = 'v'}, 2024-01-01 ]\n[[many]]\nx = 1\n"
	v, err := ParseTOML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, place, text string }{
		{"a", "1:1", "a"},
		{"a/b", "1:7", "1"},
		{"t/u", "3:7", "'u'"},
		{"t/u/é", "4:9", "0"},
		{"t/u/list", "5:8", "[ [1, 2], # x ]\n  {k = 'v'}, 2024-01-01 ]"},
		{"t/u/list/0", "5:10", "[1, 2]"},
		{"t/u/list/0/1", "5:14", "2"},
		{"t/u/list/1", "6:3", "{k = 'v'}"},
		{"t/u/list/1/k", "6:8", "'v'"},
		{"t/u/list/2", "6:14", "2024-01-01"},
		{"many/0/x", "8:5", "1"},
	} {
		got, ok := v.Lookup(strings.Split(c.path, "/")...)
		if !ok || got.Pos.String() != c.place || text[got.Pos.Offset:got.End] != c.text {
			t.Errorf("%s: got %v %q", c.path, got.Pos, text[got.Pos.Offset:got.End])
		}
	}
}

func TestParsingIsNotQuadratic(t *testing.T) {
	parse := func(text string) {
		if _, err := ParseTOML([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	hermetic.Linear(t, "tables", 5000, func(n int) {
		var text strings.Builder
		for _, format := range []string{"[a%d]\n", "[a%d.x]\n"} {
			for i := range n {
				fmt.Fprintf(&text, format, i)
			}
		}
		parse(text.String())
	})
	hermetic.Linear(t, "a line", 5000, func(n int) {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "[%d], ", i)
		}
		parse("a = [" + text.String() + "]")
	})
}

// FuzzTOML holds the reader against go-toml's own decoder: the same documents are documents, and they say the same.
func FuzzTOML(f *testing.F) {
	for _, seed := range []string{
		"a = 1\n[b]\nc.d = 'x'\n[[e]]\nf = {g = [1, 2.5, true, 2024-01-01]}\n", "[a.b]\n[a]\n",
		"a = 10:20\nb = 1979-05-27T07:32:00-08:00", "a = nan",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := ParseTOML(data)
		var theirs map[string]any
		refused := toml.Unmarshal(data, &theirs)
		if err == nil && refused != nil || err != nil && refused == nil && !strings.Contains(err.Error(), "deeper") {
			t.Fatalf("%q: we say %v, go-toml says %v", data, err, refused)
		}
		if err == nil && !alike(v, theirs) {
			t.Fatalf("%q: %s is not %v", data, v.JSON(), theirs)
		}
	})
}

func alike(v Value, theirs any) bool {
	switch them := theirs.(type) {
	case map[string]any:
		if v.Kind != Object || len(v.Members) != len(them) {
			return false
		}
		for _, m := range v.Members {
			if other, ok := them[m.Key]; !ok || !alike(m.Value, other) {
				return false
			}
		}
		return true
	case []any:
		if v.Kind != Array || len(v.Items) != len(them) {
			return false
		}
		for i, item := range v.Items {
			if !alike(item, them[i]) {
				return false
			}
		}
		return true
	case float64:
		f, ok := v.Float()
		_, whole := v.Int()
		return ok && !whole && (f == them || math.IsNaN(f) && math.IsNaN(them))
	case int64, string, bool:
		return v.Kind != Date && v.Any() == theirs
	}
	return v.Kind == Date
}
