//go:build unix

package live_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/testkit/mindtest"
)

// TestOneProcess: many turns live in one.
func TestOneProcess(t *testing.T) {
	m := openStub(t, func(_ *agent.Spec, sv *agent.Services) {
		sv.Grace = 10 * mindtest.Soon // so that it leaves by itself
	})
	first := m.WholeTurn(t, "pid")[0].Text
	if second := m.WholeTurn(t, "pid")[0].Text; second != first || first == "" {
		t.Errorf("%s, then %s", first, second)
	}
	events := m.WholeTurn(t, "say two")
	if mindtest.Story(events) != "text=two; end=done" || events[1].Session != "s1" {
		t.Error(mindtest.Story(events))
	}
	if !m.Abilities().Steer {
		t.Error("the driver's abilities are not told")
	}
	began := time.Now()
	left, o := m.End(t)
	if len(left) != 0 || o.Exit.EndedBy != "" || o.Exit.Code != 0 || time.Since(began) > mindtest.Soon/2 {
		t.Errorf("%s, %+v", mindtest.Story(left), o)
	}
	if err := m.Turn(t.Context(), []event.Block{{Text: "say x"}}); err == nil {
		t.Error("a closed Mind takes a message")
	}
	if _, again := m.End(t); again.Exit.Code != o.Exit.Code || again.Evidence.Session != "s1" {
		t.Errorf("closed again: %+v", again)
	}
}

// TestDeaths: a process that ends takes its turn with it, truthfully, and the next message starts it again with the
// session it had.
func TestDeaths(t *testing.T) {
	for message, want := range map[string]string{"die": "SIGKILL", "exit": "exit code 7: last words"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			m := openStub(t)
			events := m.WholeTurn(t, message)
			if got := mindtest.Story(events); got != "text=half; failed!; "+failedTurn {
				t.Error(got)
			}
			if f := events[1].Fault; f == nil || !strings.Contains(f.Message, want) || f.Code != fault.AgentFailed {
				t.Errorf("%v", f)
			}
			events = m.WholeTurn(t, "args")
			if got := mindtest.Story(events); got != "text=--resume=s1; end=done" || events[1].Session != "s1+" {
				t.Error(got, events[1].Session)
			}
		})
	}
	m := openStub(t)
	m.WholeTurn(t, "leave")
	if e := m.Next(t); e.Kind != event.Notice || !e.Synthetic {
		t.Errorf("%+v", e)
	}
	if got := mindtest.Story(m.WholeTurn(t, "say again")); got != "text=again; end=done" {
		t.Error(got)
	}
	if got := mindtest.Story(m.WholeTurn(t, "cut")); got != "end=done" { // the wire's own does not replace it
		t.Error(got)
	}
	if got := mindtest.Story(m.WholeTurn(t, "leaves")); !strings.HasSuffix(got, "question=q1; failed!; "+failedTurn) {
		t.Error(got)
	}
}

func TestGarbageAndWaking(t *testing.T) {
	m := openStub(t)
	const unreadable = "notice=a line that cannot be read; "
	if got := mindtest.Story(m.WholeTurn(t, "garbage")); got != unreadable+unreadable+"end=done" {
		t.Error(got)
	}
	first := m.WholeTurn(t, "pid")[0].Text
	if err := m.Turn(mindtest.Within(t), []event.Block{{Text: "twice"}}); err != nil {
		t.Fatal(err)
	}
	events := []event.Event{m.Next(t), m.Next(t), m.Next(t), m.Next(t)}
	if mindtest.Story(events) != "end=done; turn; text=woken; end=woken" ||
		events[0].Unprompted || !events[3].Unprompted {
		t.Error(mindtest.Story(events))
	}
	m.Kill() // what woke it is over
	if second := m.WholeTurn(t, "pid")[0].Text; second != first {
		t.Error("an idle process was killed")
	}
	// A turn that nobody asked for is killed like any other, and the next message waits until the process is gone.
	if err := m.Turn(mindtest.Within(t), []event.Block{{Text: "wakes"}}); err != nil {
		t.Fatal(err)
	}
	m.Until(t, event.TurnBegan)
	m.Kill()
	events = m.WholeTurn(t, "say again")
	if got := mindtest.Story(events); got != "failed!; end=cancelled!; text=again; end=done" {
		t.Error(got)
	} else if !events[1].Unprompted || events[3].Unprompted {
		t.Errorf("%+v, %+v", events[1], events[3])
	}
}

// TestQuestions: a question has the id of the wire, and the wire decides which are open.
func TestQuestions(t *testing.T) {
	m := openStub(t)
	if err := m.Answer(event.Reply{Question: "q1", Option: "allow"}); !errors.Is(err, fault.NotFoundCode) {
		t.Error(err)
	}
	g := m.BeginTurn(t, "ask 1")
	if q := m.Next(t); q.Kind != event.Question || q.Ask.ID != "q1" || q.Ask.Tool == nil || q.Ask.Tool.ID != "c1" {
		t.Fatalf("%+v", q)
	}
	if err := m.Answer(event.Reply{Question: "c1", Option: "allow"}); !errors.Is(err, fault.NotFoundCode) {
		t.Error(err)
	}
	if err := m.Answer(event.Reply{Question: "q1", Option: "allow", Text: "yes"}); err != nil {
		t.Error(err)
	}
	if got := mindtest.Story(g.Rest()); got != "text=allow yes; end=done" {
		t.Error(got)
	}
	if got := mindtest.Story(m.WholeTurn(t, "withdraw")); got != "question=q1; withdrawn=q1; end=done" {
		t.Error(got)
	}
}

