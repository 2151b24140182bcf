package contract

import (
	"slices"
	"strings"
	"testing"
)

// TestTableOfFlags: every line of the table of shared flags is read, and every word of it is known.
func TestTableOfFlags(t *testing.T) {
	scopes := strings.Fields(
		"always changes destroys lasts lists logs-in networks previews reads recurses resumes shows streams")
	kinds := []Kind{Text, ID, File, URL, Int, Bool, Enum, Duration, Names, JSON}
	known := strings.Fields("short values default length max sensitive common also as")
	lines := 0
	for line := range strings.Lines(flagTable) {
		if line[0] == '#' {
			continue
		}
		lines++
		declared, help, _ := strings.Cut(strings.TrimSpace(line), ": ")
		words := strings.Fields(declared)
		if len(words) < 4 || help == "" || !slices.Contains(scopes, words[0]) ||
			!slices.Contains(kinds, Kind(words[3])) {
			t.Errorf("%q is not a flag", line)
			continue
		}
		for _, word := range words[4:] {
			if name, _, _ := strings.Cut(word, "="); !slices.Contains(known, name) {
				t.Errorf("--%s: there is no word %q", words[2], word)
			}
		}
	}
	if flags := sharedParams(); len(flags) != lines {
		t.Errorf("%d flags in %d lines", len(flags), lines)
	}
}
