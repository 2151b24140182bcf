package literal

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSetTOML(t *testing.T) {
	for _, c := range []struct {
		name, in, path string
		value          any
		want           string
	}{
		{"empty", "", "a", "x", "a = \"x\"\n"},
		{"empty with table", "", "a.b.c", int64(1), "[a.b]\nc = 1\n"},
		{"replace", "# top\na   =  'old'   # why\n\nb = 1\n", "a", "new", "# top\na   =  \"new\"   # why\n\nb = 1\n"},
		{"same value keeps its quoting", "a = 'x'\nb = 0x10\n", "a", "x", "a = 'x'\nb = 0x10\n"},
		{"same number keeps its form", "b = 0x10\n", "b", int64(16), "b = 0x10\n"},
		{
			"new key after the last of its table", "[a]\nx = 1 # one\n\n# about b\n[b]\ny = 2\n", "a.z", true,
			"[a]\nx = 1 # one\nz = true\n\n# about b\n[b]\ny = 2\n",
		},
		{"new key in an empty table", "[a]\n\n[b]\n", "a.z", int64(1), "[a]\nz = 1\n\n[b]\n"},
		{"new table at the end", "[a]\nx = 1", "b.c", int64(1), "[a]\nx = 1\n\n[b]\nc = 1\n"},
		{"new table below another", "[a]\nx = 1\n", "a.b.c", int64(1), "[a]\nx = 1\n\n[a.b]\nc = 1\n"},
		{"header of an implied table", "[a.b]\nx = 1\n", "a.c", int64(1), "[a.b]\nx = 1\n\n[a]\nc = 1\n"},
		{"root key after root keys", "x = 1\n\n[a]\n", "y", int64(2), "x = 1\ny = 2\n\n[a]\n"},
		{
			"root key before the first header", "# licence\n\n# about a\n[a]\nx = 1\n", "y", int64(2),
			"# licence\n\ny = 2\n\n# about a\n[a]\nx = 1\n",
		},
		{"root key before a comment at the top", "# about a\n[a]\n", "y", int64(2), "y = 2\n\n# about a\n[a]\n"},
		{"root key below a comment", "# just words", "y", int64(2), "# just words\ny = 2\n"},
		{"CRLF", "a = 1\r\n[b]\r\nc = 2\r\n", "b.d", "x", "a = 1\r\n[b]\r\nc = 2\r\nd = \"x\"\r\n"},
		{"CRLF new table", "a = 1\r\n", "b.d", "x", "a = 1\r\n\r\n[b]\r\nd = \"x\"\r\n"},
		{"byte order mark", "\uFEFFa = 1\n", "a", int64(2), "\uFEFFa = 2\n"},
		{"byte order mark, new", "\uFEFF[b]\n", "a", int64(2), "\uFEFFa = 2\n\n[b]\n"},
		{"only a byte order mark", "\uFEFF", "a", int64(2), "\uFEFFa = 2\n"},
		{"no line feed at the end", "a = 1", "b", int64(2), "a = 1\nb = 2"},
		{"indentation", "[a]\n\tx = 1\n", "a.y", int64(2), "[a]\n\tx = 1\n\ty = 2\n"},
		{"dotted", "a.b = 1\nx = 2\n", "a.b", int64(3), "a.b = 3\nx = 2\n"},
		{"new beside dotted", "a.b = 1\nx = 2\n[t]\n", "a.c", int64(3), "a.b = 1\na.c = 3\nx = 2\n[t]\n"},
		{"dotted in a table", "[t]\na.b = 1\nx = 2\n", "t.a.c.d", int64(3), "[t]\na.b = 1\na.c.d = 3\nx = 2\n"},
		{"inline", "a = { b = 1, c = 'x' } # c\n", "a.b", int64(2), "a = { b = 2, c = 'x' } # c\n"},
		{"new in inline", "a = { b = 1 }\n", "a.c", int64(2), "a = { b = 1, c = 2 }\n"},
		{"new in empty inline", "a = {}\n", "a.c", int64(2), "a = { c = 2 }\n"},
		{"new in inline of inline", "a = { b = { c = 1 } }\n", "a.b.d.e", int64(2), "a = { b = { c = 1, d.e = 2 } }\n"},
		{"dotted within inline", "a = { b.c = 1 }\n", "a.b.c", int64(2), "a = { b.c = 2 }\n"},
		{
			"list over lines", "a = [\n 1, # one\n]\nb = 1\n", "a",
			[]string{"x", "y\"z"},
			"a = [\"x\", \"y\\\"z\"]\nb = 1\n",
		},
		{"quoted keys", "[context.\"my ctx\"]\n", "context.my ctx.a b", "x", "[context.\"my ctx\"]\n\"a b\" = \"x\"\n"},
		{"new quoted table", "", "context.my ctx.a", "x", "[context.\"my ctx\"]\na = \"x\"\n"},
		{"after a string over lines", "a = '''\n[x]\n'''\n[y]\n", "b", int64(1), "a = '''\n[x]\n'''\nb = 1\n[y]\n"},
		{"beside an array of tables", "[[a]]\nx = 1\n", "b.c", int64(1), "[[a]]\nx = 1\n\n[b]\nc = 1\n"},
		{"float", "", "a", 1e21, "a = 1e+21\n"},
		{"whole float", "", "a", 5.0, "a = 5.0\n"},
		{"control characters", "", "a", "\x00\t\x7fé", "a = \"\\u0000\\t\\u007Fé\"\n"},
	} {
		got, err := SetTOML([]byte(c.in), strings.Split(c.path, "."), c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, got, c.want)
		}
	}
}

