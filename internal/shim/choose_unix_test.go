//go:build unix

package shim

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/agent"
	"omniagent/internal/agentsdir"
	"omniagent/internal/fault"
)

func TestChoice(t *testing.T) {
	const file = `{"defaultAgent":" BETA "}`
	tests := []struct {
		name   string
		args   string
		file   string
		env    string
		want   string // name, or empty
		stderr string
	}{
		{"the flag", "--agent Alpha", file, "OMNIAGENT_AGENT=beta", "alpha", ""},
		{"an alias", "--agent first", "", "", "alpha", ""},
		{"the variable", "", file, "OMNIAGENT_AGENT=alpha", "alpha", ""},
		{"an empty variable", "", file, "OMNIAGENT_AGENT=", "beta", "omniagent: using beta, the default of agents/omniagent.config.json"},
		{"the file", "", file, "", "beta", "using beta"},
		{"a custom agent", "--agent own", "", "", "own", ""},
		{"an unknown one", "--agent alpah", "", "", "", `there is no agent "alpah" (--agent); there are alpha, beta, gone, own` + "\nhint: omniagent --agent alpha"},
		{"one like no other", "--agent zzzzzzzz", "", "", "", "hint: omniagent agents list"},
		{"one with escapes", "--agent \x1b[31mx", "", "", "", `there is no agent`},
		{"an unknown variable", "", "", "OMNIAGENT_AGENT=betta", "", "(OMNIAGENT_AGENT)"},
		{"an unknown default", "", `{"defaultAgent":"bta"}`, "", "", "(defaultAgent in agents/omniagent.config.json:1:17)"},
		{"none", "", "", "", "", "no agent is chosen; installed here: alpha, beta, own\nhint: omniagent --agent alpha, or for good: omniagent config set agent alpha --global"},
		{"a file that says nothing", "", `{}`, "", "", "no agent is chosen"},
		{"one that is not installed", "--agent gone", "", "", "", "hint: install gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.script("hello")
			gone := w.agent("gone", func(d *fake) { d.path = "" })
			alpha := w.agent("alpha", func(d *fake) { d.About.Aliases = []string{"first"} })
			w.drivers = []agent.Driver{alpha, w.agent("beta", nil), gone}
			w.custom = []agent.Driver{w.agent("own", nil), w.agent("alpha", func(d *fake) { d.path = "" })}
			if tt.file != "" {
				w.write(filepath.Join(w.work, "agents/omniagent.config.json"), tt.file)
			}
			if tt.env != "" {
				w.env = []string{tt.env}
			}
			r := w.run(nil, append(strings.Fields(tt.args), "-p", "q", "--report", "r.json")...)
			name := w.reported()
			if name != tt.want || (r.code == 0) != (tt.want != "") || strings.Contains(r.stderr, "\x1b") {
				t.Errorf("%s: %+v", name, r)
			}
			if want := strings.ReplaceAll(tt.stderr, ", own\nhint", ", own, alpha\nhint"); !strings.Contains(r.stderr, tt.stderr) && !strings.Contains(r.stderr, want) {
				t.Errorf("stderr %q\nlacks %q", r.stderr, tt.stderr)
			}
			if tt.want != "" && tt.stderr == "" && r.stderr != "" {
				t.Errorf("stderr %q", r.stderr)
			}
		})
	}
}

func TestNothingInstalled(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("gone", func(d *fake) { d.path = "" })}
	if r := w.run(nil, "-p", "q"); r.code != 2 || !strings.Contains(r.stderr, "none is installed here\nhint: omniagent agents list") {
		t.Errorf("%+v", r)
	}
	if r := w.run(nil, "--agent", "gone", "-p", "q"); r.code != 1 {
		t.Errorf("%+v", r)
	}
}

// TestTargetsOfARepository count while exactly their content is trusted, and never in place of a built-in agent.
func TestTargetsOfARepository(t *testing.T) {
	w := newWorld(t)
	w.script("hello")
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	asked := 0
	w.targets = func(f *agentsdir.File) ([]agent.Driver, error) {
		asked++
		if len(f.Targets) != 1 {
			return nil, fault.New(fault.ConfigInvalid, "it is wrong")
		}
		return []agent.Driver{w.agent(f.Targets[0].ID, nil), w.agent("alpha", func(d *fake) { d.path = "" })}, nil
	}
	path := filepath.Join(w.work, "agents/omniagent.config.json")
	const content = `{"defaultAgent":"mine","targets":[{"id":"mine","inherits":"alpha"}]}`
	w.write(path, content)
	for _, args := range [][]string{{"--agent", "mine", "-p", "q"}, {"-p", "q"}} {
		if r := w.run(nil, args...); r.code != 2 || asked != 0 || !strings.Contains(r.stderr, "warning: agents/omniagent.config.json defines agents, which are ignored") {
			t.Errorf("%+v", r)
		}
	}
	if err := w.trust.Add(path, []byte(content)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--agent", "mine", "-p", "q"}, {"-p", "q"}, {"--agent", "alpha", "-p", "q"}} {
		if r := w.run(nil, args...); r.code != 0 || r.stdout != "hello" {
			t.Errorf("%+v", r)
		}
	}
	w.write(path, content+" ")
	asked = 0
	if r := w.run(nil, "--agent", "mine", "-p", "q"); r.code != 2 || asked != 0 {
		t.Errorf("another content: %+v", r)
	}
	w.write(path, `{"targets":[{"id":"a","inherits":"alpha"},{"id":"b","inherits":"alpha"}]}`)
	if err := w.trust.Add(path, []byte(`{"targets":[{"id":"a","inherits":"alpha"},{"id":"b","inherits":"alpha"}]}`)); err != nil {
		t.Fatal(err)
	}
	if r := w.run(nil, "--agent", "alpha", "-p", "q"); r.code != 2 || !strings.Contains(r.stderr, "it is wrong") {
		t.Errorf("%+v", r)
	}
}

// TestSentences: joined by a colon, they lose their stops.
func TestSentences(t *testing.T) {
	for _, tt := range []struct{ want, parts string }{
		{"It is shut: Open it: open it", "It is shut.|Open it.|open it"}, {"a: b.", "a|b."}, {"a", "a||"}, {"a: b", "a:|b"}, {"b", "|b"}, {"", ""},
	} {
		if got := joined(strings.Split(tt.parts, "|")...); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	w.script("die")
	r := w.run(nil, "--agent", "alpha", "-p", "q")
	if r.code != 1 || !strings.Contains(r.stderr, "hint: It is shut: Open it: open it\nhint: It is blue: paint it\n") {
		t.Errorf("%+v", r)
	}
	f := fault.New(fault.ArgError, "It is shut.").Because(errors.New("no key"))
	if w.shim().fail(Host{Stderr: w.file(nil)}, f) != 2 {
		t.Error("not misused")
	}
}
