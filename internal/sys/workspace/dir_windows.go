package workspace

import (
	"io/fs"
	"os"
)

func renameIn(parent *os.Root, from, to string) error {
	return retried(func() error { return parent.Rename(from, to) })
}

// syncIn does nothing, like syncDir.
func syncIn(*os.Root) error { return nil }

// abandonedIn returns false, because here a file opened below a root can be removed while a writer has it open. Sweep
// removes the leftovers.
func abandonedIn(*os.Root, string) bool { return false }

// identity returns zeros, because fs.FileInfo does not have it here.
func identity(fs.FileInfo) (inode uint64, changed int64) { return 0, 0 }
