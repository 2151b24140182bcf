package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/agents/gemini"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/repo/undo"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/scripted"
)

// nativePlace is a machine with a model that says what a script says, and what a host asks for to use it.
func nativePlace(t *testing.T, script string) (Env, Request) {
	t.Helper()
	e, _ := place(t)
	e.Native.Sandbox = string(setting.Off)
	e.Native.Model.Lookup = func(name string) (string, bool) { return "key-of-a-test", name == "ANTHROPIC_API_KEY" }
	r := Request{
		Provider: "anthropic", Base: scripted.Model(t, script).URL(), Spec: agent.Spec{Shared: setting.Defaults()},
	}
	r.Spec.Terms.Mode = setting.Prompt
	return e, r
}

// begin opens a conversation, which is closed with the test.
func begin(t *testing.T, e Env, r Request) *conversation.Conversation {
	t.Helper()
	c, err := e.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(context.Background()) })
	return c
}

// talk sends a message, closes the conversation after its turn, and returns the end of that.
func talk(t *testing.T, c *conversation.Conversation, text string) event.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hermetic.Patience)
	defer cancel()
	events := c.Events(c.Opened() + 1)
	defer events.Close()
	if _, err := c.Send(ctx, []event.Block{{Text: text}}); err != nil {
		t.Fatal(err)
	}
	for {
		e, err := events.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == event.Ended {
			if _, err := c.Close(ctx); err != nil {
				t.Fatal(err)
			}
			return e
		}
	}
}

// kept are the ids of the sessions on disk.
func kept(t *testing.T, e Env) (all []string) {
	t.Helper()
	list, _, err := e.Store().List(t.Context(), session.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		all = append(all, i.Begin.ID)
	}
	return all
}

