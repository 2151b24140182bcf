package opencode

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/process"
)

const fresh = "0b5c1a86-6f0e-4c1c-8a51-7a3d1c9a2f10"

// wish makes a Spec of words as on a command line; "!" before a mode means that it is interactive.
func wish(t testing.TB, words ...string) agent.Spec {
	t.Helper()
	s := agent.Spec{
		Mode: setting.OneShot, Shared: setting.Defaults(), Dir: t.TempDir(), Fresh: fresh,
		Env:     []string{"HOME=/home/dev", "PATH=/bin"},
		Install: agent.Install{Path: "/bin/opencode", Version: measured},
		Machine: agent.Machine{OS: "linux", Has: func(string) bool { return false }},
	}
	// A repository of its own, so that nothing above it counts.
	if err := os.Mkdir(filepath.Join(s.Dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "interactive":
			s.Mode = setting.Interactive
		case "approval":
			s.Shared.Approval = setting.Chosen[setting.Approval]{Value: setting.Approval(value), Origin: setting.Typed}
		case "sandbox":
			s.Shared.Sandbox = setting.Chosen[setting.Sandbox]{Value: setting.Sandbox(value), Origin: setting.Typed}
		case "output":
			s.Shared.Output = setting.Chosen[setting.Output]{Value: setting.Output(value), Origin: setting.Typed}
		case "model":
			s.Shared.Model = setting.Chosen[string]{Value: value, Origin: setting.Typed}
		case "configured-model":
			s.Shared.Model = setting.Chosen[string]{Value: value, Origin: setting.Configured}
		case "web":
			s.Shared.Web = setting.Chosen[bool]{Value: value == "on", Origin: setting.Typed}
		case "resume":
			s.Resume = value
		case "env":
			s.Env = append(s.Env, value)
		case "--":
			s.Passthrough = words[i+1:]
			s.Shared = s.Shared.Derive()
			return s
		}
	}
	s.Shared = s.Shared.Derive()
	return s
}

func command(t testing.TB, s agent.Spec) (agent.Launch, []agent.Warning) {
	t.Helper()
	l, w, err := New().Command(s)
	if err != nil {
		t.Fatal(err)
	}
	return l, w
}

func TestArguments(t *testing.T) {
	const prompt, edits = `{"edit":"ask","bash":"ask","webfetch":"deny","websearch":"deny"}`,
		`{"bash":"ask","webfetch":"deny","websearch":"deny"}`
	const yolo = `{"webfetch":"deny","websearch":"deny"}`
	for _, c := range []struct{ words, args, permission, warnings, session string }{
		{"", "run TITLE", prompt, "", ""},
		{"interactive", "", prompt, "", ""},
		{"approval=prompt sandbox=off", "run TITLE", prompt, "", ""},
		{"approval=prompt sandbox=workspace-write", "run TITLE", prompt, "unsupported", ""},
		{"approval=auto-edit", "run TITLE", edits, "unguarded", ""},
		{"approval=auto-edit sandbox=off", "run TITLE", edits, "", ""},
		{"approval=auto-edit sandbox=workspace-write", "run TITLE", edits, "unsupported", ""},
		{"approval=yolo", "run --auto TITLE", yolo, "", ""},
		{"approval=yolo sandbox=off", "run --auto TITLE", yolo, "", ""},
		{"approval=yolo sandbox=workspace-write", "run --auto TITLE", yolo, "unsupported", ""},
		{"interactive approval=yolo", "--auto", yolo, "", ""},
		{"output=text", "run TITLE", prompt, "", ""},
		{"output=json", "run --format=json TITLE", prompt, "nearest", ""},
		{"output=stream-json", "run --format=json TITLE", prompt, "", ""},
		{"interactive output=json", "", prompt, "unsupported", ""},
		{"model=p/m", "run -m p/m TITLE", prompt, "", ""},
		{"web=on", "run TITLE", `{"edit":"ask","bash":"ask","webfetch":"allow","websearch":"allow"}`, "", ""},
		{"web=off", "run TITLE", prompt, "", ""},
		{"approval=yolo web=on", "run --auto TITLE", `{"webfetch":"allow","websearch":"allow"}`, "", ""},
		{"resume=ses_1", "run --session=ses_1", prompt, "", "ses_1"},
		{"interactive resume=ses_1", "--session=ses_1", prompt, "", "ses_1"},
		{"resume=ses_1 -- -s ses_2", "run -s ses_2", prompt, "", "ses_2"},
		{"-- -c", "run -c", prompt, "", ""},
		{"-- --session=ses_2 --fork", "run --session=ses_2 --fork", prompt, "", ""},
		{"-- --title x", "run --title x", prompt, "", ""},
		{"-- --auto", "run TITLE --auto", prompt, "", ""},
		{"-- --agent plan", "run TITLE --agent plan", prompt, "", ""},
		{"configured-model=p/m -- -m q/n", "run TITLE -m q/n", prompt, "", ""},
		{"model=p/m -- -m q/n", "run -m p/m TITLE -m q/n", prompt, "", ""},
		{
			"approval=prompt -- --attach http://127.0.0.1:4096", "run --attach http://127.0.0.1:4096", prompt,
			"nearest",
			"",
		},
	} {
		s := wish(t, strings.Fields(c.words)...)
		l, ws := command(t, s)
		want := strings.Replace(c.args, "TITLE", titleFlag+uniqueTitle(fresh), 1)
		if got := strings.Join(l.Args, " "); got != want {
			t.Errorf("%s: %q, not %q", c.words, got, want)
		}
		if got, _ := process.Value(l.Env, permissionName); got != c.permission {
			t.Errorf("%s: %s", c.words, got)
		}
		if dir, _ := process.Value(l.Env, "PWD"); dir != s.Dir || l.Session != c.session || l.Prompt != agent.ByStdin {
			t.Errorf("%s: %s %q", c.words, dir, l.Session)
		}
		if !slices.Equal(l.Args[l.Translated:], s.Passthrough) {
			t.Errorf("%s: %q", c.words, l.Args[l.Translated:])
		}
		var kinds []string
		for _, w := range ws {
			kinds = append(kinds, string(w.Kind))
		}
		if strings.Join(kinds, " ") != c.warnings {
			t.Errorf("%s: %v", c.words, ws)
		}
	}
}

