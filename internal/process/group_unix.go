//go:build unix

package process

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a running child with everything that it starts.
type group struct{ leader int }

// startGroup starts the child in its own session. That makes a group, as Setpgid would, and also takes the terminal
// away: a program that asks for a password on /dev/tty fails at once instead of being stopped for ever.
func startGroup(cmd *exec.Cmd) (*group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	dieWithParent(cmd.SysProcAttr)
	keepDescriptors()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &group{cmd.Process.Pid}, nil
}

// keepDescriptors keeps descriptors that we inherited from going on to the child. Go marks what it opens, but not what
// was open at the start: a lock or the write end of a pipe that a careless parent left open would live as long as the
// child.
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

func (g *group) kill() { _ = syscall.Kill(-g.leader, syscall.SIGKILL) }

// terminate asks the group to end. It also continues it, because a stopped process would not handle the signal.
func (g *group) terminate() {
	_ = syscall.Kill(-g.leader, syscall.SIGTERM)
	_ = syscall.Kill(-g.leader, syscall.SIGCONT)
}

// othersAlive reports whether other members of the group run. Zombies do not count: if process 1 does not reap them,
// they stay for ever.
func (g *group) othersAlive() bool {
	return syscall.Kill(-g.leader, 0) == nil && groupRuns(g.leader)
}

func (g *group) release() {}

// ending returns how a process ended.
func ending(state *os.ProcessState) (code int, signal string) {
	if state == nil {
		return -1, ""
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -1, unix.SignalName(status.Signal())
	}
	return state.ExitCode(), ""
}

func allowedToExecute(path string) bool { return unix.Access(path, unix.X_OK) == nil }

// leadsItsGroup keeps a damaged record from naming another group, or ours.
func leadsItsGroup(pid int) bool {
	id, err := syscall.Getpgid(pid)
	return err == nil && id == pid && pid > 1 && pid != syscall.Getpgrp()
}

func terminateRecorded(pid int) {
	if leadsItsGroup(pid) {
		(&group{pid}).terminate()
	}
}

func killRecorded(pid int) {
	if leadsItsGroup(pid) {
		(&group{pid}).kill()
	}
}
