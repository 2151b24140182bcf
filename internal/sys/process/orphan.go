package process

import (
	"os"
	"slices"
	"time"

	"omniagent/internal/kit/fault"
)

// Orphan is a child, or a process that it started, that still runs although its owner is dead: the process that started
// the child and would have ended it.
type Orphan struct {
	Registered
	PIDs []int // the child, if it runs, and what it started
}

// Orphans lists the orphans in the registers of dir. A process counts only if it is proved to be ours: the child itself
// by its number, its start and the boot of the machine, and what it has started by the mark in its environment. A
// process that has cleared its environment cannot be recognised. Numbers of another PID namespace mean nothing here, so
// Orphans ignores what was started in one: that ends with the first process of the namespace.
func Orphans(dir string) ([]Orphan, error) {
	children, err := Registers(dir)
	if err != nil {
		return nil, err
	}
	here := numberSpace("self")
	var all []Orphan
	for _, c := range children {
		e := c.entry
		if e.Owner == 0 || e.OwnerIs == "" || e.Space != here || is(e.Owner, e.OwnerIs) {
			continue
		}
		if o := (Orphan{Registered: c, PIDs: e.left()}); len(o.PIDs) > 0 {
			all = append(all, o)
		}
	}
	return all, nil
}

// left returns the processes of an entry that still run.
func (e registerLine) left() []int {
	var pids []int
	if e.alive() {
		pids = append(pids, e.PID)
	}
	if len(e.Mark) != 2*markBytes { // not ours: it could be in any environment
		return pids
	}
	for _, p := range withMark(e.Mark) {
		if !slices.Contains(pids, p.Pid) {
			pids = append(pids, p.Pid)
		}
		_ = p.Release()
	}
	return pids
}

// End kills what is left of an orphan, and what that starts meanwhile.
func (o Orphan) End() error {
	e := o.entry
	if e.alive() {
		killOrphan(e)
	}
	if len(e.Mark) == 2*markBytes {
		killMarked(e.Mark)
	}
	over := time.NewTimer(deathTakes)
	defer over.Stop()
	pollUntil(func() bool { return len(e.left()) == 0 }, over.C)
	if left := e.left(); len(left) > 0 {
		return fault.New(fault.PermissionDenied, "process %d of %s could not be ended", left[0], e.Argv0).
			With("pids", left)
	}
	return nil
}

// killOrphan kills the child of an entry. On Linux the second check ensures that the handle is for that very process.
func killOrphan(e registerLine) {
	p, err := os.FindProcess(e.PID)
	if err != nil {
		return
	}
	if e.alive() {
		killGroupOf(e.PID)
		_ = p.Kill()
	}
	_ = p.Release()
}
