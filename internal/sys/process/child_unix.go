//go:build unix

package process

import (
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
)

// system is the part of a Child for Unix.
type system struct {
	streams  *streams
	guard    *guardian      // nil: there is a namespace, or the program is bound to us
	space    *namespace     // nil: there is a guard, or the program is bound to us
	terminal *lentTerminal  // nil: none
	started  chan error     // one value: nil, or why the program was not started
	signals  chan os.Signal // SIGTSTP and SIGCONT
	tracked  int            // pidfd of the program, or -1
}

// reapEvery is how often dead descendants that we adopted are reaped while the child runs.
const reapEvery = 10 * time.Second

func (c *Child) start() (err error) {
	if c.streams, err = openStreams(c.plan); err != nil {
		return fault.New(fault.Internal, "cannot start %s", c.plan.Name).With("program", c.plan.Name).Because(err)
	}
	c.signals = make(chan os.Signal, 4)
	listening := make(chan struct{})
	go func() { // it takes as long as the start of the guard
		c.listen()
		close(listening)
	}()
	c.guard, c.space, err = guardFor(c.plan)
	<-listening
	if err != nil {
		signal.Stop(c.signals)
		c.streams.abandon()
		return fault.New(fault.Internal, "cannot start the guard of %s", c.plan.Name).Because(err)
	}
	if c.mark = newMark(); c.guard != nil {
		c.mark = c.guard.mark
	}
	if c.plan.Terminal != nil {
		c.terminal = lendTerminal(c.plan.Terminal)
	}
	c.started = make(chan error)
	go c.supervise()
	if err = <-c.started; err != nil {
		signal.Stop(c.signals)
		c.dismiss()
		c.streams.abandon()
		return notStarted(c.plan, err)
	}
	c.streams.run(c.plan.Stdin)
	return nil
}

// supervise runs on the thread that started the child, and keeps that thread until the end: the kernel sends the
// parent-death signal when the thread ends.
func (c *Child) supervise() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	adoptOrphans()
	err := c.fork()
	if err == nil {
		if c.guard != nil {
			c.guard.tell(c.pid, c.terminal == nil, c.plan.RemoveIfEmpty)
		}
		if c.terminal != nil {
			c.terminal.child = c.pid
		}
		go c.follow()
	}
	c.started <- err
	if err != nil {
		return
	}
	c.watch()
	c.finish()
	c.settle()
}

// fork starts the program: in its own session, or in its own group that gets the terminal.
func (c *Child) fork() (err error) {
	defer c.streams.closeGiven()
	how := &syscall.ProcAttr{Dir: c.plan.Dir, Env: marked(c.plan.Env, c.mark), Files: c.descriptors()}
	if c.space != nil {
		c.pid, c.tracked, err = c.space.start(c.plan.Path, c.plan.Argv, how)
		return err
	}
	keepDescriptors()
	attr := &syscall.SysProcAttr{Setsid: c.terminal == nil, Setpgid: c.terminal != nil}
	dieWithParent(attr)
	c.tracked = -1
	track(attr, &c.tracked)
	if c.plan.Shape != nil {
		c.plan.Shape(attr)
	}
	how.Sys = attr
	start := func() (err error) {
		c.pid, err = syscall.ForkExec(c.plan.Path, c.plan.Argv, how)
		return err
	}
	if c.terminal == nil || !c.terminal.ours() {
		return start()
	}
	c.terminal.save()
	attr.Foreground, attr.Ctty = true, c.terminal.fd
	rescued := rescueFork()
	err = start()
	if rescued() {
		reapLeader(c.pid)
		c.closeTracked()
		attr.Foreground = false
		err = start()
	}
	if err != nil {
		c.terminal.takeBack()
	}
	return err
}

func (c *Child) descriptors() []uintptr {
	all := c.streams.descriptors()
	for _, f := range c.plan.Files {
		all = append(all, f.Fd())
	}
	return all
}

// watch returns when the program has exited and is a zombie.
func (c *Child) watch() {
	for {
		if awaitChange(c.pid, c.terminal != nil) {
			c.mu.Lock()
			c.exited = true
			c.mu.Unlock()
			c.final.Duration = time.Since(c.began)
			return
		}
		c.mu.Lock()
		ended := c.ended
		c.mu.Unlock()
		if ended {
			_, _ = takeStop(c.pid)
			_ = syscall.Kill(-c.pid, syscall.SIGCONT)
			continue
		}
		if hangs := c.terminal.stopped(); hangs {
			c.hangUp()
		}
	}
}

