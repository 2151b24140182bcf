package sandbox

import (
	"slices"
	"sync"
)

// refusedWord begins the report of a refused path.
const refusedWord = "refused name "

// mostRefused is how many such paths of a command are reported.
const mostRefused = 4

// refusedPaths are the paths that were reported.
type refusedPaths struct {
	mu    sync.Mutex
	paths []string
}

// tellRefused reports to the caller of the walls the refused path of a call, as the command gave it.
func (r *pathCall) tellRefused(d change) {
	if r.told == nil {
		return
	}
	at := d.paths[0]
	if d.act == moves || d.act == makesName || d.act == makesLink {
		at = d.paths[1]
	}
	path, err := r.text(at)
	if err != nil {
		return
	}
	r.told.mu.Lock()
	defer r.told.mu.Unlock()
	if len(r.told.paths) < mostRefused && !slices.Contains(r.told.paths, path) {
		r.told.paths = append(r.told.paths, path)
		tell(refusedWord + path)
	}
}
