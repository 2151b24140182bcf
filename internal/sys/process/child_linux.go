package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of every descendant whose own parent has died. It is never undone: that
// would need a count of children for the whole process.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// track requests a pidfd for what is started. Having one tells our own child from an adopted one.
func track(attr *syscall.SysProcAttr, fd *int) { attr.PidFD = fd }

// rescueFork watches this thread's fork, and kills the child if it is stopped before its exec. We had the terminal when
// we checked; if the child is stopped when it takes the terminal, a shell has taken it back, and the fork would never
// return. The returned function ends the watch and reports whether the child was killed; fork does not know.
func rescueFork() (rescued func() bool) {
	children := fmt.Sprintf("/proc/self/task/%d/children", unix.Gettid())
	forked, watched, killed := make(chan struct{}), make(chan struct{}), false
	go func() {
		defer close(watched)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-forked:
				return
			case <-tick.C:
			}
			text, _ := os.ReadFile(children)
			for _, field := range strings.Fields(string(text)) {
				pid, _ := strconv.Atoi(field)
				if s, known := statOf(pid); known && s.state == 'T' && s.group == pid && sameProgram(pid) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
					killed = true
				}
			}
		}
	}()
	return func() bool {
		close(forked)
		<-watched
		return killed
	}
}

// sameProgram reports whether a process still runs our own program.
func sameProgram(pid int) bool {
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	ours, errOurs := os.Readlink("/proc/self/exe")
	return err == nil && errOurs == nil && theirs == ours
}

// awaitChange waits until the process has exited or, with stops, is stopped. It leaves an exited process to be reaped,
// and a stop to takeStop.
func awaitChange(pid int, stops bool) (exited bool) {
	options := unix.WEXITED
	if stops {
		options |= unix.WSTOPPED
	}
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, options|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || !stops {
			return true
		}
		info = unix.Siginfo{}
		return unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) != nil ||
			info.Signo != 0
	}
}

// takeStop consumes a stop, which would be reported again otherwise. It returns false if the process has been
// continued.
func takeStop(pid int) (by syscall.Signal, is bool) {
	var info unix.Siginfo
	if unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG, nil) != nil || info.Signo == 0 {
		return 0, false
	}
	return stoppedBy(&info), true
}

// stoppedBy reads si_status, which follows si_pid and si_uid in a union that is aligned like a pointer.
func stoppedBy(info *unix.Siginfo) syscall.Signal {
	const union = (3*4 + unsafe.Sizeof(uintptr(0)) - 1) &^ (unsafe.Sizeof(uintptr(0)) - 1)
	return syscall.Signal(*(*int32)(unsafe.Add(unsafe.Pointer(info), union+8)))
}

// stopSelf stops this process and its whole group, so that a shell sees the job stopped, and returns when it is
// continued. In an orphaned group, and where the signal was ignored from the beginning, it returns at once.
//
// The runtime keeps every handler that was installed once, also after signal.Reset, and the signal then does nothing.
// So this sets the disposition in the kernel: ignore, while the group gets the signal, and then the default.
func stopSelf(by syscall.Signal) {
	if signal.Ignored(syscall.SIGTSTP) {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ignored := disposition{handler: 1}
	before := ignored.set(syscall.SIGTSTP)
	defer before.set(syscall.SIGTSTP)
	_ = syscall.Kill(0, syscall.SIGTSTP)
	(&disposition{}).set(syscall.SIGTSTP)
	raise(by)
}

// disposition is the kernel's action for a signal. The zero value is the default action.
type disposition struct {
	handler uintptr
	_       [15]uint64 // flags, restorer and mask, in an order that differs
}

// set sets the disposition and returns the previous one.
func (d *disposition) set(s syscall.Signal) *disposition {
	before := &disposition{}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(d)),
		uintptr(unsafe.Pointer(before)), 8, 0, 0)
	return before
}

// raise sends a signal to this thread. It is delivered before the call returns; a signal to the process might arrive
// later.
func raise(s syscall.Signal) { _ = unix.Tgkill(unix.Getpid(), unix.Gettid(), s) }

// withoutTTOU runs f on a thread that changes to a terminal in the background do not stop.
func withoutTTOU(f func()) {
	var set, old unix.Sigset_t
	const bit = uint(unix.SIGTTOU) - 1
	const width = uint(unsafe.Sizeof(set.Val[0])) * 8
	set.Val[bit/width] = 1 << (bit % width)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old) != nil {
		return
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }()
	f()
}

const (
	getModes = unix.TCGETS
	setModes = unix.TCSETS
)
