package workspace

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Clone creates a file that shares its blocks with another one until either is written, if the file system supports
// that. On failure it leaves nothing. It does not follow a link at from.
func Clone(from, to string, perm fs.FileMode) error {
	if err := unix.Clonefile(from, to, unix.CLONE_NOFOLLOW); err != nil {
		return &os.PathError{Op: "clone", Path: from, Err: err}
	}
	err := os.Chmod(to, perm)
	if err != nil {
		_ = os.Remove(to)
	}
	return err
}