func TestSetTOMLRefuses(t *testing.T) {
	for _, c := range []struct {
		in    string
		path  []string
		value any
		want  string
	}{
		{"a = ", []string{"a"}, "x", "1:5: expected a value, found end of input"},
		{"[a]\nb = 1", []string{"a"}, "x", "a is a table and not a value"},
		{"a = {}", []string{"a"}, "x", "a is a table and not a value"},
		{"[[a]]\nb = 1", []string{"a"}, "x", "a is a table and not a value"},
		{"a = 1", []string{"a", "b"}, "x", "a is not a table"},
		{"[[a]]\nb = 1", []string{"a", "b"}, "x", "a is not a table"},
		{"", nil, "x", "the path names no key"},
		{"", []string{"\xff"}, "x", `the key "\xff" is not UTF-8`},
		{"", []string{"a"}, "\xff", "the value is not UTF-8"},
		{"", []string{"a"}, 1, "a value of type int cannot be written as TOML"},
		{"", slices.Repeat([]string{"a"}, 300), "x", "would not be valid"},
	} {
		out, err := SetTOML([]byte(c.in), c.path, c.value)
		if err == nil || out != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %v: got %q, %v, want %s", c.in, c.path, out, err, c.want)
		}
	}
}

func TestUnsetTOML(t *testing.T) {
	for _, c := range []struct{ name, in, path, want string }{
		{"line", "# a\na = 1 # one\nb = 2\n", "a", "# a\nb = 2\n"},
		{"last line", "a = 1\nb = 2", "b", "a = 1\n"},
		{"value over lines", "a = [\n 1,\n]\nb = 2\n", "a", "b = 2\n"},
		{"dotted", "a.b = 1\na.c = 2\n", "a.b", "a.c = 2\n"},
		{"header stays", "[a]\nb = 1\n", "a.b", "[a]\n"},
		{"CRLF", "a = 1\r\nb = 2\r\n", "a", "b = 2\r\n"},
		{"byte order mark", "\uFEFFa = 1\nb = 2\n", "a", "\uFEFFb = 2\n"},
		{"first of inline", "x = { a = 1, b = 2 }\n", "x.a", "x = { b = 2 }\n"},
		{"last of inline", "x = { a = 1, b = 2 }\n", "x.b", "x = { a = 1 }\n"},
		{"only of inline", "x = {a = 1}\n", "x.a", "x = {}\n"},
		{"trailing comma", "x = { a = 1, b = 2, }\n", "x.b", "x = { a = 1, }\n"},
		{
			"comments in inline", "x = {\n a = 1 # one\n , # two\n b = 2 # three\n}\n", "x.a",
			"x = {\n  # one\n # two\n b = 2 # three\n}\n",
		},
		{
			"comments in inline, last", "x = {\n a = 1, # one\n b = 2 # two\n}\n", "x.b",
			"x = {\n a = 1 # one\n  # two\n}\n",
		},
		{"inline of inline", "x = {y = {a = 1, b = 2}, z = 1}\n", "x.y.a", "x = {y = {b = 2}, z = 1}\n"},
	} {
		got, found, err := UnsetTOML([]byte(c.in), strings.Split(c.path, "."))
		if err != nil || !found || string(got) != c.want {
			t.Errorf("%s: %v %v\n got %q\nwant %q", c.name, found, err, got, c.want)
		}
	}
	if got, found, err := UnsetTOML([]byte("a = 1"), []string{"b"}); err != nil || found || string(got) != "a = 1" {
		t.Errorf("got %q %v %v", got, found, err)
	}
	if _, _, err := UnsetTOML([]byte("[a]\nb = 1"), []string{"a"}); err == nil {
		t.Error("took a table away")
	}
}

