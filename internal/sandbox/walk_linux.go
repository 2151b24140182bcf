package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"omniagent/internal/fault"
)

// walk finds out which of the protected names exist.
type walk struct {
	writable []string // directories that commands may write
	made     map[string]bool
	pins     map[string]bool
	covers   map[string]bool
	absent   []made
	err      error // the first error
}

func newWalk(p Policy, record []made) *walk {
	w := &walk{
		writable: append([]string{p.Root}, p.Write...),
		made:     map[string]bool{}, pins: map[string]bool{}, covers: map[string]bool{},
	}
	for _, m := range record {
		w.made[m.path] = true
	}
	return w
}

// mostLinks is how many links the kernel follows (MAXSYMLINKS). Nothing can be reached through more.
const mostLinks = 40

// visit resolves a name, link by link, as the kernel would. It protects each link that commands could change, and the
// target. A dangling or circular link only has to be protected itself: nothing can be reached through it.
func (w *walk) visit(k kept) {
	at, left, links := k.base, elements(k.name), 0
	for len(left) > 0 {
		if w.err == nil && len(w.pins)+len(w.covers) > mostNames {
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
			w.unseen(k, path, len(left) == 0, err)
			return
		case info.Mode()&fs.ModeSymlink != 0:
			w.cover(path)
			target, err := os.Readlink(path)
			if err != nil {
				w.unseen(k, path, false, err)
				return
			}
			if links++; links > mostLinks {
				return
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			left = append(elements(target), left...)
		case !info.IsDir() || w.made[path]:
			w.cover(path)
			return
		default:
			at = path
			if len(left) > 0 {
				w.pin(path)
			}
		}
	}
	if slices.Contains(w.writable, at) {
		w.err = fault.New(fault.Unsafe, "%s cannot be protected: it leads to %s, which commands have to write",
			k.path(), at).
			With("path", k.path()).Hint("Remove the link.")
		return
	}
	w.cover(at)
}

// elements returns the elements of a path, without empty ones and dots.
func elements(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(part string) bool {
		return part == "" || part == "."
	})
}

// unseen handles a path that cannot be read. If it is only absent, it stays absent.
func (w *walk) unseen(k kept, path string, last bool, err error) {
	switch {
	case !w.changeable(path):
	case errors.Is(err, fs.ErrNotExist):
		if !last {
			k.content = ""
		}
		if !w.covers[path] {
			w.absent = append(w.absent, made{path: path, content: k.content})
		}
		w.covers[path] = true
	case errors.Is(err, unix.ENAMETOOLONG) && len(path) < unix.PathMax: // no file can have that name
	default:
		f := fault.New(fault.PermissionDenied, "%s cannot be protected: %s cannot be looked at", k.path(), path)
		w.err = f.With("path", k.path()).Because(err).Hint("Let yourself read %s, or remove it.", filepath.Dir(path))
	}
}

// changeable reports whether commands could change what is at a path.
func (w *walk) changeable(path string) bool { return first(w.writable, path) != "" }

// cover protects what is at a path; pin keeps a directory in its place.
func (w *walk) cover(path string) {
	if w.changeable(path) {
		w.covers[path] = true
	}
}

func (w *walk) pin(path string) {
	if w.changeable(path) && !slices.Contains(w.writable, path) {
		w.pins[path] = true
	}
}

// pinWithin pins the writable directories above the paths of a policy: if one were moved, the next command and its
// sandbox would not find the path.
func (w *walk) pinWithin(p Policy) {
	writable := append([]string{p.Root}, p.Write...)
	for _, path := range slices.Concat(writable, p.Hidden) {
		for _, base := range writable {
			if !within(base, path) {
				continue
			}
			for dir := filepath.Dir(path); dir != base && within(base, dir); dir = filepath.Dir(dir) {
				if info, err := os.Lstat(dir); err == nil && info.IsDir() && !w.covered(dir) {
					w.pins[dir] = true
				}
			}
		}
	}
}

// sample leaves one absent name of each kind in each directory. The name does not matter for a trial, and creating
// dozens of them would take most of its time.
func (w *walk) sample() {
	seen := map[[2]string]bool{}
	w.absent = slices.DeleteFunc(w.absent, func(m made) bool {
		kind := [2]string{filepath.Dir(m.path), m.content}
		if seen[kind] {
			delete(w.covers, m.path)
			return true
		}
		seen[kind] = true
		return false
	})
}

// covered reports whether the path or a parent is covered already.
func (w *walk) covered(path string) bool {
	for cover := range w.covers {
		if within(cover, path) {
			return true
		}
	}
	return false
}
