//go:build unix

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const (
	openWithoutBlocking = syscall.O_NONBLOCK | syscall.O_NOCTTY // do not acquire a controlling terminal
	openWithoutLinks    = syscall.O_NOFOLLOW
)

// syncDir makes a rename durable.
func syncDir(dir string) error { return syncOpen(os.Open(dir)) }

// syncOpen syncs a directory that was just opened, and closes it. It ignores EINVAL and ENOTSUP, which file systems
// return that cannot sync a directory.
func syncOpen(d *os.File, err error) error {
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

func rename(from, to string) error { return os.Rename(from, to) }

// claim marks a temporary file as one whose writer lives, with a lock. The kernel removes it with the process. A
// process id in the name would not be valid in other PID namespaces.
func claim(f *os.File) { _, _ = tryLock(f) }

// abandoned reports whether no process has claimed the temporary file. It returns false if locks do not work.
func abandoned(path string) bool {
	return unclaimed(os.OpenFile(path, os.O_RDONLY|openWithoutBlocking|openWithoutLinks, 0))
}

// unclaimed reports whether no process has claimed a file that was just opened, and closes it.
func unclaimed(f *os.File, err error) bool {
	if err != nil {
		return false
	}
	defer f.Close()
	free, err := tryLock(f)
	return free && err == nil
}

// keepOwner gives the new file to the owner of the old one if permitted, as when root writes a user's file.
func keepOwner(f *os.File, old fs.FileInfo) {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	if info, err := f.Stat(); err == nil {
		if is, ok := info.Sys().(*syscall.Stat_t); ok && (is.Uid != was.Uid || is.Gid != was.Gid) {
			_ = f.Chown(int(was.Uid), int(was.Gid))
		}
	}
}

// tryLock takes the lock of an open file if it is free.
func tryLock(f *os.File) (bool, error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, err
		}
	}
}

// sameFileSystem reports whether both are on one file system.
func sameFileSystem(a, b fs.FileInfo) bool {
	x, okA := a.Sys().(*syscall.Stat_t)
	y, okB := b.Sys().(*syscall.Stat_t)
	return !okA || !okB || x.Dev == y.Dev
}

// device returns the number of the file system.
func device(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev) //nolint:unconvert // its type differs between systems
	}
	return 0
}

// release releases the lock of an open file. Closing the file is not enough, because every child has a copy of the
// descriptor between fork and exec.
func release(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
