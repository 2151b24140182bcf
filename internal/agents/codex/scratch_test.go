package codex_test

import (
	"path/filepath"
	"slices"
	"testing"

	"omniagent/internal/agents/codex"
)

// TestScratch: what its sandbox notes in the temporary directory is not told as a person's file that is lost.
func TestScratch(t *testing.T) {
	for name, want := range map[string]bool{
		"codex-bwrap-synthetic-mount-targets-1004": true, "codex-report.md": false, "report.md": false,
	} {
		is := slices.ContainsFunc(codex.New().Describe().Scratch, func(pattern string) bool {
			fits, _ := filepath.Match(pattern, name)
			return fits
		})
		if is != want {
			t.Errorf("%s is scratch: %v", name, is)
		}
	}
}
