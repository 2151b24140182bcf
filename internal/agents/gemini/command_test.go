package gemini

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/process"
)

// spec is a one-shot call in an empty directory, with an empty home and no container runtime.
func spec(t *testing.T, change ...func(*agent.Spec)) agent.Spec {
	t.Helper()
	s := agent.Spec{
		Install: agent.Install{Path: "/bin/gemini", Version: measured}, Mode: setting.OneShot,
		Shared: setting.Defaults(),
		Dir:    t.TempDir(), Env: []string{"HOME=" + t.TempDir(), "PATH=/bin"}, Temp: "/temp",
		Fresh:   "11111111-2222-4333-8444-555555555555",
		Machine: agent.Machine{OS: "linux", Has: func(string) bool { return false }},
	}
	for _, c := range change {
		c(&s)
	}
	s.Shared = s.Shared.Derive()
	return s
}

func approval(a setting.Approval, from setting.Origin) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Shared.Approval = setting.Chosen[setting.Approval]{Value: a, Origin: from} }
}

func sandbox(b setting.Sandbox, from setting.Origin) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Shared.Sandbox = setting.Chosen[setting.Sandbox]{Value: b, Origin: from} }
}

func output(o setting.Output, from setting.Origin) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Shared.Output = setting.Chosen[setting.Output]{Value: o, Origin: from} }
}

func web(on bool, from setting.Origin) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Shared.Web = setting.Chosen[bool]{Value: on, Origin: from} }
}

func pass(args ...string) func(*agent.Spec) { return func(s *agent.Spec) { s.Passthrough = args } }

func environment(entries ...string) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Env = append(s.Env, entries...) }
}

func interactive(s *agent.Spec) { s.Mode = setting.Interactive }

func docker(s *agent.Spec) { s.Machine.Has = func(p string) bool { return p == "docker" } }

