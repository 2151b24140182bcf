//go:build unix

package live_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/testkit/mindtest"
)

// TestSteer: a message for the turn that runs reaches it, or Steer says that it did not.
func TestSteer(t *testing.T) {
	m := openStub(t)
	steer := func(text string) error { return m.Steer(mindtest.Within(t), []event.Block{{Text: text}}) }
	if err := steer("x"); !errors.Is(err, fault.NotFoundCode) {
		t.Errorf("nothing runs: %v", err)
	}
	g := m.BeginTurn(t, "work")
	m.Next(t)
	if err := steer("more"); err != nil {
		t.Error(err)
	}
	if err := steer("missed x"); !errors.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	if err := steer(" "); !errors.Is(err, fault.ArgError) {
		t.Error(err)
	}
	if err := steer("over"); err != nil {
		t.Error(err)
	}
	if got := mindtest.Story(g.Rest()); got != "text=more; end=done" {
		t.Error(got)
	}
	g = m.BeginTurn(t, "deaf")
	m.Until(t, event.Text)
	errs := make(chan error, 1)
	go func() { errs <- steer("x") }()
	m.Kill()
	if err := <-errs; err == nil {
		t.Error("a message has reached a process that is gone")
	}
	g.Rest()
}

// TestFacts: what the wire knows is told with Started, and as Changed where it is different.
func TestFacts(t *testing.T) {
	m := openStub(t)
	if f := m.Facts(); f.Agent != "stub" || f.Mode != setting.Prompt || f.Dir == "" {
		t.Errorf("%+v", f)
	}
	events := m.WholeTurn(t, "began m1")
	f := events[0].Facts
	if got := mindtest.Story(events); got != "started=m1; end=done" || f == nil ||
		f.Model != "m1" || f.Agent != "stub" {
		t.Errorf("%s, %+v", got, f)
	}
	events = m.WholeTurn(t, "facts m2")
	if got := mindtest.Story(events); got != "changed=m2; text=behind; end=done" || events[0].Facts.Agent != "" {
		t.Errorf("%s, %+v", got, events[0].Facts)
	}
	if got := mindtest.Story(m.WholeTurn(t, "facts m2")); got != "text=behind; end=done" {
		t.Errorf("told again: %s", got)
	}
	if got := mindtest.Story(m.WholeTurn(t, "plan")); got != "changed=plan; end=done" {
		t.Error(got)
	}
	m.WholeTurn(t, "die")
	if got := mindtest.Story(m.WholeTurn(t, "args")); got != "text=--resume=s1 --mode=plan; end=done" {
		t.Errorf("after a restart: %s", got)
	}
}

// TestGreeting: an agent that does not answer the greeting is ended in time, also one that talks.
func TestGreeting(t *testing.T) {
	for _, greets := range []string{"mute", "noise"} {
		t.Run(greets, func(t *testing.T) {
			t.Parallel()
			m := openStub(t, func(s *agent.Spec, sv *agent.Services) {
				s.Env, sv.Connect = append(s.Env, "STUB_GREETS="+greets), 200*time.Millisecond
			})
			events := m.WholeTurn(t, "say x")
			failed := events[len(events)-2]
			if got := mindtest.Story(events[len(events)-2:]); got != "failed!; "+failedTurn ||
				!lateFault(failed.Fault, "Stub", "200ms") {
				t.Errorf("%s: %v", got, failed.Fault)
			}
		})
	}
	m := openStub(t, func(_ *agent.Spec, sv *agent.Services) { sv.Connect = 2 * time.Second })
	m.WholeTurn(t, "say x")
	g := m.BeginTurn(t, "deaf")
	select {
	case <-g.Ended:
		t.Error("an agent that has answered was ended")
	case <-time.After(2500 * time.Millisecond):
	}
	m.Kill()
	g.Rest()
}

// TestSlowListener: an agent that prints more than is listened to has to wait, and nothing is lost. It can be ended all
// the same.
func TestSlowListener(t *testing.T) {
	gate, marker := make(chan struct{}), filepath.Join(t.TempDir(), "printed")
	m := openStub(t, func(_ *agent.Spec, sv *agent.Services) {
		tell := sv.Tell
		sv.Tell = func(e event.Event) {
			<-gate
			tell(e)
		}
	})
	g := m.BeginTurn(t, "flood "+marker)
	time.Sleep(300 * time.Millisecond) // for what takes a tenth of that where nobody waits
	if _, err := os.Stat(marker); err == nil {
		t.Error("the agent has printed everything while nobody listened")
	}
	if err := m.Answer(event.Reply{Question: "c1"}); !errors.Is(err, fault.NotFoundCode) { // who listens may still act
		t.Error(err)
	}
	close(gate)
	if events := g.Rest(); len(events) != 20_001 {
		t.Errorf("%d events", len(events))
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error(err)
	}
	g = m.BeginTurn(t, "flood "+marker)
	m.Next(t)
	_, _ = m.Close(mindtest.Within(t))
	events := g.Rest()
	if last := events[len(events)-1]; last.Kind != event.Ended || last.Unprompted {
		t.Errorf("%+v", last)
	}
}

