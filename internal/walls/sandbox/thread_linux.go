package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onDoomedThread runs f on a thread that ends afterwards. Landlock, seccomp and no_new_privs apply to one thread and
// its children, and none can be undone; they end with the thread.
//
// The main thread never ends (Go parks it), so if the scheduler hands us that one, it is only held until f has run on
// another.
func onDoomedThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // unlocked only in the branch below; a goroutine that ends locked takes its thread along
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- onDoomedThread(f)
			return
		}
		done <- f()
	}()
	return <-done
}

// landlockABI asks the kernel, without creating a ruleset.
func landlockABI() (int, error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(abi), nil
}

// tryLandlock forbids this thread to open files for writing and to start programs, and then tries both: it opens the
// null device itself, which does no harm, and starts a program in a child, which shows that children inherit the
// restriction.
func tryLandlock(ctx context.Context, self []string, null *os.File, child bool) error {
	if err := openNull(); err != nil {
		return fmt.Errorf("not tried: %s cannot be written even without Landlock: %w", os.DevNull, err)
	}
	attr := unix.LandlockRulesetAttr{
		Handled_access_fs: unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE,
	}
	// The first member alone is the form of ABI 1, which every later ABI accepts.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr.Handled_access_fs), 0)
	if errno != 0 {
		return fmt.Errorf("no ruleset can be made: %w", errno)
	}
	defer unix.Close(int(fd))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("privileges cannot be given up: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("a ruleset was made but not enforced: %w", errno)
	}
	if err := openNull(); !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("a ruleset was accepted, and yet a write gave %s", outcome(err))
	}
	if !child {
		return nil
	}
	if err := try(ctx, self, null, nil); !errors.Is(err, unix.EACCES) {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("a ruleset was accepted, and yet the start of a child gave %s", outcome(err))
	}
	return nil
}

func outcome(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

func openNull() error {
	fd, err := unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// seccompActions reports whether filters exist and know the two actions that the sandbox needs.
func seccompActions() error {
	for _, action := range []uint32{unix.SECCOMP_RET_ERRNO, unix.SECCOMP_RET_KILL_PROCESS} {
		if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0,
			uintptr(unsafe.Pointer(&action))); errno != 0 {
			return errno
		}
	}
	return nil
}

// trySeccomp forbids this thread one harmless system call, and then makes it. Without a filter getppid cannot fail.
func trySeccomp() error {
	filter := append([]unix.SockFilter{bpfLoad(bpfNumber)},
		bpfIf(unix.BPF_JEQ, unix.SYS_GETPPID, bpfRefuse(unix.EACCES), bpfAllow())...)
	if err := install(filter); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_GETPPID, 0, 0, 0); errno != unix.EACCES {
		return errors.New("a filter was accepted, and yet a system call was not refused")
	}
	return nil
}
