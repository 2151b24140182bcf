package snapshot

import (
	"runtime/debug"
	"sync"
)

// room counts the calls of WithRoom that run.
var room struct {
	mu      sync.Mutex
	running int
	before  int // the setting that they found
}

// roomPercent is how much the heap may grow between two collections, in hundredths of what is in use, while an index is
// made or read. An index is made of small parts which all stay: a collection in between would look at each of them, on
// processors that read the directories, and find next to nothing. A collection is due at 256 MB at the earliest, enough
// for 250,000 files.
const roomPercent = 6400

// WithRoom calls do, and lets the heap grow meanwhile. Take and LoadFile have room; a caller of several gives it once,
// since nothing is collected between them then.
func WithRoom(do func()) {
	room.mu.Lock()
	if room.running == 0 {
		room.before = debug.SetGCPercent(roomPercent)
		if room.before < 0 || room.before > roomPercent { // somebody knows better
			debug.SetGCPercent(room.before)
		}
	}
	room.running++
	room.mu.Unlock()
	defer func() {
		room.mu.Lock()
		defer room.mu.Unlock()
		if room.running--; room.running == 0 {
			debug.SetGCPercent(room.before)
		}
	}()
	do()
}