// past puts a session on disk.
func past(t *testing.T, e Env, b session.Begin, own string) {
	t.Helper()
	journal, err := e.Store().Create(t.Context(), b)
	if err == nil && own != "" {
		_, err = journal.Append(session.Changed{Session: own})
	}
	if err = errors.Join(err, journal.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestResumed: a session goes on under its id and with the numbers of its turns, and a mode that is asked for then
// loosens nothing; a copy has another id.
func TestResumed(t *testing.T) {
	t.Parallel()
	e, r := nativePlace(t, `[{"say":"heard ${input}"}]`)
	var said []string
	e.Log = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	c := begin(t, e, r)
	id := c.ID()
	if end := talk(t, c, "one"); end.Turn != 1 || end.End.Text != "heard one" {
		t.Errorf("%d %+v", end.Turn, end.End)
	}
	r.Spec.Resume, r.Mode, r.Spec.Terms.Mode = id, true, setting.Yolo
	c = begin(t, e, r)
	if mode := c.Facts().Mode; c.ID() != id || mode != setting.Prompt ||
		!strings.Contains(strings.Join(said, ""), "never loosens") {
		t.Errorf("%s goes on in mode %s: %q", c.ID(), mode, said)
	}
	if end := talk(t, c, "two"); end.Turn != 2 || end.End.Text != "heard two" {
		t.Errorf("%d %+v", end.Turn, end.End)
	}
	r.Spec.Terms.Fork = true
	if c = begin(t, e, r); c.ID() == id || len(kept(t, e)) != 2 {
		t.Errorf("the copy of %s is %s, of %v", id, c.ID(), kept(t, e))
	}
}

// TestNothingIsLeft: an opening that fails removes the session that it created, and no other; one whose conversation
// is to be forgotten puts none on disk.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	e, r := nativePlace(t, `[{"say":"ok"}]`)
	empty := []event.Block{{Text: " "}}
	r.First = empty
	if _, err := e.Open(t.Context(), r); !errors.Is(err, fault.ArgError) {
		t.Error(err)
	}
	r.First, r.Forget = nil, true
	talk(t, begin(t, e, r), "one")
	if left := kept(t, e); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	r.Forget = false
	c := begin(t, e, r)
	talk(t, c, "one")
	r.First, r.Spec.Resume = empty, c.ID()
	if _, err := e.Open(t.Context(), r); !errors.Is(err, fault.ArgError) {
		t.Error(err)
	}
	if left := kept(t, e); len(left) != 1 {
		t.Errorf("%v is left", left)
	}
}

// TestOthersSessions: an agent goes on only with a session of its own, and not with one in which a script answered.
func TestOthersSessions(t *testing.T) {
	t.Parallel()
	e, _ := place(t)
	past(t, e, session.Begin{ID: "theirs", Agent: "claude"}, "")
	past(t, e, session.Begin{ID: "tried", Agent: "gemini", Rehearsed: true}, "")
	_, err := e.Open(t.Context(), Request{Agent: "gemini", Spec: agent.Spec{Resume: "theirs"}})
	if !errors.Is(err, fault.ArgError) || !strings.Contains(fault.Of(err).Suggestion, "--agent claude") {
		t.Errorf("another agent's: %v", err)
	}
	if _, err := e.Open(t.Context(), Request{Agent: "gemini", Spec: agent.Spec{Resume: "tried"}}); !errors.Is(err,
		fault.Unsupported) {
		t.Errorf("a rehearsal: %v", err)
	}
}

// TestNewest: what goes on is the newest session of that agent in that very directory.
func TestNewest(t *testing.T) {
	t.Parallel()
	e, _ := place(t)
	for _, b := range []session.Begin{
		{ID: "old", Agent: "gemini", Cwd: e.Dir},
		{ID: "new", Agent: "gemini", Cwd: e.Dir + "/"},
		{ID: "elsewhere", Agent: "gemini", Cwd: e.Home},
		{ID: "below", Agent: "gemini", Cwd: filepath.Join(e.Dir, "x")},
		{ID: "theirs", Agent: "claude", Cwd: e.Dir},
		{ID: "tried", Agent: "gemini", Cwd: e.Dir, Rehearsed: true},
	} {
		past(t, e, b, "")
	}
	p := &Plan{env: e, agent: "gemini", request: Request{Spec: agent.Spec{Dir: e.Dir}}}
	if id, err := p.newest(t.Context(), e.Store()); id != "new" || err != nil {
		t.Errorf("%s, %v", id, err)
	}
	p.agent = "codex"
	if id, err := p.newest(t.Context(), e.Store()); id != "" || err != nil {
		t.Errorf("of an agent without one: %s, %v", id, err)
	}
}

// TestOwnIDs: a session is found by the agent's own id of it too; an id that only the agent may know names a new
// session, with which the agent goes on.
func TestOwnIDs(t *testing.T) {
	t.Parallel()
	e, _ := place(t)
	e.Bare = true
	past(t, e, session.Begin{ID: "ours", Agent: "gemini", Cwd: e.Dir}, "their-own")
	for resume, want := range map[string]string{"ours": "ours", "their-own": "ours", "unheard-of": "unheard-of"} {
		c := begin(t, e, Request{Agent: "gemini", Spec: agent.Spec{Resume: resume, Shared: setting.Defaults()}})
		if c.ID() != want || resume == "unheard-of" && c.AgentSessionID() != resume {
			t.Errorf("%s is %s, and %s for the agent", resume, c.ID(), c.AgentSessionID())
		}
		if _, err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestUndoIsReady: what a turn changes in the workspace can be taken back once the turn is over.
func TestUndoIsReady(t *testing.T) {
	t.Parallel()
	e, r := nativePlace(t, `[{"write":{"path":"a.txt","content":"new"}},{"say":"ok"}]`)
	e.Undo = &undo.Store{Dir: t.TempDir()}
	file := filepath.Join(e.Dir, "a.txt")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Spec.Terms.Mode = setting.Yolo
	c := begin(t, e, r)
	talk(t, c, "write")
	if text, _ := os.ReadFile(file); string(text) != "new" {
		t.Fatalf("it wrote %q", text)
	}
	records, err := e.Undo.List(e.Dir)
	if err != nil || len(records) != 1 || records[0].Session != c.ID() || records[0].Origin.Turn != 1 {
		t.Fatalf("%+v %v", records, err)
	}
	if _, err := e.Undo.Undo(t.Context(), undo.Request{Dir: e.Dir}); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(file); string(text) != "old" {
		t.Errorf("%q is left", text)
	}
}

// TestSecretsAreMasked: what the environment keeps secret does not reach the record of an agent.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	const secret = "sk-ant-api03-1234567890abcdefghij"
	e, _ := place(t)
	e.Environ = append(e.Environ, "ANTHROPIC_API_KEY="+secret)
	p, err := e.Plan(t.Context(), Request{Agent: "gemini", Spec: agent.Spec{Fresh: "one", Shared: setting.Defaults()}})
	if err != nil {
		t.Fatal(err)
	}
	passing, err := p.PassThrough(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	passing.Record.Prompt([]event.Block{{Text: "the key is " + secret}})
	if err := passing.Record.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(e.Store().Path("one"))
	if err != nil || strings.Contains(string(data), secret) || !strings.Contains(string(data), "the key is ") {
		t.Errorf("%s %v", data, err)
	}
}

// TestNoWorkspace: a new conversation in the home directory, where walls cannot stand, is refused and leaves nothing.
func TestNoWorkspace(t *testing.T) {
	t.Parallel()
	e, root := place(t)
	before := files(t, root)
	r := Request{Agent: "gemini", Spec: agent.Spec{Dir: e.Home, Shared: setting.Defaults()}}
	_, err := e.Open(t.Context(), r)
	if err == nil || !strings.HasPrefix(fault.Of(err).Suggestion, "mkdir -p ") ||
		!strings.Contains(strings.Join(fault.Of(err).Ways, ""), "--sandbox off") {
		t.Errorf("%v", err)
	}
	if after := files(t, root); len(after) != len(before) {
		t.Errorf("%v", after)
	}
	r.Spec.Shared.Sandbox = setting.AsTyped(setting.Off)
	begin(t, e, r)
}

// TestWithheld: where an agent names a variable that it did not get, the hint is how to pass that on.
func TestWithheld(t *testing.T) {
	t.Parallel()
	e, _ := place(t)
	f := e.advised(gemini.New(), agent.Spec{Env: []string{"HOME=" + e.Home}},
		fault.New(fault.AgentFailed, "OPENAI_API_KEY is needed, and HOME and NO_SUCH_VARIABLE"))
	if names, _ := f.Detail[WithheldDetail].([]string); len(names) != 1 || names[0] != "OPENAI_API_KEY" ||
		!strings.Contains(f.FixCommand, "agents.env OPENAI_API_KEY") {
		t.Errorf("%+v", f)
	}
}
