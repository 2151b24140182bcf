package codex

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
)

const (
	run     = `exec -c approval_policy="never" -c approvals_reviewer="user"`
	asks    = `-c approval_policy="on-request" -c approvals_reviewer="user"`
	typed   = `--ask-for-approval on-request -c approvals_reviewer="user"`
	offline = `-c web_search="disabled"`
)

// want is a command line as words: approval, sandbox and what else was typed.
type want struct {
	mode              setting.Mode
	approval, sandbox string // with a star: configured, not typed
	output, model     string
	passthrough       string
}

func chosen[T ~string](word string, none T) setting.Chosen[T] {
	switch value, configured := strings.CutSuffix(word, "*"); {
	case word == "":
		return setting.Chosen[T]{Value: none}
	case configured:
		return setting.Chosen[T]{Value: T(value), Origin: setting.Configured}
	default:
		return setting.Chosen[T]{Value: T(value), Origin: setting.Typed}
	}
}

func (w want) spec(t *testing.T) agent.Spec {
	s := newScene(t).spec(w.mode, strings.Fields(w.passthrough)...)
	s.Shared.Approval = chosen(w.approval, setting.Prompt)
	s.Shared.Sandbox = chosen(w.sandbox, setting.WorkspaceWrite)
	s.Shared.Output = chosen(w.output, setting.Text)
	s.Shared.Model = chosen(w.model, "")
	s.Shared = s.Shared.Derive()
	return s
}

func TestCommand(t *testing.T) {
	const (
		one = setting.OneShot
		tui = setting.Interactive
	)
	for _, c := range []struct {
		want
		args string
	}{
		// Nobody chose a sandbox: it is the shared default, whatever the approval is, but for yolo.
		{want{mode: one}, run + ` -c sandbox_mode="workspace-write" ` + offline},
		{want{mode: one, approval: "prompt"}, run + ` -c sandbox_mode="workspace-write" ` + offline},
		{want{mode: tui}, asks + ` -c sandbox_mode="workspace-write" ` + offline},
		{want{mode: tui, approval: "prompt"}, typed + ` -c sandbox_mode="workspace-write" ` + offline},
		{want{mode: one, approval: "auto-edit"}, run + ` -c sandbox_mode="workspace-write" ` + offline},
		{want{mode: tui, approval: "auto-edit"}, typed + ` -c sandbox_mode="workspace-write" ` + offline},
		{want{mode: one, approval: "yolo"}, run + ` -c sandbox_mode="danger-full-access" ` + offline},
		{
			want{mode: tui, approval: "yolo"},
			`--ask-for-approval never -c approvals_reviewer="user" -c sandbox_mode="danger-full-access" ` + offline,
		},
		// Somebody did.
		{want{mode: one, sandbox: "workspace-write"}, run + ` --sandbox workspace-write ` + offline},
		{want{mode: one, sandbox: "workspace-write*"}, run + ` --sandbox workspace-write ` + offline},
		{want{mode: one, sandbox: "off"}, run + ` --sandbox danger-full-access ` + offline},
		{want{mode: one, approval: "yolo", sandbox: "workspace-write"}, run + ` --sandbox workspace-write ` + offline},
		{want{mode: tui, sandbox: "workspace-write"}, asks + ` --sandbox workspace-write ` + offline},
		// The passthrough names the same: what was not typed can be overridden, what was typed stays as it is.
		{want{mode: tui, passthrough: "--sandbox read-only"}, asks + ` -c sandbox_mode="workspace-write" ` + offline +
			` --sandbox read-only`},
		{want{mode: tui, sandbox: "off", passthrough: "--sandbox read-only"}, asks + ` --sandbox danger-full-access ` +
			offline + ` --sandbox read-only`},
		{want{mode: one, sandbox: "off*", passthrough: "-sread-only"}, run + ` -c sandbox_mode="danger-full-access" ` +
			offline + ` -sread-only`},
		{
			want{mode: tui, approval: "yolo*", passthrough: "-a on-request"},
			`-c approval_policy="never" -c approvals_reviewer="user" -c sandbox_mode="danger-full-access" ` + offline +
				` -a on-request`,
		},
		{want{mode: one, passthrough: "--approve-for-me"}, run + ` -c sandbox_mode="workspace-write" ` + offline +
			` --approve-for-me`},
		{
			want{mode: one, passthrough: `--config=sandbox_mode="workspace-write"`},
			run + ` -c sandbox_mode="workspace-write" ` + offline + ` --config=sandbox_mode="workspace-write"`,
		},
		{want{mode: one, passthrough: "-- --sandbox"}, run + ` -c sandbox_mode="workspace-write" ` + offline +
			` -- --sandbox`},
		// Output and model.
		{want{mode: one, output: "json"}, run + ` -c sandbox_mode="workspace-write" --json ` + offline},
		{
			want{mode: one, output: "stream-json", model: "m"},
			run + ` -c sandbox_mode="workspace-write" --json --model m ` + offline,
		},
		{want{mode: one, output: "json*", passthrough: "--json"}, run + ` -c sandbox_mode="workspace-write" ` +
			offline + ` --json`},
		{want{mode: one, model: "m*", passthrough: "-mx"}, run + ` -c sandbox_mode="workspace-write" ` + offline +
			` -mx`},
		{want{mode: one, model: "m", passthrough: "-m x"}, run + ` -c sandbox_mode="workspace-write" --model m ` +
			offline + ` -m x`},
		{want{mode: tui, output: "stream-json"}, asks + ` -c sandbox_mode="workspace-write" ` + offline},
	} {
		l, _, err := New().Command(c.spec(t))
		if got := strings.Join(l.Args, " "); got != c.args || err != nil {
			t.Errorf("%+v:\n%s (%v), want\n%s", c.want, got, err, c.args)
		}
		if rest := strings.Join(l.Args[l.Translated:], " "); rest != c.passthrough {
			t.Errorf("%+v: the passthrough is %q", c.want, rest)
		}
	}
}

