package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"omniagent/internal/fault"
)

const (
	lockName = "lock"

	mostTries = 1000 // to create the directory while others create and remove it
)

// locked calls f with the lock held.
func (n *names) locked(f func() error) error {
	for {
		lock, err := n.lock()
		if err != nil {
			return err
		}
		if !n.current(lock) { // the previous holder removed the file: another file is the lock now
			_ = lock.Close()
			continue
		}
		err = f()
		_ = lock.Close()
		return err
	}
}

// lock waits for the lock, in a directory that others may create and remove meanwhile.
func (n *names) lock() (*os.File, error) {
	for again := 0; ; again++ {
		err := os.MkdirAll(n.dir, 0o700)
		if errors.Is(err, fs.ErrExist) && again < mostTries { // it was removed meanwhile
			continue
		}
		if err != nil {
			return nil, fault.New(fault.PermissionDenied, "the walls cannot keep a record in %s", n.dir).With("path",
				n.dir).Because(err)
		}
		lock, err := os.OpenFile(filepath.Join(n.dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, fs.ErrNotExist) && again < mostTries {
			continue
		}
		if err != nil {
			return nil, fault.New(fault.PermissionDenied, "the record of the walls cannot be locked").Because(err)
		}
		for {
			err := unix.Flock(int(lock.Fd()), unix.LOCK_EX)
			if err == nil {
				return lock, nil
			}
			if !errors.Is(err, unix.EINTR) {
				_ = lock.Close()
				return nil, fault.New(fault.Internal, "the record of the walls cannot be locked").Because(err)
			}
		}
	}
}

// current reports whether a locked file is still the lock file.
func (n *names) current(lock *os.File) bool {
	ours, err := lock.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Lstat(filepath.Join(n.dir, lockName))
	return err == nil && os.SameFile(ours, theirs)
}

// vacate removes the lock file and the directory if it has nothing else. The caller holds the lock and must do nothing
// after this: a process that waits for the file then sees that it is not the lock any more.
func (n *names) vacate() {
	entries, err := os.ReadDir(n.dir)
	if err == nil && len(entries) == 1 && entries[0].Name() == lockName {
		_ = os.Remove(filepath.Join(n.dir, lockName))
		_ = os.Remove(n.dir) // fails if there is a new lock file
	}
}
