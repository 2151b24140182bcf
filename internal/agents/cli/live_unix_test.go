//go:build unix

package cli_test

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
)

// TestOneProcess: many turns live in one.
func TestOneProcess(t *testing.T) {
	m := live(t, func(_ *agent.Spec, sv *agent.Services) { sv.Grace = 10 * soon }) // so that it leaves by itself
	first := m.turn(t, "pid")[0].Text
	if second := m.turn(t, "pid")[0].Text; second != first || first == "" {
		t.Errorf("%s, then %s", first, second)
	}
	if events := m.turn(t, "say two"); told(events) != "text=two; end=done" || events[1].Session != "s1" {
		t.Error(told(events))
	}
	if !m.Abilities().Steer {
		t.Error("the driver's abilities are not told")
	}
	began := time.Now()
	left, o := rest(t, m)
	if len(left) != 0 || o.Exit.EndedBy != "" || o.Exit.Code != 0 || time.Since(began) > soon/2 {
		t.Errorf("%s, %+v", told(left), o)
	}
	if err := m.Turn(t.Context(), []event.Block{{Text: "say x"}}); err == nil {
		t.Error("a closed Mind takes a message")
	}
	if _, again := rest(t, m); again.Exit.Code != o.Exit.Code || again.Evidence.Session != "s1" {
		t.Errorf("closed again: %+v", again)
	}
}

// TestDeaths: a process that ends takes its turn with it, truthfully, and the next message starts it again with the
// session it had.
func TestDeaths(t *testing.T) {
	for message, want := range map[string]string{"die": "SIGKILL", "exit": "exit code 7: last words"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			m := live(t)
			events := m.turn(t, message)
			if got := told(events); got != "text=half; failed!; "+failedTurn {
				t.Error(got)
			}
			if f := events[1].Fault; f == nil || !strings.Contains(f.Message, want) || f.Code != fault.AgentFailed {
				t.Errorf("%v", f)
			}
			events = m.turn(t, "args")
			if got := told(events); got != "text=live --resume=s1; end=done" || events[1].Session != "s1+" {
				t.Error(got, events[1].Session)
			}
		})
	}
	m := live(t)
	m.turn(t, "leave")
	if e := m.next(t); e.Kind != event.Notice || !e.Synthetic {
		t.Errorf("%+v", e)
	}
	if got := told(m.turn(t, "say again")); got != "text=again; end=done" {
		t.Error(got)
	}
	if got := told(m.turn(t, "cut")); got != "end=done" { // ours, which the wire adds, does not replace it
		t.Error(got)
	}
	if got := told(m.turn(t, "leaves")); !strings.HasSuffix(got, "question=q1; failed!; "+failedTurn) {
		t.Error(got)
	}
}

func TestGarbageAndWaking(t *testing.T) {
	m := live(t)
	const unreadable = "notice=a line that cannot be read; "
	if got := told(m.turn(t, "garbage")); got != unreadable+unreadable+"end=done" {
		t.Error(got)
	}
	first := m.turn(t, "pid")[0].Text
	if err := m.Turn(within(t), []event.Block{{Text: "twice"}}); err != nil {
		t.Fatal(err)
	}
	events := []event.Event{m.next(t), m.next(t), m.next(t), m.next(t)}
	if told(events) != "end=done; turn; text=woken; end=woken" || events[0].Unprompted || !events[3].Unprompted {
		t.Error(told(events))
	}
	m.Kill() // what woke it is over
	if second := m.turn(t, "pid")[0].Text; second != first {
		t.Error("an idle process was killed")
	}
	// A turn that nobody asked for is killed like any other, and the next message waits until the process is gone.
	if err := m.Turn(within(t), []event.Block{{Text: "wakes"}}); err != nil {
		t.Fatal(err)
	}
	m.until(t, event.TurnBegan)
	m.Kill()
	events = m.turn(t, "say again")
	if got := told(events); got != "failed!; end=cancelled!; text=again; end=done" {
		t.Error(got)
	} else if !events[1].Unprompted || events[3].Unprompted {
		t.Errorf("%+v, %+v", events[1], events[3])
	}
}