// What is said to hold: approval and sandbox are one thing in Codex.
func TestPolicies(t *testing.T) {
	const (
		one = setting.OneShot
		tui = setting.Interactive
	)
	for _, c := range []struct {
		want
		approval, sandbox agent.Level
		warnings          string
	}{
		{want{mode: one}, agent.Nearest, agent.Full, ""}, // nobody typed it
		{want{mode: tui}, agent.Nearest, agent.Full, ""},
		{want{mode: one, approval: "prompt*"}, agent.Nearest, agent.Full, ""},
		{want{mode: one, approval: "prompt"}, agent.Nearest, agent.Full, "nearest --approval"},
		{want{mode: tui, approval: "prompt"}, agent.Nearest, agent.Full, "nearest --approval"},
		{want{mode: one, approval: "prompt", passthrough: "--sandbox read-only"}, agent.None, agent.None, ""},
		{want{mode: one, approval: "prompt", sandbox: "off"}, agent.None, agent.Full, "unguarded --approval"},
		{want{mode: one, approval: "auto-edit"}, agent.Full, agent.Full, ""},
		{want{mode: one, approval: "yolo"}, agent.Full, agent.Full, ""},
		{want{mode: one, sandbox: "workspace-write"}, agent.Nearest, agent.Full, ""},
		{
			want{mode: one, approval: "prompt", sandbox: "workspace-write"},
			agent.Nearest, agent.Full,
			"nearest --approval",
		},
		{want{mode: one, sandbox: "off"}, agent.None, agent.Full, "unguarded --approval"},
		{want{mode: tui, sandbox: "off"}, agent.None, agent.Full, "unguarded --approval"},
		{want{mode: one, approval: "auto-edit", sandbox: "off"}, agent.None, agent.Full, "unguarded --approval"},
		{want{mode: one, approval: "yolo", sandbox: "off"}, agent.Full, agent.Full, ""},
		{want{mode: one, passthrough: "--yolo"}, agent.None, agent.None, ""},
		{want{mode: tui, passthrough: "-a never"}, agent.None, agent.Full, ""},
		// the flag counts more
		{
			want{mode: one, sandbox: "off", passthrough: `-c sandbox_mode="read-only"`},
			agent.None, agent.Full,
			"unguarded --approval",
		},
		{want{mode: one, output: "json"}, agent.Nearest, agent.Full, "nearest --output"},
		{want{mode: tui, output: "json"}, agent.Nearest, agent.Full, "unsupported --output"},
	} {
		l, warnings, _ := New().Command(c.spec(t))
		if l.Policies[0].Enforced != c.approval || l.Policies[1].Enforced != c.sandbox {
			t.Errorf("%+v: approval %s, sandbox %s", c.want, l.Policies[0].Enforced, l.Policies[1].Enforced)
		}
		var told []string
		for _, w := range warnings {
			told = append(told, string(w.Kind)+" "+w.Flag)
		}
		if got := strings.Join(told, ", "); got != c.warnings {
			t.Errorf("%+v: warnings %q, want %q", c.want, got, c.warnings)
		}
	}
	l, _, _ := New().Command(want{mode: one}.spec(t))
	if got := l.Policies[0].Note; got != "inside the workspace it writes without asking" {
		t.Errorf("note %q", got)
	}
	l, _, _ = New().Command(want{mode: one, approval: "yolo*", passthrough: "-s read-only"}.spec(t))
	if got := l.Policies[0].Origin + " " + l.Policies[1].Origin; got != "configured derived" {
		t.Errorf("origins %q: how it is sent changes nothing about who chose it", got)
	}
}

