package claude

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/process"
)

const fresh = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"

func typed[T any](v T) setting.Chosen[T] { return setting.Chosen[T]{Value: v, Origin: setting.Typed} }

// wish is a run on Linux with everything installed, changed by the edits.
func wish(edits ...func(*agent.Spec)) agent.Spec {
	s := agent.Spec{
		Install: agent.Install{Path: "/opt/claude"}, Mode: setting.OneShot, Shared: setting.Defaults(), Dir: "/ws",
		Env: []string{"HOME=/home/ann", "CLAUDECODE=1"}, Fresh: fresh, Temp: "/tmp/private",
		Machine: agent.Machine{OS: "linux", Has: func(string) bool { return true }},
	}
	for _, edit := range edits {
		edit(&s)
	}
	s.Shared = s.Shared.Derive()
	return s
}

func approval(a setting.Approval) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Shared.Approval = typed(a) }
}

func held(b setting.Sandbox) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Shared.Sandbox = typed(b) }
}
func pass(args ...string) func(*agent.Spec) { return func(s *agent.Spec) { s.Passthrough = args } }
func bare(s *agent.Spec)                    { s.Machine.Has = func(string) bool { return false } }
func root(s *agent.Spec)                    { s.Machine.Root = true }
func interactive(s *agent.Spec)             { s.Mode = setting.Interactive }
func on(system string) func(*agent.Spec)    { return func(s *agent.Spec) { s.Machine.OS = system } }

func launch(t *testing.T, s agent.Spec) (agent.Launch, []agent.Warning) {
	t.Helper()
	l, w, err := New().Command(s)
	if err != nil {
		t.Fatal(err)
	}
	return l, w
}

const (
	box    = `--settings={"sandbox":{"allowUnsandboxedCommands":false,"autoAllowBashIfSandboxed":false,"enabled":true,"failIfUnavailable":true}}`
	free   = `--settings={"sandbox":{"allowUnsandboxedCommands":false,"autoAllowBashIfSandboxed":true,"enabled":true,"failIfUnavailable":true}}`
	open   = `--settings={"sandbox":{"enabled":false}}`
	noWeb  = "--disallowedTools=WebSearch,WebFetch"
	withID = "--session-id=" + fresh
)

