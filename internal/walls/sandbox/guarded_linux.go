package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"omniagent/internal/walls/autorun"
)

// guarded decides which names commands may change. Paths are those that the kernel knows, with links resolved.
type guarded struct {
	kept   map[string]bool // protected, with all below
	folded map[string]bool // the same in lower case, for file systems that do not tell them apart
	above  map[string]bool // directories on the way to what stays in its place, with a dot in lower case too
	roots  []string
	hidden map[string]bool
	config map[string]bool // configurations of git, of which git may change some keys
	hooks  map[string]bool // directories of hooks, where git puts samples
	locks  map[string]bool // files that git replaces over a lock, in lower case too
	gits   []string        // git directories
	named  []string        // Policy.KeptNames
	fresh  []autorun.Policy

	mu   sync.RWMutex
	dirs map[string]bool // results of protects
}

// mostDirs is how many results of protects are cached.
const mostDirs = 4096

func newGuarded(o *order) *guarded {
	g := &guarded{
		kept: setOf(o.Kept), folded: map[string]bool{}, above: setOf(o.Watched), roots: o.Watched,
		hidden: setOf(o.Hidden), config: setOf(o.Configs), hooks: setOf(o.Hooks), locks: map[string]bool{},
		gits: o.GitDirs, named: o.Named, dirs: map[string]bool{},
	}
	for _, path := range o.Kept {
		if strings.HasPrefix(filepath.Base(path), ".") || strings.Contains(path, "/.git/") {
			g.folded[strings.ToLower(path)] = true
		}
		g.stays(path)
	}
	for _, path := range o.Stay {
		g.stays(path)
	}
	for _, words := range o.Fresh {
		g.fresh = append(g.fresh, autorun.Of(words))
	}
	for _, path := range o.Locks {
		g.locks[path], g.locks[strings.ToLower(path)] = true, true
	}
	return g
}

func setOf(paths []string) map[string]bool {
	set := make(map[string]bool, len(paths))
	for _, path := range paths {
		set[path] = true
	}
	return set
}

// stays keeps the directories above a path from being moved.
func (g *guarded) stays(path string) {
	for dir := filepath.Dir(path); dir != "/" && !g.above[dir]; dir = filepath.Dir(dir) {
		g.above[dir] = true
		if strings.HasPrefix(filepath.Base(dir), ".") {
			g.above[strings.ToLower(dir)] = true
		}
	}
}

// protects reports whether a path is a protected or hidden name, or below one.
func (g *guarded) protects(path string) bool {
	if path == "/" || path == "." {
		return false
	}
	lower := strings.ToLower(path)
	if g.kept[path] || g.folded[lower] || g.hidden[path] || g.isNamed(path) ||
		strings.HasPrefix(lower[strings.LastIndexByte(lower, '/')+1:], copyPrefix) {
		return true
	}
	at := strings.LastIndexByte(path, '/')
	return at > 0 && g.protectsDir(path[:at])
}

// isNamed reports whether a path has a name that is protected wherever it is.
func (g *guarded) isNamed(path string) bool {
	return isNamed(g.named, path) && first(g.roots, filepath.Dir(path)) != "" && !g.inGit(path)
}

// protectsDir is protects for a directory. It caches results, because few directories hold most files.
func (g *guarded) protectsDir(dir string) bool {
	g.mu.RLock()
	yes, known := g.dirs[dir]
	g.mu.RUnlock()
	if known {
		return yes
	}
	yes = g.protects(dir)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.dirs) >= mostDirs {
		clear(g.dirs)
	}
	g.dirs[dir] = yes
	return yes
}

// leadsTo reports whether a path is a directory above a protected name, whether or not it exists.
func (g *guarded) leadsTo(path string) bool { return g.above[path] || g.above[strings.ToLower(path)] }

// sample reports whether a path is an example of a hook, which git never runs.
func (g *guarded) sample(path string) bool {
	return g.hooks[filepath.Dir(path)] && strings.HasSuffix(path, ".sample")
}

// lock reports whether a path is that of the lock of a protected file.
func (g *guarded) lock(path string) bool {
	file, found := strings.CutSuffix(path, ".lock")
	lower, foundLower := strings.CutSuffix(strings.ToLower(path), ".lock")
	return found && g.locks[file] || foundLower && g.locks[lower]
}

// mayWrite reports whether a command may change or create a file. Locks are left to makeLock.
func (g *guarded) mayWrite(path string) bool {
	return !g.protects(path) && !g.lock(path) || g.sample(path)
}

func (g *guarded) mayMakeDirectory(path string) bool {
	return !g.protects(path) && !g.lock(path) || g.hooks[path]
}

func (g *guarded) mayRemove(path string) bool {
	return !g.protects(path) && !slices.Contains(g.roots, path) && !g.isHead(path) || g.sample(path)
}

// mayMove reports whether a command may move a name, move something to it, or create it other than as a directory.
func (g *guarded) mayMove(path string) bool {
	return !g.protects(path) && !g.lock(path) && !g.leadsTo(path)
}

// isFresh reports whether a path is a name that commands cannot make, see autorun.Policy.
func (g *guarded) isFresh(path string) bool {
	return slices.ContainsFunc(g.fresh, func(p autorun.Policy) bool { return p.Fresh(path) })
}

// isFreshDirectory is isFresh for a directory that is made empty.
func (g *guarded) isFreshDirectory(path string) bool {
	return slices.ContainsFunc(g.fresh, func(p autorun.Policy) bool { return p.FreshDirectory(path) })
}

// isFreshTree is isFresh for a directory, whatever was there.
func (g *guarded) isFreshTree(path string) bool {
	return slices.ContainsFunc(g.fresh, func(p autorun.Policy) bool { return p.FreshTree(path) })
}

// isHead reports whether a path is that of HEAD in a git directory. Without it git would look for another one.
func (g *guarded) isHead(path string) bool {
	return filepath.Base(path) == "HEAD" && slices.Contains(g.gits, filepath.Dir(path))
}

// inGit reports whether a path is a git directory or lies in one.
func (g *guarded) inGit(path string) bool {
	return inDotGit(path) || first(g.gits, path) != ""
}

// configures reports whether a move is how git changes a configuration.
func (g *guarded) configures(from, to string) bool { return g.config[to] && from == to+".lock" }
