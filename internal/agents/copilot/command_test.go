package copilot

import (
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

const (
	fresh   = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
	earlier = "11111111-2222-4333-8444-555555555555"
)

func typed[T any](v T) setting.Chosen[T] { return setting.Chosen[T]{Value: v, Origin: setting.Typed} }

// wish is a run on Linux with everything installed, changed by the edits.
func wish(edits ...func(*agent.Spec)) agent.Spec {
	s := agent.Spec{
		Install: agent.Install{Path: "/opt/copilot"}, Mode: setting.OneShot, Shared: setting.Defaults(), Dir: "/ws",
		Env: []string{"HOME=/home/ann"}, Fresh: fresh, Temp: "/tmp/private",
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

func output(o setting.Output) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Shared.Output = typed(o) }
}

func web(on bool) func(*agent.Spec) { return func(s *agent.Spec) { s.Shared.Web = typed(on) } }

func model(name string) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Shared.Model = typed(name) }
}
func pass(args ...string) func(*agent.Spec) { return func(s *agent.Spec) { s.Passthrough = args } }
func env(entry ...string) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Env = append(s.Env, entry...) }
}

func on(system string) func(*agent.Spec) { return func(s *agent.Spec) { s.Machine.OS = system } }

func bare(s *agent.Spec)                         { s.Machine.Has = func(string) bool { return false } }
func interactive(s *agent.Spec)                  { s.Mode = setting.Interactive }
func resume(id string) func(*agent.Spec)         { return func(s *agent.Spec) { s.Resume = id } }
func able(why string) func(agent.Machine) string { return func(agent.Machine) string { return why } }

// launch is what comes of it where /dev/net/tun can be opened.
func launch(t *testing.T, s agent.Spec) (agent.Launch, []agent.Warning) {
	t.Helper()
	return launchOn(t, "", s)
}

func launchOn(t *testing.T, why string, s agent.Spec) (agent.Launch, []agent.Warning) {
	t.Helper()
	d := New().(driver)
	d.sandboxable = able(why)
	l, w, err := d.Command(s)
	if err != nil {
		t.Fatal(err)
	}
	return l, w
}

const (
	box   = " --sandbox"
	id    = " --session-id=" + fresh
	noWeb = " --excluded-tools=web_fetch --deny-tool=github-mcp-server(web_search)"
)

