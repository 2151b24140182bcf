package markdown_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"omniagent/internal/kit/text"
	"omniagent/internal/term/cells"
	"omniagent/internal/term/markdown"
)

func render(o markdown.Options, pieces ...string) []string {
	r := markdown.New(o)
	var lines []string
	for _, piece := range pieces {
		lines = append(lines, r.Write(piece)...)
		r.Tail() // changes nothing
	}
	return append(lines, r.Close()...)
}

// tags writes styles so that a test can be read.
func tags(s string) string {
	return strings.NewReplacer("\x1b[m", "</>", "\x1b[", "<").Replace(s)
}

func TestLines(t *testing.T) {
	for source, want := range map[string]string{
		"plain text":                   "plain text",
		"**bold** and *it* and `code`": "<1mbold</> and <3mit</> and <36mcode</>",
		"***both***":                   "<1;3mboth</>",
		"**a *b* c**":                  "<1ma </><1;3mb</><1m c</>",
		"~~gone~~ ~kept~":              "<9mgone</> ~kept~",
		"snake_case_name":              "snake_case_name",
		"2 * 3 * 4":                    "2 * 3 * 4",
		"**not closed":                 "**not closed",
		"`not closed":                  "`not closed",
		"``a ` b``":                    "<36ma ` b</>",
		`\*no\*`:                       "*no*",
		"# Title":                      "<1;4mTitle</>",
		"### Third ###":                "<1mThird</>",
		"#hashtag":                     "#hashtag",
		"---":                          "<2m---</>",
		"- item":                       "<36m-</> item",
		"  12. item":                   "  <36m12.</> item",
		"> said":                       "<2m> </><3msaid</>",
		"[text](https://x.example)":    "<4mtext</><2m (https://x.example)</>",
		"[a](b c)":                     "[a](b c)",
		"[https://a](https://a)":       "<4mhttps://a</>",
		"a\x1b[2Jb\x07":                `a\x1b[2Jb\x07`,
		"one\ntwo\n\nthree":            "one|two||three",
		"windows\r\nlines":             "windows|lines",
		"a | b\nc":                     "a | b|c",
	} {
		got := strings.Join(render(markdown.Options{Styled: true}, source), "|")
		if got = tags(got); got != want {
			t.Errorf("%q is\n%s, want\n%s", source, got, want)
		}
	}
}