func TestArguments(t *testing.T) {
	ww, off := held(setting.WorkspaceWrite), held(setting.Off)
	edit, yolo := approval(setting.AutoEdit), approval(setting.Yolo)
	for name, c := range map[string]struct {
		edits []func(*agent.Spec)
		want  []string
	}{
		"untouched": {nil, []string{"-p", "--permission-mode", "default", box, noWeb, withID}},
		"interactive": {[]func(*agent.Spec){interactive}, []string{
			"--permission-mode", "default", box,
			noWeb,
		}},
		"prompt, off": {[]func(*agent.Spec){off}, []string{
			"-p", "--permission-mode", "default", open, noWeb,
			withID,
		}},
		"auto-edit": {[]func(*agent.Spec){edit}, []string{
			"-p", "--permission-mode", "acceptEdits", free,
			noWeb, withID,
		}},
		"auto-edit, off": {[]func(*agent.Spec){edit, off}, []string{
			"-p", "--permission-mode", "acceptEdits",
			open, noWeb, withID,
		}},
		"yolo":              {[]func(*agent.Spec){yolo}, []string{"-p", bypass, open, noWeb, withID}},
		"yolo, interactive": {[]func(*agent.Spec){yolo, interactive}, []string{bypass, open, noWeb}},
		"yolo, their settings": {
			[]func(*agent.Spec){yolo, pass("--settings=x.json")},
			[]string{"-p", bypass, noWeb, withID},
		},
		"yolo, off, theirs too": {
			[]func(*agent.Spec){yolo, off, pass("--settings=x.json")},
			[]string{"-p", bypass, open, noWeb, withID},
		},
		"yolo, off": {[]func(*agent.Spec){yolo, off}, []string{"-p", bypass, open, noWeb, withID}},
		"yolo in the sandbox": {[]func(*agent.Spec){yolo, ww}, []string{
			"-p", "--permission-mode", "acceptEdits",
			free, noWeb, withID,
		}},
		"without bwrap": {[]func(*agent.Spec){bare}, []string{
			"-p", "--permission-mode", "default", noWeb,
			withID,
		}},
		"without bwrap, typed": {[]func(*agent.Spec){bare, ww}, []string{
			"-p", "--permission-mode", "default", box,
			noWeb, withID,
		}},
		"without bwrap, yolo": {
			[]func(*agent.Spec){bare, ww, yolo},
			[]string{"-p", "--permission-mode", "acceptEdits", free, noWeb, withID},
		},
		"darwin needs nothing": {
			[]func(*agent.Spec){bare, on("darwin")},
			[]string{"-p", "--permission-mode", "default", box, noWeb, withID},
		},
		"windows has none": {[]func(*agent.Spec){on("windows")}, []string{
			"-p", "--permission-mode", "default",
			noWeb, withID,
		}},
		"windows, typed": {
			[]func(*agent.Spec){on("windows"), ww},
			[]string{"-p", "--permission-mode", "default", box, noWeb, withID},
		},
		"their settings": {
			[]func(*agent.Spec){pass("--settings", "x.json")},
			[]string{"-p", "--permission-mode", "default", noWeb, withID},
		},
		"their tools": {
			[]func(*agent.Spec){pass("--allowedTools", "WebFetch")},
			[]string{"-p", "--permission-mode", "default", box, withID},
		},
		"their tools, web typed": {[]func(*agent.Spec){
			pass("--allowed-tools=WebFetch"),
			func(s *agent.Spec) { s.Shared.Web = typed(false) },
		}, []string{
			"-p", "--permission-mode", "default", box,
			noWeb, withID,
		}},
		"web": {
			[]func(*agent.Spec){func(s *agent.Spec) { s.Shared.Web = typed(true) }},
			[]string{"-p", "--permission-mode", "default", box, "--allowedTools=WebSearch,WebFetch", withID},
		},
		"model": {
			[]func(*agent.Spec){func(s *agent.Spec) { s.Shared.Model = typed("opus") }},
			[]string{"-p", "--permission-mode", "default", box, "--model", "opus", noWeb, withID},
		},
		"text, typed": {
			[]func(*agent.Spec){func(s *agent.Spec) { s.Shared.Output = typed(setting.Text) }},
			[]string{"-p", "--permission-mode", "default", box, "--output-format=text", noWeb, withID},
		},
		"text, on a screen": {
			[]func(*agent.Spec){
				interactive,
				func(s *agent.Spec) { s.Shared.Output = typed(setting.Text) },
			},
			[]string{"--permission-mode", "default", box, noWeb},
		},
		"json": {
			[]func(*agent.Spec){func(s *agent.Spec) { s.Shared.Output = typed(setting.JSON) }},
			[]string{"-p", "--permission-mode", "default", box, "--output-format=json", noWeb, withID},
		},
		"stream-json": {
			[]func(*agent.Spec){func(s *agent.Spec) { s.Shared.Output = typed(setting.StreamJSON) }}, []string{
				"-p",
				"--permission-mode", "default", box, "--output-format=stream-json", "--verbose", noWeb, withID,
			},
		},
		"schema": {
			[]func(*agent.Spec){func(s *agent.Spec) { s.Schema = []byte(`{"type":"object"}`) }},
			[]string{"-p", "--permission-mode", "default", box, noWeb, withID, `--json-schema={"type":"object"}`},
		},
		"their schema": {[]func(*agent.Spec){
			func(s *agent.Spec) { s.Schema = []byte(`{}`) },
			pass("--json-schema={}"),
		}, []string{"-p", "--permission-mode", "default", box, noWeb, withID}},
		"resume": {
			[]func(*agent.Spec){func(s *agent.Spec) { s.Resume = ours }},
			[]string{"-p", "--permission-mode", "default", box, noWeb, "--resume=" + ours},
		},
		"their session": {
			[]func(*agent.Spec){pass("--session-id", ours)},
			[]string{"-p", "--permission-mode", "default", box, noWeb},
		},
		"their resume": {[]func(*agent.Spec){pass("-r", ours)}, []string{
			"-p", "--permission-mode", "default",
			box, noWeb,
		}},
		"their continue": {[]func(*agent.Spec){pass("-c")}, []string{
			"-p", "--permission-mode", "default", box,
			noWeb,
		}},
		"their fork": {
			[]func(*agent.Spec){pass("--continue", "--fork-session")},
			[]string{"-p", "--permission-mode", "default", box, noWeb, withID},
		},
		"an old sandbox by a file": {[]func(*agent.Spec){func(s *agent.Spec) {
			s.Shared.Sandbox = setting.Chosen[setting.Sandbox]{
				Value:  setting.WorkspaceWrite,
				Origin: setting.Configured,
			}
		}, yolo}, []string{"-p", "--permission-mode", "acceptEdits", free, noWeb, withID}},
	} {
		s := wish(c.edits...)
		l, _ := launch(t, s)
		if want := append(c.want, s.Passthrough...); !slices.Equal(l.Args, want) || l.Translated != len(c.want) {
			t.Errorf("%s:\n got %q (%d ours)\nwant %q", name, l.Args, l.Translated, want)
		}
		if !slices.Equal(l.Env, s.Env) || l.Path != "/opt/claude" || l.Dir != "/ws" || l.Files != nil ||
			l.Prompt != agent.ByStdin {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// Whatever is combined: a sandbox that somebody asked for is never given together with a bypass, and always with its
// settings.
func TestAskedSandboxIsNeverTradedForABypass(t *testing.T) {
	for _, mode := range []func(*agent.Spec){interactive, func(*agent.Spec) {}} {
		for _, a := range setting.Common() {
			for _, system := range []string{"linux", "darwin", "windows"} {
				for _, tools := range []func(*agent.Spec){bare, func(*agent.Spec) {}} {
					for _, from := range []setting.Origin{setting.Configured, setting.Typed} {
						l, _ := launch(t, wish(mode, approval(a), on(system), tools, func(s *agent.Spec) {
							s.Shared.Sandbox = setting.Chosen[setting.Sandbox]{
								Value:  setting.WorkspaceWrite,
								Origin: from,
							}
						}))
						if bypasses(l.Args) || !slices.Contains(l.Args, box) && !slices.Contains(l.Args, free) {
							t.Errorf("%s %s: %q", a, system, l.Args)
						}
						if auto := slices.Contains(l.Args, free); auto != (a != setting.Prompt) {
							t.Errorf("%s: commands run unasked in the sandbox: %t", a, auto)
						}
					}
				}
			}
		}
	}
}

func TestSession(t *testing.T) {
	for _, c := range []struct {
		want  string
		edits []func(*agent.Spec)
	}{
		{fresh, nil},
		{"", []func(*agent.Spec){interactive}},
		{ours, []func(*agent.Spec){pass("--session-id=" + ours)}},
		{ours, []func(*agent.Spec){pass("--resume", ours)}},
		{ours, []func(*agent.Spec){pass("-r" + ours)}},
		{ours, []func(*agent.Spec){func(s *agent.Spec) { s.Resume = ours }}},
		{ours, []func(*agent.Spec){func(s *agent.Spec) { s.Resume = ours }, interactive}},
		{fresh, []func(*agent.Spec){func(s *agent.Spec) { s.Resume = ours }, pass("--fork-session")}},
		{"", []func(*agent.Spec){pass("--resume", "my search")}},
		{"", []func(*agent.Spec){pass("--resume")}},
		{"", []func(*agent.Spec){pass("--continue")}},
		{"", []func(*agent.Spec){pass("--from-pr", "12")}},
		{"", []func(*agent.Spec){func(s *agent.Spec) { s.Fresh = "" }}},
	} {
		s := wish(c.edits...)
		if l, _ := launch(t, s); l.Session != c.want {
			t.Errorf("%q %q: %q, not %q", s.Resume, s.Passthrough, l.Session, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	sandboxed := func(s *agent.Spec) { s.Env = append(s.Env, "IS_SANDBOX=1") }
	other := func(s *agent.Spec) { s.Env = append(s.Env, "IS_SANDBOX=yes") } // the CLI takes 1 alone
	for _, c := range []struct {
		want  string
		edits []func(*agent.Spec)
	}{
		{"", nil},
		{"", []func(*agent.Spec){root}},
		{"", []func(*agent.Spec){approval(setting.Yolo)}},
		{"export IS_SANDBOX=1", []func(*agent.Spec){approval(setting.Yolo), root}},
		{"export IS_SANDBOX=1", []func(*agent.Spec){approval(setting.Yolo), root, other}},
		{"", []func(*agent.Spec){approval(setting.Yolo), root, sandboxed}},
		{"export IS_SANDBOX=1", []func(*agent.Spec){pass(bypass), root}},
		{"export IS_SANDBOX=1", []func(*agent.Spec){pass(modeFlag, "bypassPermissions"), root}},
		{"", []func(*agent.Spec){approval(setting.Yolo), root, held(setting.WorkspaceWrite)}},
		{"", []func(*agent.Spec){bare}},
		{"apt-get install bubblewrap socat", []func(*agent.Spec){bare, held(setting.WorkspaceWrite)}},
		{"", []func(*agent.Spec){bare, held(setting.WorkspaceWrite), on("darwin")}},
	} {
		s := wish(c.edits...)
		l, _ := launch(t, s)
		var got []string
		for _, r := range refusals(l) {
			got = append(got, r.Command)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v %q root=%t: %q, not %q", s.Shared, s.Passthrough, s.Machine.Root, got, c.want)
		}
		if v, _ := process.Value(l.Env, "IS_SANDBOX"); v == "1" && !slices.Contains(s.Env, "IS_SANDBOX=1") {
			t.Error("said for the user that this is a sandbox")
		}
	}
	walled := func(s *agent.Spec) { s.Walled = true }
	l, _ := launch(t, wish(approval(setting.Yolo), root, walled))
	if v, _ := process.Value(l.Env, "IS_SANDBOX"); v != "1" || len(refusals(l)) != 0 {
		t.Errorf("behind walls of ours: %q, %+v", v, refusals(l))
	}
	if l, _ := launch(t, wish(on("windows"), held(setting.WorkspaceWrite))); len(refusals(l)) != 1 {
		t.Errorf("windows: %+v", refusals(l))
	}
	// Where the observer will tell, the launch does not tell it again.
	for name, c := range map[string]struct {
		edit func(*agent.Spec)
		want int
	}{
		"observed":    {func(*agent.Spec) {}, 0},
		"interactive": {interactive, 1},
		"continued":   {pass("--continue"), 1},
		"no home":     {func(s *agent.Spec) { s.Env = nil }, 1},
	} {
		if l, _ := launch(t, wish(bare, held(setting.WorkspaceWrite), c.edit)); len(l.Refusals) != c.want {
			t.Errorf("%s: %+v", name, l.Refusals)
		}
	}
}

// A refusal that was foreseen is told as such, where the CLI failed and left no transcript.
func TestForeseenRefusal(t *testing.T) {
	l, _ := launch(t, wish(approval(setting.Yolo), root))
	l.Env = []string{"HOME=" + t.TempDir()}
	o := New().Observe(l)
	if e := o.After(agent.Exit{}); e.Fault != nil {
		t.Errorf("it succeeded: %v", e.Fault)
	}
	if e := o.After(agent.Exit{Code: 1}); e.Fault == nil || e.Fault.FixCommand != "export IS_SANDBOX=1" ||
		e.Fault.Kind() != "precondition" {
		t.Errorf("%+v", e.Fault)
	}
}

func TestPoliciesAndWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		edits []func(*agent.Spec)
		want  string // approval, sandbox, web; warnings
	}{
		"untouched": {nil, "yes yes yes"},
		"yolo":      {[]func(*agent.Spec){approval(setting.Yolo)}, "yes yes yes"},
		"yolo in the sandbox": {
			[]func(*agent.Spec){approval(setting.Yolo), held(setting.WorkspaceWrite)},
			"nearest yes yes --approval:nearest",
		},
		"without bwrap": {[]func(*agent.Spec){bare}, "yes no yes"},
		"unguarded": {
			[]func(*agent.Spec){bare, approval(setting.AutoEdit)},
			"yes no yes --approval:unguarded",
		},
		"fails closed": {
			[]func(*agent.Spec){bare, held(setting.WorkspaceWrite)},
			"yes nearest yes --sandbox:nearest",
		},
		"fails closed, on Windows": {
			[]func(*agent.Spec){on("windows"), held(setting.WorkspaceWrite)},
			"yes nearest yes --sandbox:nearest",
		},
		"fails closed, by a file": {[]func(*agent.Spec){bare, approval(setting.AutoEdit), func(s *agent.Spec) {
			s.Shared.Sandbox = setting.Chosen[setting.Sandbox]{
				Value:  setting.WorkspaceWrite,
				Origin: setting.Configured,
			}
		}}, "yes yes yes"},
		"their mode":           {[]func(*agent.Spec){pass(modeFlag + "=plan")}, "no yes yes"},
		"their bypass":         {[]func(*agent.Spec){pass(bypass)}, "no nearest yes"},
		"their bypass mode":    {[]func(*agent.Spec){pass(modeFlag, "bypassPermissions")}, "no nearest yes"},
		"a bypass is stronger": {[]func(*agent.Spec){approval(setting.Yolo), pass(modeFlag, "plan")}, "yes yes yes"},
		"their settings":       {[]func(*agent.Spec){pass("--settings={}")}, "nearest no yes"},
		"their settings, yolo": {[]func(*agent.Spec){pass("--settings={}"), approval(setting.Yolo)}, "yes no yes"},
		"their settings, mode": {[]func(*agent.Spec){pass("--settings={}", modeFlag, "plan")}, "no no yes"},
		"their settings, typed": {
			[]func(*agent.Spec){pass("--settings={}"), held(setting.WorkspaceWrite)},
			"nearest no yes --sandbox:unsupported",
		},
		"their settings have one": {
			[]func(*agent.Spec){
				pass(`--settings={"sandbox":{"enabled":true,"failIfUnavailable":true}}`),
				held(setting.WorkspaceWrite),
			}, "nearest yes yes",
		},
		"yolo, and theirs have one": {
			[]func(*agent.Spec){
				pass(`--settings={"sandbox":{"enabled":true,"failIfUnavailable":true}}`),
				approval(setting.Yolo),
			}, "yes no yes",
		},
		"their tools": {[]func(*agent.Spec){pass("--tools=Read")}, "yes yes no"},
		"interactive text": {[]func(*agent.Spec){interactive, func(s *agent.Spec) {
			s.Shared.Output = typed(setting.Text)
		}}, "yes yes yes"},
		"interactive json": {[]func(*agent.Spec){interactive, func(s *agent.Spec) {
			s.Shared.Output = typed(setting.JSON)
		}}, "yes yes yes --output:unsupported"},
	} {
		l, warnings := launch(t, wish(c.edits...))
		var got []string
		for _, p := range l.Policies {
			got = append(got, string(p.Enforced))
		}
		for _, w := range warnings {
			got = append(got, w.Flag+":"+string(w.Kind))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, not %s", name, text, c.want)
		}
	}
}

func TestMatrixHasEveryFeature(t *testing.T) {
	m := New().Matrix("9.9.9")
	if m.Measured != measured || m.Limit.Bytes != 10<<20 {
		t.Errorf("%+v", m)
	}
	have := map[string]bool{}
	for _, r := range m.Rows {
		if have[r.Feature+" "+r.Value] {
			t.Errorf("%s %s: twice", r.Feature, r.Value)
		}
		have[r.Feature+" "+r.Value] = true
		for _, c := range []agent.Cell{r.Interactive, r.OneShot} {
			if c.Level == "" || c.Level == agent.None && c.Args != nil {
				t.Errorf("%s %s: %+v", r.Feature, r.Value, c)
			}
		}
	}
	for _, want := range []string{
		"approval prompt", "approval auto-edit", "approval yolo", "sandbox workspace-write", "sandbox off",
		"output text", "output json",
		"output stream-json", "model ", "web on", "web off", "output-schema ", "resume ", "session-id ", "ask ",
		"repo-config ", "denials ",
		"records ", "acp ",
	} {
		if !have[want] {
			t.Errorf("no row %q", want)
		}
	}
}

func TestRehearsal(t *testing.T) {
	dir := t.TempDir()
	rehearsal := func(s *agent.Spec) {
		s.Dir = dir
		s.Env = []string{
			"PATH=/bin", "ANTHROPIC_AUTH_TOKEN=t", "ANTHROPIC_API_KEY=mine", "CLAUDE_CODE_USE_BEDROCK=1",
			"CLAUDE_CONFIG_DIR=/mine", "HOME=/mine",
		}
		s.Rehearsal = &agent.Rehearsal{
			URL: "http://127.0.0.1:9", Key: "0123456789-a-long-key-of-ours",
			Model: "rehearsal", Home: "/r",
		}
	}
	l, _ := launch(t, wish(rehearsal, root, approval(setting.Yolo)))
	want := map[string]string{
		"PATH": "/bin", "HOME": "/r", "CLAUDE_CONFIG_DIR": filepath.Join("/r",
			".claude"), "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
		"ANTHROPIC_API_KEY": "0123456789-a-long-key-of-ours", "CLAUDE_CODE_MAX_RETRIES": "0", "IS_SANDBOX": "1",
		"DISABLE_AUTOUPDATER":  "1",
		"ANTHROPIC_AUTH_TOKEN": "", "CLAUDE_CODE_USE_BEDROCK": "",
	}
	for name, value := range want {
		if got, ok := process.Value(l.Env, name); got != value || ok != (value != "") {
			t.Errorf("%s=%s, not %q", name, got, value)
		}
	}
	if got := strings.Join(l.Args, " "); !strings.Contains(got, "--model opus") ||
		!strings.Contains(got,
			`--settings={"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:9"},"sandbox":{"enabled":false}}`) {
		t.Errorf("%s", got)
	}
	if len(l.Refusals) != 0 {
		t.Errorf("%+v", l.Refusals)
	}
	one, _ := launch(t, wish(rehearsal, func(s *agent.Spec) { s.Rehearsal.Model = "claude-haiku-5" }))
	if model, _ := cli.PassedValue(one.Args, "--model"); model != "claude-haiku-5" {
		t.Errorf("the CLI knows it, and gets %q", model)
	}

	mine, _ := launch(t, wish(rehearsal, func(s *agent.Spec) { s.Shared.Model = typed("mine") }))
	if slices.Contains(mine.Args, "opus") {
		t.Errorf("%q", mine.Args)
	}
	if _, ok := process.Value(mine.Env, "IS_SANDBOX"); ok {
		t.Error("IS_SANDBOX where it is not needed")
	}
	// One --settings only: a second would replace the first.
	n := 0
	for _, a := range mine.Args {
		if strings.HasPrefix(a, settings) {
			n++
		}
	}
	both := `--settings={"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:9"},"sandbox":` + strings.TrimPrefix(box,
		`--settings={"sandbox":`)
	if n != 1 || !slices.Contains(mine.Args, both) {
		t.Errorf("%q", mine.Args)
	}
}

func TestRehearsalSeedsTheFirstStart(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip("no links here: ", err)
	}
	for _, mode := range []setting.Mode{setting.Interactive, setting.OneShot} {
		l, _ := launch(t, wish(func(s *agent.Spec) {
			s.Mode, s.Dir = mode, link
			s.Rehearsal = &agent.Rehearsal{URL: "u", Key: "0123456789-a-long-key-of-ours", Home: "/r"}
		}))
		var seeded struct {
			Onboarded bool `json:"hasCompletedOnboarding"`
			Keys      struct {
				Approved []string `json:"approved"`
			} `json:"customApiKeyResponses"`
			Projects map[string]struct {
				Trusted bool `json:"hasTrustDialogAccepted"`
			} `json:"projects"`
		}
		if len(l.Files) != 1 || !l.Files[0].Keep || l.Files[0].Path != filepath.Join("/r", ".claude", ".claude.json") {
			t.Fatalf("%+v", l.Files)
		}
		if err := json.Unmarshal(l.Files[0].Data, &seeded); err != nil {
			t.Fatal(err)
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			t.Fatal(err)
		}
		if trusted := seeded.Projects[real].Trusted; trusted != (mode == setting.Interactive) ||
			len(seeded.Projects) > 2 {
			t.Errorf("%s: trusted %t of %v", mode, trusted, seeded.Projects)
		}
		if !seeded.Onboarded || fmt.Sprint(seeded.Keys.Approved) != "[9-a-long-key-of-ours]" ||
			len(seeded.Keys.Approved[0]) != 20 {
			t.Errorf("%+v", seeded)
		}
	}
}

// TestLongSchema: what no argument can hold is left to the prompt.
func TestLongSchema(t *testing.T) {
	const flag = "--json-schema="
	plain := func(length int) string { return "{" + strings.Repeat(" ", length-2) + "}" }
	for name, c := range map[string]struct {
		system, schema string
		native         bool
	}{
		"short":                         {"linux", plain(2), true},
		"all that Linux takes":          {"linux", plain(128<<10 - 1 - len(flag)), true},
		"one more":                      {"linux", plain(128<<10 - len(flag)), false},
		"much more":                     {"linux", plain(200_000), false},
		"macOS":                         {"darwin", plain(200_000), false},
		"longer than Windows takes":     {"darwin", plain(30_001), true},
		"all that Windows takes":        {"windows", plain(30_000 - len(flag)), true},
		"one more on Windows":           {"windows", plain(30_001 - len(flag)), false},
		"quotes are doubled on Windows": {"windows", `{"` + strings.Repeat(`"`, 16_000) + `}`, false},
	} {
		l, _ := launch(t, wish(on(c.system), func(s *agent.Spec) { s.Schema = []byte(c.schema) }))
		if l.Native != c.native || slices.Contains(l.Args, flag+c.schema) != c.native ||
			cli.Passed(l.Args, "--json-schema") != c.native {
			t.Errorf("%s: native %v", name, l.Native)
		}
		longest := 0
		for _, arg := range l.Args {
			longest = max(longest, len(arg))
		}
		if longest > 128<<10-1 {
			t.Errorf("%s: an argument of %d bytes", name, longest)
		}
	}
}
