package undo

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/fault"
	"omniagent/internal/git"
	"omniagent/internal/tree"
	"omniagent/internal/workspace"
)

// copyLimit is how many bytes of objects are copied where they cannot be linked.
const copyLimit = 1 << 30

// pinned is a directory like .git in the store. It has what it takes to read the objects of a repository.
func (p *place) pinned(common string) string { return filepath.Join(p.dir, "git", key(common)) }

// commons returns the common directories of the repositories of a snapshot.
func commons(snapshot []*tree.Index) (dirs []string) {
	for _, x := range snapshot {
		for _, dir := range x.GitDirs() {
			if opened, err := git.At(dir); err == nil && !slices.Contains(dirs, opened.Common()) {
				dirs = append(dirs, opened.Common())
			}
		}
	}
	return dirs
}

// pin links the objects of the repositories of a snapshot into the store, and keeps their names with the turn.
func (p *place) pin(snapshot []*tree.Index, id string) error {
	for _, common := range commons(snapshot) {
		to := p.pinned(common)
		listed := filepath.Join(p.dir, "objects-"+key(common))
		known := namesIn(listed)
		names := objectsIn(common)
		prepare(common, to)
		left := int64(copyLimit)
		for _, name := range names {
			if _, there := slices.BinarySearch(known, name); there {
				continue
			}
			if err := bring(filepath.Join(common, "objects", name), filepath.Join(to, "objects", name),
				&left); err != nil {
				return err
			}
		}
		text := []byte(strings.Join(names, "\n"))
		if !slices.Equal(names, known) || !exists(listed) {
			if err := workspace.Replace(listed, text, 0o600); err != nil {
				return err
			}
		}
		mine := filepath.Join(p.turn(id), "objects-"+key(common))
		if os.Link(listed, mine) == nil {
			continue
		}
		if err := workspace.Replace(mine, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the files by which the objects can be read.
func prepare(common, to string) {
	_ = workspace.MkdirAll(filepath.Join(to, "objects", "info"))
	for _, name := range []string{"HEAD", "config"} {
		if data, err := workspace.ReadFile(filepath.Join(common, name), jsonLimit); err == nil {
			renew(filepath.Join(to, name), data)
		}
	}
	borrowed, err := workspace.ReadFile(filepath.Join(common, "objects", "info", "alternates"), jsonLimit)
	if err != nil {
		return
	}
	var all []string
	for line := range strings.Lines(string(borrowed)) {
		if line = strings.TrimSpace(line); line != "" && !filepath.IsAbs(line) {
			line = filepath.Join(common, "objects", line)
		}
		all = append(all, line)
	}
	renew(filepath.Join(to, "objects", "info", "alternates"), []byte(strings.Join(all, "\n")+"\n"))
}

// renew writes a file that does not have the content already.
func renew(path string, data []byte) {
	if is, err := workspace.ReadFile(path, jsonLimit); err != nil || !bytes.Equal(is, data) {
		_ = workspace.Replace(path, data, 0o600)
	}
}

// namesIn reads a list of names, which are sorted.
func namesIn(path string) []string {
	data, err := workspace.ReadFile(path, 1<<30)
	if err != nil || len(data) == 0 {
		return nil
	}
	return strings.Split(string(data), "\n")
}

// objectsIn lists the packs and the loose objects of a repository, sorted.
func objectsIn(common string) (names []string) {
	dir := filepath.Join(common, "objects")
	folders, _ := os.ReadDir(dir)
	for _, folder := range folders {
		name := folder.Name()
		if !folder.IsDir() || len(name) != 2 && name != "pack" {
			continue
		}
		files, _ := os.ReadDir(filepath.Join(dir, name))
		for _, f := range files {
			if f.Type().IsRegular() && !strings.HasPrefix(f.Name(), "tmp_") {
				names = append(names, name+"/"+f.Name())
			}
		}
	}
	slices.Sort(names)
	return names
}

// bring makes a file available under another name, by a link or else as a copy. It does nothing if the file has
// vanished meanwhile, or if the name is taken.
func bring(from, to string, left *int64) error {
	err := os.Link(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Lstat(from); gone != nil {
			return nil
		}
		if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
			err = os.Link(from, to)
		}
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	info, failed := os.Lstat(from)
	if failed != nil || !info.Mode().IsRegular() {
		return nil
	}
	if *left -= info.Size(); *left < 0 {
		return fault.New(fault.FieldTooLarge,
			"the objects of git are on another file system than the snapshots and too "+
				"large to copy: %s", from)
	}
	return duplicate(from, to, info)
}

// duplicate copies a file whole or not at all.
func duplicate(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return fault.New(fault.PermissionDenied, "%s cannot be copied: %v", from, err).Because(err)
	}
	defer in.Close()
	temporary := to + ".tmp"
	out, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm()|0o200)
	if err == nil {
		_, err = io.Copy(out, in)
		err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close())
	}
	if err == nil {
		err = os.Rename(temporary, to)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return fault.New(fault.PermissionDenied, "%s cannot be copied: %v", from, err).Because(err)
	}
	return nil
}

// giveBack puts the objects that a repository had when a turn was recorded back into it.
func (p *place) giveBack(common, id string) error {
	objects := filepath.Join(common, "objects")
	for _, name := range []string{"info", "pack"} {
		if err := os.MkdirAll(filepath.Join(objects, name), 0o755); err != nil {
			return fault.New(fault.PermissionDenied, "%s cannot be made: %v", objects, err).Because(err)
		}
	}
	there, left := objectsIn(common), int64(copyLimit)
	for _, name := range namesIn(filepath.Join(p.turn(id), "objects-"+key(common))) {
		if _, has := slices.BinarySearch(there, name); has {
			continue
		}
		from := filepath.Join(p.pinned(common), "objects", name)
		if err := bring(from, filepath.Join(objects, name), &left); err != nil {
			return err
		}
	}
	return nil
}
