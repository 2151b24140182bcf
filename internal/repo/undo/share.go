package undo

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
)

// What a snapshot shares with others by hard links is safe only if nobody writes into it.

// guardPacks takes leases on the packs that the store shares by hard links. It returns the directories whose packs it
// could not guard.
func (p *place) guardPacks(commons []string) (l *leases, unguarded []string) {
	left := int64(packCopies)
	l = newLeases(left)
	for _, common := range commons {
		dir, pins := filepath.Join(common, "objects", "pack"), filepath.Join(p.pinned(common), "objects", "pack")
		entries, _ := os.ReadDir(pins)
		all := true
		for _, e := range entries {
			from, to := filepath.Join(dir, e.Name()), filepath.Join(pins, e.Name())
			if !sameFile(from, to) || l.take(from, func() error { return p.separate(from, to) }) {
				continue
			}
			info, err := e.Info()
			if err == nil {
				left -= info.Size()
			}
			all = all && err == nil && left >= 0 && p.separate(from, to) == nil
		}
		if !all {
			unguarded = append(unguarded, dir)
		}
	}
	l.watch()
	return l, unguarded
}

// packCopies is how many bytes of such packs one turn copies.
const packCopies = 256 << 20

func sameFile(a, b string) bool {
	one, err := os.Lstat(a)
	if err != nil {
		return false
	}
	other, err := os.Lstat(b)
	return err == nil && os.SameFile(one, other)
}

// separate replaces a hard link of a file by a copy. Other processes may be about to do the same.
func (p *place) separate(from, to string) error {
	held, err := workspace.Lock(context.Background(), filepath.Join(p.dir, "separating"), lockWait)
	if err != nil {
		return err
	}
	defer held.Unlock()
	info, err := os.Lstat(to)
	if err != nil {
		return err
	}
	if now, err := os.Lstat(from); err == nil && !os.SameFile(info, now) {
		return nil // another process has done it
	}
	return write(to, to, info.Mode().Perm(), workspace.Copy)
}

// noteShared adds a gap to a snapshot for each repository whose objects also have other names, as after git clone of a
// repository on the same disk, or lie behind a link.
func (p *place) noteShared(commons []string, x *snapshot.Index) {
	for _, common := range commons {
		objects, reason := filepath.Join(common, "objects"), snapshot.OtherName
		if info, err := os.Lstat(objects); err == nil && !info.IsDir() {
			reason = "it is a link, so objects that are lost cannot be given back"
		} else if !p.shared(common, objects) {
			continue
		}
		name := objects
		if rel, within := pathname.In(x.Root, objects); within {
			name = filepath.ToSlash(rel)
		}
		x.Unrepresented = append(x.Unrepresented, snapshot.Gap{Path: name, Reason: reason})
	}
}

// mostLooked is about how many loose objects of a repository are checked for other names. A program that links some
// usually links all that exist.
const mostLooked = 512

// shared reports whether objects have names outside of the repository and all stores of snapshots.
func (p *place) shared(common, objects string) bool {
	names := git.ObjectsIn(common)
	var pins []string
	for _, store := range p.store.known() {
		places, _ := namesOf(store, "")
		for _, name := range places {
			pins = append(pins, filepath.Join(store, name, "git", key(common), "objects"))
		}
	}
	loose, _ := slices.BinarySearch(names, "pack/") // what comes first
	step := 1 + loose/mostLooked
	for i, next := 0, 0; i < len(names); i = next {
		// There are few packs, and a clone that has become large since may share nothing but one.
		next = max(i+1, min(i+step, loose))
		name := filepath.FromSlash(names[i])
		info, err := os.Lstat(filepath.Join(objects, name))
		if err != nil {
			continue
		}
		left := workspace.Links(info)
		for _, dir := range pins {
			if left == 1 {
				break
			}
			if pin, err := os.Lstat(filepath.Join(dir, name)); err == nil && os.SameFile(info, pin) {
				left--
			}
		}
		if left > 1 {
			return true
		}
	}
	return false
}

// known returns the directories of all stores, and adds this one to the list.
func (s Store) known() []string {
	all := namesIn(s.Known)
	if slices.Contains(all, s.Dir) {
		return all
	}
	all = append(all, s.Dir)
	if s.Known == "" || strings.ContainsRune(s.Dir, '\n') || os.MkdirAll(filepath.Dir(s.Known), 0o700) != nil {
		return all
	}
	if f, err := os.OpenFile(s.Known, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
		_, _ = f.WriteString(s.Dir + "\n") // without it, links of this store count as foreign
		_ = f.Close()
	}
	return all
}
