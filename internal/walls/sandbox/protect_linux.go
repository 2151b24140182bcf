package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
)

// walk finds the paths to which protected names lead.
type walk struct {
	writable []string // directories that commands may write
	kept     map[string]bool
	covers   map[string]bool // those that exist
	locks    map[string]bool // those that git replaces over a lock
	locking  bool            // the name that is being visited is such a name
	searched map[string]bool // directories whose links were visited
	err      error           // the first error
}

// protect adds to an order the names that commands cannot change. It fails if one cannot be protected.
func (p Policy) protect(o *order) error {
	w := &walk{
		writable: append([]string{p.Root}, p.Write...), kept: map[string]bool{}, covers: map[string]bool{},
		locks: map[string]bool{}, searched: map[string]bool{},
	}
	for _, k := range p.kept() {
		w.locking = k.lock
		if w.visit(k); w.err != nil {
			return w.err
		}
		switch path := k.path(); {
		case k.config && w.kept[path]:
			delete(w.covers, path) // git replaces it
			o.Configs = append(o.Configs, path)
		case k.hooks && w.kept[path] && !w.covers[path]:
			o.Hooks = append(o.Hooks, path)
		}
	}
	o.Kept, o.Covers, o.Locks = sorted(w.kept), sorted(w.covers), sorted(w.locks)
	o.GitDirs = p.gitDirs()
	for _, fresh := range p.Fresh {
		o.Fresh = append(o.Fresh, fresh.Words())
	}
	// If a directory above one of these were moved, the next command and its sandbox would not find it.
	for _, path := range slices.Concat(w.writable, p.Hidden) {
		if w.changeable(filepath.Dir(path)) {
			o.Stay = append(o.Stay, path)
		}
	}
	return nil
}

func sorted(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for path := range set {
		list = append(list, path)
	}
	slices.Sort(list) // parents come first
	return list
}

// mostNames limits the names: with more, preparing would take longer than any command. Protecting a part protects
// nothing.
const mostNames = 4000

// mostLinks is how many links the kernel follows (MAXSYMLINKS). Nothing can be reached through more.
const mostLinks = 40

// visit resolves a name, link by link, as the kernel would. It protects each link that commands could change, and the
// target. A dangling or circular link only has to be protected itself: nothing can be reached through it.
func (w *walk) visit(k kept) {
	at, left, links := k.base, elements(k.name), 0
	for len(left) > 0 {
		if w.err == nil && len(w.kept) > mostNames {
			w.err = fault.New(fault.Blocked, "%s leads over too many links and directories to be protected", k.path()).
				With("path", k.path()).Hint("Look at where it leads, and remove what should not be there.")
		}
		if w.err != nil {
			return
		}
		part := left[0]
		left = left[1:]
		if part == ".." {
			at = filepath.Dir(at)
			continue
		}
		path := filepath.Join(at, part)
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			w.unseen(k, path, left, err)
			return
		case info.Mode()&fs.ModeSymlink != 0:
			w.cover(path)
			target, err := os.Readlink(path)
			if err != nil {
				w.unseen(k, path, left, err)
				return
			}
			if links++; links > mostLinks {
				return
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			left = append(elements(target), left...)
		case !info.IsDir():
			w.cover(path)
			return
		default:
			at = path
		}
	}
	if slices.Contains(w.writable, at) {
		w.err = fault.New(fault.Unsafe, "%s cannot be protected: it leads to %s, which commands have to write",
			k.path(), at).
			With("path", k.path()).Hint("Remove the link.")
		return
	}
	w.cover(at)
	w.visitLinks(at)
}

// visitLinks protects what the links in a protected directory lead to. The links themselves are protected with it.
func (w *walk) visitLinks(dir string) {
	if w.searched[dir] || !w.changeable(dir) {
		return
	}
	w.searched[dir] = true
	for _, link := range linksIn(dir, deepLinks) {
		if real, err := filepath.EvalSymlinks(link); err == nil && slices.ContainsFunc(w.writable,
			func(root string) bool { return pathname.Within(real, root) }) {
			continue // what commands have to write cannot be protected
		}
		w.visit(kept{base: filepath.Dir(link), name: filepath.Base(link)})
		delete(w.covers, link)
		delete(w.kept, link)
	}
}

// elements returns the elements of a path, without empty ones and dots.
func elements(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(part string) bool {
		return part == "" || part == "."
	})
}

// unseen handles a path that cannot be read. If it does not exist, commands may not create it.
func (w *walk) unseen(k kept, path string, left []string, err error) {
	switch {
	case !w.changeable(path):
	case errors.Is(err, fs.ErrNotExist):
		if name := filepath.Join(append([]string{path}, left...)...); w.changeable(name) {
			w.keep(name)
		}
	case errors.Is(err, unix.ENAMETOOLONG) && len(path) < unix.PathMax: // no file can have that name
	default:
		f := fault.New(fault.PermissionDenied, "%s cannot be protected: %s cannot be looked at", k.path(), path)
		w.err = f.With("path", k.path()).Because(err).Hint("Let yourself read %s, or remove it.", filepath.Dir(path))
	}
}

// changeable reports whether commands could change what is at a path.
func (w *walk) changeable(path string) bool { return first(w.writable, path) != "" }

// cover protects the file at a path.
func (w *walk) cover(path string) {
	if w.changeable(path) {
		w.covers[path] = true
		w.keep(path)
	}
}

func (w *walk) keep(path string) {
	if w.kept[path] = true; w.locking {
		w.locks[path] = true
	}
}
