package cli

import (
	"io"

	"omniagent/internal/core/agent"
	"omniagent/internal/sys/process"
)

// startProcess writes the files of a launch and starts it, in the host's sandbox if there is one. p has the streams and
// the standby. sv.Tap gets the output before the streams of p, and b after the start.
func startProcess(d agent.Driver, sv agent.Services, l agent.Launch, p process.Plan, b agent.Beginning) (
	*process.Child, agent.Observer, error,
) {
	if err := WriteFiles(l.Files); err != nil {
		return nil, nil, err
	}
	observer := d.Observe(l)
	p.Path, p.Argv, p.Dir, p.Env = l.Path, append([]string{d.Describe().Binary}, l.Args...), l.Dir, l.Env
	p.Grace, p.OwnPIDs, p.Register = sv.Grace, sv.OwnPIDs, sv.Register
	p.Note, _ = process.Value(l.Env, agent.DepthVariable) // the agent may clear its environment later
	if t := sv.Tap; t != nil {
		p.Whole = b.Plain
		p.Stdout, p.Stderr = io.MultiWriter(t.Stdout, p.Stdout), io.MultiWriter(t.Stderr, p.Stderr)
	}
	if sv.WithWalls != nil {
		var err error
		if p, err = sv.WithWalls(p); err != nil {
			return nil, nil, err
		}
	}
	sv.Register.Tidy() // remove the files of an agent that was killed together with its host
	b.RemoveIfEmpty = agent.Absent(d.Describe(), l)
	p.RemoveIfEmpty = b.RemoveIfEmpty
	child, err := process.Start(p)
	if err == nil && sv.Tap != nil {
		b.PID, b.Launch = child.PID(), l
		b.OwnPIDs = child.OwnPIDs() || sv.WithWalls != nil // walls have a PID namespace too
		sv.Tap.Began(b)
	}
	return child, observer, err
}
