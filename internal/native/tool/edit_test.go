package tool

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestEdit(t *testing.T) {
	d := newDesk(t)
	d.put("a.go", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n")
	r := d.says(Edit, object{"file_path": "a.go", "old_string": "five\n", "new_string": "5\n5b\n"})
	want := "The file a.go has been updated:\n     2\ttwo\n     3\tthree\n     4\tfour\n     5\t5\n     6\t5b\n     " +
		"7\tsix\n     8\tseven\n     9\teight"
	if r.Text != want {
		t.Errorf("got\n%s\nwant\n%s", r.Text, want)
	}
	d.holds("a.go", "one\ntwo\nthree\nfour\n5\n5b\nsix\nseven\neight\nnine\n")
	d.says(Edit, object{"file_path": "a.go", "old_string": "one\n", "new_string": ""}, "updated:\n     1\ttwo")

	d.put("b", "x\nyx\n\n\nx")
	d.fails(Edit, object{"file_path": "b", "old_string": "x", "new_string": "z"},
		"old_string is in b 3 times (lines 1, 2, 5). Give more lines", "replace_all")
	d.holds("b", "x\nyx\n\n\nx")
	d.says(Edit, object{"filePath": "b", "oldString": "x", "newString": "z", "replaceAll": "true"},
		"has been updated in 3 places:")
	d.holds("b", "z\nyz\n\n\nz")
	d.says(Edit, object{"file_path": "b", "old_string": "z\nyz\n\n\nz", "new_string": ""}, "updated; it is empty now")

	d.fails(Edit, object{"file_path": "b", "old_string": "q", "new_string": "q"}, "the same")
	d.fails(Edit, object{"file_path": "none", "old_string": "q", "new_string": "r"}, "File not found")
	d.fails(Edit, object{"file_path": "a.go", "old_string": "", "new_string": "r"},
		"old_string is empty, but a.go is not")
	d.says(Edit, object{"file_path": "b", "old_string": "", "new_string": "filled"})
	d.holds("b", "filled")
	r = d.says(Edit, object{"file_path": "x/new", "old_string": "", "new_string": "made\n"})
	if r.Text != "The file x/new has been created" {
		t.Error(r.Text)
	}
	d.holds("x/new", "made\n")
}

func TestEditShowsLittle(t *testing.T) {
	d := newDesk(t)
	d.put("a", strings.Repeat("line\n", 500)+"here\n"+strings.Repeat("line\n", 500))
	r := d.says(Edit, object{"file_path": "a", "old_string": "here\n", "new_string": strings.Repeat("new\n", 300)},
		"   501\tnew")
	if n := strings.Count(r.Text, "\n"); n > 20 {
		t.Errorf("%d lines are shown", n)
	}
	r = d.says(Edit, object{
		"file_path": "a", "old_string": "line", "new_string": strings.Repeat("l", 1000),
		"replace_all": true,
	}, "in 1000 places")
	if len(r.Text) > 10_000 {
		t.Errorf("the result has %d bytes", len(r.Text))
	}
}

// TestEditOfManyPlacesNeedsLittle: what one letter needs in a large file is a few times the file, not a few times its
// places.
func TestEditOfManyPlacesNeedsLittle(t *testing.T) {
	d := newDesk(t)
	const size = 2 << 20
	for name, text := range map[string]string{"a": strings.Repeat("x", size), "b": strings.Repeat("x\r\nx\n", size/5)} {
		d.put(name, text)
		for _, old := range []string{"x", "\n"} {
			if !strings.Contains(text, old) {
				continue
			}
			for _, all := range []bool{false, true} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				in := object{"file_path": name, "old_string": old, "new_string": old + "y", "replace_all": all}
				if all {
					d.says(Edit, in, "in ")
				} else {
					d.fails(Edit, in, "times (lines 1, ", "…")
				}
				runtime.ReadMemStats(&after)
				if used := after.TotalAlloc - before.TotalAlloc; used > 10*size {
					t.Errorf("%s, all %v: %d bytes for each of the file", name, all, used/size)
				}
				d.put(name, text)
				d.env.Seen = &Seen{}
			}
		}
	}
}

