package archtest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the tree that breaks the rules is found to do, ours must not.
func TestForbiddenCalls(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		sign  []string // what tells the problem from others
		lines []string // where the broken tree does it
	}{
		"chdir": {[]string{"changes the directory"}, []string{"10", "13", "16"}},
		"shell": {[]string{"reads a text as commands", "imports os/exec"}, []string{"5", "21", "22", "23", "24"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := func(root string) (lines, problems []string) {
				tree, err := load(root)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range tree.packages {
					for _, f := range p.files {
						tree.checkCalls(p, f)
					}
				}
				for _, problem := range tree.problems {
					if slices.ContainsFunc(row.sign,
						func(sign string) bool { return strings.Contains(problem, sign) }) {
						place, _, _ := strings.Cut(strings.TrimPrefix(problem, "internal/habits/calls.go:"), ":")
						lines, problems = append(lines, place), append(problems, problem)
					}
				}
				slices.SortFunc(lines,
					func(a, b string) int { return len(a)*1000 - len(b)*1000 + strings.Compare(a, b) })
				return lines, problems
			}
			if _, problems := found(filepath.Join("..", "..")); len(problems) > 0 {
				t.Errorf("here: %q", problems)
			}
			if lines, problems := found("testdata/broken"); !slices.Equal(lines, row.lines) {
				t.Errorf("in the broken tree: %q", problems)
			}
		})
	}
}