// documents draws TOML as people write it: comments, odd spacing, quotes of all kinds, tables, dotted keys, inline
// tables.
func documents() *rapid.Generator[string] {
	key := rapid.SampledFrom([]string{"a", "b", "c", "'d e'", `"f"`})
	value := rapid.SampledFrom([]string{
		"1", "0x1F", "'x'", `"y\t"`, "true", "1.50", "2024-01-01", "[1, 2]", "[ # c\n 'x',\n]", "{}",
		"{ a = 1, b.c = 2 }", "{a={b={c=1}}}", "'''\n[a]\n'''",
	})
	return rapid.Custom(func(t *rapid.T) string {
		feed := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "feed")
		dotted := func() string {
			return strings.Join(rapid.SliceOfN(key, 1, 3).Draw(t, "key"),
				rapid.SampledFrom([]string{".", " . "}).Draw(t, "dot"))
		}
		text := rapid.SampledFrom([]string{"", "\uFEFF"}).Draw(t, "mark")
		for range rapid.IntRange(0, 8).Draw(t, "lines") {
			line := rapid.SampledFrom([]string{"pair", "pair", "pair", "table", "array", "comment", "blank"}).Draw(t,
				"line")
			before := text
			switch line {
			case "pair":
				text += rapid.SampledFrom([]string{"", "  ", "\t"}).Draw(t, "indent") + dotted() + " =" +
					value.Draw(t, "value")
			case "table":
				text += "[" + dotted() + "]"
			case "array":
				text += "[[" + dotted() + "]]"
			case "comment":
				text += "# words"
			}
			if _, err := ParseTOML([]byte(text)); err != nil {
				text = before
				continue
			}
			text += rapid.SampledFrom([]string{"", " # why"}).Draw(t, "comment") + feed
		}
		if rapid.Bool().Draw(t, "cut") {
			text = strings.TrimSuffix(text, feed)
		}
		return text
	})
}

func TestSetAndUnsetTouchOneKey(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d e", "f", "g", "", "ä"})
	value := rapid.OneOf(
		rapid.String().AsAny(), rapid.Int64().AsAny(), rapid.Bool().AsAny(), rapid.Float64().AsAny(),
		rapid.SliceOfN(rapid.String(), 0, 3).AsAny())
	rapid.Check(t, func(t *rapid.T) {
		before := documents().Draw(t, "document")
		path := rapid.SliceOfN(name, 1, 4).Draw(t, "path")
		checkEdit(t, []byte(before), path, value.Draw(t, "value"))
	})
}

type fataler interface{ Fatalf(string, ...any) }