func TestEditKeepsLineEndings(t *testing.T) {
	for _, c := range []struct{ name, text, old, new, want string }{
		{"windows", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n"},
		{"one line into two", "a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"},
		{"begins with an ending", "a\r\nb\r\n", "\nb", "\nc", "a\r\nc\r\n"},
		{"spelled out", "a\r\nb\r\n", "a\r\nb", "x\ny", "x\ny\r\n"},
		{"spelled out anew", "a\nb\n", "a\n", "a\r\n", "a\r\nb\n"},
		{"unix", "a\nb\n", "a\nb", "x\ny", "x\ny\n"},
		{"mixed, mostly windows", "a\r\nb\nc\r\nd\r\n", "a\nb\nc\n", "x\ny\n", "x\r\ny\r\nd\r\n"},
		{"mixed, mostly unix", "a\r\nb\nc\nd\n", "a\nb\n", "x\ny\n", "x\ny\nc\nd\n"},
		{"old machines", "a\rb\r", "a", "x\ny", "x\ny\rb\r"},
		{"a stray return", "a\r\r\nb\r\n", "\nb", "\nc", "a\r\r\nc\r\n"},
	} {
		d := newDesk(t)
		d.put("a", c.text)
		if r := d.call(Edit, object{"file_path": "a", "old_string": c.old, "new_string": c.new}); r.Failed {
			t.Errorf("%s: %s", c.name, r.Text)
			continue
		}
		if data, _ := os.ReadFile(filepath.Join(d.in, "a")); string(data) != c.want {
			t.Errorf("%s: got %q, want %q", c.name, data, c.want)
		}
	}
	d := newDesk(t)
	d.put("a", "a\nb\nx\r\na\r\nb\r\n") // the text is there once in each way
	d.fails(Edit, object{"file_path": "a", "old_string": "a\nb", "new_string": "x"}, "2 times (lines 1, 4)")
	d.says(Edit, object{"file_path": "a", "old_string": "a\nb\n", "new_string": "q\n", "replace_all": true})
}

func TestEditKeepsEncodings(t *testing.T) {
	wide := func(order, s string) string {
		d := decode([]byte(order))
		return string(d.encode([]byte(s)))
	}
	for _, c := range []struct{ text, old, new, want string }{
		{"\ufeffone\ntwo\n", "one", "eins", "\ufeffeins\ntwo\n"},
		{"caf\xe9 one \xff\xfe", "one", "zwölf", "caf\xe9 zwölf \xff\xfe"},
		{wide(mark16LE, "one\r\ntwo 😀\r\n"), "two 😀\n", "zwei\n", wide(mark16LE, "one\r\nzwei\r\n")},
		{wide(mark16BE, "one\ntwo"), "one\n", "ä😀\n", wide(mark16BE, "ä😀\ntwo")},
		// half pairs and half a unit
		{mark16LE + "\x00\xd8o\x00\x00\xdcx", "o", "u", mark16LE + "\x00\xd8u\x00\x00\xdcx"},
	} {
		d := newDesk(t)
		d.put("a", c.text)
		d.says(Edit, object{"file_path": "a", "old_string": c.old, "new_string": c.new})
		d.holds("a", c.want)
	}
}

func TestMultiEdit(t *testing.T) {
	d := newDesk(t)
	d.put("a", "one two three")
	r := d.says(MultiEdit, `{"file_path": "a", "edits": [{"old_string": "one", "new_string": "two"},
		{"old_string": "two", "new_string": "2", "replace_all": true}, {"old_string": "three", "new_string": "3"}]}`)
	if r.Text != "Applied 3 edits to a" {
		t.Error(r.Text)
	}
	d.holds("a", "2 2 3")
	d.fails(MultiEdit,
		`{"file_path": "a", "edits": [{"old_string": "3", "new_string": "x"}, {"old_string": "none", "new_string": "y"}]}`,
		"edit 2 of 2 failed and nothing was changed: old_string was not found in a")
	d.fails(MultiEdit,
		`{"file_path": "a", "edits": [{"old_string": "3", "new_string": "x"}, {"old_string": "2", "new_string": "y"}]}`,
		"2 times")
	d.holds("a", "2 2 3")
	d.says(MultiEdit, object{"path": "a", "edits": `[{"old_string": "3", "new_string": "4"}]`}, "Applied 1 edits to a")
	d.says(MultiEdit,
		`{"file_path": "new", "edits": [{"old_string": "", "new_string": "x y"}, {"old_string": "y", "new_string": "z"}]}`)
	d.holds("new", "x z")
	d.put("mixed", "a\r\nb\r\nc\nd") // the first edit changes how most lines end
	d.says(MultiEdit,
		`{"file_path": "mixed", "edits": [{"old_string": "a\nb\n", "new_string": ""}, {"old_string": "d", "new_string": "d\n"}]}`)
	d.holds("mixed", "c\nd\n")
	d.fails(MultiEdit, `{"file_path": "a", "edits": []}`, `"edits" is empty`)
	d.fails(MultiEdit, `{"file_path": "a", "edits": [{"old_string": "x"}, 5, {"old_string": "x", "new_string": "x"}]}`,
		`edits[0]: "new_string" is missing`, `edits[1]: the input must be a JSON object, but came the number 5`,
		"edits[2]: old_string and new_string are the same")
}

// letters makes texts in which something is often found.
func letters(alphabet string, longest int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(strings.Split(alphabet, " ")), 0, longest).Draw(t,
			"letters"), "")
	})
}

