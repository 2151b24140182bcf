package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
)

// linkedHome is the home directory of commands where nothing can be mounted: links to places. Commands cannot write to
// it.
type linkedHome struct {
	home, dir string
	own       map[string]string // owned places, and the directories in place of them
}

// add links a place. In an owned directory, which commands write, it links only names at the top: a deeper path may
// lead elsewhere by now.
func (f *linkedHome) add(place, real string, sight Visibility) error {
	rel, within := pathname.In(f.home, place)
	if !within || rel == "." {
		return nil // commands see it under its own name
	}
	for owned, dir := range f.own {
		if owned == place || !pathname.Within(owned, place) {
			continue
		}
		if filepath.Dir(place) != owned {
			return nil
		}
		at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(at)
		if err := unix.Symlinkat(real, at, filepath.Base(place)); err != nil && err != unix.EEXIST {
			return err
		}
		return nil
	}
	if sight == Owned {
		f.own[place] = real
	}
	path := filepath.Join(f.dir, rel)
	if err := os.Symlink(real, path); !errors.Is(err, fs.ErrNotExist) {
		return unlessThere(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return unlessThere(os.Symlink(real, path))
}

// fill links and copies the parts of a copied place into the owned directory that contains it, and removes links whose
// target is gone. Other commands may write to that directory meanwhile, so fill changes nothing outside of it and keeps
// what it finds there. It ignores errors: then something is missing from a cache.
func (f *linkedHome) fill(place Place, real string) {
	for owned, dir := range f.own {
		rel, within := pathname.In(owned, place.Path)
		if !within {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return
		}
		defer root.Close()
		if root.MkdirAll(rel, 0o700) != nil {
			return
		}
		at, err := root.OpenRoot(rel)
		if err != nil {
			return
		}
		defer at.Close()
		for _, part := range place.Parts {
			bring(at, real, strings.Split(part.Path, "/"), part.Changes)
		}
	}
}

// bring links or copies what matches a path from one directory into another.
func bring(to *os.Root, from string, path []string, changes bool) {
	there, err := os.ReadDir(from)
	if err != nil {
		return
	}
	if len(path) == 1 {
		bringLast(to, from, path[0], there, changes)
		return
	}
	for _, e := range there {
		if !e.IsDir() || !matches(path[0], e.Name()) || unlessThere(to.Mkdir(e.Name(), 0o700)) != nil {
			continue
		}
		if sub, err := to.OpenRoot(e.Name()); err == nil {
			bring(sub, filepath.Join(from, e.Name()), path[1:], changes)
			_ = sub.Close()
		}
	}
}

// bringLast links or copies what matches the last name of a path.
func bringLast(to *os.Root, from, pattern string, source []fs.DirEntry, changes bool) {
	dir, err := to.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(-1)
	existing := make(map[string]fs.FileMode, len(entries))
	for _, e := range entries {
		existing[e.Name()] = e.Type()
	}
	for _, e := range source {
		name := e.Name()
		kind, exists := existing[name]
		if delete(existing, name); !matches(pattern, name) {
			continue
		}
		if !changes && kind.IsDir() && e.IsDir() && hollow(to, name) {
			exists = to.RemoveAll(name) != nil
		}
		switch {
		case exists:
		case !changes:
			_ = to.Symlink(filepath.Join(from, name), name)
		case e.Type().IsRegular():
			if data, err := os.ReadFile(filepath.Join(from, name)); err == nil {
				_ = to.WriteFile(name, data, 0o600)
			}
		}
	}
	for name, kind := range existing {
		if kind&fs.ModeSymlink == 0 {
			continue
		}
		if target, err := to.Readlink(name); err == nil && target == filepath.Join(from, name) {
			_ = to.Remove(name)
		}
	}
}

// hollow reports whether a directory contains a few directories and no file, as a program leaves when it cannot fetch a
// package.
func hollow(root *os.Root, name string) bool {
	left := 16
	return fs.WalkDir(root.FS(), name, func(_ string, e fs.DirEntry, err error) error {
		if left--; err == nil && (!e.IsDir() || left < 0) {
			err = fs.ErrExist
		}
		return err
	}) == nil
}

func unlessThere(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// moved returns an environment in which HOME, and the paths of places in it, lead to another directory.
func (p Policy) moved(env []string, to string) []string {
	names := []string{p.Homes[0]}
	home, _ := process.Value(env, "HOME")
	if real, err := filepath.EvalSymlinks(home); err == nil && real == p.Homes[0] && real != home {
		names = append(names, filepath.Clean(home))
	}
	var list []string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		from := first(names, value)
		switch {
		case name == "HOME":
			continue
		case !filepath.IsAbs(value) || from == "" || p.shadows(value) || pathname.Within(p.Temp, value):
		default:
			rel, _ := filepath.Rel(from, value)
			path := filepath.Join(p.Homes[0], rel)
			if _, listed := p.place(path); listed || slices.ContainsFunc(p.Places, func(place Place) bool {
				return pathname.Within(path, place.Path)
			}) {
				entry = name + "=" + filepath.Join(to, rel)
			}
		}
		list = append(list, entry)
	}
	return append(list, "HOME="+to)
}
