package sandbox

import (
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

// homes prepares home directories for the commands of a sandbox.
//
// The owned places of a workspace lie in our state, where each workspace has its own, so that what a command leaves in
// a cache meets no other project. What commands write over copied places lies in Policy.Scratch.
type homes struct {
	own   string      // the owned places of the workspace
	used  int         // that directory, with a lock that all who use it share
	farm  *linkedHome // nil: places are mounted
	found order       // the places that are there
	held  *homeServer // nil: none is needed
}

const (
	homePrefix = "home-"
	farmPrefix = "links-"
	homesKept  = 30 * 24 * time.Hour // after the last command in a workspace
)

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:20] }

// openHomes prepares for the commands, and removes what nobody used for long.
func (w *Walls) openHomes(state string) error {
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
	if h.used, err = share(h.own); err != nil {
		return noHome(err)
	}
	w.system.homes = h
	if w.tier == Landlock {
		dir, err := os.MkdirTemp(record, farmPrefix)
		if err != nil {
			return noHome(err)
		}
		h.farm = &linkedHome{home: w.policy.Homes[0], dir: dir, own: map[string]string{}}
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

// share makes a directory and locks it, together with others. One that was removed meanwhile does not count.
func share(dir string) (fd int, err error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return -1, err
		}
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Flock(fd, unix.LOCK_SH)
		}
		var locked, there unix.Stat_t
		if err == nil && unix.Fstat(fd, &locked) == nil && unix.Stat(dir, &there) == nil && locked.Ino == there.Ino {
			return fd, nil
		}
		_ = unix.Close(fd)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return -1, err
		}
	}
}

// leave removes the owned places that are empty, if nobody else uses them.
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
	for _, prefix := range []string{homePrefix, farmPrefix} {
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

// close removes what is of no use to another process.
func (h *homes) close(scratch string) (err error) {
	if h == nil {
		return nil
	}
	if h.held != nil {
		h.held.close()
	}
	if h.farm != nil {
		err = os.RemoveAll(h.farm.dir)
	}
	h.leave()
	if scratch == "" {
		return err
	}
	return errors.Join(err, workspace.Purge(scratch))
}

// owned makes an owned place.
func (h *homes) owned(place string) (string, error) {
	dir := filepath.Join(h.own, digest(place))
	return dir, os.MkdirAll(dir, 0o700)
}

// furnish tells a stage what its command sees of home directories, and returns from where the stage receives them if
// they are mounted.
func (w *Walls) furnish(o *order, trial bool) (from *os.File, err error) {
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
	if h.farm != nil && !trial {
		o.Farm, o.Env = h.farm.dir, w.policy.moved(o.Env, h.farm.dir)
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

// find looks for the places.
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

// add adds one place to what was found.
func (h *homes) add(p Policy, place Place) error {
	o, farm := &h.found, h.farm
	real, sight, isDir := place.Path, place.Sight, true
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
			real, sight = place.Path, Owned // what comes over the network has to lie somewhere
		case err != nil || p.exposes(real):
			return nil
		default:
			isDir = info.IsDir()
		}
	}
	if sight == Copied && farm != nil && beneath {
		if len(place.Parts) == 0 || !isDir {
			return nil // what holds it is the command's own
		}
		o.Seen = append(o.Seen, real, place.Path)
		farm.fill(place, real)
		return nil
	}
	lower := p.lower(real)
	if sight == Copied && (farm != nil || !isDir || lower == "") {
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
	if farm != nil {
		return farm.add(place.Path, real, sight)
	}
	return nil
}

// lower returns the directory over which an overlay is made for a place, or "". The dearest about a copy is its
// overlay, so there is one for all places of a home directory. One that held its own scratch directory, or spanned file
// systems, would not work; then the place has one to itself.
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

// layers makes the directories of the overlays.
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