// TestArguments is the record of what the CLI was run with. ID stands for the session that we chose.
func TestArguments(t *testing.T) {
	const id, admin = "--session-id=ID", "--admin-policy=/temp/web-off.toml"
	typed, byDefault := setting.Typed, setting.Unchosen
	for name, c := range map[string]struct {
		change []func(*agent.Spec)
		want   string
	}{
		"defaults":    {nil, "--approval-mode=default --output-format=text " + admin + " " + id},
		"interactive": {[]func(*agent.Spec){interactive}, "--approval-mode=default " + admin},
		"interactive json": {
			[]func(*agent.Spec){interactive, output(setting.JSON, typed)},
			"--approval-mode=default " + admin,
		},
		"auto-edit": {
			[]func(*agent.Spec){approval(setting.AutoEdit, typed)},
			"--approval-mode=auto_edit --output-format=text " + admin + " " + id,
		},
		"yolo": {
			[]func(*agent.Spec){approval(setting.Yolo, typed)},
			"--approval-mode=yolo --sandbox=false --output-format=text " + admin + " " + id,
		},
		"yolo in passthrough": {[]func(*agent.Spec){pass("--yolo")}, "--output-format=text " + admin + " " + id +
			" --yolo"},
		"-y in passthrough": {[]func(*agent.Spec){pass("-y")}, "--output-format=text " + admin + " " + id + " -y"},
		"mode in passthrough": {[]func(*agent.Spec){pass("--approval-mode", "plan")}, "--output-format=text " + admin +
			" " + id + " --approval-mode plan"},
		"configured, passed": {
			[]func(*agent.Spec){approval(setting.Yolo, setting.Configured), pass("-y")},
			"--sandbox=false --output-format=text " + admin + " " + id + " -y",
		},
		"typed twice": {
			[]func(*agent.Spec){approval(setting.Yolo, typed), pass("--yolo")},
			"--approval-mode=yolo --sandbox=false --output-format=text " + admin + " " + id + " --yolo",
		},
		"yolo in a container": {[]func(*agent.Spec){
			approval(setting.Yolo, typed),
			sandbox(setting.WorkspaceWrite, typed), docker,
		}, "--approval-mode=yolo --sandbox --output-format=text " +
			admin + " " + id},
		"container, no docker": {
			[]func(*agent.Spec){sandbox(setting.WorkspaceWrite, typed)},
			"--approval-mode=default --output-format=text " + admin + " " + id,
		},
		"container, not asked": {[]func(*agent.Spec){docker}, "--approval-mode=default --output-format=text " + admin +
			" " + id},
		"container configured": {
			[]func(*agent.Spec){docker, sandbox(setting.WorkspaceWrite, setting.Configured)},
			"--approval-mode=default --sandbox --output-format=text " + admin + " " + id,
		},
		"container, inside": {[]func(*agent.Spec){
			docker, sandbox(setting.WorkspaceWrite, typed),
			environment("SANDBOX=x"),
		}, "--approval-mode=default --output-format=text " + admin + " " + id},
		"container passed off": {[]func(*agent.Spec){
			docker, sandbox(setting.WorkspaceWrite, typed),
			pass("--sandbox", "false"),
		}, "--approval-mode=default --output-format=text " + admin + " " + id +
			" --sandbox false"},
		"sandbox off": {
			[]func(*agent.Spec){sandbox(setting.Off, typed)},
			"--approval-mode=default --sandbox=false --output-format=text " + admin + " " + id,
		},
		"json": {
			[]func(*agent.Spec){output(setting.JSON, typed)},
			"--approval-mode=default --output-format=json " + admin + " " + id,
		},
		"json by default": {
			[]func(*agent.Spec){output(setting.JSON, setting.Derived), pass("-o", "text")},
			"--approval-mode=default " + admin + " " + id + " -o text",
		},
		"json typed, passed": {
			[]func(*agent.Spec){output(setting.JSON, typed), pass("-o", "text")},
			"--approval-mode=default --output-format=json " + admin + " " + id + " -o text",
		},
		"stream-json": {
			[]func(*agent.Spec){output(setting.StreamJSON, typed)},
			"--approval-mode=default --output-format=stream-json " + admin + " " + id,
		},
		"model": {
			[]func(*agent.Spec){func(s *agent.Spec) {
				s.Shared.Model = setting.Chosen[string]{
					Value:  "m",
					Origin: typed,
				}
			}},
			"--approval-mode=default --output-format=text --model m " + admin + " " + id,
		},
		"web on": {[]func(*agent.Spec){web(true, typed)}, "--approval-mode=default --output-format=text " +
			id},
		"web off, allowed": {
			[]func(*agent.Spec){web(false, byDefault), pass("--allowed-tools=web_fetch")},
			"--approval-mode=default --output-format=text " + id + " --allowed-tools=web_fetch",
		},
		"web off, typed": {
			[]func(*agent.Spec){web(false, typed), pass("--allowed-tools", "web_fetch")},
			"--approval-mode=default --output-format=text " + admin + " " + id + " --allowed-tools web_fetch",
		},
		"web off, policy": {
			[]func(*agent.Spec){pass("--policy", "p")},
			"--approval-mode=default --output-format=text --policy=/temp/web-off.toml " + id + " --policy p",
		},
		"web off typed, too": {
			[]func(*agent.Spec){web(false, typed), pass("--policy", "p")},
			"--approval-mode=default --output-format=text " + admin + " " + id + " --policy p",
		},
		"comma": {
			[]func(*agent.Spec){func(s *agent.Spec) { s.Temp = "/a,b" }},
			"--approval-mode=default --output-format=text " + id,
		},
		"resume": {
			[]func(*agent.Spec){func(s *agent.Spec) { s.Resume = "latest" }},
			"--approval-mode=default --output-format=text " + admin + " --resume=latest",
		},
		"resume passed": {[]func(*agent.Spec){pass("-r", "3")}, "--approval-mode=default --output-format=text " +
			admin + " -r 3"},
		"session passed": {
			[]func(*agent.Spec){pass("--session-id=x")},
			"--approval-mode=default --output-format=text " + admin + " --session-id=x",
		},
		"after the end": {
			[]func(*agent.Spec){pass("--", "--yolo")},
			"--approval-mode=default --output-format=text " + admin + " " + id + " -- --yolo",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(t, c.change...)
			l, _, err := New().Command(s)
			if err != nil {
				t.Fatal(err)
			}
			got := filepath.ToSlash(strings.ReplaceAll(strings.Join(l.Args, " "), s.Fresh, "ID"))
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !slices.Equal(l.Args[l.Translated:], s.Passthrough) {
				t.Errorf("the passthrough is %q", l.Args[l.Translated:])
			}
		})
	}
}

