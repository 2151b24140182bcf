package process

import (
	"errors"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adoptOrphans does nothing: orphans go to process 1 here.
func adoptOrphans() {}

func track(*syscall.SysProcAttr, *int) {}

// rescueFork cannot see here whether a fork is stuck.
func rescueFork() (rescued func() bool) { return func() bool { return false } }

// awaitChange waits until the process has exited, which it leaves to be reaped, or, if asked for, is stopped, which it
// leaves to takeStop.
func awaitChange(pid int, stops bool) (exited bool) {
	if !stops {
		awaitExit(pid)
		return true
	}
	for {
		info, err := waitid(pid, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || info.code != childStopped
		}
	}
}

// takeStop takes what a stop has left behind, or it would be seen again and again. A process that goes on has left
// nothing.
func takeStop(pid int) (by syscall.Signal, is bool) {
	info, err := waitid(pid, unix.WSTOPPED|unix.WNOHANG)
	return syscall.Signal(info.status), err == nil && info.pid == int32(pid)
}

// siginfo is the beginning of siginfo_t.
type siginfo struct {
	signal, errno, code, pid int32
	uid                      uint32
	status                   int32
	_                        [128]byte
}

const (
	idOfProcess  = 1 // P_PID
	childStopped = 5 // CLD_STOPPED
)

func waitid(pid, options int) (info siginfo, err error) {
	_, _, number := unix.Syscall6(unix.SYS_WAITID, idOfProcess, uintptr(pid), uintptr(unsafe.Pointer(&info)),
		uintptr(options), 0, 0)
	if number != 0 {
		err = number
	}
	return info, err
}

func maxRSS(u syscall.Rusage) int64 { return u.Maxrss }

// stopSelf stops this process, if there is somebody to continue it. The runtime keeps a handler that was once
// installed, so the signal that can be handled would do nothing.
func stopSelf(syscall.Signal) {
	if !signal.Ignored(syscall.SIGTSTP) && !orphaned() {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	}
}

// withoutTTOU ignores the signal while f runs: the mask of one thread cannot be set from here.
func withoutTTOU(f func()) {
	if !signal.Ignored(syscall.SIGTTOU) {
		signal.Ignore(syscall.SIGTTOU)
		defer signal.Reset(syscall.SIGTTOU)
	}
	f()
}

const (
	getModes = unix.TIOCGETA
	setModes = unix.TIOCSETA
)

// groupLeft says whether somebody of the group runs.
func (c *Child) groupLeft() bool { return groupRuns(c.pid) }

// sweep waits until the group that was killed is gone. What left it cannot be found here.
func (c *Child) sweep(bool) {
	pollUntil(func() bool { return !groupRuns(c.pid) }, time.After(deathTakes))
}

func (c *Child) reapAdopted() {}
