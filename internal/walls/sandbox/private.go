package sandbox

import "os"

// Private are namespaces in which programs see directories with overlays: what they write there goes into the upper
// directories. They are not walls: everything else is as it is outside, and may be written.
//
//	entry, err := Private{Layers: layers}.Enter(plan)       // or Join, into those of an entry that still runs
//	child, err := process.Start(entry.Plan)
//	spaces, err := entry.Spaces(child)                      // the program begins
//	child.Wait()
type Private struct {
	Layers  []Layer
	Network Network // Open: that of this machine; else its own loopback, and what Serve lets through
}

// Layer is a directory and the overlay over it.
type Layer struct {
	Lower string // the directory, absolute and without links
	Upper string // what differs from it, as overlayfs stores it
	Work  string // empty; overlayfs needs it, on the file system of Upper
	Name  string // the mount source in mount tables
}

// Spaces are the namespaces of a program, which exist as long as the files are open.
type Spaces struct {
	User, Mount *os.File
	Network     *os.File // nil: that of this machine
	Proxy       int      // the port of the only thing that can be reached outside; 0: there is none
}

// Close closes the files.
func (s Spaces) Close() {
	for _, f := range []*os.File{s.User, s.Mount, s.Network} {
		if f != nil {
			_ = f.Close()
		}
	}
}
