package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/workspace"
)

// homes are the home directories for the commands of a sandbox.
//
// The owned places lie in our state, in one directory for each workspace, so that caches of different projects do not
// mix. What commands write to copied places lies in Policy.Scratch.
type homes struct {
	own    string      // the directory of the owned places of the workspace
	used   int         // own, opened and with a shared lock
	linked *linkedHome // nil: places are mounted
	found  order       // the places that are there
	held   *homeServer // nil: none is needed
}

const (
	homePrefix  = "home-"
	linksPrefix = "links-"
	homesKept   = 30 * 24 * time.Hour // after the last command in a workspace
)

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:20] }

// openHomes prepares the home directories, and removes those that were unused for homesKept.
func (w *Walls) openHomes(ctx context.Context, state string) error {
	if len(w.policy.Homes) == 0 {
		return nil
	}
	record, err := recordDir(state)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(record, 0o700); err != nil {
		return noHome(err)
	}
	if record, err = filepath.EvalSymlinks(record); err != nil {
		return noHome(err)
	}
	switch dir := w.policy.writable(record); {
	case dir == "":
	case w.tier == Landlock || pathname.Within(w.policy.Temp, record) || pathname.Within(record, dir):
		return fault.New(fault.Unsafe, "commands could change their home directory: %s lies in %s", record, dir).
			With("path", record)
	default:
		w.policy.Hidden = append(slices.Clone(w.policy.Hidden), record)
	}
	if s := w.policy.Scratch; w.policy.shadows(s) && first(w.policy.Hidden, s) == "" {
		w.policy.Scratch = "" // commands could put links in our way
	}
	sweepHomes(record, time.Now().Add(-homesKept))
	h := &homes{own: filepath.Join(record, homePrefix+digest(w.policy.Root))}
	if h.used, err = share(ctx, h.own); err != nil {
		return noHome(err)
	}
	w.system.homes = h
	if w.tier == Landlock {
		dir, err := os.MkdirTemp(record, linksPrefix)
		if err != nil {
			return noHome(err)
		}
		h.linked = &linkedHome{home: w.policy.Homes[0], dir: dir, own: map[string]string{}}
		if err := os.WriteFile(filepath.Join(dir, ".gitconfig"), []byte(w.policy.Identity), 0o600); err != nil {
			return noHome(err)
		}
	}
	if err := h.find(w.policy); err != nil {
		return noHome(err)
	}
	if w.tier == Namespaces {
		return w.hold(h)
	}
	return nil
}

// share creates a directory and takes a shared lock on it. It tries again if the directory was removed meanwhile.
func share(ctx context.Context, dir string) (fd int, err error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return -1, err
		}
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = lockShared(ctx, fd)
		}
		var locked, found unix.Stat_t
		if err == nil && unix.Fstat(fd, &locked) == nil && unix.Stat(dir, &found) == nil && locked.Ino == found.Ino {
			return fd, nil
		}
		_ = unix.Close(fd)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return -1, err
		}
	}
}

// lockShared takes a shared lock, or gives up at the end of ctx. A process that removes the directory holds another
// lock on it, and a wait in the kernel could not be interrupted.
func lockShared(ctx context.Context, fd int) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		err := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}

// leave removes the owned places that are empty, if no other process uses them.
func (h *homes) leave() {
	defer unix.Close(h.used)
	if unix.Flock(h.used, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	places, _ := os.ReadDir(h.own)
	for _, place := range places {
		_ = os.Remove(filepath.Join(h.own, place.Name()))
	}
	if os.Remove(h.own) == nil {
		_ = os.Remove(filepath.Dir(h.own))
	}
}

func sweepHomes(record string, before time.Time) {
	for _, prefix := range []string{homePrefix, linksPrefix} {
		all, _ := filepath.Glob(filepath.Join(record, prefix+"*"))
		for _, dir := range all {
			info, err := os.Lstat(dir)
			if err != nil || !info.IsDir() || !info.ModTime().Before(before) {
				continue
			}
			fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				continue
			}
			if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
				_ = workspace.Purge(dir)
			}
			_ = unix.Close(fd)
		}
	}
}

// close removes what only this process uses.
func (h *homes) close(scratch string) (err error) {
	if h == nil {
		return nil
	}
	if h.held != nil {
		h.held.close()
	}
	if h.linked != nil {
		err = os.RemoveAll(h.linked.dir)
	}
	h.leave()
	if scratch == "" {
		return err
	}
	return errors.Join(err, workspace.Purge(scratch))
}

