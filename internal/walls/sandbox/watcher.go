package sandbox

import (
	"time"

	"omniagent/internal/sys/workspace"
)

// Watcher receives the writes of programs behind walls, as the supervisor of each sees them. Paths are absolute and
// have no links. Its methods may be called from several goroutines.
type Watcher interface {
	// Attach is told of a program that is about to start. delivered reports whether everything that was seen of it has
	// been passed on. The result is called at its end.
	Attach(delivered func() bool) (detach func())
	// Wrote says that a program has opened a file for writing, made a name, removed it, or changed its attributes.
	// before is what was there: a zero status is nothing. began is when the supervisor began to make the call, which is
	// over; zero: the kernel makes it afterwards.
	Wrote(path string, before workspace.Status, began time.Time)
	// Moved says that a program has moved what was at a path to another one, where before had been.
	Moved(from, to string, is, before workspace.Status, began time.Time)
	// Unseen says that from now on writes are missing, and why.
	Unseen(why string)
}

// unseenReason says why writes are not seen where there is no supervisor.
const unseenReason = "nothing here sees what commands write"
