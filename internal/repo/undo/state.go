package undo

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// leaveState marks a directory .git as not restored.
func (r *restorer) leaveState(at int, err error) {
	dir := r.states[at]
	if r.failed[dir] {
		return
	}
	r.note(dir, err)
	r.keptState = append(r.keptState, dir)
	for _, a := range r.actions {
		if r.stateWith(a.path) == at {
			r.failed[a.path] = true
		}
	}
}

// restoreState restores a directory .git, or leaves it as it is if the disk has no room for all of it. later are
// objects that were not given back yet. It returns those of other directories.
func (r *restorer) restoreState(at int, later []objects) (others []objects) {
	dir := r.states[at]
	var mine []objects
	for _, o := range later {
		if r.stateWith(o.gitDir) == at {
			mine = append(mine, o)
		} else {
			others = append(others, o)
		}
	}
	if r.failed[dir] {
		return others
	}
	exists := exists(filepath.Join(r.plan.root, filepath.FromSlash(dir)))
	if exists { // something in it may have to be removed, so it is too late to look when its objects are there
		if err := cmp.Or(r.mayChange(at), r.haveRoom(at, mine)); err != nil {
			r.leaveState(at, err)
			return others
		}
	}
	r.clearAll(at)
	made := len(r.made)
	err := r.makeDirs(at)
	for _, o := range mine {
		err = cmp.Or(err, o.giveBack(r.root))
	}
	if err == nil && !exists {
		err = r.haveRoom(at, nil)
	}
	if err == nil {
		r.writeAll(at)
		return others
	}
	r.leaveState(at, err)
	for _, o := range mine {
		if !exists {
			_ = r.root.RemoveAll(filepath.FromSlash(path.Join(o.gitDir, "objects")))
		}
	}
	for _, name := range slices.Backward(r.made[made:]) {
		_ = r.root.Remove(filepath.FromSlash(name))
	}
	return others
}

// mayChange returns an error if a directory in which the restore of a directory .git changes names is not writable: it
// may belong to another user.
func (r *restorer) mayChange(at int) error {
	tried := map[string]bool{}
	for _, a := range r.actions {
		if r.stateWith(a.path) != at || r.failed[a.path] {
			continue
		}
		dir := r.nearest(path.Dir(a.path))
		if tried[dir] {
			continue
		}
		tried[dir] = true
		if err := r.writable(dir); err != nil {
			return err
		}
		name := filepath.Join(filepath.FromSlash(dir), r.staging)
		f, err := r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Close(), r.root.Remove(name)); err != nil {
			return err
		}
	}
	return nil
}

// nearest returns dir, or the closest directory above it that exists.
func (r *restorer) nearest(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := r.root.Lstat(filepath.FromSlash(dir)); err == nil && info.IsDir() {
			break
		}
	}
	return dir
}

// haveRoom returns an error if the disk has no room for all files of a directory .git and for objects. Without this
// check, a full disk could leave the directory with some files from before the turn and some from after it.
func (r *restorer) haveRoom(at int, given []objects) error {
	const block = 4096
	var room int64
	for _, o := range given {
		for _, name := range o.names {
			if info, err := os.Lstat(filepath.Join(o.pinned, filepath.FromSlash(name))); err == nil {
				room += info.Size() + block
			}
		}
	}
	for _, a := range r.actions {
		if a.was != nil && r.stateWith(a.path) == at && !r.failed[a.path] && !sameContent(a.was, a.is) {
			room += (a.was.Size+block-1)/block*block + block
		}
	}
	dir := r.nearest(cmp.Or(r.states[at], "."))
	if room == 0 {
		return nil
	}
	if err := r.writable(dir); err != nil {
		return err
	}
	name := filepath.Join(filepath.FromSlash(dir), r.staging)
	f, err := r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, zeros{}, room)
	closed := f.Close()
	return cmp.Or(err, closed, r.root.Remove(name))
}

// stateWith returns the index of the restored directory .git that contains a path or is it, or -1.
func (r *restorer) stateWith(name string) int {
	return slices.IndexFunc(r.states, func(dir string) bool {
		return dir == "" || name == dir || strings.HasPrefix(name, dir+"/")
	})
}

// zeros reads as zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