func TestSession(t *testing.T) {
	const id = "99999999-2222-4333-8444-555555555555"
	for name, c := range map[string]struct {
		change func(*agent.Spec)
		want   string
	}{
		"chosen":          {func(*agent.Spec) {}, "11111111-2222-4333-8444-555555555555"},
		"interactive":     {interactive, ""},
		"resumed":         {func(s *agent.Spec) { s.Resume = id }, id},
		"resumed by rank": {func(s *agent.Spec) { s.Resume = "3" }, ""},
		"passed":          {pass("--session-id", id), id},
		"passed resume":   {pass("--resume=latest"), ""},
		"a file":          {pass("--session-file", "f"), ""},
	} {
		if l, _, _ := New().Command(spec(t, c.change)); l.Session != c.want {
			t.Errorf("%s: %q, want %q", name, l.Session, c.want)
		}
	}
}

// policyOf finds what is said of a shared flag.
func policyOf(l agent.Launch, feature string) agent.Policy {
	for _, p := range l.Policies {
		if p.Feature == feature {
			return p
		}
	}
	return agent.Policy{}
}

func TestPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		change  []func(*agent.Spec)
		feature string
		want    agent.Level
		warned  agent.WarningKind
	}{
		"approval":              {nil, agent.Approval, agent.Full, ""},
		"approval elsewhere":    {[]func(*agent.Spec){pass("-y")}, agent.Approval, agent.None, ""},
		"sandbox not asked for": {[]func(*agent.Spec){docker}, agent.Sandbox, agent.None, ""},
		"sandbox unguarded": {
			[]func(*agent.Spec){docker, approval(setting.AutoEdit, setting.Typed)},
			agent.Sandbox, agent.None, agent.Unguarded,
		},
		"sandbox": {
			[]func(*agent.Spec){docker, sandbox(setting.WorkspaceWrite, setting.Typed)},
			agent.Sandbox, agent.Full, "",
		},
		"sandbox without docker": {
			[]func(*agent.Spec){sandbox(setting.WorkspaceWrite, setting.Typed)},
			agent.Sandbox,
			agent.None, agent.Unsupported,
		},
		"sandbox by passthrough": {[]func(*agent.Spec){docker, pass("-s")}, agent.Sandbox, agent.Full, ""},
		"sandbox by environment": {
			[]func(*agent.Spec){docker, environment("GEMINI_SANDBOX=docker")},
			agent.Sandbox,
			agent.Full, "",
		},
		"sandbox not by it": {
			[]func(*agent.Spec){docker, environment("GEMINI_SANDBOX=false")},
			agent.Sandbox,
			agent.None, "",
		},
		"sandbox passed off": {[]func(*agent.Spec){
			docker, sandbox(setting.WorkspaceWrite, setting.Typed),
			pass("--no-sandbox"),
		}, agent.Sandbox, agent.None, agent.Unsupported},
		"web": {nil, agent.Web, agent.Full, ""},
		"web with a comma": {[]func(*agent.Spec){
			web(false, setting.Typed),
			func(s *agent.Spec) { s.Temp = "/a,b" },
		}, agent.Web, agent.None, agent.Unsupported},
		"web in a container": {
			[]func(*agent.Spec){docker, sandbox(setting.WorkspaceWrite, setting.Typed)},
			agent.Web, agent.Full, "",
		},
		"web not in a container": {[]func(*agent.Spec){
			docker, sandbox(setting.WorkspaceWrite, setting.Typed),
			func(s *agent.Spec) { s.Temp = "/a:b" },
		}, agent.Web, agent.None, ""},
		"interactive json, typed": {
			[]func(*agent.Spec){interactive, output(setting.JSON, setting.Typed)},
			agent.Approval, agent.Full, agent.Unsupported,
		},
	} {
		l, warnings, _ := New().Command(spec(t, c.change...))
		if got := policyOf(l, c.feature); got.Enforced != c.want {
			t.Errorf("%s: %q (%s), want %q", name, got.Enforced, got.Note, c.want)
		}
		var kind agent.WarningKind
		if len(warnings) > 0 {
			kind = warnings[0].Kind
		}
		if kind != c.warned || len(warnings) > 1 {
			t.Errorf("%s: warned %v, want %q", name, warnings, c.warned)
		}
	}
}

