package cells_test

import (
	"slices"
	"strings"
	"testing"

	"omniagent/internal/term/cells"
	"omniagent/internal/testkit/hermetic"
)

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "äö": 2, "日本": 4, "e\u0301": 1, "👩‍👩‍👧": 2, "🇩🇪x": 3, "\x1b[1;31mred\x1b[m": 3,
		"a\tb": 9, "한글": 4, "a\x07b": 2, "\x1b[31": 3, "नमस्ते": 4,
	} {
		if got := cells.Width(text); got != want {
			t.Errorf("%q has the width %d, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"日本語", 4, "日…"},
		{"\x1b[1mbold text\x1b[m", 5, "\x1b[1mbold…\x1b[m"},
		{"abc", 0, ""},
	} {
		if got := cells.Cut(tt.text, tt.most); got != tt.want {
			t.Errorf("Cut(%q, %d) is %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}

// TestRows: a command is on one row, if it fits there.
func TestRows(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  []string
	}{
		{"do not stop", 9, []string{"do not", "stop"}},
		{"see omniagent runs list, please", 20, []string{"see", "omniagent runs list,", "please"}},
		{"see omniagent runs list; or not", 80, []string{"see omniagent runs list; or not"}},
		{"see omniagent runs list", 15, []string{"see omniagent", "runs list"}},
	} {
		if got := cells.Rows(tt.text, tt.width); !slices.Equal(got, tt.want) {
			t.Errorf("Rows(%q, %d) is %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

// TestProse: words stay whole, and a word that fits into no row is left to the terminal.
func TestProse(t *testing.T) {
	for _, tt := range []struct {
		text string
		hang int
		want []string
	}{
		{"", 0, []string{""}},
		{"fits  so ", 0, []string{"fits  so "}},
		{"do not stop here", 0, []string{"do not", "stop here"}},
		{"  - do not stop", 4, []string{"  - do not", "    stop"}},
		{"see https://a.example/b now", 0, []string{"see", "https://a.example/b", "now"}},
		{"ab 日本語の文字", 0, []string{"ab 日本語", "の文字"}},
		{
			"\x1b[1mdo not\x1b[m stop \x1b[4mhere now\x1b[m", 0,
			[]string{"\x1b[1mdo not\x1b[m", "stop \x1b[4mhere\x1b[m", "\x1b[4mnow\x1b[m"},
		},
		{"wide          gap", 0, []string{"wide", "gap"}},
		{"hang too deep", 9, []string{"hang too", "deep"}},
	} {
		if got := cells.Prose(tt.text, tt.hang, 10); !slices.Equal(got, tt.want) {
			t.Errorf("Prose(%q, %d) is %q, want %q", tt.text, tt.hang, got, tt.want)
		}
	}
}

// TestWrapIsLinear has one long word with a style at its end.
func TestWrapIsLinear(t *testing.T) {
	hermetic.Linear(t, "a long bold word", 2000, func(n int) {
		word := "\x1b[1m" + strings.Repeat("x", n) + "\x1b[0m"
		cells.Wrap(word, 20)
		cells.Prose(word, 0, 20)
	})
}

func TestBreak(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"abcde", 5, []string{"abcde"}},
		{"abcdef", 5, []string{"abcde", "f"}},
		{"a日本", 4, []string{"a日", "本"}},
		{"\x1b[1mabcd\x1b[mef", 3, []string{"\x1b[1mabc\x1b[m", "\x1b[1md\x1b[mef"}},
		{"abcd\tx", 6, []string{"abcd  ", "x"}},
	} {
		if got := cells.Break(tt.text, tt.width); !slices.Equal(got, tt.want) {
			t.Errorf("Break(%q, %d) is %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

// FuzzBreak holds that the rows are the text, that each fits, and that Rows counts them.
func FuzzBreak(f *testing.F) {
	for _, seed := range []string{"hello", "日本語 text", "\x1b[1mx\x1b[m", "👩‍👩‍👧👩‍👩‍👧", "a\tb\tc", "\r\n", "\x1b[1"} {
		f.Add(seed, 7)
	}
	f.Fuzz(func(t *testing.T, text string, width int) {
		width = 2 + (width%100+100)%100
		rows := cells.Break(text, width)
		plain := ""
		for _, row := range rows {
			if w := cells.Width(row); w > width {
				t.Errorf("a row has %d cells of %d", w, width)
			}
			plain += cells.Plain(row)
		}
		without := func(s string) string { return strings.NewReplacer("\t", "", " ", "").Replace(s) }
		if without(plain) != without(cells.Plain(text)) {
			t.Errorf("%q became %q", text, plain)
		}
		prose := strings.Join(cells.Prose(text, 2, width), "")
		if without(cells.Plain(prose)) != without(cells.Plain(text)) {
			t.Errorf("%q became %q", text, prose)
		}
		if cut := cells.Cut(text, width); cells.Width(cut) > width {
			t.Errorf("Cut returned %d cells of %d", cells.Width(cut), width)
		}
		sum := 0
		for _, c := range cells.Parse(text) {
			sum += c.Width
		}
		if sum != cells.Width(text) {
			t.Errorf("the cells have the width %d, the text %d", sum, cells.Width(text))
		}
	})
}