func TestCode(t *testing.T) {
	source := "```go\nx := \"s\" // note\n**not bold** | a |\n```\nafter `x`\n```diff\n+new\n-old\n " +
		"same\n~~~\n```\n```\nopen"
	want := []string{
		"<2m```go</>", "x := <32m\"s\"</> <2m// note</>", "**not bold** | a |", "<2m```</>", "after <36mx</>",
		"<2m```diff</>", "<32m+new</>", "<31m-old</>", " same", "~~~", "<2m```</>", "<2m```</>", "open",
	}
	got := render(markdown.Options{Styled: true}, source)
	for i := range got {
		got[i] = tags(got[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestTable(t *testing.T) {
	source := "| Name | Size | What it is |\n|:--|--:|:-:|\n| a | 1 | x |\n| `b|c` | 200 | a longer text that has to " +
		"be wrapped |\n\nafter"
	got := render(markdown.Options{Width: 40}, source)
	want := []string{
		"Name   Size          What it is",
		"─────  ────  ──────────────────────────",
		"a         1              x",
		"`b|c`   200  a longer text that has to",
		"                     be wrapped",
		"",
		"after",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n%s", strings.Join(got, "\n"))
	}
	for _, width := range []int{20, 40, 80, 200} {
		for _, line := range render(markdown.Options{Width: width, Styled: true}, source) {
			if w := cells.Width(line); w >= width {
				t.Errorf("width %d: a line of %d", width, w)
			}
		}
	}
}

// TestWidth: a table that is not finished fits into the width that the window has then.
func TestWidth(t *testing.T) {
	r := markdown.New(markdown.Options{Width: 200})
	r.Write("| a | b |\n|--|--|\n| some words | " + strings.Repeat("more words ", 10) + "|\n")
	r.SetWidth(40)
	for _, line := range append(r.Tail(), r.Close()...) {
		if w := cells.Width(line); w >= 40 {
			t.Errorf("%d columns: %q", w, line)
		}
	}
}

// TestTail shows what is not finished as if it were.
func TestTail(t *testing.T) {
	for source, want := range map[string]string{
		"":                        "",
		"done\n":                  "",
		"some **bo":               "some <1mbo</>",
		"some `co":                "some <36mco</>",
		"a \xe6\x97":              "a ",
		"| a | b |":               "| a | b |",
		"| a | b |\n|--|--|\n| 1": "<1ma</>  <1mb</>|<2m─  ─</>|1",
		"```\nco":                 "co",
	} {
		r := markdown.New(markdown.Options{Styled: true})
		r.Write(source)
		if got := tags(strings.Join(r.Tail(), "|")); got != want {
			t.Errorf("%q has the tail\n%s, want\n%s", source, got, want)
		}
	}
}

// TestLongLine: memory is bounded, and nothing is lost.
func TestLongLine(t *testing.T) {
	source := strings.Repeat("日本語 text ", 1<<15)
	lines := render(markdown.Options{}, source[:100], source[100:])
	if len(lines) < 2 || strings.Join(lines, "") != source {
		t.Errorf("%d lines, %d bytes of %d", len(lines), len(strings.Join(lines, "")), len(source))
	}
}

// TestWraps: prose is broken between words, below the text of its item or quotation, and code never is.
func TestWraps(t *testing.T) {
	source := "Some **words of a** paragraph here.\n- an item of a list that is long\n> a quotation that is long\n```\n" +
		"code that is longer than a row\n```\na | b and not a table at all\nand the last of it, open"
	want := []string{
		"Some **words of a**", "paragraph here.", "- an item of a list", "  that is long", "> a quotation that",
		"  is long", "```", "code that is longer than a row", "```", "a | b and not a", "table at all",
		"and the last of it,", "open",
	}
	if got := render(markdown.Options{Width: 20, Wraps: true}, source); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	r := markdown.New(markdown.Options{Width: 20, Wraps: true, Styled: true})
	r.Write("The last **of it, but it is** open")
	if got, want := tags(strings.Join(r.Tail(), "|")), "The last <1mof it, but</>|<1mit is</> open"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// FuzzRender holds that the lines do not depend on where the text was cut, that no letter is lost, that no control
// sequence gets through but styles, and that every line ends without a style.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"# a\n**b** *c* `d`\n- e\n> f\n```go\ng // h\n```\n", "| a | b |\n|---|:-:|\n| c | d | e |\nf",
		"[a](b) ![c](d)",
		"***a** b* __c__ ~~d~~", "\x1b[31mred\x9b2J", "a\r\nb\rc", "`` ` ``", "|\n|-|\n|x", "\xff\xe6\x97",
		"~~~\nx\n~~~",
	} {
		f.Add(seed, 5, 40, true)
		f.Add(seed, 2, 200, false)
	}
	f.Fuzz(func(t *testing.T, source string, at, width int, styled bool) {
		o := markdown.Options{Width: 20 + (width%200+200)%200, Styled: styled, Wraps: styled}
		if at < 0 || at > len(source) {
			at = len(source) / 2
		}
		whole, parts := render(o, source), render(o, source[:at], source[at:])
		if !slices.Equal(whole, parts) {
			t.Errorf("%q cut at %d:\n%q\n%q", source, at, parts, whole)
		}
		shown := strings.Join(whole, "\n")
		plain := cells.Plain(shown)
		if strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
			t.Errorf("%q shows %q", source, plain)
		}
		// A table puts the letters of wrapped cells in another order, and a link whose text is its address has them
		// once.
		if !strings.ContainsAny(source, "|[") {
			if want := letters(text.Visible(strings.TrimSuffix(strings.ReplaceAll(source, "\r\n", "\n"),
				"\r"))); !isWithin(letters(plain), want) {
				t.Errorf("%q shows %q", source, plain)
			}
		}
		for _, line := range whole {
			if i := strings.LastIndex(line, "\x1b["); i >= 0 && !strings.HasPrefix(line[i:], "\x1b[m") {
				t.Errorf("%q ends with a style", line)
			}
		}
	})
}

// isWithin reports whether the letters stand in s in their order, with nothing else but what a link repeats.
func isWithin(s, letters string) bool {
	rest := []rune(s)
	for _, r := range letters {
		i := slices.Index(rest, r)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

func BenchmarkStream(b *testing.B) {
	source := strings.Repeat("Some *words* of an **answer** with `code` and [a link](https://example.org/x).\n", 200)
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		r := markdown.New(markdown.Options{Styled: true})
		for rest := source; rest != ""; {
			n := min(5, len(rest))
			r.Write(rest[:n])
			rest = rest[n:]
		}
	}
}

// BenchmarkTail renders what is open after every piece, as a screen does at most.
func BenchmarkTail(b *testing.B) {
	line := "Some *words* of an **answer** with `code` and [a link](https://example.org/x).\n"
	source := strings.Repeat(strings.Repeat(line, 5)+"\n", 40)
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		r := markdown.New(markdown.Options{Styled: true})
		for rest := source; rest != ""; {
			n := min(5, len(rest))
			r.Write(rest[:n])
			r.Tail()
			rest = rest[n:]
		}
	}
}

// TestFlush: what is printed in the middle of a text cuts a line, and ends no block of code.
func TestFlush(t *testing.T) {
	for _, tt := range []struct{ before, after, want string }{
		{"```\na **b", "**\n**c**\n```\n**d**", "<2m```</>|a **b|=|**|**c**|<2m```</>|<1md</>"},
		{"one", "\ntwo", "one|=|two"},
		{"one\n", "\ntwo", "one|=||two"},
		{"a | b", "\nc", "a | b|=|c"},
		{"", "one", "=|one"},
	} {
		r := markdown.New(markdown.Options{Styled: true})
		lines := append(r.Write(tt.before), r.Flush()...)
		if r.Tail() != nil {
			t.Errorf("%q leaves a tail", tt.before)
		}
		lines = append(append(append(lines, "="), r.Write(tt.after)...), r.Close()...)
		if got := tags(strings.Join(lines, "|")); got != tt.want {
			t.Errorf("%q, %q is\n%s, want\n%s", tt.before, tt.after, got, tt.want)
		}
	}
}
