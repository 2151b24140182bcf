package sandbox

import (
	"slices"
	"sync"
)

// refusedWord begins the report of a path that was refused.
const refusedWord = "refused name "

// mostTold is how many such paths of a command are reported.
const mostTold = 4

// toldPaths are the paths that were reported.
type toldPaths struct {
	mu    sync.Mutex
	paths []string
}

// tellRefused tells the caller of the walls which path of a call was refused, as the command gave it.
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
	if len(r.told.paths) < mostTold && !slices.Contains(r.told.paths, path) {
		r.told.paths = append(r.told.paths, path)
		tell(refusedWord + path)
	}
}