func TestWebPolicy(t *testing.T) {
	for origin, weight := range map[setting.Origin]string{
		setting.Unchosen: "priority = 0\n",
		setting.Typed:    "priority = 999\n",
	} {
		l, _, _ := New().Command(spec(t, web(false, origin)))
		if len(l.Files) != 1 || filepath.ToSlash(l.Files[0].Path) != "/temp/web-off.toml" ||
			!strings.Contains(string(l.Files[0].Data), weight) || l.Files[0].Keep {
			t.Errorf("%v: %+v", origin, l.Files)
		}
	}
	l, _, _ := New().Command(spec(t, docker, sandbox(setting.WorkspaceWrite, setting.Typed),
		environment("SANDBOX_MOUNTS=/a")))
	if got, _ := process.Value(l.Env, "SANDBOX_MOUNTS"); filepath.ToSlash(got) != "/a,/temp/web-off.toml" {
		t.Errorf("mounted: %q", got)
	}
	s := spec(t)
	write(t, configPath(s.Env, "settings.json"), `{ /* mine */ "adminPolicyPaths": ["/x"] }`)
	if l, _, _ := New().Command(s); len(l.Files) != 0 || policyOf(l, agent.Web).Enforced != agent.None {
		t.Errorf("a policy of ours would put the user's out of force: %+v", l.Files)
	}
}

func TestEnvironment(t *testing.T) {
	oneShot, _, _ := New().Command(spec(t, environment("CLAUDECODE=1", "GEMINI_API_KEY=k")))
	if want := append(spec(t).Env[1:], "CLAUDECODE=1", "GEMINI_API_KEY=k",
		"GEMINI_CLI_NO_RELAUNCH=true"); !slices.Equal(oneShot.Env[1:], want) {
		t.Errorf("one-shot: %q", oneShot.Env)
	}
	off, _, _ := New().Command(spec(t, environment("GEMINI_SANDBOX=docker"), sandbox(setting.Off, setting.Typed)))
	if got, _ := process.Value(off.Env, "GEMINI_SANDBOX"); got != "false" {
		t.Errorf("GEMINI_SANDBOX is %q", got)
	}
	derived := func(s *agent.Spec) {
		s.Shared.Approval, s.Shared.Sandbox = setting.Chosen[setting.Approval]{
			Value:  setting.Yolo,
			Origin: setting.Typed,
		}, setting.Chosen[setting.Sandbox]{Value: setting.Off, Origin: setting.Derived}
	}
	for want, passthrough := range map[string][]string{"false": nil, "docker": {"--sandbox"}} {
		l, _, _ := New().Command(spec(t, environment("GEMINI_SANDBOX=docker"), derived, pass(passthrough...)))
		if got, _ := process.Value(l.Env, "GEMINI_SANDBOX"); got != want ||
			slices.Contains(l.Args, "--sandbox=false") != (want == "false") {
			t.Errorf("yolo, %q: GEMINI_SANDBOX is %q, %q", passthrough, got, l.Args)
		}
	}
}

