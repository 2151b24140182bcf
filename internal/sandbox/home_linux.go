package sandbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/fault"
	"omniagent/internal/process"
)

// What commands write in their home directories lies in a room, a directory of ours. A workspace has rooms of its own,
// so that what a command leaves in a cache meets no other project. Overlays of two commands cannot share one, so each
// command locks a room as long as it runs, and takes the next if that one is taken:
//
//	walls/home-WORKSPACE/0/lock   held by the stage of a command
//	                       up/    what it wrote over a copied place, and work/, which the kernel needs for that
//	                       own/   directories in place of owned ones
//	                       home/  with Landlock alone: its home directory, links to what it may read
type room struct {
	dir  string
	lock *os.File
}

const (
	roomsPrefix = "home-"
	mostRooms   = 64
	roomsKept   = 30 * 24 * time.Hour // after the last command in a workspace
)

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:20] }

// openRooms prepares for rooms, and removes those that nobody used for long.
func (w *Walls) openRooms(state string) error {
	if len(w.policy.Homes) == 0 {
		return nil
	}
	record, err := recordDir(state)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(record, 0o700); err != nil {
		return fault.New(fault.PermissionDenied, "the home directory of commands cannot be made").Because(err)
	}
	if real, err := filepath.EvalSymlinks(record); err == nil {
		record = real
	}
	if dir := w.policy.writable(record); dir != "" && w.claim.Tier == Landlock {
		return fault.New(fault.Unsafe, "commands could change their home directory: %s lies in %s", record, dir).
			With("path", record)
	}
	sweepRooms(record, time.Now().Add(-roomsKept))
	w.system.rooms = filepath.Join(record, roomsPrefix+digest(w.policy.Root))
	return nil
}

func sweepRooms(record string, before time.Time) {
	all, _ := filepath.Glob(filepath.Join(record, roomsPrefix+"*"))
	for _, rooms := range all {
		if info, err := os.Lstat(rooms); err != nil || !info.IsDir() || info.ModTime().After(before) {
			continue
		}
		entries, _ := os.ReadDir(rooms)
		for _, entry := range entries {
			if r, err := enter(filepath.Join(rooms, entry.Name())); err == nil {
				_ = empty(r.dir)
				_ = r.lock.Close()
			}
		}
		_ = os.Remove(rooms)
	}
}

// empty removes a directory with all in it, also what the kernel made for an overlay, which nobody may enter.
func empty(dir string) error {
	made, _ := filepath.Glob(filepath.Join(dir, "work", "*", "work"))
	for _, each := range made {
		_ = os.Chmod(each, 0o700)
	}
	return os.RemoveAll(dir)
}

// enter locks a room, which it makes if it is absent.
func enter(dir string) (room, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return room{}, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return room{}, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return room{}, errors.Join(err, lock.Close())
	}
	return room{dir, lock}, nil
}

// takeRoom returns the first free one.
func (w *Walls) takeRoom() (room, error) {
	var err error
	for n := range mostRooms {
		var r room
		if r, err = enter(filepath.Join(w.system.rooms, strconv.Itoa(n))); err == nil {
			now := time.Now()
			_ = os.Chtimes(w.system.rooms, now, now)
			return r, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) { // a sweep may remove one
			break
		}
	}
	return room{}, fault.New(fault.PermissionDenied, "no home directory can be made for a command").
		With("path", w.system.rooms).Because(err)
}

// copied returns the directories of an overlay. The kernel refuses to go on with what it left behind in work.
func (r room) copied(place string) (upper, work string, err error) {
	upper, work = filepath.Join(r.dir, "up", digest(place)), filepath.Join(r.dir, "work", digest(place))
	_ = os.Chmod(filepath.Join(work, "work"), 0o700)
	return upper, work, errors.Join(os.RemoveAll(work), os.MkdirAll(upper, 0o700), os.MkdirAll(work, 0o700))
}

func (r room) owned(place string) (string, error) {
	dir := filepath.Join(r.dir, "own", digest(place))
	return dir, os.MkdirAll(dir, 0o700)
}

