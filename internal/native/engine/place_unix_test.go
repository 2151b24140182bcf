//go:build unix

package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/walls/guard"
	"omniagent/internal/walls/shell"
)

func TestMain(m *testing.M) {
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	hermetic.InMemory()
	os.Exit(m.Run())
}

// place is a workspace with a shell in it, and runs lines one after the other in a session.
type place struct {
	root  string
	shell *shell.Shell
}

func newPlace(t *testing.T) place {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{".git/hooks", "sub"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s, err := shell.New(shell.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return place{root, s}
}

// run tells what came of it; see is shown each event.
func (p place) run(t *testing.T, o engine.Options, see func(*mind, event.Event), lines ...string) []event.Event {
	t.Helper()
	script := "["
	for _, line := range lines {
		script += `{"call":{"name":"Bash","input":{"command":"` + line + `"}}},`
	}
	client, _ := scripted(t, script+`{"say":"ok"}]`)
	o.Client = client
	o.Rules = guard.Judge{
		Known: tool.Ours().Specs(), Rules: o.Rules.Rules, Place: guard.Place{Root: p.root, Dir: p.root},
	}
	s := begin(t, o, tool.Bash(&tool.Env{Shell: p.shell}))
	return turn(t, s, "go", func(e event.Event) {
		if see != nil {
			see(s, e)
		}
	})
}

// TestACommandIsJudgedWhereItRuns and not where the conversation began: cd stays.
func TestACommandIsJudgedWhereItRuns(t *testing.T) {
	for name, c := range map[string]struct {
		lines  []string
		denied string // part of the reason; empty: all run
	}{
		"a hook by its short name": {[]string{"cd .git", "echo x > hooks/pre-commit"}, ".git/hooks is protected"},
		"what may be read":         {[]string{"cd sub", "ls ../.git"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			got := told(p.run(t, engine.Options{Mode: setting.Yolo}, nil, c.lines...))
			if c.denied == "" && strings.Contains(got, "denied") || !strings.Contains(got, c.denied) {
				t.Error(got)
			}
			if _, err := os.Stat(filepath.Join(p.root, ".git/hooks/pre-commit")); err == nil {
				t.Error("there is a hook")
			}
		})
	}
	p := newPlace(t)
	if got := told(p.run(t, engine.Options{Mode: setting.Prompt}, nil, "cd sub", "ls ..",
		"ls ../..")); strings.Count(got, "denied") != 1 || !strings.Contains(got, "outside the workspace") {
		t.Error(got)
	}
	deny, err := guard.Known(tool.Ours().Specs()).Rule(guard.Deny, "Read(sub/key)", "here")
	if err != nil {
		t.Fatal(err)
	}
	got := told(p.run(t, engine.Options{Mode: setting.Yolo, Rules: guard.Judge{Rules: guard.Rules{deny}}}, nil, "cd .",
		"python3 key", "cd ..", "cd sub", "python3 key"))
	if !strings.Contains(got, "denied the deny rule Read(sub/key)") {
		t.Error(got)
	}
}

// TestAnAnswerIsForOnePlace: what was allowed in one directory was not allowed in another.
func TestAnAnswerIsForOnePlace(t *testing.T) {
	p := newPlace(t)
	var asked []string
	got := told(p.run(t, engine.Options{Mode: setting.Prompt, Services: asking()}, func(s *mind, e event.Event) {
		if e.Kind != event.Question {
			return
		}
		asked = append(asked, e.Ask.Text)
		answer(t, s, e, event.Reply{Option: event.Always})
	}, "touch x", "touch x", "cd sub", "touch x"))
	if len(asked) != 2 || !strings.Contains(asked[1], "in sub") || strings.Contains(asked[0], " (in ") {
		t.Errorf("%q, %s", asked, got)
	}
}

// TestADirectoryThatGoesMeanwhile takes the consent with it.
func TestADirectoryThatGoesMeanwhile(t *testing.T) {
	p := newPlace(t)
	events := p.run(t, engine.Options{Mode: setting.Prompt, Services: asking()}, func(s *mind, e event.Event) {
		if e.Kind != event.Question {
			return
		}
		if err := os.Remove(filepath.Join(p.root, "sub")); err != nil {
			t.Error(err)
		}
		if err := os.Symlink(".git", filepath.Join(p.root, "sub")); err != nil {
			t.Error(err)
		}
		answer(t, s, e, event.Reply{Option: event.Allow})
	}, "cd sub", "touch x")
	for _, path := range []string{"x", ".git/x"} {
		if _, err := os.Stat(filepath.Join(p.root, path)); err == nil {
			t.Errorf("%s was made: %s", path, told(events))
		}
	}
}

// TestWhoHasGoneHasNotAgreed: the mode that runs held calls where nobody can be asked does not run those that somebody
// was to be asked about and has gone.
func TestWhoHasGoneHasNotAgreed(t *testing.T) {
	for _, attended := range []bool{true, false} {
		p := newPlace(t)
		o := engine.Options{Mode: setting.Default, Services: agent.Services{CanAsk: attended}, Walls: engine.Whole}
		got := told(p.run(t, o, func(s *mind, e event.Event) {
			if e.Kind == event.Question {
				answer(t, s, e, event.Reply{Option: event.Deny, Automatic: true, Text: "nobody can answer any more"})
			}
		}, "ls", "touch x"))
		if strings.Contains(got, "denied nobody can answer any more") != attended {
			t.Errorf("attended %v: %s", attended, got)
		}
	}
}
