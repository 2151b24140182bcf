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

	mostTries = 1000 // to have the directory while others make and remove it
)

// locked calls f while nobody else has the lock.
func (n *names) locked(f func() error) error {
	for {
		lock, err := n.lock()
		if err != nil {
			return err
		}
		if !n.current(lock) { // who had it before has tidied it away: another file is the lock now
			_ = lock.Close()
			continue
		}
		err = f()
		_ = lock.Close()
		return err
	}
}

// lock waits for the lock, in a directory that may go and come meanwhile.
func (n *names) lock() (*os.File, error) {
	for again := 0; ; again++ {
		err := os.MkdirAll(n.dir, 0o700)
		if errors.Is(err, fs.ErrExist) && again < mostTries { // it went while it was looked at
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

// current says whether a file that is locked is the one that others would lock.
func (n *names) current(lock *os.File) bool {
	ours, err := lock.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Lstat(filepath.Join(n.dir, lockName))
	return err == nil && os.SameFile(ours, theirs)
}

// vacate removes the lock and the directory when nothing else is in it. It is called with the lock, and is the last
// that is done with it: who waits for it sees that it is the lock no more.
func (n *names) vacate() {
	entries, err := os.ReadDir(n.dir)
	if err == nil && len(entries) == 1 && entries[0].Name() == lockName {
		_ = os.Remove(filepath.Join(n.dir, lockName))
		_ = os.Remove(n.dir) // not if somebody has made a new lock meanwhile
	}
}