func TestFamilyEndsWithTheMind(t *testing.T) {
	m := openStub(t)
	pids := strings.Fields(m.WholeTurn(t, "family")[0].Text)
	m.End(t)
	for _, word := range pids {
		pid, _ := strconv.Atoi(word)
		if err := syscall.Kill(pid, 0); len(pids) != 2 || !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%d is alive: %v", pid, err)
		}
	}
}

func TestLiveMessages(t *testing.T) {
	m := openStub(t)
	if err := m.Turn(t.Context(), []event.Block{{Text: " "}}); !errors.Is(err, fault.ArgError) {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Turn(gone, []event.Block{{Text: "say x"}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	g := m.BeginTurn(t, "slow")
	m.Next(t)
	if err := m.Turn(t.Context(), []event.Block{{Text: "say x"}}); !errors.Is(err, fault.Internal) {
		t.Errorf("a second turn: %v", err)
	}
	g.Interrupt()
	if got := mindtest.Story(g.Rest()); got != "end=interrupted" {
		t.Error(got)
	}
}

// TestCloseInEveryState ends the process, and a turn that runs has its end.
func TestCloseInEveryState(t *testing.T) {
	for _, message := range []string{"", "say x", "deaf", "silence", "ask 1", "wakes", "linger"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			m := openStub(t)
			if message == "" {
				m.End(t)
				return
			}
			g := m.BeginTurn(t, message)
			if message != "silence" {
				m.Next(t)
			}
			began := time.Now()
			m.End(t)
			if took := time.Since(began); took > mindtest.Soon/3 {
				t.Errorf("it took %s", took)
			}
			if err := <-g.Ended; err != nil && message != "silence" { // which may not have begun
				t.Error(err)
			}
		})
	}
}

// TestCloseAtOnce: when there is no time for the agent to end by itself, it is killed.
func TestCloseAtOnce(t *testing.T) {
	m := openStub(t, func(_ *agent.Spec, sv *agent.Services) { sv.Grace = 10 * mindtest.Soon })
	g := m.BeginTurn(t, "stubborn")
	m.Next(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := m.Close(ctx); err != nil || time.Since(began) > mindtest.Soon/3 {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if got := mindtest.Story(g.Rest()); got != "failed!; end=cancelled!" {
		t.Error(got)
	}
	m = openStub(t, func(_ *agent.Spec, sv *agent.Services) { sv.Grace = 10 * mindtest.Soon })
	g = m.BeginTurn(t, "deaf") // one at work is not waited for
	m.Next(t)
	began = time.Now()
	if m.End(t); time.Since(began) > mindtest.Soon/3 {
		t.Errorf("after %s", time.Since(began))
	}
	g.Rest()
}

// TestEverythingAtOnce: whatever is asked for at the same time, each turn has one end and Close comes back.
func TestEverythingAtOnce(t *testing.T) {
	m := openStub(t)
	var wg sync.WaitGroup
	turns := 0
	stop := make(chan struct{})
	for _, f := range []func(){
		m.Kill,
		func() { _ = m.Answer(event.Reply{Question: "q1", Option: "allow"}) },
		func() { _ = m.Steer(t.Context(), []event.Block{{Text: "x"}}) },
		func() { _ = m.Set(t.Context(), agent.Change{Model: "m"}) },
	} {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(3 * time.Millisecond):
					f()
				}
			}
		})
	}
	for i := range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*5*time.Millisecond)
		if m.Turn(ctx, []event.Block{{Text: []string{"say x", "deaf", "ask 1"}[i%3]}}) == nil {
			turns++
		}
		cancel()
	}
	close(stop)
	left, _ := m.End(t)
	wg.Wait()
	ends := 0
	for _, e := range left {
		if e.Kind == event.Ended && !e.Unprompted {
			ends++
		}
	}
	if ends != turns {
		t.Errorf("%d turns, %d ends", turns, ends)
	}
}

// lateFault reports whether a fault is one of an agent that gave no sign of life, in full.
func lateFault(f *fault.Fault, parts ...string) bool {
	if f == nil || f.Code != fault.TimedOut || !strings.Contains(f.Suggestion, "--connect-timeout") {
		return false
	}
	for _, part := range parts {
		if !strings.Contains(f.Message, part) {
			return false
		}
	}
	return true
}
