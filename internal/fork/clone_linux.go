package fork

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// clone makes a file that shares its blocks with another one until either is written, where the file system can.
func clone(from, to string, perm fs.FileMode) error {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm|0o200)
	if err != nil {
		return err
	}
	err = os.NewSyscallError("clone", unix.IoctlFileClone(int(out.Fd()), int(in.Fd())))
	err = errors.Join(err, out.Close())
	if err == nil {
		err = os.Chmod(to, perm)
	}
	return err
}
