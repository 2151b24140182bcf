package run_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/engine"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
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

// TestQueuesInOrder: each run that has to wait says so, and they start in the order of their ids. A place that a dead
// process has left counts for nothing.
func TestQueuesInOrder(t *testing.T) {
	b := newBench(t, `[{"say":"ok"}]`, engine.Options{})
	slots := filepath.Join(b.store.Dir, ".slots")
	if err := os.MkdirAll(slots, 0o700); err != nil {
		t.Fatal(err)
	}
	busy, err := workspace.Lock(t.Context(), filepath.Join(slots, "0"), 0)
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(slots, run.NewID())
	if err := os.WriteFile(dead, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var runs []*run.Run
	for range 3 {
		r, err := b.store.Create(t.Context(), run.Task{Text: "go", Agents: []string{"inner"}, Dir: b.dir})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release() //nolint:errcheck // the test is over
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b *run.Run) int { return strings.Compare(a.ID, b.ID) }) // all of one millisecond
	var working sync.WaitGroup
	defer working.Wait()
	queued, started := make(chan string, len(runs)), make(chan string, len(runs))
	for _, r := range slices.Backward(runs) {
		working.Go(func() {
			o := run.Owner{
				Run: r, Open: b.open, Log: t.Logf, Grace: time.Second, Parallel: 1,
				Spec: func(string) agent.Spec { return agent.Spec{} },
				Tell: func(p run.Progress) {
					switch p.State {
					case run.Queued:
						queued <- r.ID
					case run.Starting:
						started <- r.ID
					}
				},
			}
			if err := o.Work(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if id := <-queued; id != r.ID {
			t.Fatalf("%s is queued, and not %s", id, r.ID)
		}
	}
	if err := busy.Unlock(); err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if id := <-started; id != r.ID {
			t.Errorf("%s has started, and not %s", id, r.ID)
		}
	}
	working.Wait()
	if left, _ := filepath.Glob(filepath.Join(slots, "run-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestInterruptedAtAQuestion: a run that is ended at the moment at which it begins to wait knows what it has changed,
// and that nobody else did.
func TestInterruptedAtAQuestion(t *testing.T) {
	b := newBench(t, `[{"call":{"name":"Write","input":{"file_path":"made","content":"x"}}},`+asksColour[1:],
		engine.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	r, err := b.store.Create(ctx, run.Task{
		Text: "go", Agents: []string{"inner"}, Dir: b.dir, Approval: setting.AutoEdit,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release() //nolint:errcheck // the test is over
	o := run.Owner{
		Run: r, Open: b.open, Log: t.Logf, Grace: time.Second, Patience: time.Hour,
		Spec: func(string) agent.Spec { return agent.Spec{} },
		Tell: func(p run.Progress) {
			if p.State == run.NeedsInput { // it looks at the workspace after that
				cancel(context.Canceled)
			}
		},
	}
	if err := o.Work(ctx); err != nil {
		t.Fatal(err)
	}
	changed := r.Result.Changed
	if r.State != run.Cancelled || changed == nil || changed.Doubtful > 0 || len(changed.Files) != 1 ||
		changed.Files[0].Path != "made" || changed.Files[0].Status != snapshot.Added {
		t.Errorf("%s: %+v", r.State, changed)
	}
}