// TestQuestions: a question has the id of the wire, and the wire decides which are open.
func TestQuestions(t *testing.T) {
	m := live(t)
	if err := m.Answer(event.Reply{Question: "q1", Option: "allow"}); !errors.Is(err, fault.NotFoundCode) {
		t.Error(err)
	}
	g := m.begin(t, "ask 1")
	if q := m.next(t); q.Kind != event.Question || q.Ask.ID != "q1" || q.Ask.Tool == nil || q.Ask.Tool.ID != "c1" {
		t.Fatalf("%+v", q)
	}
	if err := m.Answer(event.Reply{Question: "c1", Option: "allow"}); !errors.Is(err, fault.NotFoundCode) {
		t.Error(err)
	}
	if err := m.Answer(event.Reply{Question: "q1", Option: "allow", Text: "yes"}); err != nil {
		t.Error(err)
	}
	if got := told(g.rest()); got != "text=allow yes; end=done" {
		t.Error(got)
	}
	if got := told(m.turn(t, "withdraw")); got != "question=q1; withdrawn=q1; end=done" {
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
		"slow":    {"slow", "end=interrupted", false, 10 * soon},
		"deaf":    {"deaf", "failed!; end=cancelled!", false, 100 * time.Millisecond},
		"silence": {"silence", "failed!; end=cancelled!", false, 100 * time.Millisecond},
		"dumb":    {"deaf", "failed!; end=cancelled!", true, 10 * soon},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wire := func() *wire { w := newWire(); w.dumb = tt.dumb; return w }
			m := liveOf(t, wire, func(_ *agent.Spec, sv *agent.Services) { sv.Grace = tt.grace })
			marker := filepath.Join(t.TempDir(), "begun")
			g := m.begin(t, tt.message+" "+marker)
			for _, err := os.Stat(marker); tt.message == "silence" && err != nil; _, err = os.Stat(marker) {
				time.Sleep(time.Millisecond)
			}
			if tt.message != "silence" {
				m.next(t)
			}
			g.interrupt()
			events := g.rest()
			if got := told(events); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if len(events) == 2 && events[0].Fault.Code != fault.Interrupted {
				t.Errorf("%v", events[0].Fault)
			}
			if got := told(m.turn(t, "say again")); got != "text=again; end=done" {
				t.Error(got)
			}
		})
	}
}

// TestKill does not wait for an agent that ignores an interruption, however long the grace is.
func TestKill(t *testing.T) {
	m := live(t, func(_ *agent.Spec, sv *agent.Services) { sv.Grace = 10 * soon })
	m.Kill() // nothing runs
	g := m.begin(t, "stubborn")
	m.next(t)
	g.interrupt()
	m.Kill()
	if got := told(g.rest()); got != "failed!; end=cancelled!" {
		t.Error(got)
	}
	first := m.turn(t, "pid")[0].Text
	m.Kill() // no turn runs
	if second := m.turn(t, "pid")[0].Text; second != first {
		t.Error("an idle process was killed")
	}
}

// TestChanges: a change holds when Set returns, and was told before.
func TestChanges(t *testing.T) {
	m := live(t)
	set := func(c agent.Change) error { return m.Set(within(t), c) }
	if err := set(agent.Change{Mode: "never"}); !errors.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	if err := set(agent.Change{Mode: setting.Yolo}); err != nil || told(m.all()) != "changed=yolo" {
		t.Error("before anything runs", err)
	}
	if got := told(m.turn(t, "args")); got != "text=live --mode=yolo; end=done" {
		t.Error(got)
	}
	if err := set(agent.Change{Mode: "odd"}); !errors.Is(err, fault.Unsupported) || len(m.all()) != 0 {
		t.Error(err)
	}
	if err := set(agent.Change{Mode: setting.AskAll}); !errors.Is(err, agent.ErrRestart) || len(m.all()) != 0 {
		t.Error(err)
	}
	if err := set(agent.Change{Mode: setting.Plan, Model: "m1"}); err != nil || told(m.all()) != "changed=planm1" {
		t.Error("while it runs", err)
	}
	m.turn(t, "die")
	if got := told(m.turn(t, "args")); got != "text=live --resume=s1 --mode=plan --model=m1; end=done" {
		t.Errorf("after a restart: %s", got)
	}
}

// TestLateYes: a change that the agent accepts when nobody waits any more is told all the same, and counts for the next
// start.
func TestLateYes(t *testing.T) {
	m := live(t)
	m.turn(t, "say x")
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := m.Set(short, agent.Change{Model: "late"}); !errors.Is(err, context.DeadlineExceeded) ||
		len(m.all()) != 0 {
		t.Error(err)
	}
	if got := told(m.turn(t, "say now")); got != "changed=late; text=now; end=done" {
		t.Error(got)
	}
	m.turn(t, "die")
	if got := told(m.turn(t, "args")); got != "text=live --resume=s1 --model=late; end=done" {
		t.Errorf("after a restart: %s", got)
	}
	if err := m.Set(short, agent.Change{Model: "late"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if got := told(m.turn(t, "die")); strings.Contains(got, "changed") { // it never said yes
		t.Error(got)
	}
}
