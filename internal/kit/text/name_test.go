package text

import (
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "a\n\tb\n": "a\n\tb\n", "echo ok \x1b]0;\nrm -r x\n\x07": "echo ok \\x1b]0;\nrm -r x\n\\x07",
		"a\r\nb\u202e\t\xff": "a\\r\nb\\u202e\t\\xff",
	} {
		got := Visible(s)
		if got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
		if clean, _ := Clean(got); clean != got {
			t.Errorf("%q is not clean", got)
		}
	}
}

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "a b.go": "a b.go", "é/日本　語": "é/日本　語", "می\u200cخواهم": "می\u200cخواهم", "👩\u200d💻": "👩\u200d💻",
		"a\ufffdb": "a\ufffdb",
		"a\nb":     `a\nb`, "a\rb\tc": `a\rb\tc`, "\x1b[31mred": `\x1b[31mred`,
		"\x1b]52;c;AAAA\x07": `\x1b]52;c;AAAA\x07`,
		"a\x7fb\x00":         `a\x7fb\x00`,
		"\u009b1A":           `\x9b1A`, "a\xff\xfe": `a\xff\xfe`, "gpj\u202e.exe": `gpj\u202e.exe`,
		"a\u2028b\u2029": `a\u2028b\u2029`, "\ufeffa": `\ufeffa`,
		"\U000e0041": `\U000e0041`, `a\nb`: `a\nb`,
	} {
		got := Name(name)
		if got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
		if clean, _ := Clean(got); clean != got || strings.ContainsAny(got, "\n\t") {
			t.Errorf("%q: %q is not fit for a line", name, got)
		}
	}
}
