//go:build unix

package audit

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// writableDir asks the system whether a file can be created in dir. Trying would leave a trace or race with other
// processes.
func writableDir(dir string) error {
	const writeAndSearch = 2 | 1
	if err := syscall.Access(dir, writeAndSearch); err != nil {
		return &fs.PathError{Op: "access", Path: dir, Err: err}
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "access", Path: dir, Err: syscall.ENOTDIR}
	}
	return err
}

func readOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