// checkEdit sets and unsets the key, and looks at everything that was promised.
func checkEdit(t fataler, before []byte, path []string, value any) {
	old, err := ParseTOML(before)
	if err != nil {
		t.Fatalf("%q: %v", before, err)
	}
	was, existed, unreachable := reach(old, path)
	after, err := SetTOML(before, path, value)
	if err != nil {
		if unreachable == nil && (!existed || !isTable(before, was)) {
			t.Fatalf("%q %q: %v", before, path, err)
		}
		return
	}
	now, err := ParseTOML(after)
	if err != nil {
		t.Fatalf("%q -> %q: %v", before, after, err)
	}
	got, _ := now.Lookup(path...)
	_, want, _ := encodeTOML(value)
	if !sameValue(got, want) || !sameExcept(old, now, path) {
		t.Fatalf("%q %q -> %q", before, path, after)
	}
	if head, tail := around(before, after); head+tail < len(before) && !existed {
		t.Fatalf("a new key took bytes away: %q %q -> %q", before, path, after)
	} else if existed && !(bytes.HasPrefix(after, before[:was.Pos.Offset]) &&
		bytes.HasSuffix(after, before[was.End:])) {
		t.Fatalf("bytes outside of the value changed: %q %q -> %q", before, path, after)
	}
	again, err := SetTOML(after, path, value)
	if err != nil || string(again) != string(after) {
		t.Fatalf("setting twice: %q -> %q, %v", after, again, err)
	}
	out, found, err := UnsetTOML(after, path)
	if err != nil || !found {
		t.Fatalf("%q %q: unset: %v %v", after, path, found, err)
	}
	gone, err := ParseTOML(out)
	if err != nil || !sameExcept(old, gone, path) {
		t.Fatalf("%q %q -> %q -> %q: %v", before, path, after, out, err)
	}
	if !existed && !sameValue(withoutEmpty(old), withoutEmpty(gone)) {
		t.Fatalf("%q is not %q", before, out)
	}
}

// around counts the bytes that two texts share at their beginning and, of the rest, at their end.
func around(a, b []byte) (head, tail int) {
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// withoutEmpty leaves tables out that hold nothing, because an edit may leave one behind.
func withoutEmpty(v Value) Value {
	var kept []Member
	for _, m := range v.Members {
		m.Value = withoutEmpty(m.Value)
		if m.Value.Kind != Object || len(m.Value.Members) > 0 {
			kept = append(kept, m)
		}
	}
	v.Members = kept
	return v
}

func FuzzTOMLEdit(f *testing.F) {
	f.Add([]byte("a = 1\n[b]\nc.d = { e = 1, }\n"), "b.c.d.f", "x")
	f.Add([]byte("\uFEFF# x\r\n[a]\r\n"), "y", "")
	f.Add([]byte("a = { b = 1 # c\n , c = 2 }"), "a.b", "1")
	f.Fuzz(func(t *testing.T, data []byte, path, value string) {
		if _, err := ParseTOML(data); err != nil {
			return
		}
		keys := strings.Split(path, ".")
		if len(keys) > 100 || checkPath(keys) != nil {
			return
		}
		if _, _, err := encodeTOML(value); err != nil {
			return
		}
		checkEdit(t, data, keys, value)
	})
}

func TestCutTOML(t *testing.T) {
	for _, c := range []struct{ name, in, path, want string }{
		{"table", "x = 1\n\n[a]\ny = 1\n\n[a.b]\nz = 1 # z\n", "a.b", "x = 1\n\n[a]\ny = 1\n"},
		{"with what is below", "[a.b]\nz = 1\n\n[a.b.env]\ne = 1\n\n# about c\n[c]\n", "a.b", "\n# about c\n[c]\n"},
		{"dotted", "a.b.z = 1\na.b.y = 2\nx = 1\n", "a.b", "x = 1\n"},
		{"inline", "[a]\nb = { z = 1 }\nc = 1\n", "a.b", "[a]\nc = 1\n"},
		{"within inline", "a = { b = { z = 1 }, c = 1 }\n", "a.b", "a = { c = 1 }\n"},
		{"CRLF", "x = 1\r\n\r\n[a.b]\r\nz = 1\r\n", "a.b", "x = 1\r\n"},
		{"missing", "[a]\n", "a.b", "[a]\n"},
	} {
		got, found, err := CutTOML([]byte(c.in), strings.Split(c.path, "."))
		if err != nil || string(got) != c.want || found != (c.in != c.want) {
			t.Errorf("%s: %q, %t, %v, want %q", c.name, got, found, err, c.want)
		}
	}
}