// furnish tells a stage what its command sees of home directories. The caller closes the lock when the command has
// ended. A trial gets only what it needs to try them.
func (w *Walls) furnish(o *order, trial bool) (lock *os.File, err error) {
	o.Homes, o.Identity = w.policy.Homes, exact{w.policy.Identity}
	if len(o.Homes) == 0 {
		return nil, nil
	}
	var r room
	if !trial {
		if r, err = w.takeRoom(); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				_ = r.lock.Close()
				err = fault.New(fault.PermissionDenied, "the home directory of a command cannot be made").Because(err)
			}
		}()
	}
	var farm *links
	if w.claim.Tier == Landlock && !trial {
		if farm, err = w.newFarm(o, r); err != nil {
			return nil, err
		}
	}
	for _, place := range w.policy.Places {
		if w.policy.shadows(place.Path) || trial && place.Sight != Shown {
			continue
		}
		if err := w.policy.equip(o, r, farm, place); err != nil {
			return nil, err
		}
	}
	return r.lock, nil
}

// equip adds one place to an order.
func (p Policy) equip(o *order, r room, farm *links, place Place) error {
	real, err := filepath.EvalSymlinks(place.Path)
	if err == nil && p.exposes(real) {
		return nil
	}
	sight := place.Sight
	switch info, failed := os.Stat(real); {
	case sight == Owned:
	case sight == Copied && (farm != nil || err != nil) && p.owned(place.Path) != "":
		return nil // what holds it is the command's own
	case err != nil && sight == Copied:
		sight = Owned
	case err != nil || failed != nil:
		return nil
	case farm != nil || !info.IsDir():
		sight = Shown
	}
	switch sight {
	case Owned:
		if real, err = r.owned(place.Path); err == nil {
			o.Own = append(o.Own, real, place.Path)
		}
	case Copied:
		upper, work, failed := r.copied(place.Path)
		o.Copies, err = append(o.Copies, real, place.Path, upper, work), failed
	default:
		o.Seen, err = append(o.Seen, real, place.Path), nil
	}
	if farm != nil && err == nil {
		return farm.add(place.Path, real, sight)
	}
	return err
}

// links is the home directory of a command where nothing can be mounted: links to places. The command cannot write it.
type links struct {
	home, dir string
	own       map[string]string // owned places, and what they are
}

func (w *Walls) newFarm(o *order, r room) (*links, error) {
	f := &links{w.policy.Homes[0], filepath.Join(r.dir, "home"), map[string]string{}}
	if err := errors.Join(os.RemoveAll(f.dir), os.Mkdir(f.dir, 0o700)); err != nil {
		return nil, err
	}
	o.Farm, o.Env = f.dir, w.policy.moved(o.Env, f.dir)
	return f, os.WriteFile(filepath.Join(f.dir, ".gitconfig"), []byte(w.policy.Identity), 0o600)
}

// add makes a link for a place. In an owned directory, which commands write, it makes one only at the top: a name
// deeper down may lead elsewhere by now.
func (f *links) add(place, real string, sight Sight) error {
	rel, err := filepath.Rel(f.home, place)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return nil // it is seen by its own name
	}
	for owned, dir := range f.own {
		if !within(owned, place) {
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
		if err := unix.Symlinkat(real, at, filepath.Base(place)); err != unix.EEXIST {
			return err
		}
		return nil
	}
	if sight == Owned {
		f.own[place] = real
	}
	path := filepath.Join(f.dir, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(real, path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// moved returns an environment in which HOME and what names places there lead to another directory.
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
		case !filepath.IsAbs(value) || from == "" || p.shadows(value) || within(p.Temp, value):
		default:
			rel, _ := filepath.Rel(from, value)
			there := filepath.Join(p.Homes[0], rel)
			if _, listed := p.place(there); listed || slices.ContainsFunc(p.Places, func(place Place) bool {
				return within(there, place.Path)
			}) {
				entry = name + "=" + filepath.Join(to, rel)
			}
		}
		list = append(list, entry)
	}
	return append(list, "HOME="+to)
}

// furnished are home directories under construction in a stage.
type furnished []int

