package archtest

import (
	"go/parser"
	"go/token"
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
						place, _, _ := strings.Cut(strings.TrimPrefix(problem, "internal/host/habits/calls.go:"), ":")
						lines, problems = append(lines, place), append(problems, problem)
					}
				}
				slices.SortFunc(lines,
					func(a, b string) int { return len(a)*1000 - len(b)*1000 + strings.Compare(a, b) })
				return lines, problems
			}
			if _, problems := found(filepath.Join("..", "..", "..")); len(problems) > 0 {
				t.Errorf("here: %q", problems)
			}
			if lines, problems := found("testdata/broken"); !slices.Equal(lines, row.lines) {
				t.Errorf("in the broken tree: %q", problems)
			}
		})
	}
}

// TestAway: a program that is not an agent is started by process.Programs, in a directory of its own.
func TestAway(t *testing.T) {
	t.Parallel()
	const source = `package p

func f() {
	process.Start(process.Plan{})
	away.Start(process.Plan{Dir: "/workspace"})
	away.Run(process.Spec{Dir: "/workspace"})
	away.Run(process.Spec{Argv: nil})
}
`
	for name, want := range map[string]string{
		"work/run": "4 6", "sys/process/x": "4 6", "agents/cli": "6", "cli/command": "4", "cli/runs": "",
		"walls/shell": "6",
	} {
		found := &tree{fset: token.NewFileSet()}
		syntax, err := parser.ParseFile(found.fset, "p.go", source, 0)
		if err != nil {
			t.Fatal(err)
		}
		found.checkCalls(&pkg{name: name}, &file{syntax: syntax})
		var lines []string
		for _, problem := range found.problems {
			lines = append(lines, strings.Split(problem, ":")[1])
		}
		if got := strings.Join(lines, " "); got != want {
			t.Errorf("%s: %q, want %q", name, found.problems, want)
		}
	}
}
