package policy

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

// Program is a program to run in the sandbox with the caller's streams.
type Program struct {
	Argv     []string // the first is searched for in PATH of Env
	Dir      string
	Env      []string
	Streams  [3]*os.File
	Terminal *os.File // if a person uses it
	Signals  <-chan os.Signal
	Limit    time.Duration // 0: none
}

// Run runs the program to its end, with everything it started, and returns its exit status, or 128 plus the number of a
// signal. An error means that it was not started, or did not end within the limit.
func (w *Walls) Run(p Program) (int, error) {
	path, err := process.Locate(p.Argv, p.Dir, p.Env)
	if err != nil {
		return 0, err
	}
	plan := process.Plan{Argv: p.Argv, Path: path, Dir: p.Dir, Env: p.Env, Terminal: p.Terminal}
	plan.Stdin, plan.Stdout, plan.Stderr = p.Streams[0], p.Streams[1], p.Streams[2]
	if plan, err = w.Plan(plan); err != nil {
		return 0, err
	}
	child, err := process.Start(plan)
	if err != nil {
		return 0, err
	}
	stop := Forward(p.Signals, p.Limit, child)
	ending := child.Wait()
	return Status(ending), stop()
}

// Forward ends a child when a signal asks for that, or when the limit has passed, until stop is called. stop fails if
// the limit ended the child.
func Forward(signals <-chan os.Signal, limit time.Duration, child *process.Child) (stop func() error) {
	over, late := make(chan struct{}), atomic.Bool{}
	go func() {
		var passed <-chan time.Time
		if limit > 0 {
			passed = time.After(limit)
		}
		for {
			select {
			case s := <-signals:
				child.End(s)
			case <-passed:
				late.Store(true)
				child.End(syscall.SIGTERM)
			case <-over:
				return
			}
		}
	}()
	return func() error {
		close(over)
		if !late.Load() {
			return nil
		}
		return fault.New(fault.TimedOut, "the command did not end within %s", limit)
	}
}

// Status returns the exit status of a program as in shells: 128 plus the number of the signal that ended it.
func Status(ending process.Ending) int {
	if ending.Signal != "" {
		return 128 + number(ending.Signal)
	}
	return ending.ExitCode
}
