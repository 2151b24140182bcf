package stream

import (
	"bufio"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/scripted"
	"omniagent/internal/wire/claude"
)

// served is a conversation that a Host holds, and whose other side is in the test's hands.
type served struct {
	*Host
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Scanner
	code chan int
}

// serve opens a conversation with an agent and has a Host hold it. prepare may change both before that.
func serve(
	t *testing.T, a *scripted.Agent, d Dialect, prepare func(*Host, *conversation.Options),
) *served {
	t.Helper()
	journal, err := session.Open(t.TempDir()).Unlinked(session.Begin{Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	said, in := io.Pipe()
	unread, out := io.Pipe()
	ignored := func(string, ...any) {}
	h := New(out, d, Lines)
	h.UntilEOF, h.Log, h.Hint, h.Detail = true, ignored, ignored, ignored
	o := conversation.Options{Journal: journal, Services: agent.Services{Grace: time.Hour}}
	o.Spec.Terms.Mode = setting.Prompt
	if prepare != nil {
		prepare(h, &o)
	}
	frames := make(chan Input)
	h.Frames = frames
	if h.Conversation, err = a.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s := &served{Host: h, t: t, in: in, out: bufio.NewScanner(unread), code: make(chan int, 1)}
	late := time.AfterFunc(hermetic.Patience, func() { _ = unread.CloseWithError(os.ErrDeadlineExceeded) })
	t.Cleanup(func() { late.Stop() })
	go Read(said, d, frames, h.ended)
	go func() {
		s.code <- h.Run(t.Context())
		_ = out.Close()
	}()
	return s
}

// say writes a line of the other side.
func (s *served) say(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// until reads lines up to one that has all the words, and returns that. It comes before the end of the turn, or is
// that.
func (s *served) until(words ...string) string {
	s.t.Helper()
	var before strings.Builder
	for s.out.Scan() {
		line, has := s.out.Text(), true
		for _, word := range words {
			has = has && strings.Contains(line, word)
		}
		if has {
			return line
		}
		before.WriteString(line + "\n")
		if EndsTurn([]byte(line)) {
			break
		}
	}
	s.t.Fatalf("no line with %q:\n%s", words, before.String())
	return ""
}

// end hangs up, reads what is left, and returns the exit code.
func (s *served) end() int {
	_ = s.in.Close()
	for s.out.Scan() {
	}
	return <-s.code
}

// staying is an agent that calls a tool that lasts until the turn is interrupted.
func staying(t *testing.T) *scripted.Agent {
	t.Helper()
	return scripted.New(t, "["+scripted.Call("Stay")+"]", scripted.Stay("Stay", nil))
}

// TestCodes: the exit code of flat lines says whether the last turn failed, whether something was denied that was not
// to be, and that nothing but wrong lines came.
func TestCodes(t *testing.T) {
	t.Parallel()
	const denied = `[{"call":{"name":"Change","input":{}}},{"say":"ok"}]`
	for name, c := range map[string]struct {
		script, frame string
		quiet         bool
		want          int
	}{
		"answered":           {`[{"say":"yes"}]`, `{"type":"user","content":"go"}`, false, done},
		"failed":             {`[{"error":401}]`, `{"type":"user","content":"go"}`, false, failed},
		"denied":             {denied, `{"type":"user","content":"go"}`, false, blocked},
		"denied as it ought": {denied, `{"type":"user","content":"go"}`, true, done},
		"wrong lines":        {`[]`, `{"type":"odd"}`, false, misused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, scripted.New(t, c.script, scripted.Done("Change")), NewYume("", "default"),
				func(h *Host, _ *conversation.Options) { h.Quiet = c.quiet })
			s.say(c.frame)
			if got := s.end(); got != c.want {
				t.Errorf("exit code %d, want %d", got, c.want)
			}
		})
	}
}

// TestHostIsAsked: a host of Claude Code is asked whether a tool may run, and its yes and the change of mode that it
// asks for meanwhile hold.
func TestHostIsAsked(t *testing.T) {
	t.Parallel()
	change := scripted.Call("Change")
	s := serve(t, scripted.New(t, "["+change+","+change+`,{"say":"ok"}]`, scripted.Done("Change")),
		NewClaude(claude.Encoder{UUID: counter()}),
		func(_ *Host, o *conversation.Options) { o.Services.CanAsk, o.Spec.Terms.Bypass = true, true })
	s.say(message)
	question := s.until("can_use_tool", `"tool_name":"Change"`)
	s.say(`{"type":"control_request","request_id":"m","request":{"subtype":"set_permission_mode",` +
		`"mode":"bypassPermissions"}}`)
	s.until(`"request_id":"m"`, `"mode":"bypassPermissions"`)
	_, rest, _ := strings.Cut(question, `"request_id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	s.say(reply(id, `{"behavior":"allow"}`))
	s.until("tool_result", "done")
	s.until("tool_result", "done") // the second one is not asked about
	if line := s.until(`"type":"result"`); !strings.Contains(line, `"result":"ok"`) {
		t.Errorf("%s", line)
	}
	if code := s.end(); code != done {
		t.Errorf("exit code %d", code)
	}
}

// TestSignal: a signal interrupts the turn, whose end is still told, drops what waits, and is the exit code.
func TestSignal(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	s := serve(t, staying(t), NewYume("", "default"),
		func(h *Host, _ *conversation.Options) { h.Signals = signals })
	s.say(`{"type":"user","content":"go"}`)
	s.until("tool_use")
	s.say(`{"type":"user","content":"later"}`)
	s.say(`{"type":"odd"}`)
	s.until("odd") // so the message before it waits by now
	signals <- syscall.SIGTERM
	first, second := s.until(`"type":"result"`), s.until(`"type":"result"`)
	if !strings.Contains(first, event.Cancelled) || !strings.Contains(second, event.Cancelled) ||
		strings.Contains(second, `"usage"`) { // the model was asked
		t.Errorf("%s\n%s", first, second)
	}
	if code := s.end(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
}

// TestNobodyIsLeft: a question of a host that hangs up is denied, and the turn is still reported to its end.
func TestNobodyIsLeft(t *testing.T) {
	t.Parallel()
	s := serve(t, scripted.New(t, "["+scripted.Call("Change")+`,{"say":"ok"}]`, scripted.Done("Change")),
		NewYume("", "default"), func(_ *Host, o *conversation.Options) { o.Services.CanAsk = true })
	s.say(`{"type":"user","content":"go"}`)
	s.until("tool_use")
	_ = s.in.Close()
	s.until(`"type":"result"`)
	if code := s.end(); code != blocked {
		t.Errorf("exit code %d", code)
	}
}
