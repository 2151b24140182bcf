//go:build unix

package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecipes types the recipes of AGENTS.md one after the other in one project: ask, hand over, answer, review, undo.
func TestRecipes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "AGENTS.md"))
	must(t, err)
	before, _, _ := strings.Cut(string(page), "\n## Map")
	first := strings.Count(before[:strings.Index(before, "\n## Recipes")], "\n")
	var recipes []block
	for _, b := range blocks(t, "AGENTS.md") {
		if b.line > first && b.line < strings.Count(before, "\n") {
			recipes = append(recipes, b)
		}
	}
	shows := []string{
		`"result":"ok"`, `"status":"needs_input"`, `"status":"succeeded","reason":"done"`, `"findings":[]`,
		`greeting.txt`,
	}
	if len(recipes) != len(shows) {
		t.Fatalf("%d recipes", len(recipes))
	}
	r := newReader(t)
	r.stubs(t)
	if _, code := r.types(t, "-euc", "omniagent agents allow codex"); code != 0 {
		t.Fatal("codex is not allowed")
	}
	for i, b := range recipes {
		shown, code := r.types(t, "-euc", "export CI=1\n"+b.text)
		if code != 0 || !strings.Contains(shown, shows[i]) {
			t.Errorf("AGENTS.md:%d: exit code %d\n%s", b.line, code, shown)
		}
		_, err := os.Stat(filepath.Join(r.app, "greeting.txt"))
		if there := err == nil; there != (i > 0 && i < len(recipes)-1) {
			t.Errorf("AGENTS.md:%d: greeting.txt: %v", b.line, err)
		}
	}
}
