package enclosure

import (
	"os"

	"omniagent/internal/process"
)

// Program is a program to run in the sandbox with the caller's streams.
type Program struct {
	Argv     []string // the first is searched for in PATH of Env
	Dir      string
	Env      []string
	Streams  [3]*os.File
	Terminal *os.File // if a person uses it
	Signals  <-chan os.Signal
}

// Run runs the program to its end, with everything it started, and returns its exit status, or 128 plus the number of a
// signal. An error means that it was not started.
func (e *Enclosure) Run(p Program) (int, error) {
	path, err := process.Locate(p.Argv, p.Dir, p.Env)
	if err != nil {
		return 0, err
	}
	plan := process.Plan{Argv: p.Argv, Path: path, Dir: p.Dir, Env: p.Env, Terminal: p.Terminal}
	plan.Stdin, plan.Stdout, plan.Stderr = p.Streams[0], p.Streams[1], p.Streams[2]
	if plan, err = e.Plan(plan); err != nil {
		return 0, err
	}
	child, err := process.Start(plan)
	if err != nil {
		return 0, err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case s := <-p.Signals:
				child.End(s)
			case <-over:
				return
			}
		}
	}()
	ending := child.Wait()
	if ending.Signal != "" {
		return 128 + number(ending.Signal), nil
	}
	return ending.ExitCode, nil
}
