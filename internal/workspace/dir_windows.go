package workspace

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// renameIn retries for a while: the target cannot be replaced while a reader or a virus scanner has it open.
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

// abandonedIn returns false: files that are opened beneath a root can be removed here while a writer has them open.
// Sweep removes them.
func abandonedIn(*os.Root, string) bool { return false }

// identity returns zeros: the other properties of a file do not have it here.
func identity(fs.FileInfo) (inode uint64, changed int64) { return 0, 0 }
