package process

import (
	"os"
	"os/exec"

	"omniagent/internal/kit/fault"
)

// Detached is a process that outlives this one.
type Detached struct {
	PID  int
	Gone <-chan struct{} // closed when it has ended, as long as this process lives
}

// StartDetached starts a program that outlives this process, in its own session: without a terminal or input, and with
// its output in a file.
func StartDetached(path string, args []string, dir, log string) (Detached, error) {
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return Detached{}, fault.New(fault.PermissionDenied, "%s cannot be written", log).Because(err)
	}
	defer out.Close()
	c := exec.Command(path, args...)
	c.Dir, c.Stdout, c.Stderr, c.SysProcAttr = dir, out, out, ownSession()
	if err := c.Start(); err != nil {
		return Detached{}, fault.New(fault.PermissionDenied, "%s cannot be started", path).Because(err)
	}
	gone := make(chan struct{})
	go func() { _ = c.Wait(); close(gone) }()
	return Detached{c.Process.Pid, gone}, nil
}