func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spec  agent.Spec
		args  string
		warns string
	}{
		{"nothing said", wish(), box + id, ""},
		{"nothing said, interactive", wish(interactive), box, ""},
		{"nothing said, no helpers", wish(bare), id, ""},
		{"prompt", wish(approval(setting.Prompt)), box + id, ""},
		{"auto-edit", wish(approval(setting.AutoEdit)), " --allow-tool=write" + box + id, ""},
		{
			"auto-edit, no helpers", wish(approval(setting.AutoEdit), bare), " --allow-tool=write" + id,
			"no sandbox holds",
		},
		{
			"auto-edit without a sandbox", wish(approval(setting.AutoEdit), held(setting.Off)),
			" --allow-tool=write --no-sandbox" + id, "",
		},
		{"yolo", wish(approval(setting.Yolo)), " --yolo --no-sandbox" + noWeb + id, ""},
		{"yolo, interactive", wish(approval(setting.Yolo), interactive), " --yolo --no-sandbox" + noWeb, ""},
		{
			"yolo, and the passthrough holds it", wish(approval(setting.Yolo), pass("--sandbox")),
			" --yolo --no-sandbox" + noWeb + id + " --sandbox", "",
		},
		{"yolo, no sandbox", wish(approval(setting.Yolo), held(setting.Off)), " --yolo --no-sandbox" + noWeb + id, ""},
		{
			"yolo in a sandbox", wish(approval(setting.Yolo), held(setting.WorkspaceWrite)),
			" --allow-all-tools --sandbox" + noWeb + id, "",
		},
		{
			"yolo in a sandbox, no helpers", wish(approval(setting.Yolo), held(setting.WorkspaceWrite), bare),
			" --allow-all-tools --sandbox" + noWeb + id, "commands will fail, as it needs bwrap",
		},
		{
			"yolo in a sandbox, interactive", wish(approval(setting.Yolo), held(setting.WorkspaceWrite), interactive),
			" --allow-all-tools --sandbox" + noWeb, "",
		},
		{"sandbox on macOS", wish(on("darwin"), bare), box + id, ""},
		{"sandbox on Windows", wish(on("windows"), bare), id, ""},
		{"sandbox on Windows, typed", wish(on("windows"), held(setting.WorkspaceWrite)), box + id, "not measured"},
		{"text", wish(output(setting.Text)), box + " --output-format=text" + id, ""},
		{"json", wish(output(setting.JSON)), box + " --output-format=json" + id, "one object a line"},
		{"stream-json", wish(output(setting.StreamJSON)), box + " --output-format=json" + id, ""},
		{"json, interactive", wish(output(setting.JSON), interactive), box, "--output json is ignored"},
		{"model", wish(model("gpt-5.4")), box + " --model gpt-5.4" + id, ""},
		{"web on", wish(web(true)), box + " --allow-all-urls" + id, ""},
		{"web off", wish(web(false)), box + noWeb + id, ""},
		{"yolo, web on", wish(approval(setting.Yolo), web(true)), " --yolo --no-sandbox --allow-all-urls" + id, ""},
		{"resume", wish(resume(earlier)), box + " --resume=" + earlier, ""},
		{
			"the passthrough allows the web", wish(approval(setting.Yolo), pass("--allow-url=example.com")),
			" --yolo --no-sandbox" + id + " --allow-url=example.com", "",
		},
		{
			"the passthrough allows the web, typed off", wish(web(false), pass("--allow-all-urls")),
			box + noWeb + id + " --allow-all-urls", "",
		},
		{
			"the passthrough names the session", wish(pass("--session-id", earlier)), box + " --session-id " + earlier,
			"",
		},
		{"the passthrough resumes", wish(pass("--resume=" + earlier)), box + " --resume=" + earlier, ""},
		{"the passthrough continues", wish(pass("--continue")), box + " --continue", ""},
		{"after two dashes", wish(pass("--", "--continue")), box + id + " -- --continue", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, warnings := launch(t, tt.spec)
			if got := " " + strings.Join(l.Args, " "); got != tt.args {
				t.Errorf("\n got%s\nwant%s", got, tt.args)
			}
			if !slices.Equal(l.Args[l.Translated:], tt.spec.Passthrough) {
				t.Errorf("%d arguments of %q are ours", l.Translated, l.Args)
			}
			var said []string
			for _, w := range warnings {
				said = append(said, w.Message)
			}
			if all := strings.Join(said, "; "); (all == "") != (tt.warns == "") || !strings.Contains(all, tt.warns) {
				t.Errorf("warnings %q, want %q", all, tt.warns)
			}
		})
	}
}

// What a person chose must hold, whatever else is said. A bypass is anything that frees commands or paths from the
// sandbox.
func TestNoBypassOfAChosenSandbox(t *testing.T) {
	bypasses := []string{"--yolo", "--allow-all", "--allow-all-paths", "--no-sandbox"}
	for _, mode := range []setting.Mode{setting.OneShot, setting.Interactive} {
		for _, a := range setting.Common() {
			for _, origin := range []setting.Origin{setting.Configured, setting.Typed} {
				for _, why := range []string{"", "no tunnel"} {
					s := wish(approval(a), func(s *agent.Spec) {
						s.Mode = mode
						s.Shared.Sandbox = setting.Chosen[setting.Sandbox]{
							Value:  setting.WorkspaceWrite,
							Origin: origin,
						}
					})
					l, _ := launchOn(t, why, s)
					if !slices.Contains(l.Args, "--sandbox") ||
						slices.ContainsFunc(l.Args, func(a string) bool { return slices.Contains(bypasses, a) }) {
						t.Errorf("%s %s %s %q: %q", mode, a, origin, why, l.Args)
					}
				}
			}
		}
	}
}

