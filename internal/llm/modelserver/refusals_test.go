package modelserver

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTableOfRefusals: every line names an API, a status, a kind, a code and a message.
func TestTableOfRefusals(t *testing.T) {
	for line := range strings.Lines(refusals) {
		if line[0] == '#' {
			continue
		}
		head, said, _ := strings.Cut(strings.TrimSpace(line), ": ")
		words := strings.Fields(head)
		if len(words) != 4 || said == "" {
			t.Errorf("%q is not a refusal", line)
			continue
		}
		if _, err := strconv.Atoi(words[1]); err != nil && !slices.Contains([]string{"context", "other"}, words[1]) {
			t.Errorf("%q is not a status", words[1])
		}
		for part := range strings.SplitSeq(said, "{") {
			if name, _, open := strings.Cut(part, "}"); open && name != "model" && name != "wait" {
				t.Errorf("%q has a place that nothing fills: %s", said, name)
			}
		}
	}
}
