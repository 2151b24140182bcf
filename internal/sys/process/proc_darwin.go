package process

import (
	"errors"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent does nothing: macOS has no parent-death signal.
func dieWithParent(*syscall.SysProcAttr) {}

func markAllDescriptors() error { return errors.ErrUnsupported }

// awaitExit waits until a process has exited and leaves it to be reaped: as long as it is a zombie, its number is not
// given away.
func awaitExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return // the caller then kills the group: better than waiting for an event that cannot come
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)
	var exit unix.Kevent_t
	unix.SetKevent(&exit, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	exit.Fflags = unix.NOTE_EXIT
	happened := make([]unix.Kevent_t, 1)
	for {
		// A process that is a zombie already is reported as an error of the registration, which is as good.
		if _, err := unix.Kevent(queue, []unix.Kevent_t{exit}, happened, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// groupRuns reports whether a group has a running member. It relies on kill, which does not count zombies here.
func groupRuns(id int) bool { return syscall.Kill(-id, 0) == nil }

const zombie = 5 // SZOMB

// identity returns a text that no other process with this number ever has.
func identity(pid int) (string, bool) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid || info.Proc.P_stat == zombie {
		return "", false
	}
	at := info.Proc.P_starttime
	return strconv.FormatInt(int64(at.Sec), 10) + "." + strconv.FormatInt(int64(at.Usec), 10), true
}

func parentOf(pid int) int {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return int(info.Eproc.Ppid)
}
