package contract

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/term/cells"
)

// onTerminal makes all three streams a person's.
func onTerminal(h *Host) { h.StdinTerminal, h.StdoutTerminal, h.StderrTerminal = true, true, true }

// unbroken is a text on one line, with single spaces.
func unbroken(s string) string { return strings.Join(strings.Fields(s), " ") }

// topicText is a page of the help, as a pipe gets it.
func topicText(t *testing.T, p *Program, words ...string) string {
	t.Helper()
	write, f := p.helpPage(words)
	if f != nil {
		t.Fatal(f)
	}
	h := &helpPage{width: pageWidth}
	write(h)
	return h.String()
}

// narrow wants lines that fit a terminal of 80 columns, but for examples, which are typed as they are.
func narrow(t *testing.T, what, page string, examples []Example) {
	t.Helper()
	for line := range strings.Lines(page) {
		example := slices.ContainsFunc(examples, func(e Example) bool {
			return strings.Contains(line, e.Command) || strings.Contains(line, e.Description)
		})
		if cells.Width(strings.TrimSuffix(line, "\n")) > pageWidth && !example {
			t.Errorf("the help of %s has a line that is too long: %s", what, line)
		}
	}
}

// TestHelpFinds: what help names is found, by its first words too, and what is mistyped is told with the nearest.
func TestHelpFinds(t *testing.T) {
	t.Parallel()
	p, err := tested()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range helpNames(p) {
		if page := topicText(t, p, strings.Fields(name)...); len(page) < 20 {
			t.Errorf("the help about %s is %q", name, page)
		}
	}
	for typed, near := range map[string]string{"ecko": "echo", "flag": "flags", "group ecko": "group echo"} {
		_, f := p.helpPage(strings.Fields(typed))
		if f == nil || f.Suggestion != "oatest help "+near || f.Kind() != fault.Input {
			t.Errorf("%s: %+v", typed, f)
		}
	}
	if _, f := p.helpPage([]string{"zzzzzz"}); f == nil || f.Suggestion != "oatest help lists commands and topics" {
		t.Errorf("%+v", f)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	t.Run("pipe", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for path, line := range map[string]string{
			"echo": "Usage: oatest echo [ID] [FILE] [flags]",
			"put":  "Usage: oatest put NAME [flags]", "group echo": "Usage: oatest group echo [ID]",
			"": "Usage: oatest COMMAND",
		} {
			for _, flag := range []string{"--help", "-h"} {
				a := w.run(t, append(strings.Fields(path), flag)...)
				a.succeeded(t)
				if path != "" {
					same(t, "data", a.at(t, "data"), nil)
				}
				same(t, "meta.help", a.at(t, "meta.help"), true)
				same(t, "meta.schema_ref", a.at(t, "meta.schema_ref"), strings.TrimSpace("oatest "+path)+" --schema")
				if !strings.Contains(a.stderr, line) || strings.Contains(a.stdout, "Usage") {
					t.Errorf("%s: stdout %s stderr %s", path, a.stdout, a.stderr)
				}
				ref, _ := a.at(t, "meta.schema_ref").(string)
				w.inside(t, nil, strings.Fields(ref)[1:]).succeeded(t)
			}
		}
		a := w.run(t, "put", "--help", "a", "b", "--count", "odd") // wrong arguments do not keep the help away
		same(t, "left", w.left(t), []string{})
		if a.code != 0 && a.code != 2 {
			t.Errorf("exit %d: %s", a.code, a.stdout)
		}
	})
	t.Run("terminal", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		p, err := tested()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.All() {
			if !c.Class.enveloped() {
				continue
			}
			a := w.inside(t, nil, append(strings.Fields(c.Path), "--help"), onTerminal)
			if a.code != 0 || a.envelope != nil || !strings.HasPrefix(a.stdout, "Usage: oatest "+c.Path) {
				t.Fatalf("%s: exit %d: %s", c.Path, a.code, a.stdout)
			}
			for _, param := range c.allParams() {
				page := unbroken(a.stdout)
				named := regexp.MustCompile(`--` + param.Name + `[ ,]`).MatchString(page)
				if param.Global && param.everywhere() { // explained once, for all commands
					page = unbroken(topicText(t, p, "flags"))
				}
				if !named || !strings.Contains(page, unbroken(param.explain())) {
					t.Errorf("%s: --%s is not in the help", c.Path, param.Name)
				}
			}
			for _, entry := range c.exits() {
				if !strings.Contains(a.stdout, entry.Name) ||
					!strings.Contains(unbroken(a.stdout), unbroken(entry.Description)) {
					t.Errorf("%s: exit %s is not in the help", c.Path, entry.Name)
				}
			}
			narrow(t, c.Path, a.stdout, c.Examples)
		}
		whole := w.inside(t, nil, []string{"--help"}, onTerminal)
		for _, v := range p.variables() {
			if !v.own && !strings.Contains(whole.stdout, v.Name) ||
				!strings.Contains(topicText(t, p, "environment"), v.Name) {
				t.Errorf("%s is not in the help", v.Name)
			}
		}
		for _, c := range p.All() {
			word, _, _ := strings.Cut(c.Path, " ")
			if !regexp.MustCompile(`(?m)^  `+word+`\b`).MatchString(whole.stdout) ||
				!strings.Contains(strings.ToLower(unbroken(topicText(t, p, word))), strings.ToLower(c.Summary)) {
				t.Errorf("%s is not in the help", c.Path)
			}
		}
		narrow(t, "the program", whole.stdout, nil)
		if whole.envelope != nil || whole.stderr != "" {
			t.Errorf("stderr %s", whole.stderr)
		}
	})
	t.Run("width", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		plain := w.run(t, "fail", "--stable-output")
		w.env = append(w.env, "COLUMNS=40")
		columns := w.run(t, "fail", "--stable-output")
		same(t, "with COLUMNS", []any{columns.stdout, columns.stderr}, []any{plain.stdout, plain.stderr})
		helped, narrow := w.run(t, "echo", "--help", "--stable-output"), newWorld(t)
		narrow.dir, narrow.home = w.dir, w.home
		wide := narrow.run(t, "echo", "--help", "--stable-output")
		same(t, "the help with COLUMNS", helped.stderr, wide.stderr)

		wrapped := w.run(t, "fail", "--stable-output", "--width", "40")
		same(t, "stdout with --width", wrapped.stdout, plain.stdout)
		for line := range strings.Lines(wrapped.stderr) {
			if len(line) > 41 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%q is longer than 40", line)
			}
		}
		if strings.Count(wrapped.stderr, "\n") <= strings.Count(plain.stderr, "\n") {
			t.Errorf("nothing was wrapped: %s", wrapped.stderr)
		}
	})
}

// helpNames returns what the help has pages about: topics, groups and commands.
func helpNames(p *Program) []string {
	names := []string{}
	for _, t := range p.topics() {
		names = append(names, t.Name)
	}
	names = append(names, p.paths()...)
	slices.Sort(names)
	return slices.Compact(names)
}

// TestNearestPath: nothing is suggested for a word that is unlike every command, least of all a command that deletes.
func TestNearestPath(t *testing.T) {
	t.Parallel()
	p := wholeProgram(t)
	for typed, want := range map[string]string{
		"session resume": "", "snapshots restore": "", "runs kill": "", "config delete": "",
		"session delet": "session delete", "sesion list": "session list", "runs lst": "runs list",
		"configlist": "config list", "confg": "config",
	} {
		if got := nearestPath(typed, p.paths()); got != want {
			t.Errorf("%q: %q instead of %q", typed, got, want)
		}
	}
	_, _, f := p.dispatchArgs([]byte(`{"_cmd":"config list"}`), nil)
	if f == nil || !strings.Contains(f.Message, "did you mean config.list?") {
		t.Errorf("%v", f)
	}
}