// hangUp ends a child that waits for a terminal that it can never get back, as the kernel does with a stopped group
// that becomes orphaned.
func (c *Child) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.askGroup(syscall.SIGHUP)
	if c.kills == nil {
		c.killLater()
	}
}

// finish kills what is left of the child, and returns when everything is restored.
func (c *Child) finish() {
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	if ended {
		c.graceFor(c.groupLeft)
	}
	_ = syscall.Kill(-c.pid, syscall.SIGKILL)
	switch {
	case c.space != nil:
		c.space.kill()
	case c.guard != nil:
		c.sweep(c.plan.Detach && !ended)
		c.guard.release()
	}
	status := reapLeader(c.pid)
	c.mu.Lock()
	c.gone = true
	if c.kills != nil {
		c.kills.Stop()
	}
	c.mu.Unlock()
	c.closeTracked()
	c.final.Ended, c.final.ExitCode = ended, status.ExitStatus()
	if status.Signaled() {
		c.final.ExitCode, c.final.Signal = -1, unix.SignalName(status.Signal())
	}
	if c.space != nil {
		c.space.dismiss()
	}
	if c.terminal != nil {
		c.terminal.giveBack(ended || status.Signaled(), c.plan.Env)
	}
	c.final.Lost = c.streams.finish(c.asked, c.hurry)
	if c.guard != nil {
		c.guard.dismiss()
	}
}

// OwnPIDs reports whether the program has its own PID namespace.
func (c *Child) OwnPIDs() bool { return c.space != nil }

// dismiss ends the guard or the namespace.
func (c *Child) dismiss() {
	if c.space != nil {
		c.space.dismiss()
	}
	if c.guard != nil {
		c.guard.dismiss()
	}
}

func (c *Child) closeTracked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tracked >= 0 {
		_ = syscall.Close(c.tracked)
		c.tracked = -1
	}
}

func reapLeader(pid int) (status syscall.WaitStatus) {
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			return status
		}
	}
}

// listen registers for the signals of job control, before there is a child that could miss one.
func (c *Child) listen() {
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(c.signals, syscall.SIGTSTP)
	}
	if c.plan.Terminal != nil {
		signal.Notify(c.signals, syscall.SIGCONT)
	}
}

// follow stops and continues the child together with us, and reaps adopted processes.
func (c *Child) follow() {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	defer signal.Stop(c.signals)
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
			c.reapAdopted()
		case s := <-c.signals:
			switch {
			case s == syscall.SIGCONT:
				c.terminal.continued()
			case c.terminal != nil:
				c.Signal(s) // the child decides whether it stops
			default:
				c.Signal(syscall.SIGSTOP)
				stopSelf(syscall.SIGTSTP)
				c.Signal(syscall.SIGCONT)
			}
		}
	}
}

func (c *Child) signalGroup(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-c.pid, number)
	}
}

// askGroup sends a signal, and continues the group: a stopped process would not handle the signal.
func (c *Child) askGroup(s os.Signal) {
	c.signalGroup(s)
	_ = syscall.Kill(-c.pid, syscall.SIGCONT)
}

func (c *Child) killGroup() { _ = syscall.Kill(-c.pid, syscall.SIGKILL) }

// keepDescriptors marks the descriptors that this process inherited as close-on-exec. Go marks those that it opens, but
// not those that were open at the start: a lock or the write end of a pipe that a careless parent left would live as
// long as the child.
func keepDescriptors() {
	if markAllDescriptors() == nil {
		return
	}
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// MayExecute reports whether we may execute a file. It asks the system rather than the mode bits: shells of other users
// ignore a file that only its owner may execute.
func MayExecute(path string) bool {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) == nil
}

// StopSelf stops this process, as Ctrl-Z does in a terminal, and returns when it is continued. In a group that nobody
// would continue it returns at once. It also works if SIGTSTP was handled before.
func StopSelf() { stopSelf(syscall.SIGTSTP) }
