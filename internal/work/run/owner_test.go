package run_test

import (
	"sync"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/engine"
	"omniagent/internal/work/run"
)

// alone carries out a task of the inner conversation by itself.
func (b *bench) alone(task run.Task, change func(*run.Owner)) run.Record {
	b.t.Helper()
	task.Agents, task.Dir = []string{"inner"}, b.dir
	r, err := b.store.Create(b.t.Context(), task)
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Release() //nolint:errcheck // the test is over
	o := run.Owner{
		Run: r, Open: b.open, Log: b.t.Logf, Grace: time.Second, Spec: func(string) agent.Spec { return agent.Spec{} },
	}
	change(&o)
	if err := o.Work(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return r.Record
}

// TestLifetime: a process that carries a run out does not live longer than it may, whatever the run waits for.
func TestLifetime(t *testing.T) {
	b := newBench(t, asksColour, engine.Options{})
	r := b.alone(run.Task{Text: "go", Approval: setting.Default}, func(o *run.Owner) {
		o.Patience, o.Lifetime = time.Hour, 300*time.Millisecond
	})
	if r.State != run.TimedOut || r.Result.Reason != run.TooLong || r.Result.Fault == nil {
		t.Errorf("%s %+v", r.State, r.Result)
	}
}

// TestIdleEnds: an agent that fell silent is not tried again by itself: its silence would last twice as long.
func TestIdleEnds(t *testing.T) {
	b := newBench(t, `[{"stall":"start"}]`, engine.Options{})
	began := time.Now()
	r := b.alone(run.Task{Text: "go", Approval: setting.Default, Idle: time.Second, Retries: 1}, func(*run.Owner) {})
	if took := time.Since(began); r.State != run.Stalled || r.Result.Reason != run.Idle || len(r.Attempts) != 1 ||
		r.Result.Fault.Suggestion == "" {
		t.Errorf("%s after %s and %d attempts: %+v", r.Result.Reason, took, len(r.Attempts), r.Result)
	}
}

// TestOwnWhileOthersLook: who asks for the owner of a run holds its lock for a moment, and nobody takes that for one.
func TestOwnWhileOthersLook(t *testing.T) {
	b := newBench(t, `[{"say":"ok"}]`, engine.Options{})
	made, err := b.store.Create(t.Context(), run.Task{
		Text: "go", Agents: []string{"inner"}, Dir: b.dir, Detached: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = made.Release()
	quit := make(chan struct{})
	var looking sync.WaitGroup
	for range 4 {
		looking.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
					b.store.Owner(made.ID)
				}
			}
		})
	}
	defer looking.Wait()
	defer close(quit)
	for range 200 {
		r, err := b.store.Acquire(t.Context(), made.ID)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Release()
	}
}
