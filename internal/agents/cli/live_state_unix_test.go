//go:build unix

package cli_test

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
)

// TestSteer: a message for the turn that runs reaches it, or Steer says that it did not.
func TestSteer(t *testing.T) {
	m := live(t)
	steer := func(text string) error { return m.Steer(within(t), []event.Block{{Text: text}}) }
	if err := steer("x"); !errors.Is(err, fault.NotFoundCode) {
		t.Errorf("nothing runs: %v", err)
	}
	g := m.begin(t, "work")
	m.next(t)
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
	if got := told(g.rest()); got != "text=more; end=done" {
		t.Error(got)
	}
	g = m.begin(t, "deaf")
	m.until(t, event.Text)
	errs := make(chan error, 1)
	go func() { errs <- steer("x") }()
	m.Kill()
	if err := <-errs; err == nil {
		t.Error("a message has reached a process that is gone")
	}
	g.rest()
}

// TestFacts: what the wire knows is told with Started, and as Changed where it is different.
func TestFacts(t *testing.T) {
	m := live(t)
	if f := m.Facts(); f.Agent != "stub" || f.Mode != setting.Prompt || f.Dir == "" {
		t.Errorf("%+v", f)
	}
	events := m.turn(t, "began m1")
	f := events[0].Facts
	if got := told(events); got != "started=m1; end=done" || f == nil || f.Model != "m1" || f.Agent != "stub" {
		t.Errorf("%s, %+v", got, f)
	}
	events = m.turn(t, "facts m2")
	if got := told(events); got != "changed=m2; text=behind; end=done" || events[0].Facts.Agent != "" {
		t.Errorf("%s, %+v", got, events[0].Facts)
	}
	if got := told(m.turn(t, "facts m2")); got != "text=behind; end=done" {
		t.Errorf("told again: %s", got)
	}
	if got := told(m.turn(t, "plan")); got != "changed=plan; end=done" {
		t.Error(got)
	}
	m.turn(t, "die")
	if got := told(m.turn(t, "args")); got != "text=live --resume=s1 --mode=plan; end=done" {
		t.Errorf("after a restart: %s", got)
	}
}

// TestGreeting: an agent that does not answer the greeting is ended in time, also one that talks.
func TestGreeting(t *testing.T) {
	for _, greets := range []string{"mute", "noise"} {
		t.Run(greets, func(t *testing.T) {
			t.Parallel()
			m := live(t, func(s *agent.Spec, sv *agent.Services) {
				s.Env, sv.Connect = append(s.Env, "STUB_GREETS="+greets), 200*time.Millisecond
			})
			events := m.turn(t, "say x")
			failed := events[len(events)-2]
			if got := told(events[len(events)-2:]); got != "failed!; "+failedTurn ||
				!lateFault(failed.Fault, "Stub", "200ms") {
				t.Errorf("%s: %v", got, failed.Fault)
			}
		})
	}
	m := live(t, func(_ *agent.Spec, sv *agent.Services) { sv.Connect = 2 * time.Second })
	m.turn(t, "say x")
	g := m.begin(t, "deaf")
	select {
	case <-g.ended:
		t.Error("an agent that has answered was ended")
	case <-time.After(2500 * time.Millisecond):
	}
	m.Kill()
	g.rest()
}

// TestSlowListener: an agent that prints more than is listened to has to wait, and nothing is lost. It can be ended all
// the same.
func TestSlowListener(t *testing.T) {
	gate, marker := make(chan struct{}), filepath.Join(t.TempDir(), "printed")
	m := live(t, func(_ *agent.Spec, sv *agent.Services) {
		tell := sv.Tell
		sv.Tell = func(e event.Event) {
			<-gate
			tell(e)
		}
	})
	g := m.begin(t, "flood "+marker)
	time.Sleep(300 * time.Millisecond) // for what takes a tenth of that where nobody waits
	if _, err := os.Stat(marker); err == nil {
		t.Error("the agent has printed everything while nobody listened")
	}
	if err := m.Answer(event.Reply{Question: "c1"}); !errors.Is(err, fault.NotFoundCode) { // who listens may still act
		t.Error(err)
	}
	close(gate)
	if events := g.rest(); len(events) != 20_001 {
		t.Errorf("%d events", len(events))
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error(err)
	}
	g = m.begin(t, "flood "+marker)
	m.next(t)
	_, _ = m.Close(within(t))
	events := g.rest()
	if last := events[len(events)-1]; last.Kind != event.Ended || last.Unprompted {
		t.Errorf("%+v", last)
	}
}

func TestFamilyEndsWithTheMind(t *testing.T) {
	m := live(t)
	pids := strings.Fields(m.turn(t, "family")[0].Text)
	rest(t, m)
	for _, word := range pids {
		pid, _ := strconv.Atoi(word)
		if err := syscall.Kill(pid, 0); len(pids) != 2 || !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%d is alive: %v", pid, err)
		}
	}
}

func TestLiveMessages(t *testing.T) {
	m := live(t)
	if err := m.Turn(t.Context(), []event.Block{{Text: " "}}); !errors.Is(err, fault.ArgError) {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Turn(gone, []event.Block{{Text: "say x"}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	g := m.begin(t, "slow")
	m.next(t)
	if err := m.Turn(t.Context(), []event.Block{{Text: "say x"}}); !errors.Is(err, fault.Internal) {
		t.Errorf("a second turn: %v", err)
	}
	g.interrupt()
	if got := told(g.rest()); got != "end=interrupted" {
		t.Error(got)
	}
}

// TestCloseInEveryState ends the process, and a turn that runs has its end.
func TestCloseInEveryState(t *testing.T) {
	for _, message := range []string{"", "say x", "deaf", "silence", "ask 1", "wakes", "linger"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			m := live(t)
			if message == "" {
				rest(t, m)
				return
			}
			g := m.begin(t, message)
			if message != "silence" {
				m.next(t)
			}
			began := time.Now()
			rest(t, m)
			if took := time.Since(began); took > soon/3 {
				t.Errorf("it took %s", took)
			}
			if err := <-g.ended; err != nil && message != "silence" { // which may not have begun
				t.Error(err)
			}
		})
	}
}

// TestCloseAtOnce: when there is no time for the agent to end by itself, it is killed.
func TestCloseAtOnce(t *testing.T) {
	m := live(t, func(_ *agent.Spec, sv *agent.Services) { sv.Grace = 10 * soon })
	g := m.begin(t, "stubborn")
	m.next(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := m.Close(ctx); err != nil || time.Since(began) > soon/3 {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if got := told(g.rest()); got != "failed!; end=cancelled!" {
		t.Error(got)
	}
	m = live(t, func(_ *agent.Spec, sv *agent.Services) { sv.Grace = 10 * soon })
	g = m.begin(t, "deaf") // one at work is not waited for
	m.next(t)
	began = time.Now()
	if rest(t, m); time.Since(began) > soon/3 {
		t.Errorf("after %s", time.Since(began))
	}
	g.rest()
}

// TestEverythingAtOnce: whatever is asked for at the same time, each turn has one end and Close comes back.
func TestEverythingAtOnce(t *testing.T) {
	m := live(t)
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
	left, _ := rest(t, m)
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