func TestPermission(t *testing.T) {
	for _, c := range []struct{ theirs, words, want string }{
		{`{"bash":"allow"}`, "approval=prompt", `{"edit":"ask","bash":"ask","webfetch":"deny","websearch":"deny"}`},
		{`"allow"`, "approval=prompt", `{"*":"allow","edit":"ask","bash":"ask","webfetch":"deny","websearch":"deny"}`},
		{
			`"deny"`, "approval=prompt",
			`{"*":"deny","edit":{"*":"deny"},"bash":{"*":"deny"},"webfetch":"deny","websearch":"deny"}`,
		},
		{
			`{"bash":{"git *":"allow","rm *":"deny"},"read":"ask"}`, "approval=auto-edit",
			`{"read":"ask","bash":{"*":"ask","git *":"ask","rm *":"deny"},"webfetch":"deny","websearch":"deny"}`,
		},
		{
			`{"bash":"deny","*":"allow"}`, "approval=prompt",
			`{"*":"allow","edit":"ask","bash":"ask","webfetch":"deny","websearch":"deny"}`,
		},
		{
			`{"*":"allow","bash":"deny"}`, "approval=prompt",
			`{"*":"allow","edit":"ask","bash":{"*":"deny"},"webfetch":"deny","websearch":"deny"}`,
		},
		{
			`{"web*":"deny"}`, "web=on",
			`{"web*":"deny","edit":"ask","bash":"ask","webfetch":{"*":"deny"},"websearch":{"*":"deny"}}`,
		},
		{`{"edit":"deny"}`, "approval=auto-edit", `{"edit":"deny","bash":"ask","webfetch":"deny","websearch":"deny"}`},
		{`{"bash":"deny"}`, "approval=yolo", `{"bash":"deny","webfetch":"deny","websearch":"deny"}`},
		{`not json`, "approval=prompt", `{"edit":"ask","bash":"ask","webfetch":"deny","websearch":"deny"}`},
		{`{"bash":"maybe"}`, "approval=prompt", `{"edit":"ask","bash":"ask","webfetch":"deny","websearch":"deny"}`},
	} {
		l, _ := command(t, wish(t, c.words, "env="+permissionName+"="+c.theirs))
		got, _ := process.Value(l.Env, permissionName)
		// {"*":x} and x mean the same.
		for _, action := range []string{"deny", "ask", "allow"} {
			c.want = strings.ReplaceAll(c.want, `{"*":"`+action+`"}`, `"`+action+`"`)
			got = strings.ReplaceAll(got, `{"*":"`+action+`"}`, `"`+action+`"`)
		}
		if got != c.want {
			t.Errorf("%s %s:\n%s, not\n%s", c.theirs, c.words, got, c.want)
		}
	}
}

// decide is what the CLI does with a permission: the last rule that matches.
func decide(text, tool, argument string) string {
	rs, _ := rules(text)
	action := "allow"
	for _, r := range rs {
		if match(tool, r.tool) && match(argument, r.pattern) {
			action = r.action
		}
	}
	return action
}

