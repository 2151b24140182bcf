package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"omniagent/internal/agents/gemini"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch/allow"
	"omniagent/internal/native"
	"omniagent/internal/talk/session"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/walls/policy"
)

// place is a machine with one agent, a program that records that it was started.
func place(t *testing.T) (e Env, root string) {
	t.Helper()
	root = t.TempDir()
	for _, dir := range []string{"bin", "home", "work", "state", "temp"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program := "#!/bin/sh\ntouch " + filepath.Join(root, "started") + "\n"
	if err := hermetic.WriteProgram(filepath.Join(root, "bin", "gemini"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	environ := []string{
		"PATH=" + filepath.Join(root, "bin"), "HOME=" + filepath.Join(root, "home"),
		"OPENAI_API_KEY=key",
	}
	lookup := func(name string) (string, bool) {
		i := slices.IndexFunc(environ, func(v string) bool { return len(v) > len(name) && v[:len(name)+1] == name+"=" })
		if i < 0 {
			return "", false
		}
		return environ[i][len(name)+1:], true
	}
	return Env{
		Dir: filepath.Join(root, "work"), Home: filepath.Join(root, "home"),
		Temp: filepath.Join(root, "temp"), Lookup: lookup, Environ: environ, Keep: true,
		Machine: agent.Machine{OS: runtime.GOOS, Has: func(string) bool { return false }},
		Agents:  func() ([]Agent, error) { return []Agent{{Driver: gemini.New()}}, nil },
		Gate:    func(Agent, string) allow.Gate { return allow.Gate{} },
		Native: NativeSettings{Settings: native.Settings{Walls: policy.Wanted{
			Home: filepath.Join(root, "home"), State: filepath.Join(root, "state"), Lookup: lookup,
		}}},
		Log: t.Logf, Detail: t.Logf,
	}, root
}

// files are the names of all that lies below a directory.
func files(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAPlanHasNoEffect: nothing is written and nothing started before Open, whether the plan can be kept or not.
func TestAPlanHasNoEffect(t *testing.T) {
	e, root := place(t)
	before := files(t, root)
	for name, r := range map[string]Request{
		"installed":       {Agent: "gemini"},
		"native":          {Provider: "openai", Spec: agent.Spec{Shared: setting.Defaults()}},
		"no such agent":   {Agent: "odd"},
		"rules that ask":  {Agent: "gemini", Ask: []string{"Bash(rm*)"}},
		"resumed":         {Agent: "gemini", Spec: agent.Spec{Resume: "some-session"}},
		"no such API":     {Provider: "odd"},
		"kept by nothing": {Agent: "gemini", Forget: true},
	} {
		_, err := e.Plan(t.Context(), r)
		t.Logf("%s: %v", name, err)
		if after := files(t, root); !slices.Equal(before, after) {
			t.Fatalf("%s left %v", name, after)
		}
	}
}

// TestTwoBeginASession: another process begins the session after it was planned, and has it open.
func TestTwoBeginASession(t *testing.T) {
	e, _ := place(t)
	agents := e.Agents
	e.Agents = func() ([]Agent, error) { // is asked when it is known that there is no session
		if !e.Store().Has("mine") {
			other, err := e.Store().Create(t.Context(), session.Begin{ID: "mine", Agent: "gemini", Cwd: e.Dir})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = other.Close() })
		}
		return agents()
	}
	r := Request{Agent: "gemini", Rejoin: true, Spec: agent.Spec{Fresh: "mine"}}
	_, err := e.Open(t.Context(), r)
	if f := fault.Of(err); !errors.Is(err, fault.Conflicting) || f.Detail["holder_pid"] != os.Getpid() {
		t.Errorf("%v: %v", err, f.Detail)
	}
	r.Rejoin = false
	if _, err := e.Open(t.Context(), r); !errors.Is(err, fault.AlreadyExists) {
		t.Errorf("a host of Claude Code: %v", err)
	}
}

// TestRefusals: a plan that cannot be kept is refused with what cannot be.
func TestRefusals(t *testing.T) {
	e, _ := place(t)
	homeless := e
	homeless.Home = ""
	resumed := agent.Spec{Resume: "some-session"}
	for name, c := range map[string]struct {
		env     Env
		request Request
		want    error
	}{
		"no home":                  {homeless, Request{Agent: "gemini"}, fault.NoHome},
		"no such agent":            {e, Request{Agent: "odd"}, fault.NotFoundCode},
		"rules that nobody keeps":  {e, Request{Agent: "gemini", Ask: []string{"Bash"}}, fault.Unsupported},
		"resumed and not kept":     {e, Request{Agent: "gemini", Forget: true, Spec: resumed}, fault.ArgError},
		"an agent that is refused": {refusing(e), Request{Agent: "gemini"}, fault.Unsafe},
	} {
		_, err := c.env.Plan(t.Context(), c.request)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// refusing is a place whose gate lets no agent in.
func refusing(e Env) Env {
	e.Gate = func(Agent, string) allow.Gate { return allow.Gate{Allow: []string{"codex"}} }
	return e
}

// TestResumedMode: the stricter of the mode on record and of a mode that was chosen; a default opens nothing either.
func TestResumedMode(t *testing.T) {
	for _, c := range []struct {
		recorded, wanted setting.Approval
		chosen           bool
		want             setting.Approval
	}{
		{setting.Prompt, setting.Yolo, true, setting.Prompt},
		{setting.Yolo, setting.Prompt, true, setting.Prompt},
		{setting.Plan, setting.AutoEdit, true, setting.Plan},
		{setting.DenyAll, setting.Plan, true, setting.DenyAll},
		{setting.AutoEdit, setting.Prompt, false, setting.AutoEdit},
		{setting.Plan, setting.Prompt, false, setting.Plan},
		{"", setting.Yolo, true, setting.Yolo},
	} {
		e, _ := place(t)
		p := &Plan{env: e, request: Request{Mode: c.chosen}}
		p.request.Spec.Shared = setting.Defaults()
		p.request.Spec.Terms.Mode = c.wanted
		p.resumeMode(session.State{Total: session.Total{Mode: string(c.recorded)}, LastTurn: 1})
		if got := p.request.Spec.Terms.Mode; got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	p := &Plan{request: Request{Mode: true}}
	p.request.Spec.Terms.Mode = setting.Yolo
	p.resumeMode(session.State{Total: session.Total{Mode: string(setting.Prompt)}}) // nothing was said in it
	if got := p.request.Spec.Terms.Mode; got != setting.Yolo {
		t.Errorf("a session without a turn keeps %s", got)
	}
}