// No cell is left out, in either mode.
func TestMatrix(t *testing.T) {
	m := New().Matrix("")
	for _, f := range []string{
		agent.Approval, agent.Sandbox, agent.Output, agent.Model, agent.Web, agent.Schema, agent.Resume,
		agent.Continue, agent.Provider, agent.APIBase,
		agent.SessionID, agent.Ask,
		agent.RepoConfig, agent.Denials, agent.Records, agent.ACP,
	} {
		if !slices.ContainsFunc(m.Rows, func(r agent.Row) bool {
			return r.Feature == f && r.Interactive.Level != "" &&
				r.OneShot.Level != ""
		}) {
			t.Errorf("%s has no row", f)
		}
	}
	if len(m.Rows) != 26 || m.Limit.Characters != 1048576 {
		t.Errorf("%d rows, limit %+v", len(m.Rows), m.Limit)
	}
}

func TestSchema(t *testing.T) {
	s := want{mode: setting.OneShot}.spec(t)
	s.Schema, s.Temp = []byte(`{"type":"object"}`), filepath.Join("tmp", "x")
	l, _, _ := New().Command(s)
	at := slices.Index(l.Args, "--output-schema")
	if !l.Native || len(l.Files) != 1 || at < 0 || l.Args[at+1] != l.Files[0].Path ||
		string(l.Files[0].Data) != string(s.Schema) || l.Files[0].Keep {
		t.Errorf("%v %v %v", l.Native, l.Files, l.Args)
	}
	s.Passthrough = []string{"--output-schema=x"}
	if l, _, _ := New().Command(s); l.Native || len(l.Files) != 0 ||
		slices.Contains(l.Args[:l.Translated], "--output-schema") {
		t.Errorf("two schemas: %v", l.Args)
	}
}

