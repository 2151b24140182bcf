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

// adoptOrphans makes this process the parent of every descendant whose own parent has died. It stays so: whether the
// last child has ended could only be known with a count that belongs to the whole process.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// track keeps a pidfd of what is started. That we hold one tells a child of our own from one that was adopted.
func track(attr *syscall.SysProcAttr, fd *int) { attr.PidFD = fd }

// rescueFork kills what this thread forks if it is stopped before it has become another program: the terminal was ours
// when we asked, and when the child takes it, a shell has taken it back. The fork would wait for ever. The function
// that is returned ends the watch, and says whether the child was killed; fork does not know.
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

// sameProgram says whether a process is still our own program.
func sameProgram(pid int) bool {
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	ours, errOurs := os.Readlink("/proc/self/exe")
	return err == nil && errOurs == nil && theirs == ours
}

// awaitChange waits until the process has exited, which it leaves to be reaped, or, if asked for, is stopped, which it
// leaves to takeStop.
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

// takeStop takes what a stop has left behind, or it would be seen again and again. A process that goes on has left
// nothing.
func takeStop(pid int) (by syscall.Signal, is bool) {
	var info unix.Siginfo
	if unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG, nil) != nil || info.Signo == 0 {
		return 0, false
	}
	return stoppedBy(&info), true
}

// stoppedBy reads si_status, which stands behind si_pid and si_uid in a union that is aligned as a pointer is.
func stoppedBy(info *unix.Siginfo) syscall.Signal {
	const union = (3*4 + unsafe.Sizeof(uintptr(0)) - 1) &^ (unsafe.Sizeof(uintptr(0)) - 1)
	return syscall.Signal(*(*int32)(unsafe.Add(unsafe.Pointer(info), union+8)))
}

func maxRSS(u syscall.Rusage) int64 { return int64(u.Maxrss) << 10 }

// stopSelf stops this process, and all of its group so that a shell sees the job stopped, and returns when it goes on.
// In a group that is orphaned, and where the signal was ignored from the beginning, it returns at once.
//
// The runtime keeps a handler that was once installed, also after signal.Reset, and the signal then does nothing. So
// the system itself is told, for this moment, to ignore the signal, which the group gets, and then to do what it does
// by default.
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

// disposition is what the kernel is told to do with a signal. The zero value is the default.
type disposition struct {
	handler uintptr
	_       [15]uint64 // flags, restorer and mask, in an order that differs
}

// set returns what was there before.
func (d *disposition) set(s syscall.Signal) *disposition {
	before := &disposition{}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(d)),
		uintptr(unsafe.Pointer(before)), 8, 0, 0)
	return before
}

// raise sends this thread a signal. It has been delivered when the call returns; sent to the process, it might stop us
// a little later.
func raise(s syscall.Signal) { _ = unix.Tgkill(unix.Getpid(), unix.Gettid(), s) }

// withoutTTOU runs f on a thread that is not stopped for what it does to a terminal from the background.
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
