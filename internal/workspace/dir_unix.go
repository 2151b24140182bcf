//go:build unix

package workspace

import (
	"errors"
	"os"
	"syscall"
)

func renameIn(parent *os.Root, from, to string) error { return parent.Rename(from, to) }

// syncIn does what syncDir does, for an open directory.
func syncIn(parent *os.Root) error {
	d, err := parent.Open(".")
	if err != nil {
		return err
	}
	err = d.Sync()
	_ = d.Close()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// abandonedIn does what abandoned does, in an open directory.
func abandonedIn(parent *os.Root, name string) bool {
	f, err := parent.OpenFile(name, os.O_RDONLY|openWithoutBlocking|openWithoutLinks, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	free, err := tryLock(f)
	return free && err == nil
}