func TestEnvironment(t *testing.T) {
	get := func(s agent.Spec, name string) string {
		l, _ := launch(t, s)
		v, _ := process.Value(l.Env, name)
		return v
	}
	all := env("COPILOT_ALLOW_ALL=true")
	for _, a := range []setting.Approval{setting.Prompt, setting.AutoEdit} {
		if v := get(wish(approval(a), all), "COPILOT_ALLOW_ALL"); v != "false" {
			t.Errorf("%s: COPILOT_ALLOW_ALL=%s", a, v)
		}
	}
	if v := get(wish(approval(setting.Yolo), all), "COPILOT_ALLOW_ALL"); v != "true" {
		t.Errorf("yolo: COPILOT_ALLOW_ALL=%s", v)
	}
	if v := get(wish(resume(earlier)), "COPILOT_DISABLE_RESUME_AUTO_CD"); v != "true" {
		t.Errorf("resume: %q", v)
	}
	if v := get(wish(), "COPILOT_DISABLE_RESUME_AUTO_CD"); v != "" {
		t.Errorf("no resume: %q", v)
	}
	if v := get(wish(env("GH_TOKEN=t", "HTTPS_PROXY=p")), "GH_TOKEN"); v != "t" {
		t.Errorf("the environment is not handed on: %q", v)
	}
}

func TestSession(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec agent.Spec
		want string
	}{
		{"fresh", wish(), fresh},
		{"interactive", wish(interactive), ""},
		{"resumed", wish(resume(earlier)), earlier},
		{"resumed by a name", wish(resume("my feature")), ""},
		{"resumed by the beginning", wish(resume("1111111")), ""},
		{"named in the passthrough", wish(pass("--session-id=" + earlier)), earlier},
		{"named twice", wish(pass("--session-id="+fresh, "--session-id", earlier)), earlier},
		{"resumed in the passthrough", wish(pass("-r", earlier)), earlier},
		{"picked in the passthrough", wish(pass("--resume")), ""},
		{"the last one", wish(pass("--continue")), ""},
		{"elsewhere", wish(pass("--connect")), ""},
	} {
		if l, _ := launch(t, tt.spec); l.Session != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, l.Session, tt.want)
		}
	}
}

func TestPolicies(t *testing.T) {
	for _, tt := range []struct {
		name, feature string
		spec          agent.Spec
		why           string // of the machine
		want          agent.Level
		note          string
	}{
		{"held", agent.Sandbox, wish(), "", agent.Full, "commands write in the workspace"},
		{"no tunnel", agent.Sandbox, wish(), "no tunnel", agent.None, "no tunnel"},
		{
			"no tunnel, typed", agent.Sandbox, wish(held(setting.WorkspaceWrite)), "no tunnel", agent.Nearest,
			"commands will fail, as no tunnel",
		},
		{"no helpers", agent.Sandbox, wish(bare), "", agent.None, "it needs bwrap and slirp4netns"},
		{"turned off", agent.Sandbox, wish(pass("--no-sandbox")), "", agent.None, "passthrough"},
		{
			"turned on", agent.Sandbox, wish(approval(setting.Yolo), pass("--sandbox")), "", agent.None,
			"passthrough turns it on",
		},
		{
			"turned on and off", agent.Sandbox, wish(approval(setting.Yolo), pass("--sandbox", "--no-sandbox")), "",
			agent.Full, "default",
		},
		{"turned off and on", agent.Sandbox, wish(pass("--no-sandbox", "--sandbox")), "", agent.Full, "commands write"},
		{"approval", agent.Approval, wish(), "", agent.Full, "denied"},
		{"more in the passthrough", agent.Approval, wish(pass("--allow-tool", "shell")), "", agent.None, "allows more"},
		{"yolo in the passthrough", agent.Approval, wish(pass("--yolo")), "", agent.None, "allows more"},
		{"web", agent.Web, wish(), "", agent.Full, "nobody asked: nothing is sent; a fetch needs an approval"},
		{"web with yolo", agent.Web, wish(approval(setting.Yolo)), "", agent.Full, "withheld"},
		{"web in the passthrough", agent.Web, wish(pass("--allow-all-urls")), "", agent.None, "passthrough"},
		{"web off, typed", agent.Web, wish(web(false), pass("--allow-all-urls")), "", agent.Full, "withheld"},
		{
			"yolo and a sandbox", agent.Approval, wish(approval(setting.Yolo), held(setting.WorkspaceWrite)), "",
			agent.Full, "paths outside",
		},
	} {
		l, _ := launchOn(t, tt.why, tt.spec)
		i := slices.IndexFunc(l.Policies, func(p agent.Policy) bool { return p.Feature == tt.feature })
		if p := l.Policies[i]; p.Enforced != tt.want || !strings.Contains(p.Note, tt.note) {
			t.Errorf("%s: %+v, want %s %q", tt.name, p, tt.want, tt.note)
		}
	}
}

