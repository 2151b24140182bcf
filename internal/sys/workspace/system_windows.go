package workspace

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

const (
	openWithoutBlocking = 0
	openWithoutLinks    = 0
)

// syncDir does nothing: Windows has no fsync of a directory, and NTFS journals the rename.
func syncDir(string) error { return nil }

func rename(from, to string) error { return retried(func() error { return os.Rename(from, to) }) }

// retried repeats a rename for a while, because the target cannot be replaced while a reader or a virus scanner has it
// open.
func retried(rename func() error) error {
	for gap := time.Millisecond; ; gap *= 2 {
		err := rename()
		busy := errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION)
		if !busy || gap > 128*time.Millisecond {
			return err
		}
		time.Sleep(gap)
	}
}

// claim does nothing, because an open file cannot be removed here.
func claim(*os.File) {}

// abandoned leaves the decision to the removal, which fails while a writer has the file open.
func abandoned(string) bool { return true }

func keepOwner(*os.File, fs.FileInfo) {}

// tryLock takes the lock of an open file if it is free. Locks are mandatory here, so it locks a byte beyond any
// content: other processes must be able to read the holder.
func tryLock(f *os.File) (bool, error) {
	place := &windows.Overlapped{OffsetHigh: 0x7fffffff}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, place)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	}
	return false, err
}

func sameFileSystem(fs.FileInfo, fs.FileInfo) bool { return true }

// release does nothing, because closing the file releases its lock.
func release(*os.File) {}

// device returns 0, because a directory walk does not report it here.
func device(fs.FileInfo) uint64 { return 0 }
