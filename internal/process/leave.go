package process

import (
	"os"
	"os/exec"

	"omniagent/internal/fault"
)

// Left is a process that outlives this one.
type Left struct {
	PID  int
	Gone <-chan struct{} // closed when it has ended, as long as this process lives
}

// Leave starts a program that outlives this process, in a session of its own: no terminal, no input, and its output in
// a file. Nothing ends it with us.
func Leave(path string, args []string, dir, log string) (Left, error) {
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return Left{}, fault.New(fault.PermissionDenied, "%s cannot be written", log).Because(err)
	}
	defer out.Close()
	c := exec.Command(path, args...)
	c.Dir, c.Stdout, c.Stderr, c.SysProcAttr = dir, out, out, ownSession()
	if err := c.Start(); err != nil {
		return Left{}, fault.New(fault.PermissionDenied, "%s cannot be started", path).Because(err)
	}
	gone := make(chan struct{})
	go func() { _ = c.Wait(); close(gone) }()
	return Left{c.Process.Pid, gone}, nil
}
