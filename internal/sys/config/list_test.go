package config

import (
	"slices"
	"testing"
)

// TestSplitList keeps commas in brackets, and reads back what it shows.
func TestSplitList(t *testing.T) {
	for text, want := range map[string][]string{
		"a, b,,c": {"a", "b", "c"}, "Bash(git log --format=a,b),Read(x)": {
			"Bash(git log --format=a,b)",
			"Read(x)",
		}, "Bash(echo $(a,b),c)": {"Bash(echo $(a,b),c)"},
		"Bash(a,Read(b)": {"Bash(a", "Read(b)"}, "a),b(": {"a)", "b("}, "a)(,b": {"a)(", "b"}, "": {}, "(,)": {"(,)"},
		`["a,b","c"]`: {"a,b", "c"},
	} {
		got, err := parseList(text)
		if err != nil || !slices.Equal(got.([]string), want) {
			t.Errorf("%q: %q, %v", text, got, err)
			continue
		}
		back, err := parseList(showRaw(got, ""))
		if err != nil || !slices.Equal(back.([]string), want) {
			t.Errorf("%q is shown as %q and read back as %q, %v", text, showRaw(got, ""), back, err)
		}
	}
}
