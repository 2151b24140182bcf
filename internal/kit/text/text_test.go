package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		replaced       int
	}{
		{"plain", "héllo\n\tworld", "héllo\n\tworld", 0},
		{"colour", "a\x1b[31;1mred\x1b[0m", "ared", 0},
		{"cursor", "x\x1b[2J\x1b[H\x1b[?25ly", "xy", 0},
		{"title", "\x1b]0;evil\x07after", "after", 0},
		{"hyperlink", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text", 0},
		{"unterminated title keeps the text", "\x1b]0;evil", "0;evil", 0},
		{"clipboard", "\x1b]52;c;ZXZpbA==\x07", "", 0},
		{"device control", "\x1bPq#0\x1b\\z", "z", 0},
		{"charset", "\x1b(Bz", "z", 0},
		{"eight bit", "\u009b31mred\u009d0;t\u009cz", "redz", 0},
		{"carriage return", "a\r\nb\rc", "a\nbc", 0},
		{"nul", "a\x00b", "a\ufffdb", 1},
		{"not utf-8", "a\xff\xfeb", "a\ufffd\ufffdb", 2},
		{"lone surrogate bytes", "\xed\xa0\x80", "\ufffd\ufffd\ufffd", 3},
		{"bell and backspace", "a\a\bb\x7f", "ab", 0},
		{"stray escape at the end", "abc\x1b", "abc", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, n := Clean(c.in)
			if got != c.want || n != c.replaced {
				t.Errorf("Clean(%q) = %q, %d; want %q, %d", c.in, got, n, c.want, c.replaced)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b]0;t\x07\x1b[1m\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got, _ := Clean(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\r\x00\a\u009b") {
			t.Fatalf("Clean(%q) = %q", s, got)
		}
		if again, n := Clean(got); again != got || n != 0 {
			t.Fatalf("not stable: %q then %q", got, again)
		}
	})
}

func TestNearest(t *testing.T) {
	words := []string{"manifest", "doctor", "config", "status", "cleanup", "audit-log"}
	for in, want := range map[string]string{
		"manifset": "manifest", "docter": "doctor", "confg": "config", "zzzzzz": "",
		"audit_log": "audit-log", "STATUS": "status", "log": "",
	} {
		if got := Nearest(in, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNearestOfDottedNames(t *testing.T) {
	names := []string{"model", "retries", "audit.keep", "audit.max_size"}
	for word, want := range map[string]string{
		"modle": "model", "MODEL": "model", "keep": "audit.keep",
		"max_size": "audit.max_size", "xyz": "", "": "", "retry": "", "retris": "retries",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for in, want := range map[string]string{
		"90s": "1m30s", "0": "0s", "30d": "720h0m0s", "1d12h": "36h0m0s", "": "no",
		"5": "no", "-5s": "no", "1d-2h": "no", "9999999999d": "no",
	} {
		got := "no"
		if d, ok := Duration(in); ok {
			got = d.String()
		}
		if got != want {
			t.Errorf("Duration(%q) = %s, want %s", in, got, want)
		}
	}
}