// TestSingle: the terminal interface is one process where the larger heap of a second one can be had without.
func TestSingle(t *testing.T) {
	const one, heap = "GEMINI_CLI_NO_RELAUNCH=true", "NODE_OPTIONS=--max-old-space-size=8000"
	settings := func(text string) func(*agent.Spec) {
		return func(s *agent.Spec) { write(t, configPath(s.Env, "settings.json"), text) }
	}
	rehearse := func(s *agent.Spec) { s.Rehearsal = &agent.Rehearsal{Home: "/h"} }
	const large, unknown = 16_000, 0
	for name, c := range map[string]struct {
		change []func(*agent.Spec)
		memory int
		want   []string
	}{
		"one-shot":                 {nil, large, []string{one}},
		"one-shot, memory unknown": {nil, unknown, []string{one}},
		"interactive":              {[]func(*agent.Spec){interactive}, large, []string{heap, one}},
		"rehearsal":                {[]func(*agent.Spec){interactive, rehearse}, large, []string{heap, one}},
		"little memory":            {[]func(*agent.Spec){interactive, rehearse}, 4_000, []string{one}},
		"memory unknown":           {[]func(*agent.Spec){interactive, rehearse}, unknown, nil},
		"other options": {
			[]func(*agent.Spec){interactive, rehearse, environment("NODE_OPTIONS=-r x")},
			large,
			[]string{"NODE_OPTIONS=-r x --max-old-space-size=8000", one},
		},
		"a heap of one's own": {[]func(*agent.Spec){
			interactive, rehearse,
			environment("NODE_OPTIONS=--max_old_space_size=9"),
		}, unknown, []string{one}},
		"the heap is not wanted": {[]func(*agent.Spec){
			interactive, rehearse,
			settings(`{"advanced":{"autoConfigureMemory":false}}`),
		}, large, []string{one}},
		"a container": {[]func(*agent.Spec){
			interactive, rehearse, docker,
			sandbox(setting.WorkspaceWrite, setting.Typed),
		}, large, []string{one}},
		"a person's own switch": {[]func(*agent.Spec){environment("GEMINI_CLI_NO_RELAUNCH=")}, large, nil},
	} {
		if got := singleProcess(spec(t, c.change...), c.memory); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	l, _, _ := New().Command(spec(t, interactive))
	if memory() > 0 != slices.Contains(l.Env, one) || l.RestartCode != 199 {
		t.Errorf("%d MiB: %q, again %d", memory(), l.Env, l.RestartCode)
	}
}

func TestRehearsal(t *testing.T) {
	rehearse := func(s *agent.Spec) {
		s.Rehearsal = &agent.Rehearsal{URL: "http://127.0.0.1:1", Key: "k", Model: "m", Home: "/h"}
	}
	s := spec(t, rehearse, environment("HTTPS_PROXY=p", "GOOGLE_GENAI_USE_VERTEXAI=true", "GEMINI_MODEL=x",
		"GEMINI_CLI_TRUST_WORKSPACE=false"))
	l, _, _ := New().Command(s)
	for _, want := range []string{
		"HOME=/h", "GEMINI_CLI_HOME=/h", "TMPDIR=" + filepath.Join("/h", "tmp"),
		"GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:1", "GEMINI_API_KEY=k",
	} {
		if !slices.Contains(l.Env, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, entry := range l.Env {
		if strings.HasPrefix(entry, "HTTPS_PROXY=") || strings.HasPrefix(entry, "GOOGLE_GENAI") ||
			strings.HasPrefix(entry, "GEMINI_MODEL=") || strings.Contains(entry, "TRUST_WORKSPACE") {
			t.Errorf("%s is left", entry)
		}
	}
	files := map[string]string{}
	for _, f := range l.Files {
		files[filepath.ToSlash(f.Path)] = string(f.Data)
		if f.Keep != strings.HasPrefix(filepath.ToSlash(f.Path), "/h/") {
			t.Errorf("%s: keep is %v", f.Path, f.Keep)
		}
	}
	if got := files["/h/.gemini/settings.json"]; !strings.Contains(got, `"selectedType":"gemini-api-key"`) ||
		!strings.Contains(got, `"maxAttempts":1`) || !strings.Contains(got, `"sessionRetention":{"enabled":false}`) {
		t.Errorf("settings: %s", got)
	}
	if got := files["/h/.gemini/trustedFolders.json"]; !strings.Contains(got, "TRUST_FOLDER") ||
		!strings.Contains(got, filepath.Base(s.Dir)) {
		t.Errorf("trust: %s", got)
	}
	if !slices.Contains(l.Args, "m") || len(l.Refusals) != 0 {
		t.Errorf("args %q, refusals %v", l.Args, l.Refusals)
	}
}

func TestRefusals(t *testing.T) {
	trust := func(level string) func(*agent.Spec) {
		return func(s *agent.Spec) {
			write(t, configPath(s.Env, "trustedFolders.json"), `{"`+filepath.ToSlash(s.Dir)+`": "`+
				level+`"} // by a person`)
		}
	}
	settings := func(text string) func(*agent.Spec) {
		return func(s *agent.Spec) { write(t, configPath(s.Env, "settings.json"), text) }
	}
	for name, c := range map[string]struct {
		change []func(*agent.Spec)
		want   string // a word of the only refusal
	}{
		"untrusted":      {nil, "trusted"},
		"trusted":        {[]func(*agent.Spec){trust("TRUST_FOLDER")}, ""},
		"distrusted":     {[]func(*agent.Spec){trust("DO_NOT_TRUST")}, "trusted"},
		"interactive":    {[]func(*agent.Spec){interactive}, ""},
		"skipped":        {[]func(*agent.Spec){pass("--skip-trust")}, ""},
		"by environment": {[]func(*agent.Spec){environment("GEMINI_CLI_TRUST_WORKSPACE=true")}, ""},
		"restricted": {
			[]func(*agent.Spec){trust("TRUST_FOLDER"), environment("GEMINI_RESTRICTED_MODE=true")},
			"trusted",
		},
		"no folder trust": {[]func(*agent.Spec){settings(`{"security":{"folderTrust":{"enabled":false}}}`)}, ""},
		"a container": {[]func(*agent.Spec){
			docker, trust("TRUST_FOLDER"),
			sandbox(setting.WorkspaceWrite, setting.Typed),
		}, "container"},
		"another API": {
			[]func(*agent.Spec){trust("TRUST_FOLDER"), environment("GOOGLE_GEMINI_BASE_URL=http://x")},
			"sign in",
		},
		"chosen": {[]func(*agent.Spec){
			trust("TRUST_FOLDER"), environment("GOOGLE_GEMINI_BASE_URL=http://x"),
			settings(`{"security":{"auth":{"selectedType":"gemini-api-key"}}}`),
		}, ""},
	} {
		l, _, _ := New().Command(spec(t, c.change...))
		switch {
		case c.want == "" && len(l.Refusals) > 0, c.want != "" && len(l.Refusals) != 1:
			t.Errorf("%s: %v", name, l.Refusals)
		case c.want != "" && !strings.Contains(l.Refusals[0].Reason, c.want):
			t.Errorf("%s: %s", name, l.Refusals[0].Reason)
		}
	}
}

func TestTrustOfAParent(t *testing.T) {
	s := spec(t)
	inner := filepath.Join(s.Dir, "a", "b")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	file := configPath(s.Env, "trustedFolders.json")
	for rules, want := range map[string]bool{
		`{"DIR": "TRUST_FOLDER"}`:                              true,
		`{"DIR/a/c": "TRUST_PARENT"}`:                          true,
		`{"DIR/a/c": "TRUST_FOLDER"}`:                          false,
		`{"DIR/a/b": "DO_NOT_TRUST", "DIR": "TRUST_FOLDER"}`:   false,
		`{"DIR/a/b": "TRUST_FOLDER", "DIR/a": "DO_NOT_TRUST"}`: true,
		`{}`:    false,
		`torn{`: false,
	} {
		write(t, file, strings.ReplaceAll(rules, "DIR", filepath.ToSlash(s.Dir)))
		s := s
		s.Dir = inner
		if got := trusted(s); got != want {
			t.Errorf("%s: %v", rules, got)
		}
	}
}

// TestTrustedRepository: a repository that a person trusted can widen the approval, and that is said.
func TestTrustedRepository(t *testing.T) {
	s := spec(t, approval(setting.Prompt, setting.Typed))
	write(t, filepath.Join(s.Dir, ".gemini", "settings.json"), `{"tools":{"allowed":["run_shell_command"]},"hooks":{}}`)
	l, warnings, _ := New().Command(s)
	if got := policyOf(l, agent.Approval); got.Enforced != agent.Full || len(warnings) != 0 {
		t.Errorf("untrusted: %+v %v", got, warnings)
	}
	write(t, configPath(s.Env, "trustedFolders.json"), `{"`+filepath.ToSlash(s.Dir)+
		`":"TRUST_FOLDER"}`)
	l, warnings, _ = New().Command(s)
	got := policyOf(l, agent.Approval)
	if got.Enforced != agent.Nearest || !strings.HasSuffix(got.Note, "hooks, tools.allowed") || len(warnings) != 1 {
		t.Errorf("trusted: %+v %v", got, warnings)
	}
	if l.Args[0] != "--approval-mode=default" {
		t.Errorf("%q", l.Args)
	}
}

// TestMatrix: every feature has a row, each with a cell for both modes.
func TestMatrix(t *testing.T) {
	m := New().Matrix("")
	if m.Measured != measured || m.Limit.Characters == 0 || m.Limit.Bytes == 0 {
		t.Errorf("%+v", m)
	}
	for _, want := range []string{
		"approval prompt", "approval auto-edit", "approval yolo", "sandbox workspace-write", "sandbox off",
		"output text", "output json",
		"output stream-json", "model ", "web on", "web off", "output-schema ", "resume ", "session-id ", "ask ",
		"repo-config ", "denials ", "records ", "acp ",
	} {
		feature, value, _ := strings.Cut(want, " ")
		n := 0
		for _, r := range m.Rows {
			if r.Feature == feature && r.Value == value {
				n++
				if r.Interactive.Level == "" || r.OneShot.Level == "" {
					t.Errorf("%s has an empty cell", want)
				}
			}
		}
		if n != 1 {
			t.Errorf("%s has %d rows", want, n)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
