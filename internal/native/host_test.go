package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native"
	"omniagent/internal/talk/session"
)

// TestRefusedTerms: what cannot be kept is refused before there is a session.
func TestRefusedTerms(t *testing.T) {
	d := newDesk(t, `[]`)
	serve := func(context.Context, string, []byte) ([]byte, error) { return nil, nil }
	for name, tt := range map[string]struct {
		with func(*native.Options)
		code fault.Code
		want string
	}{
		"schema": {
			func(o *native.Options) { o.Schema = []byte(`{"type":"array"}`) }, fault.ArgError,
			"can only be an object",
		},
		"budget": {
			func(o *native.Options) { o.Terms.MaxUSD = 1; o.Choice.Known.Prices = nil },
			fault.Unsupported, "a budget cannot be enforced",
		},
		"no limit": {func(o *native.Options) { o.Terms.MaxTurns = -1 }, fault.ArgError, "must be 0 or more"},
		"two pasts": {
			func(o *native.Options) { o.Terms.Continue, o.Resume = true, "x" }, fault.ArgError,
			"cannot be combined",
		},
		"fork of nothing": {func(o *native.Options) { o.Terms.Fork = true }, fault.ArgError, "nothing to fork"},
		"no past":         {func(o *native.Options) { o.Terms.Continue = true }, fault.NotFoundCode, "no session of"},
		"dir": {
			func(o *native.Options) { o.Terms.Dirs = []string{filepath.Join(d.dir, "none")} },
			fault.FileMissing, "not a directory",
		},
		"relative dir": {func(o *native.Options) { o.Terms.Dirs = []string{"x"} }, fault.ArgError, "absolute"},
		"everything": {func(o *native.Options) {
			o.Terms.Dirs = []string{filepath.VolumeName(d.dir) + string(filepath.Separator)}
		}, fault.Unsafe, "it is a root"},
		"tool": {
			func(o *native.Options) { o.Terms.Tools = []string{"Read", "Bsh"} }, fault.ArgError, `no tool "Bsh"`,
		},
		"allow": {func(o *native.Options) { o.Terms.Allow = []string{"Bash(git"} }, fault.ArgError, "does not parse"},
		"deny":  {func(o *native.Options) { o.Terms.Deny = []string{"bash"} }, fault.ArgError, "does not parse"},
		"helper": {
			func(o *native.Options) { o.Terms.Helpers = []agent.Helper{{Name: "x"}} }, fault.ArgError,
			"no instructions",
		},
		"helper twice": {func(o *native.Options) {
			o.Terms.Helpers = []agent.Helper{{Name: "x", Prompt: "p"}, {Name: "x", Prompt: "p"}}
		}, fault.ArgError, "invalid name"},
		"half a tool": {func(o *native.Options) {
			o.Terms.Helpers = []agent.Helper{{Name: "x", Prompt: "p", Tools: []string{"Bash(ls:*)"}}}
		}, fault.Unsupported, "part of a tool"},
		"helper's price": {func(o *native.Options) {
			o.Terms.MaxUSD = 1
			o.Terms.Helpers = []agent.Helper{{Name: "x", Prompt: "p", Model: "unheard-of"}}
		}, fault.Unsupported, "a budget"},
		"servers": {func(o *native.Options) { o.Terms.Servers = []byte(`[]`) }, fault.ArgError, "MCP servers"},
		"sse": {func(o *native.Options) {
			o.Terms.Servers = []byte(`{"a":{"type":"sse","url":"http://127.0.0.1"}}`)
			o.Services.Serve = serve
		}, fault.ConfigInvalid, "type sse"},
		"server in no host": {
			func(o *native.Options) { o.Terms.Servers = []byte(`{"a":{"type":"sdk"}}`) },
			fault.Unsupported, "lives in the host",
		},
	} {
		kept, err := native.Keep(t.Context(), d.options(t, tt.with))
		if !errors.Is(err, tt.code) || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if kept != nil {
			_ = kept.Close()
		}
	}
	if all, _, err := session.Default(d.home).List(t.Context(), session.Filter{}); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestToolsOfTheHost: what there is, for the model and in the facts.
func TestToolsOfTheHost(t *testing.T) {
	own := "Read Write Edit MultiEdit NotebookEdit Glob Grep LS Bash BashOutput TaskOutput KillShell TodoWrite Task"
	for _, tt := range []struct {
		terms  agent.Terms
		canAsk bool
		want   string
	}{
		{agent.Terms{}, false, own},
		{agent.Terms{}, true, own + " AskUserQuestion"},
		{agent.Terms{Mode: setting.Plan}, true, own + " AskUserQuestion ExitPlanMode"},
		{agent.Terms{Mode: setting.Plan}, false, own},
		{
			agent.Terms{Deny: []string{"Bash", "Task", "Skill", "Read(x)", "PowerShell", "LSP"}},
			false,
			"Read Write Edit MultiEdit NotebookEdit Glob Grep LS TodoWrite",
		},
		{
			agent.Terms{Deny: []string{"NotebookEdit", "AskUserQuestion", "Agent"}},
			true,
			"Read Write Edit MultiEdit Glob Grep LS Bash BashOutput TaskOutput KillShell TodoWrite",
		},
		{agent.Terms{Tools: []string{"Read", "Bash", "WebSearch", "Skill"}}, true, "Read Bash BashOutput TaskOutput KillShell"},
		{agent.Terms{Tools: []string{"Read", "Bash", "Artifact", "Monitor"}, Deny: []string{"Bash"}}, true, "Read"},
		{agent.Terms{Tools: []string{}}, true, ""},
		{agent.Terms{Deny: []string{"*"}}, true, ""},
	} {
		d := newDesk(t, `[{"say":"ok"}]`)
		c := d.open(t, func(o *native.Options) {
			o.Terms, o.CanAsk = tt.terms, tt.canAsk
			if tt.terms.Mode != "" {
				o.Mode = tt.terms.Mode
			}
		})
		if got := strings.Join(c.Facts().Tools, " "); got != tt.want {
			t.Errorf("%+v: %s", tt.terms, got)
		}
		say(t, c, "go")
		var q struct{ Tools []struct{ Name string } }
		_ = json.Unmarshal(d.server.Requests()[0].Raw, &q)
		var names []string
		for _, one := range q.Tools {
			names = append(names, one.Name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%+v: the model gets %s", tt.terms, got)
		}
	}
}

// TestRulesOfTheHost: what it allows needs no question, what it denies never runs, and the user's own rules stay.
func TestRulesOfTheHost(t *testing.T) {
	d := newDesk(t, `[{"call":{"name":"Write","input":{"file_path":"src/a","content":"x"}}},`+
		`{"call":{"name":"Write","input":{"file_path":"b","content":"x"}}},`+
		`{"call":{"name":"Read","input":{"file_path":"secret"}}},{"say":"ok"}]`)
	_ = os.WriteFile(filepath.Join(d.dir, "secret"), []byte("needle"), 0o600)
	c := d.open(t, func(o *native.Options) {
		o.Terms.Allow, o.Terms.Deny = []string{"Edit(src/**)", "mcp__x__y", "Agent(finder)"}, []string{"Read(secret)"}
	})
	got := results(say(t, c, "go"))
	if !strings.Contains(got, "Write false") || strings.Count(got, "Write true: It did not run") != 1 ||
		!strings.Contains(got, "Read true: It did not run: the deny rule Read(secret)") {
		t.Error(got)
	}
	for name, want := range map[string]bool{"src/a": true, "b": false} {
		if _, err := os.Stat(filepath.Join(d.dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDirectoriesOfTheHost: files there are worked on as in the workspace, with the same walls.
func TestDirectoriesOfTheHost(t *testing.T) {
	call := func(name, input string) string { return `{"call":{"name":"` + name + `","input":` + input + `}}` }
	build := func(d *desk, more string) string {
		quoted := func(parts ...string) string {
			raw, _ := json.Marshal(filepath.Join(parts...))
			return string(raw)
		}
		steps := []string{
			call("Write", `{"file_path":`+quoted(more, "new.txt")+`,"content":"needle"}`),
			call("Read", `{"file_path":`+quoted(more, "new.txt")+`}`),
			call("Edit", `{"file_path":`+quoted(more, "new.txt")+`,"old_string":"needle","new_string":"needles"}`),
			call("Grep", `{"pattern":"needle","path":`+quoted(more)+`}`),
			call("Glob", `{"pattern":"**/*.txt","path":`+quoted(more)+`}`),
			call("LS", `{"path":`+quoted(more)+`}`),
			call("Write", `{"file_path":`+quoted(more, ".git", "hooks", "run")+`,"content":"x"}`),
			call("Write", `{"file_path":`+quoted(more, "hooks", "run")+`,"content":"x"}`),
			call("Write", `{"file_path":`+quoted(more, "..", "outside")+`,"content":"x"}`),
			call("Read", `{"file_path":`+quoted(d.home, ".ssh", "id")+`}`),
			call("Read", `{"file_path":`+quoted(more, "keys", "id")+`}`),
			call("Read", `{"file_path":`+quoted(more, "secret", "x")+`}`),
			call("Grep", `{"pattern":"pss","path":`+quoted(more)+`}`),
			call("Grep", `{"pattern":"pss","path":`+quoted(d.home, "way")+`}`),
			call("Grep", `{"pattern":"ps+t","path":`+quoted(d.home, "open")+`}`),
		}
		return "[" + strings.Join(steps, ",") + `,{"say":"ok"}]`
	}
	d := newDesk(t, `[]`)
	more := filepath.Join(filepath.Dir(d.dir), "more")
	d = again(t, d, build(d, more))
	for _, dir := range []string{
		filepath.Join(more, ".git", "hooks"), filepath.Join(d.home, ".ssh"),
		filepath.Join(more, "secret"),
	} {
		_ = os.MkdirAll(dir, 0o700)
	}
	_ = os.WriteFile(filepath.Join(d.home, ".ssh", "id"), []byte("pssst"), 0o600)
	_ = os.WriteFile(filepath.Join(more, "secret", "x"), []byte("pssst"), 0o600)
	_ = os.MkdirAll(filepath.Join(d.home, ".config"), 0o700)
	// What is found shows that the search goes there.
	_ = os.WriteFile(filepath.Join(d.home, ".config", "seen"), []byte("psst"), 0o600)
	_, _ = os.Symlink(".config", filepath.Join(d.home, "open")), os.Symlink(".ssh", filepath.Join(d.home, "way"))
	if os.Symlink(".git/hooks", filepath.Join(more, "hooks")) != nil ||
		os.Symlink(filepath.Join(d.home, ".ssh"), filepath.Join(more, "keys")) != nil {
		t.Skip("there are no links here")
	}
	c := d.open(t, func(o *native.Options) {
		o.Mode, o.Terms.Dirs, o.Terms.Deny = setting.AutoEdit, []string{more, d.home},
			[]string{"Read(/" + filepath.ToSlash(more) + "/secret/**)"}
	})
	got := results(say(t, c, "go"))
	lines := strings.Split(strings.TrimSpace(got), "\n")
	for _, want := range []string{
		"Write false: Successfully", "Read false:      1\tneedle", "Edit false", "Grep false: " +
			filepath.ToSlash(filepath.Join(more, "new.txt")) + ":1:needles", "Glob false: " +
			filepath.ToSlash(filepath.Join(more, "new.txt")),
		"LS false",
	} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Count(got, "Write true") != 3 || strings.Count(got, "Read true") != 3 ||
		strings.Contains(got, "pssst") || !strings.Contains(got, "seen:1:psst") {
		t.Error(got)
	}
	if files, _ := os.ReadDir(filepath.Join(more, ".git", "hooks")); len(files) > 0 {
		t.Errorf("%v", files)
	}
	if raw := string(d.server.Requests()[0].Raw); !strings.Contains(raw, "Further directories to work in") {
		t.Error("the model does not know of them")
	}
}

// again is the same desk with another script.
func again(t *testing.T, d *desk, script string) *desk {
	t.Helper()
	fresh := newDesk(t, script)
	fresh.dir, fresh.home = d.dir, d.home
	return fresh
}

// TestCommandsInDirectoriesOfTheHost: the kernel lets them write there, and holds what decides what runs later.
func TestCommandsInDirectoriesOfTheHost(t *testing.T) {
	d := newDesk(t, `[]`)
	more := filepath.Join(filepath.Dir(d.dir), "more")
	_ = os.MkdirAll(filepath.Join(more, ".git", "hooks"), 0o700)
	_ = os.MkdirAll(filepath.Join(d.home, ".ssh"), 0o700)
	script := "echo x > " + more + "/made\necho x > " + more + "/.git/hooks/run\necho x > " + more +
		"/.mcp.json\necho x > " + d.dir + "/../beside\necho the end\n"
	_ = os.WriteFile(filepath.Join(d.dir, "do.sh"), []byte(script), 0o600)
	d = again(t, d, `[{"call":{"name":"Bash","input":{"command":"sh do.sh"}}},{"say":"ok"}]`)
	c := d.open(t, func(o *native.Options) {
		o.Mode, o.CanAsk, o.Sandbox = setting.Prompt, true, "workspace-write"
		o.Terms.Dirs, o.Walls.State = []string{more},
			t.TempDir()
	})
	walls := c.Walls()
	if walls == nil || walls.Name == "none" || walls.Name == "landlock" {
		t.Skipf("there are no whole walls here: %v", d.logged)
	}
	got := results(say(t, c, "go"))
	if !strings.Contains(got, "the end") {
		t.Error(got)
	}
	for path, want := range map[string]bool{
		filepath.Join(more, "made"): true, filepath.Join(more, ".git", "hooks", "run"): false,
		filepath.Join(more, ".mcp.json"): false, filepath.Join(filepath.Dir(d.dir), "beside"): false,
	} {
		if info, err := os.Stat(path); (err == nil && info.Mode().IsRegular()) != want {
			t.Errorf("%s: %v\n%s", path, err, got)
		}
	}
}

// TestOpenWithoutASession is refused.
func TestOpenWithoutASession(t *testing.T) {
	d := newDesk(t, `[]`)
	if m, err := native.Open(t.Context(), d.options(t, nil)); m != nil || !errors.Is(err, fault.Internal) {
		t.Errorf("%v, %v", m, err)
	}
}

// TestGoingOn with the newest session of the directory, or with a copy of it.
func TestGoingOn(t *testing.T) {
	d := newDesk(t, `[{"say":"ok"}]`)
	begin := func(id string, with func(*native.Options)) *mind {
		return d.open(t, func(o *native.Options) {
			if o.ID = id; with != nil {
				with(o)
			}
		})
	}
	for _, id := range []string{"first", "second"} {
		c := begin(id, nil)
		say(t, c, "I am "+id)
		c.close(t)
	}
	below := filepath.Join(d.dir, "sub")
	_ = os.Mkdir(below, 0o700)
	c := begin("elsewhere", func(o *native.Options) { o.Dir = below })
	say(t, c, "I am elsewhere")
	c.close(t)

	c = begin("", func(o *native.Options) { o.Terms.Continue = true })
	if c.Kept.ID() != "second" {
		t.Errorf("it continues %s", c.Kept.ID())
	}
	say(t, c, "still there?")
	c.close(t)
	last := func() string { all := d.server.Requests(); return string(all[len(all)-1].Raw) }
	if !strings.Contains(last(), "I am second") {
		t.Error(last())
	}
	c = begin("third", func(o *native.Options) { o.Terms.Continue, o.Terms.Fork = true, true })
	if c.Kept.ID() != "third" {
		t.Errorf("the copy is %s", c.Kept.ID())
	}
	say(t, c, "a copy")
	c.close(t)
	if !strings.Contains(last(), "I am second") || !strings.Contains(last(), "still there?") {
		t.Error(last())
	}
	c = begin("", func(o *native.Options) { o.Resume, o.Terms.Fork = "first", true })
	if id := c.Kept.ID(); id == "first" || id == "" {
		t.Errorf("the copy is %q", id)
	}
	say(t, c, "another copy")
	c.close(t)
	if !strings.Contains(last(), "I am first") {
		t.Error(last())
	}
	for id, want := range map[string]int{"first": 2, "second": 4, "third": 6} {
		kept, err := session.Default(d.home).Resume(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(kept.Messages()); n != want {
			t.Errorf("%s has %d messages", id, n)
		}
		_ = kept.Close()
	}
}

// TestWordsOfTheHost: in place of ours, and behind them.
func TestWordsOfTheHost(t *testing.T) {
	d := newDesk(t, `[{"say":"ok"}]`)
	for _, own := range []string{"", "You are a poet."} {
		c := d.open(t, func(o *native.Options) { o.Terms.System, o.Terms.Append = own, "Rhyme." })
		say(t, c, "go")
		all := d.server.Requests()
		raw := string(all[len(all)-1].Raw)
		if strings.Contains(raw, "You are a coding agent") != (own == "") || !strings.Contains(raw, own) ||
			!strings.Contains(raw, "Rhyme.") || !strings.Contains(raw, "Working directory:") {
			t.Error(raw)
		}
	}
}

// TestLimitsOfTheHost have ends of their own.
func TestLimitsOfTheHost(t *testing.T) {
	for want, terms := range map[string]agent.Terms{
		"error_max_turns":      {MaxTurns: 2},
		"error_max_budget_usd": {MaxUSD: 0.005},
	} {
		d := newDesk(t, `[{"call":{"name":"LS","input":{"n":1}},"usage":{"input":2000,"output":0}},`+
			`{"call":{"name":"LS","input":{"n":2}},"usage":{"input":2000,"output":0}},{"say":"never"}]`)
		c := d.open(t, func(o *native.Options) { o.Terms = terms })
		if e := end(say(t, c, "go")); e.OK || e.Reason != want {
			t.Errorf("%+v, want %s", e, want)
		}
	}
}

// TestFormAndModel: an answer in its form; another model, on record and in the facts; a family for a helper.
func TestFormAndModel(t *testing.T) {
	d := newDesk(t, `[{"call":{"name":"Task","input":{"description":"d","prompt":"p","subagent_type":"finder"}}},`+
		`{"call":{"name":"StructuredOutput","input":{"n":1}}}]`)
	c := d.open(t, func(o *native.Options) {
		o.Schema = []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
		o.Terms.Helpers = []agent.Helper{{
			Name: "finder", Description: "finds things", Prompt: "You find.", Tools: []string{"Read"}, Model: "haiku",
		}, {Name: "same", Prompt: "p", Model: "inherit"}}
	})
	if f := c.Facts(); f.Model != "claude-sonnet-5-5" || f.Window != 1_000_000 ||
		strings.Join(f.Helpers, " ") != "general-purpose finder same" {
		t.Errorf("%+v", f)
	}
	if err := c.Set(t.Context(), agent.Change{Model: "no model"}); !errors.Is(err, fault.ArgError) ||
		c.Facts().Model != "claude-sonnet-5-5" {
		t.Error(err)
	}
	if err := c.Set(t.Context(), agent.Change{Model: "claude-opus-4-1"}); err != nil {
		t.Error(err)
	}
	e := end(say(t, c, "go"))
	if !e.OK || string(e.Structured) != `{"n":1}` {
		t.Errorf("%+v", e)
	}
	if f := c.Facts(); f.Model != "claude-opus-4-1" || f.Window != 200_000 ||
		c.Kept.State().Model != "claude-opus-4-1" {
		t.Errorf("%+v, %s", f, c.Kept.State().Model)
	}
	var seen []string
	for _, q := range d.server.Requests() {
		var body struct{ Model string }
		_ = json.Unmarshal(q.Raw, &body)
		seen = append(seen, body.Model)
	}
	if seen[0] != "claude-opus-4-1" || seen[1] != "claude-haiku-5-5" ||
		!strings.Contains(string(d.server.Requests()[0].Raw), "finder: finds things") {
		t.Errorf("%v", seen)
	}
}