func TestRefusals(t *testing.T) {
	byok := env("COPILOT_PROVIDER_BASE_URL=http://x")
	for _, tt := range []struct {
		name string
		spec agent.Spec
		why  string
		want string
		fix  string
	}{
		{"none", wish(), "", "", ""},
		{"no helpers, not sent", wish(bare), "", "", ""},
		{"no helpers, typed", wish(held(setting.WorkspaceWrite), bare), "", "bwrap, slirp4netns", "sandbox off"},
		{"no tunnel, typed", wish(held(setting.WorkspaceWrite)), "no tunnel", "no tunnel", "sandbox off"},
		{"no helpers, in the passthrough", wish(bare, pass("--sandbox")), "", "bwrap", "sandbox off"},
		{"a classic token", wish(env("GH_TOKEN=ghp_1")), "", "classic", "GH_TOKEN"},
		{"a better token before it", wish(env("GH_TOKEN=ghp_1", "COPILOT_GITHUB_TOKEN=github_pat_1")), "", "", ""},
		{"a provider without a model", wish(byok, env("GH_TOKEN=ghp_1")), "", "no default model", "--model"},
		{"a provider with a model", wish(byok, env("COPILOT_MODEL=m")), "", "", ""},
		{"a provider and --model", wish(byok, model("m")), "", "", ""},
		{"a provider and --model in the passthrough", wish(byok, pass("--model=m")), "", "", ""},
	} {
		l, _ := launchOn(t, tt.why, tt.spec)
		var all strings.Builder
		for _, r := range l.Refusals {
			all.WriteString(r.Reason + r.Fix)
		}
		if (tt.want == "") != (len(l.Refusals) == 0) || !strings.Contains(all.String(), tt.want) ||
			!strings.Contains(all.String(), tt.fix) {
			t.Errorf("%s: %+v", tt.name, l.Refusals)
		}
	}
}

