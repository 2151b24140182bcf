package workspace

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// renameIn retries for a while, because the target cannot be replaced while a reader or a virus scanner has it open.
func renameIn(parent *os.Root, from, to string) error {
	for gap := time.Millisecond; ; gap *= 2 {
		err := parent.Rename(from, to)
		busy := errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION)
		if !busy || gap > 128*time.Millisecond {
			return err
		}
		time.Sleep(gap)
	}
}

// syncIn does nothing, like syncDir.
func syncIn(*os.Root) error { return nil }

// abandonedIn returns false, because here a file opened below a root can be removed while a writer has it open. Sweep
// removes the leftovers.
func abandonedIn(*os.Root, string) bool { return false }

// identity returns zeros, because fs.FileInfo does not have it here.
func identity(fs.FileInfo) (inode uint64, changed int64) { return 0, 0 }