// Whatever is set already, no tool may do more than either side says.
func FuzzPermission(f *testing.F) {
	for _, s := range []string{
		`{"bash":{"*":"allow","x":"deny"}}`, `{"*":"ask","b*":"allow","bash":"deny"}`, `"deny"`,
		`{"bash":{"x":"allow","*":"deny","?":"ask"},"*":{"x":"allow"}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, theirs string) {
		if _, ok := rules(theirs); !ok || len(theirs) > 200 || strings.Count(theirs, "*") > 8 {
			t.Skip("the CLI would not read this permission, or it is too long to decide")
		}
		ours := `{"edit":"ask","bash":"ask","webfetch":"deny"}`
		got := permission([]string{permissionName + "=" + ours},
			agent.Spec{Env: []string{permissionName + "=" + theirs}})[0]
		got = strings.TrimPrefix(got, permissionName+"=")
		if !json.Valid([]byte(got)) {
			t.Fatalf("%s", got)
		}
		for _, tool := range []string{"edit", "bash", "webfetch", "read"} {
			for _, argument := range []string{"x", "git status", "rm y"} {
				want := stricter(decide(ours, tool, argument), decide(theirs, tool, argument))
				if tool == "read" {
					want = decide(theirs, tool, argument)
				}
				if have := decide(got, tool, argument); have != want {
					t.Errorf("%s of %s: %s, not %s\n%s", tool, argument, have, want, got)
				}
			}
		}
	})
}

func TestMark(t *testing.T) {
	// as the CLI knows its own
	form := regexp.MustCompile(`^New session - \d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$`)
	seen := map[string]bool{}
	for _, id := range []string{"", fresh, fresh + "1", fresh + "2", "x"} {
		title := uniqueTitle(id)
		if !form.MatchString(title) || seen[title] {
			t.Error(id, title)
		}
		seen[title] = true
	}
}

func TestRepository(t *testing.T) {
	for _, name := range []string{"opencode.json", "opencode.jsonc", ".opencode"} {
		s := wish(t, "approval=prompt")
		if err := os.WriteFile(filepath.Join(s.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		sub := filepath.Join(s.Dir, "a", "b")
		if err := os.MkdirAll(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{s.Dir, sub} {
			s.Dir = dir
			l, ws := command(t, s)
			if l.Policies[0].Enforced != agent.Nearest || len(ws) != 1 || !strings.Contains(ws[0].Message, name) {
				t.Errorf("%s: %+v %v", name, l.Policies[0], ws)
			}
		}
		s.Shared.Approval.Origin = setting.Unchosen
		if l, ws := command(t, s); l.Policies[0].Enforced != agent.Nearest || len(ws) != 0 {
			t.Errorf("%s: %+v %v", name, l.Policies[0], ws)
		}
		s.Shared.Approval.Value = setting.Yolo
		if l, _ := command(t, s); l.Policies[0].Enforced != agent.Full {
			t.Errorf("%s: %+v", name, l.Policies[0])
		}
		if err := os.Mkdir(filepath.Join(sub, ".git"), 0o700); err != nil { // another repository, below
			t.Fatal(err)
		}
		s.Shared.Approval.Value = setting.Prompt
		if l, _ := command(t, s); l.Policies[0].Enforced != agent.Full {
			t.Errorf("%s: %+v", name, l.Policies[0])
		}
	}
}

func TestPluginsAreNotSwitchedOff(t *testing.T) {
	for _, c := range []struct {
		words, file string
		want        agent.Level
	}{
		{"env=OPENCODE_DISABLE_PROJECT_CONFIG=1", `opencode.json={"mcp":{}}`, agent.Full},
		{"env=OPENCODE_DISABLE_PROJECT_CONFIG=TRUE", `opencode.json={"mcp":{}}`, agent.Full},
		{"env=OPENCODE_DISABLE_PROJECT_CONFIG=0", `opencode.json={"mcp":{}}`, agent.Nearest},
		{"env=OPENCODE_DISABLE_PROJECT_CONFIG=1", `opencode.json={"plugin":["./x.js"]}`, agent.Nearest},
		{"env=OPENCODE_DISABLE_PROJECT_CONFIG=1", ".opencode/agent/x.md=", agent.Full},
		{"env=OPENCODE_DISABLE_PROJECT_CONFIG=1", ".opencode/plugin/x.js=", agent.Nearest},
		{"env=OPENCODE_DISABLE_PROJECT_CONFIG=1 env=OPENCODE_PURE=1", ".opencode/plugin/x.js=", agent.Nearest},
	} {
		s := wish(t, strings.Fields(c.words)...)
		name, text, _ := strings.Cut(c.file, "=")
		path := filepath.Join(s.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, _ := command(t, s); l.Policies[0].Enforced != c.want {
			t.Errorf("%s, %s: %+v", c.words, c.file, l.Policies[0])
		}
	}
}

// What the passthrough approves is not claimed to be asked for.
func TestPassthroughApproves(t *testing.T) {
	for words, want := range map[string]agent.Level{
		"-- --auto": agent.None, "approval=prompt -- --auto": agent.None,
		"approval=auto-edit -- --auto=true": agent.None,
		"-- --agent plan":                   agent.Full, "-- --no-auto": agent.Full, "-- --auto --no-auto": agent.Full,
		"-- -- --auto":            agent.Full,
		"approval=yolo -- --auto": agent.Full, "interactive -- --auto": agent.None,
	} {
		l, _ := command(t, wish(t, strings.Fields(words)...))
		for _, p := range l.Policies {
			if p.Feature == agent.Approval && p.Enforced != want {
				t.Errorf("%s: %+v", words, p)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for words, want := range map[string]int{"": 0, "model=p/m": 0, "model=gpt": 1, "model=p/m -- -m x/y": 1} {
		if l, _ := command(t, wish(t, strings.Fields(words)...)); len(l.Refusals) != want {
			t.Errorf("%s: %v", words, l.Refusals)
		}
	}
}

func TestRehearsal(t *testing.T) {
	for words, model := range map[string]string{
		"": "rehearsal/m", "model=a/b/c": "a/b/c", "-- -m q/n": "q/n",
		"interactive": "rehearsal/m",
	} {
		s := wish(t, strings.Fields(words)...)
		s.Env = append(s.Env, "OPENCODE_CONFIG=/x", "OPENCODE_DB=/y", "HOME=/home/dev")
		s.Rehearsal = &agent.Rehearsal{URL: "http://127.0.0.1:1/", Key: "k", Model: "m", Home: "/r"}
		l, _ := command(t, s)
		for _, name := range []string{"OPENCODE_CONFIG", "OPENCODE_DB"} {
			if v, ok := process.Value(l.Env, name); ok {
				t.Errorf("%s is %s", name, v)
			}
		}
		for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
			if v, _ := process.Value(l.Env, name); !strings.HasPrefix(v, "/r") {
				t.Errorf("%s is %s", name, v)
			}
		}
		if v, _ := process.Value(l.Env, "OPENCODE_DISABLE_AUTOCOMPACT"); v != "1" {
			t.Errorf("it goes on for ever: %q", v)
		}
		text, _ := process.Value(l.Env, "OPENCODE_CONFIG_CONTENT")
		var c struct {
			Model    string
			Provider map[string]struct {
				Options struct{ BaseURL, APIKey string }
				Models  map[string]any
			}
		}
		if err := json.Unmarshal([]byte(text), &c); err != nil || c.Model != model {
			t.Fatalf("%v %s", err, text)
		}
		provider, name, _ := strings.Cut(model, "/")
		if p := c.Provider[provider]; p.Models[name] == nil || p.Options.BaseURL != "http://127.0.0.1:1/v1" ||
			p.Options.APIKey != "k" {
			t.Errorf("%s", text)
		}
	}
}

func TestMatrix(t *testing.T) {
	m := New().Matrix("")
	for _, r := range append(values(), [][2]string{
		{agent.Model, ""},
		{agent.Schema, ""},
		{agent.Resume, ""},
		{agent.Continue, ""},
		{agent.Provider, ""},
		{agent.APIBase, ""},
		{agent.SessionID, ""},
		{agent.Ask, ""},
		{agent.RepoConfig, ""},
		{agent.Denials, ""},
		{agent.Records, ""},
		{agent.ACP, ""},
	}...) {
		if !slices.ContainsFunc(m.Rows, func(row agent.Row) bool { return row.Feature == r[0] && row.Value == r[1] }) {
			t.Errorf("%s %s has no row", r[0], r[1])
		}
	}
	if m.Measured != measured || len(m.Rows) != 26 {
		t.Errorf("%s, %d rows", m.Measured, len(m.Rows))
	}
}

func values() (out [][2]string) {
	for _, v := range setting.Approvals() {
		out = append(out, [2]string{agent.Approval, string(v)})
	}
	for _, v := range setting.Sandboxes() {
		out = append(out, [2]string{agent.Sandbox, string(v)})
	}
	for _, v := range setting.Outputs() {
		out = append(out, [2]string{agent.Output, string(v)})
	}
	return append(out, [2]string{agent.Web, "on"}, [2]string{agent.Web, "off"})
}
