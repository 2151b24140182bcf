package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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
	dead := filepath.Join(slots, earlier(run.NewID()))
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

// owner returns an owner of a run with a limit of the runs in progress.
func (b *bench) owner(r *run.Run, parallel int) run.Owner {
	return run.Owner{
		Run: r, Open: b.open, Log: b.t.Logf, Grace: time.Second, Parallel: parallel,
		Spec: func(string) agent.Spec { return agent.Spec{} },
	}
}

// earlier returns the id of a run that is older than another one, and not of the same millisecond.
func earlier(id string) string { return "run-00" + id[len("run-00"):] }

// created returns a new run, and the directory of the queue.
func (b *bench) created() (r *run.Run, slots string) {
	b.t.Helper()
	slots = filepath.Join(b.store.Dir, ".slots")
	err := os.MkdirAll(slots, 0o700)
	if err == nil {
		r, err = b.store.Create(b.t.Context(), run.Task{Text: "go", Agents: []string{"inner"}, Dir: b.dir})
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = r.Release() })
	return r, slots
}

// TestQueueWithFilesThatCannotBeOpened: a file of the queue that cannot be opened is left out, and named once. A run
// fails only if no slot can be opened.
func TestQueueWithFilesThatCannotBeOpened(t *testing.T) {
	for name, row := range map[string]struct {
		slots  []string
		state  run.State
		logged int
	}{
		"a place":               {nil, run.Succeeded, 1},
		"a place and a slot":    {[]string{"0"}, run.Succeeded, 2},
		"a place and all slots": {[]string{"0", "1"}, run.Failed, 3},
	} {
		b := newBench(t, `[{"say":"ok"}]`, engine.Options{})
		r, slots := b.created()
		place := earlier(r.ID)
		for _, file := range append(row.slots, place) {
			// A directory: not even root opens it as a file.
			if err := os.Mkdir(filepath.Join(slots, file), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		var logged []string
		o := b.owner(r, 2)
		o.Log = func(format string, args ...any) { logged = append(logged, fmt.Sprintf(format, args...)) }
		if err := o.Work(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.State != row.state || len(logged) != row.logged || !strings.Contains(logged[0], place) {
			t.Errorf("%s: %s %q", name, r.State, logged)
		}
	}
}

// TestQueueGoesPastAStoppedRun: a run that waits and does not look at the queue any more holds nobody up, also if the
// clock was set back after it last looked.
func TestQueueGoesPastAStoppedRun(t *testing.T) {
	for name, ago := range map[string]time.Duration{"long ago": time.Minute, "in the future": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, `[{"say":"ok"}]`, engine.Options{})
			r, slots := b.created()
			stopped := earlier(r.ID)
			place := filepath.Join(slots, stopped)
			held, err := workspace.Lock(t.Context(), place, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Unlock() //nolint:errcheck // the test is over
			o := b.owner(r, 1)
			var behind []string
			o.Tell = func(p run.Progress) {
				if p.State != run.Queued {
					return
				}
				behind = append(behind, p.Behind)
				looked := time.Now().Add(-ago)
				if err := os.Chtimes(place, looked, looked); err != nil {
					t.Error(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := o.Work(ctx); err != nil || r.State != run.Succeeded || !slices.Equal(behind, []string{stopped}) {
				t.Errorf("%v %s, behind %q", err, r.State, behind)
			}
			if _, err := os.Stat(place); err != nil { // it may be continued
				t.Error(err)
			}
		})
	}
}

// TestQueuedRunTouchesItsPlace: the others see that it is not stopped.
func TestQueuedRunTouchesItsPlace(t *testing.T) {
	b := newBench(t, `[{"say":"ok"}]`, engine.Options{})
	r, slots := b.created()
	busy, err := workspace.Lock(t.Context(), filepath.Join(slots, "0"), 0)
	if err != nil {
		t.Fatal(err)
	}
	o := b.owner(r, 1)
	place, old := filepath.Join(slots, r.ID), time.Now().Add(-time.Hour)
	queued := make(chan error, 1)
	o.Tell = func(p run.Progress) {
		if p.State == run.Queued {
			queued <- os.Chtimes(place, old, old)
		}
	}
	var working sync.WaitGroup
	defer working.Wait()
	working.Go(func() {
		if err := o.Work(t.Context()); err != nil {
			t.Error(err)
		}
	})
	defer busy.Unlock() //nolint:errcheck // it lets the run end
	if err := <-queued; err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(time.Minute); ; {
		info, err := os.Stat(place)
		if err != nil || time.Now().After(limit) {
			t.Fatalf("%v %v", info, err)
		}
		if time.Since(info.ModTime()) < time.Minute {
			return
		}
		runtime.Gosched()
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
