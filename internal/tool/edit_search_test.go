package tool

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// padded makes a text long enough for the table.
func padded(s string) []byte { return []byte(s + strings.Repeat("-", longPattern)) }

func TestIndexIsThatOfTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := padded(letters("a b aaaaaaaa abababab \n cd \xff \x00", 60).Draw(t, "text"))
		var needle []byte
		if rapid.Bool().Draw(t, "there") {
			from := rapid.IntRange(0, len(text)-longPattern).Draw(t, "from")
			needle = bytes.Clone(text[from:min(from+rapid.IntRange(0, 200).Draw(t, "length"), len(text))])
			if len(needle) > 0 && rapid.Bool().Draw(t, "other") {
				needle[rapid.IntRange(0, len(needle)-1).Draw(t, "place")] ^= 1
			}
		} else {
			needle = []byte(letters("a b aaaaaaaa abababab \n cd", 20).Draw(t, "needle"))
		}
		if got, want := index(text, needle), bytes.Index(text, needle); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
	slow := bytes.Repeat([]byte("a"), 1<<20)
	for _, needle := range []string{
		strings.Repeat("a", 50_000) + "b", "b" + strings.Repeat("a", 50_000),
		strings.Repeat("a", 30) + "b" + strings.Repeat("a", 50_000),
	} {
		if got := index(slow, []byte(needle)); got != -1 {
			t.Errorf("got %d", got)
		}
		if got := index(append(bytes.Clone(slow), needle...),
			[]byte(needle)); got != bytes.Index(append(bytes.Clone(slow), needle...), []byte(needle)) {
			t.Errorf("got %d", got)
		}
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("abcabcabcabcabcabcabcd"), []byte("abcabcabcabcabcabcd"))
	f.Fuzz(func(t *testing.T, text, needle []byte) {
		text = padded(string(text))
		if got, want := index(text, needle), bytes.Index(text, needle); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}

func BenchmarkIndex(b *testing.B) {
	text, edits := tenMegabytes("\n")
	in := []byte(text)
	for name, of := range map[string]string{
		"line":        edits[999]["old_string"].(string),
		"three lines": text[len(text)-500 : len(text)-300],
	} {
		for by, find := range map[string]func(a, b []byte) int{"ours": index, "library": bytes.Index} {
			b.Run(name+"/"+by, func(b *testing.B) {
				for b.Loop() {
					find(in, []byte(of))
				}
			})
		}
	}
}
