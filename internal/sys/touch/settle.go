package touch

import (
	"maps"
	"slices"
	"time"

	"omniagent/internal/sys/workspace"
)

// The intervals at which files are looked at. Only inotify reports that the last writer of a file is gone, but it needs
// a watch for each file, of which a user has few, and cannot watch a file that a call has yet to create.
const (
	firstLook  = 500 * time.Microsecond
	longest    = 50 * time.Millisecond
	mayBegin   = 250 * time.Millisecond // how long a call may take that had not begun when it was reported
	lastChance = 300 * time.Millisecond // how long catchUp waits at most
)

// expect schedules looks at path until no process has it open for writing. The caller has the lock.
func (l *Log) expect(path string, before workspace.Status, begun bool) {
	now := time.Now()
	l.open[path] = &opened{before: before, begun: begun, since: now, next: now.Add(firstLook), wait: firstLook}
	if !l.settling {
		l.settling = true
		go l.settle()
	}
}

// settle finds the final status of the paths that the agent wrote.
func (l *Log) settle() {
	for {
		l.mu.Lock()
		if len(l.open) == 0 {
			l.settling = false
			l.mu.Unlock()
			return
		}
		now, soon := time.Now(), longest
		due := map[string]*opened{}
		for path, o := range l.open {
			if left := o.next.Sub(now); left > 0 {
				soon = min(soon, left)
				continue
			}
			due[path] = o
		}
		l.mu.Unlock()
		if len(due) == 0 {
			time.Sleep(soon)
			continue
		}
		l.lookAt(due)
	}
}

// lookAt looks at paths. A result counts only if everything that was written before has been delivered by then.
func (l *Log) lookAt(due map[string]*opened) {
	found := map[string]workspace.Status{}
	for path, o := range due {
		is, quiet := look(path)
		late := time.Since(o.since) > mayBegin
		if quiet && (o.begun || late || !same(is, o.before)) {
			found[path] = is
		}
	}
	at, complete := time.Now(), l.delivered()
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, o := range due {
		if l.open[path] != o {
			continue // it was written again
		}
		is, quiet := found[path]
		if quiet && complete {
			delete(l.open, path)
			for _, w := range l.windows {
				w.settled(path, is, at)
			}
			continue
		}
		o.wait = min(2*o.wait, longest)
		o.next = time.Now().Add(o.wait)
	}
}

// delivered reports whether everything that the sources saw has been passed on.
func (l *Log) delivered() bool {
	l.mu.Lock()
	sources := slices.Collect(maps.Values(l.sources))
	l.mu.Unlock()
	for _, delivered := range sources {
		if !delivered() {
			return false
		}
	}
	return true
}

// catchUp waits, at most lastChance, until everything is passed on and recent writes have been looked at.
func (l *Log) catchUp() {
	end := time.Now().Add(lastChance)
	for time.Now().Before(end) {
		if l.delivered() && !l.fresh() {
			return
		}
		time.Sleep(firstLook)
	}
}

// fresh reports whether a recent write has not been looked at yet.
func (l *Log) fresh() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.open {
		if o.wait < longest/2 {
			return true
		}
	}
	return false
}
