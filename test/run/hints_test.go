//go:build unix

package run

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mostOpen is how many hints no test follows yet, though one could. It only ever falls.
const mostOpen = 3

// TestHintsAreListed: each hint of the sources that names a command of ours has a row in testdata/hints.tsv: the test
// that reproduces its error and follows it, or why none does. A new hint without a row fails, and so does a row without
// a hint.
func TestHintsAreListed(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/hints.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows, tests, open := map[string]string{}, sourceOf(t, "../*"), 0
	for line := range strings.Lines(string(data)) {
		how, hint, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		kind, name, _ := strings.Cut(how, " ")
		switch {
		case !ok, !slices.Contains([]string{"followed", "looks", "vendor", "open"}, kind), rows[hint] != "":
			t.Errorf("not a row: %s", line)
		case kind == "followed" && !strings.Contains(tests, "func "+name+"("):
			t.Errorf("there is no test %s", name)
		}
		if rows[hint] = how; kind == "open" {
			open++
		}
	}
	if open > mostOpen {
		t.Errorf("%d hints that no test follows, and not at most %d: follow the new one", open, mostOpen)
	}
	found := hintsIn(t, "../../internal")
	for hint := range found {
		if rows[hint] == "" {
			t.Errorf("a hint without a row in testdata/hints.tsv: %q", hint)
		}
	}
	for hint := range rows {
		if !found[hint] {
			t.Errorf("a row without a hint: %q", hint)
		}
	}
}

func sourceOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, name := range names {
		data, _ := os.ReadFile(name)
		all.Write(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// hintsIn returns the texts of all calls of Hint, Also and FixBy that name a command of ours.
func hintsIn(t *testing.T, root string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			s, is := call.Fun.(*ast.SelectorExpr)
			if is && slices.Contains([]string{"Hint", "Also", "FixBy"}, s.Sel.Name) {
				for _, arg := range call.Args {
					if text := literal(arg); strings.Contains(text, "omniagent ") {
						all[text] = true
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil || len(all) < 50 {
		t.Fatalf("%d hints: %v", len(all), err)
	}
	return all
}

// literal returns the text of a string constant, also of several that are added.
func literal(e ast.Expr) string {
	switch v := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(v.Value)
		return text
	case *ast.BinaryExpr:
		return literal(v.X) + literal(v.Y)
	}
	return ""
}

// TestHintsOfDirectCalls: the same for calls without a command, with a program that gets what is advised.
func TestHintsOfDirectCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails []string
		hint  string
		does  []string // what is advised, with the words of the caller in it
	}{
		"a flag of the agent": {
			[]string{"--agent", "fine", "--swift"},
			"omniagent --agent fine -- --swift",
			[]string{"--agent", "fine", "-p", "x", "--", "--swift"},
		},
		"nothing on standard input": {
			[]string{"--agent", "fine", "--output", "events"},
			"omniagent start -p 'What is in this directory?'",
			[]string{"start", "--agent", "fine", "-p", "What is in this directory?"},
		},
		"an empty prompt": {
			[]string{"--agent", "fine", "-p", ""},
			`omniagent -p "what is to be done"`,
			[]string{"--agent", "fine", "-p", "what is to be done"},
		},
		"no agent": {
			[]string{"-p", "x"}, "omniagent --agent fine", []string{"--agent", "fine", "-p", "x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t).agent("fine", `cat >/dev/null; echo "done $*"`)
			out, err := p.command(c.fails...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.hint) {
				t.Fatalf("%v: %q is not advised: %s", err, c.hint, out)
			}
			if out, err := p.command(c.does...).CombinedOutput(); err != nil || !strings.Contains(string(out), "done") {
				t.Errorf("what is advised fails: %v %s", err, out)
			}
		})
	}
}

// TestHintsHelp: what a hint names is done, and then the error is gone. ID is the run that the case begins with.
func TestHintsHelp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin []string // a run, which may fail
		fails []string // a call, and what its hint names
		hint  string
		again []string // a call that succeeds after that; nil: what the hint names does
	}{
		"an unknown run":     {fails: []string{"runs", "show", "run-0"}, hint: "omniagent runs list"},
		"nothing is asked":   {fails: []string{"answer", "yes"}, hint: "omniagent runs list"},
		"an unknown session": {fails: []string{"session", "show", "x"}, hint: "omniagent session list"},
		"an unknown turn":    {fails: []string{"undo", "x"}, hint: "omniagent undo --list"},
		"an unknown fork":    {fails: []string{"fork", "show", "x"}, hint: "omniagent fork list"},
		"an unknown agent":   {fails: []string{"agents", "show", "x"}, hint: "omniagent agents list"},
		"an agent that is not allowed": {
			fails: []string{"run", "--agent", "other", "--yolo", "-p", "x"}, hint: "omniagent agents allow other",
			again: []string{"run", "--agent", "other", "--yolo", "-p", "x"},
		},
		"a run that is over": {
			begin: []string{"run", "--agent", "fine", "--yolo", "-p", "x"},
			fails: []string{"runs", "continue", "ID"}, hint: "omniagent runs retry ID",
		},
		"a yes in place of a text": {
			begin: []string{"run", "--agent", "fine", "--yolo", "-p", "x", "--require", "colour=Which?"},
			fails: []string{"answer", "ID", "--approve"}, hint: "omniagent answer ID --question colour 'TEXT'",
		},
		"a text in place of a yes": {
			begin: []string{
				"run", "--agent", "native", "-m", "m", "--provider", "openai", "--approval", "prompt", "-p", "x",
			},
			fails: []string{"answer", "ID", "perhaps"}, hint: "omniagent answer ID --question q1.1 --reject",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t).agent("fine", `cat >made; echo done`).agent("other", `cat >made; echo done`).model(writes)
			p.call("agents", "allow", "other", "--remove")
			id := "ID"
			if c.begin != nil {
				id = p.call(c.begin...).Data.ID
			}
			named := func(words []string) []string {
				return strings.Fields(strings.ReplaceAll(strings.Join(words, " "), "ID", id))
			}
			a := p.call(named(c.fails)...)
			command := strings.Join(named([]string{c.hint}), " ")
			if a.Code == 0 || a.Error == nil || !strings.Contains(a.Error.Suggestion, command) {
				t.Fatalf("%q is not advised: %s", command, a)
			}
			b := p.call(strings.Fields(strings.ReplaceAll(command, "'", ""))[1:]...)
			if refused := strings.HasSuffix(command, "--reject") && b.Code == 7; b.Code != 0 && !refused {
				t.Errorf("what is advised fails: %s", b)
			}
			if c.again != nil {
				if b := p.call(named(c.again)...); b.Code != 0 {
					t.Errorf("it fails as before: %s", b)
				}
			}
		})
	}
}

// TestHintsOfAToolsQuestion: each next step of a run that asks about a tool, of a text in place of a yes, and of the
// status, is a whole command of a shell, which answers. Where only one is read, it is not the approval.
func TestHintsOfAToolsQuestion(t *testing.T) {
	t.Parallel()
	for name, later := range map[string][]string{
		"run": nil, "answer": {"answer", "ID", "perhaps"}, "status": {"runs", "status", "ID"},
	} {
		for _, approved := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %t", name, approved), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t).model(writes)
				a := p.run("native", "-m", "m", "--provider", "openai", "--approval", "prompt")
				if id := a.Data.ID; later != nil {
					a = p.call(strings.Fields(strings.ReplaceAll(strings.Join(later, " "), "ID", id))...)
				}
				_, told, _ := strings.Cut(a.Stderr, "\nhint: ")
				steps := strings.Split(told, "\n  ")
				if a.Error == nil || strings.Contains(a.Error.Suggestion, "--approve") || len(steps) != 2 {
					t.Fatalf("%s", a)
				}
				step := a.Error.Suggestion
				if approved {
					step, _, _ = strings.Cut(steps[1], "\n")
				}
				cmd := p.command()
				cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `omniagent() { "$0" "$@"; }; ` + step, program}
				if b := p.ended(cmd); b.Code == 2 || (p.read("made") == "x") != approved {
					t.Errorf("%s: %s", step, b)
				}
			})
		}
	}
}