// TestEditIsReplace compares with what the standard library does.
func TestEditIsReplace(t *testing.T) {
	d := newDesk(t)
	rapid.Check(t, func(t *rapid.T) {
		text := letters("a b ab \n ä 😀 \xff \t", 40).Draw(t, "text")
		old := letters("a b \n ä 😀", 4).Draw(t, "old")
		new := letters("a b c \n ä", 4).Draw(t, "new")
		all := rapid.Bool().Draw(t, "all")
		mark := rapid.SampledFrom([]string{"", mark8, "windows"}).Draw(t, "mark")
		want, count := strings.ReplaceAll(text, old, new), strings.Count(text, old)
		if mark == "windows" {
			mark, text, want = "", strings.ReplaceAll(text, "\n", "\r\n"), strings.ReplaceAll(want, "\n", "\r\n")
			if !strings.Contains(text, "\r\n") {
				want = strings.ReplaceAll(want, "\r\n", "\n") // a file of one line does not tell how lines end
			}
		}
		d.env.Seen = &Seen{}
		d.put("a", mark+text)
		r := d.call(Edit, object{"file_path": "a", "old_string": old, "new_string": new, "replace_all": all})
		got, err := os.ReadFile(filepath.Join(d.in, "a"))
		if err != nil {
			t.Fatal(err)
		}
		switch works := old != new && (old == "" && text == "" || old != "" && (count == 1 || all && count > 1)); {
		case works == r.Failed:
			t.Fatalf("failed is %v: %s", r.Failed, r.Text)
		case works && string(got) != mark+want:
			t.Fatalf("got %q, want %q", got, mark+want)
		case !works && string(got) != mark+text:
			t.Fatalf("a failed edit left %q", got)
		case !utf8.ValidString(r.Text):
			t.Fatalf("the result is not UTF-8: %q", r.Text)
		}
	})
}

// TestMixedEndingsAreFound compares with the search in the text whose endings were made equal.
func TestMixedEndingsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := letters("a b \n \r\n \r", 30).Draw(t, "text")
		old := letters("a b \n", 4).Draw(t, "old")
		if old == "" {
			return
		}
		plain := strings.ReplaceAll(text, "\r\n", "\n")
		hits := slices.Collect(locate([]byte(text), endingsOf([]byte(text)), old))
		if strings.Contains(old, "\n") && len(hits) != strings.Count(plain, old) {
			t.Fatalf("%d hits, want %d", len(hits), strings.Count(plain, old))
		}
		for _, h := range hits {
			if strings.ReplaceAll(text[h.start:h.end], "\r\n", "\n") != old {
				t.Fatalf("%q is not a hit", text[h.start:h.end])
			}
		}
	})
}

// TestEncodingsRoundTrip holds for any bytes after any mark, also where they are no text.
func TestEncodingsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mark := rapid.SampledFrom([]string{"", mark8, mark16LE, mark16BE}).Draw(t, "mark")
		units := letters("\x00\xd8 \xd8\x00 \x00\xdc \xdc\x00 a\x00 \x00a \xe9 \xed\xa0\x80 \ufeff 😀 \n", 20).Draw(t,
			"units")
		data := mark + units + string(rapid.SliceOfN(rapid.Byte(), 0, 10).Draw(t, "bytes"))
		d := decode([]byte(data))
		if got := d.encode(d.text); string(got) != data {
			t.Fatalf("got %x, want %x, through %x", got, data, d.text)
		}
	})
}

func FuzzEncodings(f *testing.F) {
	f.Add([]byte("\xff\xfe\x00\xd8a\x00\x00\xdc"))
	f.Add([]byte("\xfe\xff\xd8\x3d\xde\x00x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := decode(data)
		if got := d.encode(d.text); string(got) != string(data) {
			t.Fatalf("got %x, want %x", got, data)
		}
	})
}

func TestManyEditsAtOnce(t *testing.T) {
	d := newDesk(t)
	d.put("a", "0\n")
	done := make(chan int)
	const writers, rounds = 4, 10
	for range writers {
		go func() {
			n := 0
			for range rounds {
				// As in several conversations: each has its own view, and only the disk is shared.
				own := &desk{t: d.t, in: d.in, env: &Env{Files: d.env.Files, Seen: &Seen{}}}
				if r := own.call(Edit, object{
					"file_path": "a", "old_string": "0\n",
					"new_string": "0\n1\n",
				}); !r.Failed {
					n++
				}
			}
			done <- n
		}()
	}
	total := 0
	for range writers {
		total += <-done
	}
	data, err := os.ReadFile(filepath.Join(d.in, "a"))
	check(t, err)
	if want := "0\n" + strings.Repeat("1\n", total); string(data) != want {
		t.Fatalf("%d edits succeeded, and the file holds %d", total, strings.Count(string(data), "1"))
	}
}