// owned creates an owned place, and returns its directory.
func (h *homes) owned(place string) (string, error) {
	dir := filepath.Join(h.own, digest(place))
	return dir, os.MkdirAll(dir, 0o700)
}

// addHomes adds to an order what its command sees of home directories. If they are mounted, it returns the file from
// which the stage receives them.
func (w *Walls) addHomes(o *order, trial bool) (from *os.File, err error) {
	o.Homes = w.policy.Homes
	h := w.system.homes
	if h == nil {
		return nil, nil
	}
	o.Seen, o.Own, o.Copies = h.found.Seen, h.found.Own, h.found.Copies
	o.Env = slices.DeleteFunc(o.Env, func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return slices.Contains(w.policy.Caches, name) && filepath.IsAbs(value) && !w.policy.fills(value, o.Tier)
	})
	if h.linked != nil && !trial {
		o.LinkedHome, o.Env = h.linked.dir, w.policy.moved(o.Env, h.linked.dir)
	}
	if h.held == nil {
		return nil, nil
	}
	if from, err = h.held.ask(); err != nil {
		return nil, noHome(err)
	}
	return from, nil
}

func noHome(err error) error {
	return fault.New(fault.PermissionDenied, "no home directory can be made for commands: %v", err).Because(err)
}

// find adds the places that exist to h.found.
func (h *homes) find(p Policy) error {
	for _, place := range p.Places {
		if p.shadows(place.Path) {
			continue
		}
		if err := h.add(p, place); err != nil {
			return err
		}
	}
	now := time.Now()
	_ = os.Chtimes(h.own, now, now)
	return nil
}

// add adds one place to h.found.
func (h *homes) add(p Policy, place Place) error {
	o, linked := &h.found, h.linked
	real, sight, isDir := place.Path, place.Visibility, true
	beneath := p.owned(place.Path) != ""
	if sight != Owned {
		info, err := os.Lstat(place.Path)
		if err == nil {
			real, err = filepath.EvalSymlinks(place.Path)
		}
		if err == nil {
			info, err = os.Stat(real)
		}
		switch {
		case err != nil && sight == Copied && p.Network.name() != "off" && !beneath:
			real, sight = place.Path, Owned // downloads need a place
		case err != nil || p.exposes(real):
			return nil
		default:
			isDir = info.IsDir()
		}
	}
	if sight == Copied && linked != nil && beneath {
		if len(place.Parts) == 0 || !isDir {
			return nil // the directory around it is the command's own
		}
		o.Seen = append(o.Seen, real, place.Path)
		linked.fill(place, real)
		return nil
	}
	lower := p.lower(real)
	if sight == Copied && (linked != nil || !isDir || lower == "") {
		sight = Shown
	}
	switch sight {
	case Owned:
		var err error
		if real, err = h.owned(place.Path); err != nil {
			return err
		}
		o.Own = append(o.Own, real, place.Path)
	case Copied:
		rel, _ := filepath.Rel(lower, real)
		o.Copies = append(o.Copies, lower, rel, place.Path)
	default:
		o.Seen = append(o.Seen, real, place.Path)
	}
	if linked != nil {
		return linked.add(place.Path, real, sight)
	}
	return nil
}

// lower returns the lower directory of the overlay for a place, or "". Overlays are the expensive part of a copy, so
// all places of a home directory share one. That is impossible if it would contain its own scratch directory, or span
// file systems; then the place has its own.
func (p Policy) lower(real string) string {
	scratch, home := p.Scratch, p.Homes[0]
	var a, b unix.Stat_t
	switch {
	case scratch == "" || pathname.Within(real, scratch):
		return ""
	case pathname.Within(home, real) && !pathname.Within(home, scratch) && unix.Stat(home, &a) == nil &&
		unix.Stat(real, &b) == nil && a.Dev == b.Dev:
		return home
	}
	return real
}

// layers creates the directories of the overlays.
func (o *order) layers(dir string) error {
	for copied := range slices.Chunk(o.Copies, 3) {
		lower := copied[0]
		if slices.Contains(o.Layers, lower) {
			continue
		}
		upper, work := filepath.Join(dir, "up-"+digest(lower)), filepath.Join(dir, "work-"+digest(lower))
		if err := errors.Join(workspace.Purge(work), os.MkdirAll(work, 0o700), os.MkdirAll(upper, 0o700)); err != nil {
			return err
		}
		o.Layers = append(o.Layers, lower, upper, work)
	}
	return nil
}
