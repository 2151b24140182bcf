package run

import (
	"cmp"
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

// stoppedAfter is the time after which a run that has not looked at the queue counts as stopped. The others go past it.
// So does one that looked at it in the future: the clock was set back, and a run that is not stopped touches its place
// again soon.
const stoppedAfter = 5 * time.Second

// queue waits until fewer runs than Parallel are in progress. Waiting runs start in the order of their ids. Between two
// looks it holds only the lock of its place in the queue, which nobody waits for. Each look touches the place.
func (o *Owner) queue(ctx context.Context) (free func(), err error) {
	if o.Parallel <= 0 {
		return func() {}, nil
	}
	q := queue{Owner: o, dir: filepath.Join(o.Run.store.Dir, queueDir), skipped: map[string]bool{}}
	if err := workspace.MkdirAll(q.dir); err != nil {
		return nil, err
	}
	own := filepath.Join(q.dir, o.Run.ID)
	var place *workspace.FileLock // nil: it has not waited
	defer func() {
		if place != nil {
			_ = place.Unlock()
			_ = os.Remove(own) // after Unlock, because Windows removes no open file
		}
	}()
	for {
		held, behind, err := q.enter(ctx)
		switch {
		case err != nil:
			return nil, err
		case held != nil:
			return func() { _ = held.Unlock() }, nil
		case place == nil:
			// Somebody who looks for dead processes holds it for a moment.
			if place, err = workspace.Lock(ctx, own, lockWait); err != nil {
				return nil, err
			}
			o.save() // otherwise the run is saved when it starts
			o.tell(Progress{State: Queued, Behind: behind})
			continue // its turn may have come before it had a place
		}
		now := time.Now()
		_ = os.Chtimes(own, now, now) // without it, others may go past it
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(queueGap):
		}
	}
}

// Place returns the place of a run in the queue: 1 for the one that begins next, and 0 for a run that does not wait
// there.
func (s Store) Place(id string) (place int) {
	dir := filepath.Join(s.Dir, queueDir)
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, f := range files {
		if _, held := workspace.HolderOf(filepath.Join(dir, f.Name())); !held || !IsID(f.Name()) || f.Name() > id {
			continue
		}
		if place++; f.Name() == id {
			return place
		}
	}
	return 0
}

// queue is the queue as the run of an owner sees it.
type queue struct {
	*Owner
	dir     string
	skipped map[string]bool // files that cannot be opened, as those of another user
}

// enter returns the lock of a run in progress. It returns none if there are enough runs in progress, or if an earlier
// run waits, which is behind.
func (q queue) enter(ctx context.Context) (held *workspace.FileLock, behind string, err error) {
	files, err := os.ReadDir(q.dir)
	if err != nil {
		return nil, "", fault.New(fault.PermissionDenied, "the queue of the runs cannot be read").Because(err)
	}
	for _, f := range files {
		if IsID(f.Name()) && f.Name() < q.Run.ID && q.waits(ctx, f) {
			return nil, f.Name(), nil
		}
	}
	busy := false
	for n := range q.Parallel {
		held, failed := q.open(ctx, fmt.Sprint(n))
		if held != nil {
			return held, "", nil
		}
		if failed == nil {
			busy = true
		}
		err = cmp.Or(failed, err)
	}
	if busy { // the others cannot be opened
		err = nil
	}
	return nil, "", err
}

// waits reports whether an earlier run waits at a place and is not stopped. It removes the place of a dead process.
func (q queue) waits(ctx context.Context, place os.DirEntry) bool {
	left, err := q.open(ctx, place.Name())
	if left != nil {
		_ = os.Remove(filepath.Join(q.dir, place.Name())) // its process died
		_ = left.Unlock()
	}
	if left != nil || err != nil {
		return false
	}
	info, err := place.Info()
	if err != nil {
		return false
	}
	age := time.Since(info.ModTime())
	return age >= 0 && age < stoppedAfter
}

// open tries to lock a file of the queue. It returns neither a lock nor an error if another process holds it, and says
// once that it cannot be opened.
func (q queue) open(ctx context.Context, name string) (*workspace.FileLock, error) {
	held, err := workspace.Lock(ctx, filepath.Join(q.dir, name), 0)
	if errors.Is(err, fault.LockHeld) {
		return nil, nil
	}
	if err != nil && ctx.Err() == nil && !q.skipped[name] {
		q.skipped[name] = true
		q.Log("the queue of the runs goes on without one of its files: %v", err)
	}
	return held, err
}
