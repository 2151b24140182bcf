package process

import (
	"encoding/hex"
	"os"
	"strconv"
	"syscall"
	"time"
)

const (
	guardTakes = 10 * time.Second // then the guard gives up on what cannot be killed
	unsureFor  = time.Second      // how long a process in the middle of an exec is checked again
	cleanScans = 3                // so many scans in a row must find nothing
)

// end kills the group at once, and then whatever scan finds, until it finds nothing: a process may fork meanwhile, and
// one in the middle of an exec has no environment for a moment.
func (w *guarded) end() {
	if w.group > 1 {
		_ = syscall.Kill(-w.group, syscall.SIGKILL)
	}
	if raw, err := hex.DecodeString(w.mark); err != nil || len(raw) != markBytes {
		return
	}
	own, _ := statOf(os.Getpid())
	began := time.Now()
	gap := time.Millisecond
	for clean := 0; clean < cleanScans && time.Since(began) < guardTakes; {
		found, unsure := w.scan(own)
		if found || unsure && time.Since(began) < unsureFor {
			clean, gap = 0, time.Millisecond
		} else {
			clean++
		}
		time.Sleep(gap)
		gap = min(4*gap, 40*time.Millisecond)
	}
}

// scan kills the processes that have the mark or are in the group or the session, and what any of these has started.
// Once a group or session was empty, it is not searched for again: its number may be reused.
func (w *guarded) scan(own stat) (found, unsure bool) {
	all := map[int]stat{}
	for _, pid := range everyProcess() {
		if s, ok := statOf(pid); ok && s.runs() && pid != os.Getpid() {
			all[pid] = s
		}
	}
	doomed := map[int]bool{}
	empty := true
	for pid, s := range all {
		if w.group > 1 && (s.group == w.group || w.session && s.session == w.group) {
			doomed[pid], empty = true, false
			continue
		}
		switch marked, between := lookForMark(pid, w.mark); {
		case marked:
			doomed[pid] = true
		case between && !s.before(own): // not a kernel thread, most of which are older
			unsure = true
		}
	}
	if empty {
		w.group = 0
	}
	for grown := true; grown; {
		grown = false
		for pid, s := range all {
			if !doomed[pid] && doomed[s.parent] {
				doomed[pid], grown = true, true
			}
		}
	}
	for pid := range doomed {
		_ = killIfStill(pid, all[pid])
	}
	return len(doomed) > 0, unsure
}

// killIfStill kills the process that was examined, and no later one with its number.
func killIfStill(pid int, s stat) error {
	p, err := os.FindProcess(pid) // opens a pidfd
	if err != nil {
		return err
	}
	defer p.Release()
	if now, ok := statOf(pid); !ok || now.start != s.start {
		return os.ErrProcessDone
	}
	return p.Kill()
}

// before reports whether a process was started before another.
func (s stat) before(o stat) bool {
	a, errA := strconv.ParseUint(s.start, 10, 64)
	b, errB := strconv.ParseUint(o.start, 10, 64)
	return errA == nil && errB == nil && a < b
}
