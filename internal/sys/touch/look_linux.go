package touch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/workspace"
)

// look returns the status of a path, and whether no process has it open for writing. The kernel grants a lease for
// reading only then, even if the file is mapped into memory. The lease is released at once.
func look(path string) (is workspace.Status, quiet bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return is, true
	}
	if !info.Mode().IsRegular() {
		return workspace.StatusOf(info), true
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	}
	if err != nil {
		return workspace.StatusOf(info), !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ELOOP)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); errors.Is(err, unix.EAGAIN) {
		return is, false
	}
	info, err = f.Stat()
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	if err != nil {
		return is, false
	}
	return workspace.StatusOf(info), true
}
