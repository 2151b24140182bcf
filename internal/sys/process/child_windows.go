package process

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"time"

	"omniagent/internal/kit/fault"
)

// system is the part of a Child for Windows. The job object is the guard: it ends when its last handle is closed, which
// is ours.
type system struct {
	cmd   *exec.Cmd
	group *group
}

// Guard is never needed here, but main calls it on every system.
func Guard() int { return 2 }

func (c *Child) start() error {
	c.mark = newMark()
	p := c.plan
	c.cmd = &exec.Cmd{
		Path: p.Path, Args: p.Argv, Dir: p.Dir, Env: marked(p.Env, c.mark), Stdout: p.Stdout, Stderr: p.Stderr,
		WaitDelay: drainFor,
	}
	var input io.WriteCloser
	if f, ok := p.Stdin.(*os.File); ok && f != nil {
		c.cmd.Stdin = f
	} else if !ok && p.Stdin != nil {
		var err error
		if input, err = c.cmd.StdinPipe(); err != nil {
			return fault.New(fault.Internal, "cannot start %s", p.Name).Because(err)
		}
	}
	g, err := startGroup(c.cmd)
	if err != nil {
		return notStarted(p, err)
	}
	c.group, c.pid = g, c.cmd.Process.Pid
	if input != nil {
		go func() {
			_, _ = io.Copy(input, p.Stdin)
			_ = input.Close()
		}()
	}
	go c.supervise()
	return nil
}

// OwnPIDs reports whether the program has its own PID namespace.
func (c *Child) OwnPIDs() bool { return false }

func (c *Child) supervise() {
	c.group.waitLeader()
	c.mu.Lock()
	c.exited = true
	ended := c.ended
	c.mu.Unlock()
	c.final.Duration = time.Since(c.began)
	if ended {
		c.graceFor(c.group.othersAlive)
	}
	c.mu.Lock()
	c.group.kill()
	c.gone = true
	if c.kills != nil {
		c.kills.Stop()
	}
	c.mu.Unlock()
	err := c.group.reap(c.cmd)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.final.Lost = err
	}
	c.final.Ended = ended
	c.final.ExitCode, c.final.Signal = ending(c.cmd.ProcessState)
	c.settle()
}

func (c *Child) signalGroup(s os.Signal) {
	if s == os.Kill {
		c.group.kill()
		return
	}
	c.group.terminate()
}

func (c *Child) askGroup(s os.Signal) { c.signalGroup(s) }

func (c *Child) killGroup() { c.group.kill() }