func TestResume(t *testing.T) {
	const id = "01a1fe1e-dfce-7ad3-8753-6ba14a0543f8"
	s := want{mode: setting.OneShot, sandbox: "workspace-write"}.spec(t)
	s.Resume = id
	l, _, _ := New().Command(s)
	if got := strings.Join(l.Args, " "); !strings.HasSuffix(got, " resume "+id) || l.Session != id {
		t.Errorf("%s, session %q", got, l.Session)
	}
	for words, want := range map[string]string{
		"resume " + id:          id,
		"resume --last":         "",
		"fork " + id:            "",
		"-C resume":             "",
		"-C resume " + id:       "",
		"--json resume x " + id: id,
		id:                      "",
		"-- resume " + id:       "",
	} {
		if got, _ := readPassed(strings.Fields(words)).session(); got != want {
			t.Errorf("%q names %q, want %q", words, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	has := func(l agent.Launch, word string) bool {
		return slices.ContainsFunc(l.Refusals,
			func(r agent.Refusal) bool { return strings.Contains(r.Reason+r.Fix, word) })
	}
	command := func(w want, change func(*agent.Spec)) agent.Launch {
		s := w.spec(t)
		change(&s)
		l, _, _ := New().Command(s)
		return l
	}
	none := func(*agent.Spec) {}
	repository := func(s *agent.Spec) {
		if err := os.MkdirAll(filepath.Join(s.Dir, ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.Dir, ".git", "HEAD"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.Dir = filepath.Join(s.Dir, "a", "b")
		if err := os.MkdirAll(s.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	one := want{mode: setting.OneShot}
	alone := !inRepository(filepath.Dir(t.TempDir())) // a temporary directory may lie in a repository
	for _, c := range []struct {
		name   string
		l      agent.Launch
		word   string
		refuse bool
	}{
		{"no repository", command(one, none), "--skip-git-repo-check", alone},
		{"in one", command(one, repository), "--skip-git-repo-check", false},
		{
			"an empty .git", command(one, func(s *agent.Spec) { _ = os.Mkdir(filepath.Join(s.Dir, ".git"), 0o700) }),
			"--skip-git-repo-check", alone,
		},
		{
			"told to skip", command(want{mode: setting.OneShot, passthrough: "--skip-git-repo-check"}, none),
			"--skip-git-repo-check", false,
		},
		{"bypass", command(want{mode: setting.OneShot, passthrough: "--yolo"}, none), "--skip-git-repo-check", false},
		{"sandbox off", command(want{mode: setting.OneShot, approval: "yolo"}, none), "--skip-git-repo-check", alone},
		{"terminal", command(want{mode: setting.Interactive}, none), "--skip-git-repo-check", false},
		{"elsewhere", command(one, func(s *agent.Spec) {
			d := *s
			repository(&d)
			s.Passthrough = []string{"--cd", d.Dir}
			s.Dir = t.TempDir()
		}), "--skip-git-repo-check", false},
		{
			"home in temp",
			command(one, func(s *agent.Spec) { s.Env = []string{"TMPDIR=" + filepath.Dir(s.Dir), "HOME=" + s.Dir} }),
			"sandbox cannot", true,
		},
		{
			"home elsewhere",
			command(one, func(s *agent.Spec) { s.Env = []string{"TMPDIR=" + s.Dir, "HOME=" + filepath.Dir(s.Dir)} }),
			"sandbox cannot", false,
		},
		{"home in temp, no sandbox", command(want{mode: setting.OneShot, sandbox: "off"}, func(s *agent.Spec) {
			s.Env = []string{"TMPDIR=" + filepath.Dir(s.Dir), "HOME=" + s.Dir}
		}), "sandbox cannot", false},
		{
			"home that is not there",
			command(one, func(s *agent.Spec) { s.Env = []string{"CODEX_HOME=" + filepath.Join(s.Dir, "no'ne")} }),
			"does not exist", true,
		},
		{"home that is there", command(one, none), "does not exist", false},
	} {
		if has(c.l, c.word) != c.refuse {
			t.Errorf("%s: %+v", c.name, c.l.Refusals)
		}
		for _, r := range c.l.Refusals {
			for _, code := range []int{0, 1, 2, 126} { // with a sandbox that can run nothing it goes on
				want := code == 1
				if strings.Contains(r.Reason, "sandbox cannot") {
					want = code == 0
				}
				if r.Explains(agent.Exit{Code: code}) != want {
					t.Errorf("%s, %q: exit code %d", c.name, r.Reason, code)
				}
			}
			if r.Explains(agent.Exit{Code: -1, Signal: "SIGTERM"}) ||
				r.Explains(agent.Exit{Code: 1, EndedBy: "SIGTERM"}) || r.Explains(agent.Exit{Failed: os.ErrNotExist}) {
				t.Errorf("%s, %q: it did not end by itself", c.name, r.Reason)
			}
		}
	}
}

// What to do is for this call: where it works, and behind what was already passed on.
func TestRefusedOutside(t *testing.T) {
	const said = "Reading prompt from stdin...\nNot inside a trusted directory and --skip-git-repo-check was not " +
		"specified.\n"
	for passthrough, flag := range map[string]string{
		"":       "add -- --skip-git-repo-check at the end",
		"-C sub": "add --skip-git-repo-check at the end",
	} {
		s := want{mode: setting.OneShot, passthrough: passthrough}.spec(t)
		dir := s.Dir
		if passthrough != "" {
			dir = filepath.Join(s.Dir, "sub")
		}
		l, _, _ := New().Command(s)
		if inRepository(filepath.Dir(dir)) {
			t.Skip("the temporary directory lies in a repository, so nothing is refused")
		}
		if len(l.Refusals) == 0 || !strings.HasPrefix(l.Refusals[0].Fix, flag) || l.Refusals[0].Command !=
			text.Shell("git", "init", dir) {
			t.Errorf("%q: %+v", passthrough, l.Refusals)
		}
		after := func(code int, stderr string) bool {
			f := New().Observe(l).After(agent.Exit{Code: code, Stderr: []byte(stderr)}).Fault
			return f != nil && f.Code == fault.AgentRefused
		}
		if !after(1, said) || after(0, said) || after(1, said+"more\n") || after(1, "") {
			t.Errorf("%q: the refusal is not recognised for what it is", passthrough)
		}
	}
}

// A rehearsal trusts no directory that brings settings, nor one below it in the same repository.
func TestRehearsalOfRepository(t *testing.T) {
	for _, c := range []struct {
		name, config, git, work string
		trusts                  bool
	}{
		{"none", "", ".git", ".", true},
		{"at the top", ".codex", ".git", "a/b", false},
		{"here", "a/.codex", ".git", "a", false},
		{"below", "a/.codex", ".git", "b", true},
		{"above the repository", ".codex", "a/.git", "a/b", true},
	} {
		s := want{mode: setting.Interactive}.spec(t)
		top := s.Dir
		for _, dir := range []string{c.config, c.git, c.work} {
			if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s.Dir = filepath.Join(top, c.work)
		s.Rehearsal = &agent.Rehearsal{
			URL: "http://127.0.0.1:1", Key: "k", Model: "m",
			Home: filepath.Join(t.TempDir(), "home"),
		}
		l, _, _ := New().Command(s)
		if got := strings.Contains(string(l.Files[0].Data), "trusted"); got != c.trusts {
			t.Errorf("%s: %q", c.name, l.Files[0].Data)
		}
	}
}

func TestRehearsal(t *testing.T) {
	for _, mode := range []setting.Mode{setting.OneShot, setting.Interactive} {
		s := want{mode: mode}.spec(t)
		// what is above it does not count
		if err := os.Mkdir(filepath.Join(s.Dir, ".git"), 0o700); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		s.Env = append(s.Env, "OPENAI_API_KEY=real", "CODEX_HOME=/users", "HOME=/users", "TERM=x")
		s.Rehearsal = &agent.Rehearsal{
			URL: "http://127.0.0.1:1", Key: "k", Model: "m",
			Home: filepath.Join(s.Dir, "home"),
		}
		l, _, _ := New().Command(s)
		args := strings.Join(l.Args, " ")
		for _, want := range []string{
			`model_provider="omniagent"`, `base_url="http://127.0.0.1:1/v1"`,
			"stream_max_retries=0", `model="m"`, "analytics.enabled=false",
		} {
			if !strings.Contains(args, want) {
				t.Errorf("%s: %s is missing in %s", mode, want, args)
			}
		}
		if strings.Contains(args, "--no-daemon") != (mode == setting.Interactive) {
			t.Errorf("%s: %s", mode, args)
		}
		for name, want := range map[string]string{
			"HOME": s.Rehearsal.Home, "CODEX_HOME": filepath.Join(s.Rehearsal.Home, ".codex"), "OPENAI_API_KEY": "",
			"TERM": "x", keyName: "k",
		} {
			if got, _ := process.Value(l.Env, name); got != want {
				t.Errorf("%s: %s is %q, want %q", mode, name, got, want)
			}
		}
		if strings.Contains(args, "k ") && strings.Contains(args, " k") || len(l.Files) != 1 || !l.Files[0].Keep ||
			filepath.Dir(l.Files[0].Path) != filepath.Join(s.Rehearsal.Home, ".codex") {
			t.Errorf("%s: files %+v", mode, l.Files)
		}
		if trusts := strings.Contains(string(l.Files[0].Data),
			literal.QuoteTOML(s.Dir)); trusts != (mode == setting.Interactive) {
			t.Errorf("%s: trust in %q", mode, l.Files[0].Data)
		}
		s.Shared.Model = setting.Chosen[string]{Value: "mine", Origin: setting.Typed}
		l, _, _ = New().Command(s)
		if args := strings.Join(l.Args, " "); strings.Contains(args, `model="m"`) ||
			!strings.Contains(args, "--model mine") {
			t.Errorf("%s, another model: %s", mode, args)
		}
	}
}

func TestQuote(t *testing.T) {
	if got := literal.QuoteTOML("a\"b\\c\nd\x01é"); got != `"a\"b\\c\nd\u0001é"` {
		t.Error(got)
	}
}
