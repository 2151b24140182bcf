package process

import (
	"errors"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adoptOrphans does nothing: macOS gives orphans to process 1.
func adoptOrphans() {}

func track(*syscall.SysProcAttr, *int) {}

// rescueFork does nothing: a stuck fork cannot be detected here.
func rescueFork() (rescued func() bool) { return func() bool { return false } }

// awaitChange waits until the process has exited or, with stops, is stopped. It leaves an exited process to be reaped,
// and a stop to takeStop.
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

// takeStop consumes a stop, which would be reported again otherwise. It returns false if the process has been
// continued.
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

// stopSelf stops this process if a process can continue it. The runtime keeps every signal handler that was installed
// once, so SIGTSTP would do nothing.
func stopSelf(syscall.Signal) {
	if !signal.Ignored(syscall.SIGTSTP) && !orphaned() {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	}
}

// withoutTTOU ignores SIGTTOU while f runs: the signal mask of one thread cannot be set from here.
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

// groupLeft reports whether any process of the group runs.
func (c *Child) groupLeft() bool { return groupRuns(c.pid) }

// sweep waits until the killed group is gone. Processes that left the group cannot be found here.
func (c *Child) sweep(bool) {
	pollUntil(func() bool { return !groupRuns(c.pid) }, time.After(deathTakes))
}

func (c *Child) reapAdopted() {}