// TestInterruptions: an agent that ignores the interruption, or whose wire has no word for it, is ended by a signal.
func TestInterruptions(t *testing.T) {
	tests := map[string]struct {
		message, want string
		dumb          bool
		grace         time.Duration
	}{
		"slow":    {"slow", "end=interrupted", false, 10 * mindtest.Soon},
		"deaf":    {"deaf", "failed!; end=cancelled!", false, 100 * time.Millisecond},
		"silence": {"silence", "failed!; end=cancelled!", false, 100 * time.Millisecond},
		"dumb":    {"deaf", "failed!; end=cancelled!", true, 10 * mindtest.Soon},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wire := func() *wire { w := newWire(); w.dumb = tt.dumb; return w }
			m := openWire(t, wire, func(_ *agent.Spec, sv *agent.Services) { sv.Grace = tt.grace })
			marker := filepath.Join(t.TempDir(), "begun")
			g := m.BeginTurn(t, tt.message+" "+marker)
			for _, err := os.Stat(marker); tt.message == "silence" && err != nil; _, err = os.Stat(marker) {
				time.Sleep(time.Millisecond)
			}
			if tt.message != "silence" {
				m.Next(t)
			}
			g.Interrupt()
			events := g.Rest()
			if got := mindtest.Story(events); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if len(events) == 2 && events[0].Fault.Code != fault.Interrupted {
				t.Errorf("%v", events[0].Fault)
			}
			if got := mindtest.Story(m.WholeTurn(t, "say again")); got != "text=again; end=done" {
				t.Error(got)
			}
		})
	}
}

// TestKill does not wait for an agent that ignores an interruption, however long the grace is.
func TestKill(t *testing.T) {
	m := openStub(t, func(_ *agent.Spec, sv *agent.Services) { sv.Grace = 10 * mindtest.Soon })
	m.Kill() // nothing runs
	g := m.BeginTurn(t, "stubborn")
	m.Next(t)
	g.Interrupt()
	m.Kill()
	if got := mindtest.Story(g.Rest()); got != "failed!; end=cancelled!" {
		t.Error(got)
	}
	first := m.WholeTurn(t, "pid")[0].Text
	m.Kill() // no turn runs
	if second := m.WholeTurn(t, "pid")[0].Text; second != first {
		t.Error("an idle process was killed")
	}
}

// TestChanges: a change holds when Set returns, and was told before.
func TestChanges(t *testing.T) {
	m := openStub(t)
	set := func(c agent.Change) error { return m.Set(mindtest.Within(t), c) }
	if err := set(agent.Change{Mode: "never"}); !errors.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	if err := set(agent.Change{Mode: setting.Yolo}); err != nil || mindtest.Story(m.All()) != "changed=yolo" {
		t.Error("before anything runs", err)
	}
	if got := mindtest.Story(m.WholeTurn(t, "args")); got != "text=--mode=yolo; end=done" {
		t.Error(got)
	}
	if err := set(agent.Change{Mode: "odd"}); !errors.Is(err, fault.Unsupported) || len(m.All()) != 0 {
		t.Error(err)
	}
	if err := set(agent.Change{Mode: setting.AskAll}); !errors.Is(err, agent.ErrRestart) || len(m.All()) != 0 {
		t.Error(err)
	}
	if err := set(agent.Change{Mode: setting.Plan, Model: "m1"}); err != nil ||
		mindtest.Story(m.All()) != "changed=planm1" {
		t.Error("while it runs", err)
	}
	m.WholeTurn(t, "die")
	if got := mindtest.Story(m.WholeTurn(t, "args")); got != "text=--resume=s1 --mode=plan --model=m1; end=done" {
		t.Errorf("after a restart: %s", got)
	}
}

// TestLateYes: a change that the agent accepts when nobody waits any more is told all the same, and counts for the next
// start.
func TestLateYes(t *testing.T) {
	m := openStub(t)
	m.WholeTurn(t, "say x")
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := m.Set(short, agent.Change{Model: "late"}); !errors.Is(err, context.DeadlineExceeded) ||
		len(m.All()) != 0 {
		t.Error(err)
	}
	if got := mindtest.Story(m.WholeTurn(t, "say now")); got != "changed=late; text=now; end=done" {
		t.Error(got)
	}
	m.WholeTurn(t, "die")
	if got := mindtest.Story(m.WholeTurn(t, "args")); got != "text=--resume=s1 --model=late; end=done" {
		t.Errorf("after a restart: %s", got)
	}
	if err := m.Set(short, agent.Change{Model: "late"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if got := mindtest.Story(m.WholeTurn(t, "die")); strings.Contains(got, "changed") { // it never said yes
		t.Error(got)
	}
}
