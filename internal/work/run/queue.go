package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// The directory of the queue has the locks of the runs in progress, with the names 0, 1, 2 up to Owner.Parallel, and of
// those that wait, with their ids as names. The locks of a process that dies are free again.
const queueDir = ".slots"

// queueGap is the time between two looks at the queue. Nothing would wake a run: the next free lock may be any of
// several, and a wait for one in the kernel would not end with a context.
const queueGap = 25 * time.Millisecond

// queue waits until fewer runs than Parallel are in progress. Waiting runs start in the order of their ids. Between two
// looks it holds only the lock of its place in the queue, which nobody waits for.
func (o *Owner) queue(ctx context.Context) (free func(), err error) {
	if o.Parallel <= 0 {
		return func() {}, nil
	}
	dir := filepath.Join(o.Run.store.Dir, queueDir)
	if err := workspace.MkdirAll(dir); err != nil {
		return nil, err
	}
	var place *workspace.FileLock // nil: it has not waited
	defer func() {
		if place != nil {
			_ = place.Unlock()
			_ = os.Remove(filepath.Join(dir, o.Run.ID)) // after Unlock, because Windows removes no open file
		}
	}()
	for {
		held, err := o.enterSlot(ctx, dir)
		switch {
		case err != nil:
			return nil, err
		case held != nil:
			return func() { _ = held.Unlock() }, nil
		case place == nil:
			// Somebody who looks for dead processes holds it for a moment.
			if place, err = workspace.Lock(ctx, filepath.Join(dir, o.Run.ID), lockWait); err != nil {
				return nil, err
			}
			o.save() // otherwise the run is saved when it starts
			o.tell(Progress{State: Queued})
			continue // its turn may have come before it had a place
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(queueGap):
		}
	}
}

// enterSlot returns the lock of a run in progress. It returns none if an earlier run waits, or if there are enough runs
// in progress.
func (o *Owner) enterSlot(ctx context.Context, dir string) (*workspace.FileLock, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.New(fault.PermissionDenied, "the queue of the runs cannot be read").Because(err)
	}
	for _, f := range files {
		if !IsID(f.Name()) || f.Name() >= o.Run.ID {
			continue
		}
		left, err := workspace.Lock(ctx, filepath.Join(dir, f.Name()), 0)
		if errors.Is(err, fault.LockHeld) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		_ = os.Remove(filepath.Join(dir, f.Name())) // its process died
		_ = left.Unlock()
	}
	for n := range o.Parallel {
		held, err := workspace.Lock(ctx, filepath.Join(dir, fmt.Sprint(n)), 0)
		if err == nil {
			return held, nil
		}
		if !errors.Is(err, fault.LockHeld) {
			return nil, err
		}
	}
	return nil, nil
}
