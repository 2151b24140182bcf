package fork

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// clone makes a file that shares its blocks with another one until either is written, where the file system can.
func clone(from, to string, perm fs.FileMode) error {
	if err := unix.Clonefile(from, to, unix.CLONE_NOFOLLOW); err != nil {
		return &os.PathError{Op: "clone", Path: from, Err: err}
	}
	return os.Chmod(to, perm)
}