// furnish makes empty home directories, and copies what is mounted there.
func furnish(o *order) (list []placed, homes furnished, err error) {
	add := func(fd int, to string, attrs uint64, optional bool) {
		list = append(list, placed{to, fd, attrs | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, optional})
	}
	for i, home := range o.Homes {
		fd, err := emptyHome()
		if err == nil && i == 0 && len(o.Identity) > 0 {
			err = writeNew(fd, ".gitconfig", o.Identity[0])
		}
		again := -1
		if err == nil {
			again, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("an empty home directory: %w", err)
		}
		add(fd, home, 0, false)
		homes = append(homes, again)
	}
	for pair := range slices.Chunk(o.Own, 2) {
		fd, err := take(pair[0])
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", pair[0], err)
		}
		add(fd, pair[1], 0, false)
	}
	// In a directory of its own an earlier command may have put something in the way, and then does without the place.
	for pair := range slices.Chunk(o.Seen, 2) {
		if fd, err := take(pair[0]); err == nil {
			add(fd, pair[1], unix.MOUNT_ATTR_RDONLY, o.owns(pair[1]))
		}
	}
	for four := range slices.Chunk(o.Copies, 4) {
		owned := o.owns(four[1])
		if fd, err := overlay(four[0], four[2], four[3]); err == nil {
			add(fd, four[1], 0, owned)
		} else if fd, err := take(four[0]); err == nil && !owned {
			add(fd, four[1], unix.MOUNT_ATTR_RDONLY, false)
		} else if err == nil {
			_ = unix.Close(fd)
		}
	}
	return list, homes, nil
}

func (o *order) owns(path string) bool {
	for pair := range slices.Chunk(o.Own, 2) {
		if within(pair[1], path) {
			return true
		}
	}
	return false
}

// close makes the home directories read-only, now that everything in them is in its place.
func (f furnished) close() error {
	for _, fd := range f {
		readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &readOnly); err != nil {
			return fmt.Errorf("a home directory cannot be made read-only: %w", err)
		}
		_ = unix.Close(fd)
	}
	return nil
}

// filesystem returns a new file system as a detached mount. A flag is an option without a value.
func filesystem(kind string, options ...[2]string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, option := range options {
		if option[1] == "" {
			err = unix.FsconfigSetFlag(fs, option[0])
		} else {
			err = unix.FsconfigSetString(fs, option[0], option[1])
		}
		if err != nil {
			return -1, fmt.Errorf("%s: %w", option[0], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
}

func emptyHome() (int, error) {
	return filesystem("tmpfs", [2]string{"mode", "0755"}, [2]string{"size", "4m"})
}

// overlay shows a directory, and puts what is written there into upper. Without volatile, the end of the command would
// wait until all of that file system is on the disk. Its options take paths with all kinds of special characters badly,
// so they get descriptors.
func overlay(lower, upper, work string) (int, error) {
	options := [][2]string{{"userxattr", ""}, {"volatile", ""}}
	for _, dir := range [][2]string{{"lowerdir", lower}, {"upperdir", upper}, {"workdir", work}} {
		fd, err := openPlain(dir[1])
		if err != nil {
			return -1, err
		}
		defer unix.Close(fd)
		options = append(options, [2]string{dir[0], fmt.Sprintf("/proc/self/fd/%d", fd)})
	}
	return filesystem("overlay", options...)
}

// triesHomes looks at whether home directories are empty, or else whether a file that is not on the list can be read.
func triesHomes(o order, _ *trial) error {
	open := slices.Concat([]string{o.Root, o.Temp}, o.Write)
	for pair := range slices.Chunk(o.Seen, 2) {
		open = append(open, pair[0], pair[1])
	}
	for _, home := range o.Homes {
		var s unix.Statfs_t
		if err := unix.Statfs(home, &s); o.Tier == Namespaces && (err != nil || s.Type != unix.TMPFS_MAGIC) {
			return fmt.Errorf("the home directory %s is not an empty one: %w", home, err)
		}
		entries, err := os.ReadDir(home)
		if err != nil || o.Tier == Namespaces {
			continue
		}
		for _, entry := range entries {
			path := filepath.Join(home, entry.Name())
			if !entry.Type().IsRegular() || first(open, path) != "" {
				continue
			}
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			if unreachable(err) {
				continue
			}
			if err := refused("the reading of "+path, err); err != nil {
				return err
			}
		}
	}
	return nil
}
