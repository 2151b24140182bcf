//go:build unix

package workspace

import "os"

func renameIn(parent *os.Root, from, to string) error { return parent.Rename(from, to) }

// syncIn does what syncDir does, for an open directory.
func syncIn(parent *os.Root) error { return syncOpen(parent.Open(".")) }

// abandonedIn does what abandoned does, in an open directory.
func abandonedIn(parent *os.Root, name string) bool {
	return unclaimed(parent.OpenFile(name, os.O_RDONLY|openWithoutBlocking|openWithoutLinks, 0))
}