func TestRehearsal(t *testing.T) {
	here := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(here, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	rehearsed := func(edits ...func(*agent.Spec)) agent.Launch {
		edits = append(edits, func(s *agent.Spec) {
			s.Dir = link
			s.Rehearsal = &agent.Rehearsal{
				URL: "http://127.0.0.1:9", Key: "key-of-the-server", Model: "rehearsal",
				Home: "/private",
			}
		})
		l, _ := launch(t, wish(edits...))
		return l
	}
	l := rehearsed(env("COPILOT_PROVIDER_BEARER_TOKEN=secret", "GH_TOKEN=secret", "COPILOT_MODEL=other",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://x", "LANG=C"))
	for name, want := range map[string]string{
		"HOME": "/private", "COPILOT_HOME": "/private/.copilot", "COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:9/v1",
		"COPILOT_PROVIDER_API_KEY": "key-of-the-server", "COPILOT_OFFLINE": "true",
		"COPILOT_PKG_CACHE_HOME":        "/home/ann/.cache/copilot",
		"COPILOT_PROVIDER_BEARER_TOKEN": "", "GH_TOKEN": "", "COPILOT_MODEL": "", "OTEL_EXPORTER_OTLP_ENDPOINT": "",
		"LANG": "C",
	} {
		if got, _ := process.Value(l.Env, name); filepath.ToSlash(got) != want &&
			(name != "COPILOT_PKG_CACHE_HOME" || l.Spec.Machine.OS == "linux") {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
	if m, _ := cli.PassedValue(l.Args, "--model"); m != "rehearsal" {
		t.Errorf("model %q of %q", m, l.Args)
	}
	for _, f := range l.Files {
		if !f.Keep || !strings.HasPrefix(filepath.ToSlash(f.Path), "/private/.copilot/") {
			t.Errorf("file %+v", f)
		}
		if strings.Contains(string(f.Data), "trustedFolders") {
			t.Errorf("a one-shot run trusts: %s", f.Data)
		}
	}
	if m, _ := cli.PassedValue(rehearsed(model("mine")).Args, "--model"); m != "mine" {
		t.Errorf("model %q", m)
	}
	if args := rehearsed(pass("--model", "mine")).Args; strings.Contains(strings.Join(args, " "), "rehearsal") {
		t.Errorf("%q", args)
	}
	seeded := string(rehearsed(interactive).Files[0].Data)
	if !strings.Contains(seeded, link) || !strings.Contains(seeded, filepath.Base(here)) {
		t.Errorf("interactive: %s", seeded)
	}
	if v, set := process.Value(rehearsed(web(true), env("COPILOT_OFFLINE=true")).Env, "COPILOT_OFFLINE"); set {
		t.Errorf("web on: COPILOT_OFFLINE=%s", v)
	}
}

func TestMatrix(t *testing.T) {
	m := New().Matrix("")
	for _, want := range []struct {
		feature string
		values  []string
	}{
		{agent.Approval, []string{"deny", "ask", "plan", "default", "prompt", "auto-edit", "yolo"}},
		{agent.Sandbox, []string{"workspace-write", "off"}},
		{agent.Output, []string{"text", "json", "stream-json"}},
		{agent.Web, []string{"on", "off"}},
		{agent.RepoConfig, []string{"", "off"}},
		{agent.Model, []string{""}},
		{agent.Schema, []string{""}},
		{agent.Resume, []string{""}},
		{agent.SessionID, []string{""}},
		{agent.Ask, []string{""}},
		{agent.Denials, []string{""}},
		{agent.Records, []string{""}},
		{agent.ACP, []string{""}},
	} {
		var got []string
		for _, r := range m.Rows {
			if r.Feature == want.feature {
				got = append(got, r.Value)
			}
			for _, c := range []agent.Cell{r.Interactive, r.OneShot} {
				if c.Level == "" || c.Level == agent.None && len(c.Args)+len(c.Env) > 0 {
					t.Errorf("%s %s: %+v", r.Feature, r.Value, c)
				}
			}
		}
		if !slices.Equal(got, want.values) {
			t.Errorf("%s: %q, want %q", want.feature, got, want.values)
		}
	}
	// What the page shows of a call without the flag is what such a call sends.
	for _, mode := range []setting.Mode{setting.OneShot, setting.Interactive} {
		if c := m.Cell(agent.Web, "off", mode); c.Weak == nil || len(c.Weak) > 0 ||
			!strings.Contains(c.Note, "nobody asked: nothing is sent; a fetch needs an approval") {
			t.Errorf("web off, %s: %+v", mode, c)
		}
		if c := m.Cell(agent.Sandbox, "off", mode); c.Weak != nil {
			t.Errorf("sandbox off, %s: %+v", mode, c)
		}
	}
	if !strings.HasSuffix(New().Describe().InstallCommand, "@"+m.Measured) {
		t.Errorf("measured %s", m.Measured)
	}
}
