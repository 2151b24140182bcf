//go:build unix

package shim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
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
		{
			"an empty variable", "", file, "OMNIAGENT_AGENT=", "beta",
			"omniagent: using beta, the default of agents/omniagent.config.json",
		},
		{"the file", "", file, "", "beta", "using beta"},
		{"a custom agent", "--agent own", "", "", "own", ""},
		{
			"an unknown one", "--agent alpah", "", "", "",
			`there is no agent "alpah" (--agent); there are alpha, beta, gone, own` +
				"\nhint: omniagent --agent alpha",
		},
		{"one like no other", "--agent zzzzzzzz", "", "", "", "hint: omniagent agents list"},
		{"one with escapes", "--agent \x1b[31mx", "", "", "", `there is no agent`},
		{"an unknown variable", "", "", "OMNIAGENT_AGENT=betta", "", "(OMNIAGENT_AGENT)"},
		{
			"an unknown default", "", `{"defaultAgent":"bta"}`, "", "",
			"(defaultAgent in agents/omniagent.config.json:1:17)",
		},
		{
			"none", "", "", "", "",
			"no agent is chosen; installed here: alpha, beta, own\nhint: omniagent --agent alpha, or for good: " +
				"omniagent config set agent alpha --global",
		},
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
			if want := strings.ReplaceAll(tt.stderr, ", own\nhint", ", own, alpha\nhint"); !strings.Contains(r.stderr,
				tt.stderr) && !strings.Contains(r.stderr, want) {
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
	if r := w.run(nil, "-p", "q"); r.code != 2 ||
		!strings.Contains(r.stderr, "none is installed here\nhint: omniagent doctor shows how to install one") {
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
	w.targets = func(f *agentsfile.File) ([]agent.Driver, error) {
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
		if r := w.run(nil, args...); r.code != 2 || asked != 0 ||
			!strings.Contains(r.stderr, "warning: agents/omniagent.config.json defines agents, which are ignored") {
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
	if err := w.trust.Add(path,
		[]byte(`{"targets":[{"id":"a","inherits":"alpha"},{"id":"b","inherits":"alpha"}]}`)); err != nil {
		t.Fatal(err)
	}
	if r := w.run(nil, "--agent", "alpha", "-p", "q"); r.code != 2 || !strings.Contains(r.stderr, "it is wrong") {
		t.Errorf("%+v", r)
	}
}

// TestSentences: joined by a colon, they lose their stops.
func TestSentences(t *testing.T) {
	for _, tt := range []struct{ want, parts string }{
		{"It is shut: Open it: open it", "It is shut.|Open it.|open it"}, {"a: b.", "a|b."}, {"a", "a||"}, {
			"a: b",
			"a:|b",
		}, {"b", "|b"}, {"", ""},
	} {
		if got := joined(strings.Split(tt.parts, "|")...); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	const shut, blue = "hint: It is shut: Open it: open it\n", "hint: It is blue: paint it\n"
	for says, want := range map[string]string{
		"exit 1": shut + blue, "exit 7": blue, "exit 2": "", "exit 126": "",
		"die": "",
	} {
		w.script(says)
		r := w.run(nil, "--agent", "alpha", "-p", "q")
		_, hints, _ := strings.Cut(r.stderr, "\n") // behind what it ended with
		if r.code != 1 || hints != want {
			t.Errorf("%s: %+v", says, r)
		}
	}
	w.drivers = []agent.Driver{w.agent("alpha", func(d *fake) { d.path = filepath.Join(w.dir, "none") })}
	if r := w.run(nil, "--agent", "alpha", "-p", "q"); r.code != 1 || strings.Contains(r.stderr, "It is") {
		t.Errorf("not started: %+v", r)
	}
	f := fault.New(fault.ArgError, "It is shut.").Because(errors.New("no key"))
	if w.shim().fail(Host{Stderr: w.file(nil)}, f) != 2 {
		t.Error("not misused")
	}
}

// TestOnlyDisabled: a file that defines no agents is not said to.
func TestOnlyDisabled(t *testing.T) {
	w := newWorld(t)
	w.script("hello")
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	w.write(filepath.Join(w.work, "agents/omniagent.config.json"), `{"disableTargets":["beta"]}`)
	if r := w.run(nil, "--agent", "alpha", "-p", "q"); r.code != 0 || r.stderr != "" {
		t.Errorf("%+v", r)
	}
}

// TestPlacesAreClean: the name of a file is somebody else's text.
func TestPlacesAreClean(t *testing.T) {
	w := newWorld(t)
	f := fault.New(fault.ConfigInvalid, "it is wrong")
	for _, message := range []string{"no such key.", "/a\x1b[31m:1:2: no such key."} {
		f.Problems = append(f.Problems, fault.Problem{
			Param: "/a\x1b[31m:1:2", Code: fault.ConfigInvalid, Message: message,
		})
	}
	file := w.file(nil)
	out, err := os.OpenFile(file.Name(), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	code := w.shim().fail(Host{Stderr: out}, f)
	text, _ := os.ReadFile(file.Name())
	if lines := strings.Split(string(text), "\n"); code != 2 || strings.Contains(string(text), "\x1b") ||
		len(lines) != 3 || lines[0] != lines[1] || !strings.HasSuffix(lines[0], ":1:2: no such key") {
		t.Errorf("%d: %q", code, text)
	}
}

// TestDirectoryThatIsGone: the process has no name for the directory that it is in.
func TestDirectoryThatIsGone(t *testing.T) {
	w := newWorld(t)
	w.script("hello")
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	work := w.work
	w.work = ""
	for _, args := range [][]string{{"-p", "q"}, {"-p", "q", "--cwd", "sub"}} {
		if r := w.run(nil, append(args, "--agent", "alpha")...); r.code != 2 ||
			!strings.Contains(r.stderr, "the working directory does not exist any more\nhint: cd ") {
			t.Errorf("%+v", r)
		}
	}
	if r := w.run(nil, "-p", "q", "--agent", "alpha", "--cwd", work); r.code != 0 {
		t.Errorf("%+v", r)
	}
}
