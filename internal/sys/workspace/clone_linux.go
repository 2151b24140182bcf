package workspace

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Clone creates a file that shares its blocks with another one until either is written, if the file system supports
// that. On failure it leaves nothing. It does not follow a link at from.
func Clone(from, to string, perm fs.FileMode) error {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm|0o200)
	if err != nil {
		return err
	}
	err = os.NewSyscallError("clone", unix.IoctlFileClone(int(out.Fd()), int(in.Fd())))
	if err == nil {
		err = out.Chmod(perm)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(to)
	}
	return err
}
