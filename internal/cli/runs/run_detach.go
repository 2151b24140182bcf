package runs

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/forks"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/work/run"
)

// ownedWithin limits how long the detached process may take to become the owner of its run.
const ownedWithin = 20 * time.Second

// leave hands a run over to a detached process, and describes the job.
func leave(ctx context.Context, c *contract.Call, store run.Store, r *run.Run) (contract.Result, error) {
	record := r.Record
	if err := c.Begun(r.ID); err != nil {
		_ = r.Release()
		return contract.Result{}, err
	}
	if err := r.Release(); err != nil {
		return contract.Result{}, err
	}
	if err := detach(ctx, c, store, record); err != nil {
		return contract.Result{Data: runDataOf(record), Effect: contract.Created}, err
	}
	record, err := store.Load(ctx, record.ID)
	if err != nil {
		return contract.Result{}, err
	}
	return contract.Result{Data: jobOf(store, record), Effect: contract.Created}, nil
}

// forkAhead makes the fork of a run before a detached process begins it.
func forkAhead(ctx context.Context, c *contract.Call, task run.Task) (run.Task, error) {
	f, err := forks.New(ctx, c, task.Dir)
	if err != nil {
		return task, err
	}
	if _, err := forks.NetworkIn(c, f, cmp.Or(c.String("network"), parts.Internet)); err != nil {
		_, _ = f.Delete(context.WithoutCancel(ctx)) // nothing ran in it
		return task, err
	}
	task.Fork, task.ForkID, task.Dir, task.Network = f.Name, f.ID, f.Place(task.Dir), c.String("network")
	return task, nil
}

// detach starts a process that carries out a run without an owner, and waits until the run has one. If the run has a
// fork, the owner is a child of that process, which runs inside the fork.
func detach(ctx context.Context, c *contract.Call, store run.Store, record run.Record) error {
	id := record.ID
	self, err := parts.Executable()
	if err != nil {
		return err
	}
	args := []string{"runs", "continue", id, "--quiet", "--output", "json"}
	for _, name := range []string{"config", "timeout"} { // the record has the other flags
		if c.Given(name) {
			args = append(args, "--"+name+"="+c.String(name))
		}
	}
	left, err := process.StartDetached(self, args, c.Dir(), filepath.Join(store.Path(id), "supervisor.log"))
	if err != nil {
		return err
	}
	deadline := time.NewTimer(ownedWithin)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if by, alive := store.Owner(id); alive && (by.PID == left.PID || record.Fork != "") && begun(store, id) {
			return nil
		}
		if r, err := store.Peek(id); err == nil && r.State.Terminal() { // it has ended already
			return nil
		}
		select {
		case <-tick.C:
			continue
		case <-left.Gone:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
		}
		if r, err := store.Peek(id); err == nil && (r.State.Terminal() || r.Result != nil) {
			return nil
		}
		return fault.New(fault.AgentFailed, "the process that carries out %s did not begin", id).
			Hint("read %s", filepath.Join(store.Path(id), "supervisor.log"))
	}
}

// begun reports whether the owner of a run has taken up the answers that it waited for.
func begun(store run.Store, id string) bool {
	r, err := store.Peek(id)
	return err == nil && (r.State != run.NeedsInput || len(r.Open()) > 0)
}

// jobOf describes a run that another process carries out.
func jobOf(store run.Store, r run.Record) runData {
	d := runDataOf(r)
	d.Waits = waitsFor(store, r)
	over, poll, limit := r.State.Terminal(), int64(1000), r.Timeout.Milliseconds()
	status, cancel := "omniagent runs status "+r.ID, "omniagent runs cancel "+r.ID
	d.Job, d.Terminal, d.StatusBy, d.CancelBy, d.Poll, d.Timeout = &r.ID, &over, &status, &cancel, &poll, &limit
	if by, alive := store.Owner(r.ID); alive {
		d.PID = &by.PID
	}
	return d
}

// presentResult returns the result of a run that an earlier call with the same idempotency key began: its end or its
// question. It waits for that, unless the run is detached.
func presentResult(ctx context.Context, c *contract.Call, id string) (contract.Result, error) {
	store, err := stores.Runs(c)
	if err != nil {
		return contract.Result{}, err
	}
	r, err := store.Load(ctx, id)
	switch {
	case err != nil:
		return contract.Result{}, err
	case r.State.Terminal(), r.WaitsForPerson():
		return answerOf(r)
	case r.Detached:
		return contract.Result{Data: jobOf(store, r), Effect: contract.Noop}, nil
	}
	return follow(ctx, c, store, id)
}
