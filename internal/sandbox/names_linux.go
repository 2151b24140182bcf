package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"omniagent/internal/fault"
)

// names creates an empty placeholder where a protected name is absent, so that a mount can cover it, and removes it
// afterwards.
//
// Each placeholder is recorded before it is created, so that one is found again after a kill. Several commands and
// processes may need the same one. A process with commands has a lease: a locked file that lists the names it needs.
// The stages of its commands share that lock. A placeholder that no held lease lists is removed, if it is still empty
// and the very one that was created. All of this happens under one lock.
//
//	absent ─▶ recorded ─▶ created ─▶ in use: listed in a lease that somebody holds
//	              │           │           │ drop, or all holders died
//	              └── kill ───┴───────────┴─▶ sweep: unchanged ─▶ removed; else left alone
type names struct {
	dir string // one for all workspaces of the user, because they may share a git directory

	mu     sync.Mutex
	count  int
	closed bool
	lease  *os.File
	needed []string // the names in the lease
}

const (
	recordName  = "made"
	leasePrefix = "lease-"

	// With more names, preparing would take longer than any command. A part of them would protect nothing.
	mostNames = 4000

	// Marks a placeholder directory: empty, with the sticky bit.
	placeMode = 0o1755
)

// made is a placeholder.
type made struct {
	path    string
	inode   uint64 // 0: a kill came before it was recorded
	content string

	readOnly bool // not created, because its file system is read-only
}

// openNames opens the record and removes what a kill has left behind.
func openNames(dir string) (*names, error) {
	n := &names{dir: dir}
	return n, n.locked(func() error { return n.sweep() })
}

// take ensures that all protected names exist as long as the lease is held. It returns the directories to pin and the
// names to cover. A trial creates only one of the absent names in each directory. The caller calls drop afterwards.
func (n *names) take(p Policy, trial bool) (pins, covers []string, lease *os.File, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	err = n.locked(func() error {
		if n.count == 0 {
			if err := n.sweep(); err != nil {
				return err
			}
		}
		record, err := n.record()
		if err != nil {
			return err
		}
		w := newWalk(p, record)
		all := p.kept()
		if len(all) > mostNames {
			return fault.New(fault.Blocked, "%d names would have to be protected, more than %d", len(all),
				mostNames).With("path", p.Root).
				Hint("Begin in one of the projects beneath, or look at .git/modules and .git/worktrees of the " +
					"workspace: " +
					"a command may have filled them.")
		}
		for _, k := range all {
			w.visit(k)
		}
		w.pinWithin(p)
		if w.err != nil {
			return w.err
		}
		if trial {
			w.sample()
		}
		if err := n.require(w); err != nil {
			return err
		}
		if err := n.make(w.absent); err != nil {
			return err
		}
		for _, m := range w.absent {
			if m.readOnly {
				delete(w.covers, m.path) // no command can create it either
			}
		}
		pins, covers = sorted(w.pins), sorted(w.covers)
		return nil
	})
	if err != nil {
		if n.count == 0 {
			n.giveUp()
		}
		return nil, nil, nil, err
	}
	n.count++
	return pins, covers, n.lease, nil
}

func sorted(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for path := range set {
		list = append(list, path)
	}
	slices.Sort(list) // parents come first
	return list
}

// require adds the recorded names that are needed to the lease.
func (n *names) require(w *walk) error {
	needed := slices.Clone(n.needed)
	for path := range w.covers {
		if w.made[path] && !slices.Contains(needed, path) {
			needed = append(needed, path)
		}
	}
	for _, m := range w.absent {
		if !slices.Contains(needed, m.path) {
			needed = append(needed, m.path)
		}
	}
	if n.lease == nil {
		if len(needed) == 0 {
			return nil
		}
		file, err := os.CreateTemp(n.dir, leasePrefix)
		if err == nil {
			err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		}
		if err != nil {
			return fault.New(fault.Internal, "the walls cannot be put on record").Because(err)
		}
		n.lease = file
	}
	if len(needed) == len(n.needed) {
		return nil
	}
	n.needed = needed
	var text strings.Builder
	for _, path := range needed {
		text.WriteString(strconv.Quote(path) + "\n")
	}
	if _, err := n.lease.WriteAt([]byte(text.String()), 0); err != nil { // the text only grows
		return fault.New(fault.DiskFull, "the walls cannot be put on record").Because(err)
	}
	return nil
}

// make records the placeholders, creates them, and records their inodes.
func (n *names) make(absent []made) error {
	if len(absent) == 0 {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(n.dir, recordName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fault.New(fault.Internal, "the walls cannot be put on record").Because(err)
	}
	defer file.Close()
	if _, err := file.WriteString(lines(absent)); err != nil {
		return fault.New(fault.DiskFull, "the walls cannot be put on record").Because(err)
	}
	for i := range absent {
		m := &absent[i]
		var s unix.Stat_t
		err = m.inPlace(func(dir int, name string) error {
			var err error
			if m.content == "" {
				err = unix.Mkdirat(dir, name, placeMode)
			} else {
				err = writeNew(dir, name, m.content)
			}
			if err == nil {
				err = unix.Fstatat(dir, name, &s, unix.AT_SYMLINK_NOFOLLOW)
			}
			return err
		})
		if m.readOnly = errors.Is(err, unix.EROFS); m.readOnly {
			continue
		}
		if err != nil && !errors.Is(err, unix.EEXIST) { // somebody else created it: it is theirs
			return fault.New(fault.PermissionDenied, "%s is absent and cannot be kept so", m.path).With("path",
				m.path).Because(err).
				Hint("Let yourself write in %s, or remove it.", filepath.Dir(m.path))
		}
		m.inode = s.Ino
	}
	_, err = file.WriteString(lines(absent))
	return err
}

// inPlace calls f with the open parent directory. It follows no links, because a command that runs may have put one
// there to lead us outside.
func (m made) inPlace(f func(dir int, name string) error) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	dir, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(m.path), &how)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return f(dir, filepath.Base(m.path))
}

func writeNew(dir int, name, content string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(content))
	return errors.Join(err, unix.Close(fd))
}

func lines(list []made) string {
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintf(&b, "%d %s %s\n", m.inode, strconv.Quote(m.path), strconv.Quote(m.content))
	}
	return b.String()
}

// record returns the placeholders that were not removed yet. It ignores a line that a kill has truncated.
func (n *names) record() ([]made, error) {
	text, err := os.ReadFile(filepath.Join(n.dir, recordName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Internal, "the record of the walls cannot be read").Because(err)
	}
	var list []made
	at := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var m made
		if _, err := fmt.Sscanf(line, "%d %q %q\n", &m.inode, &m.path, &m.content); err != nil {
			continue
		}
		if i, again := at[m.path]; again {
			list[i] = m // a later line has the inode
			continue
		}
		at[m.path] = len(list)
		list = append(list, m)
	}
	return list, nil
}

// sweep removes the placeholders that no command needs.
func (n *names) sweep() error {
	record, err := n.record()
	if err != nil {
		return err
	}
	needed := n.living()
	if len(record) == 0 {
		return nil
	}
	left := slices.DeleteFunc(record, func(m made) bool {
		if needed[m.path] {
			return false
		}
		m.remove()
		return true
	})
	path := filepath.Join(n.dir, recordName)
	if len(left) == 0 {
		return os.Remove(path)
	}
	if err := os.WriteFile(path+".new", []byte(lines(left)), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// remove removes a placeholder, if it is the same file and unchanged.
func (m made) remove() {
	_ = m.inPlace(func(dir int, name string) error {
		var s unix.Stat_t
		if err := unix.Fstatat(dir, name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil || m.inode != 0 &&
			s.Ino != m.inode || int(s.Uid) != os.Geteuid() {
			return err
		}
		switch {
		case m.content == "" && s.Mode&unix.S_IFMT == unix.S_IFDIR && s.Mode&unix.S_ISVTX != 0:
			return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) // only if it is empty
		case m.content == "" || s.Mode&unix.S_IFMT != unix.S_IFREG || s.Size > int64(len(m.content)):
			return nil
		}
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		text := make([]byte, len(m.content))
		size, err := unix.Read(fd, text)
		// A kill between creating and writing leaves it empty.
		if err == nil && strings.HasPrefix(m.content, string(text[:size])) && (size > 0 || m.inode == 0) {
			return unix.Unlinkat(dir, name, 0)
		}
		return err
	})
}

// living returns the names in the leases that somebody holds. It removes the other leases.
func (n *names) living() map[string]bool {
	needed := map[string]bool{}
	entries, _ := os.ReadDir(n.dir)
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), leasePrefix) {
			continue
		}
		path := filepath.Join(n.dir, entry.Name())
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		if n.lease == nil || path != n.lease.Name() {
			if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
				_ = os.Remove(path)
				_ = file.Close()
				continue
			}
		}
		_ = file.Close()
		text, _ := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if name, err := strconv.Unquote(strings.TrimSuffix(line, "\n")); err == nil {
				needed[name] = true
			}
		}
	}
	return needed
}

// drop releases what one command needed.
func (n *names) drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.count--; n.count > 0 {
		return
	}
	n.count = 0
	_ = n.tidy()
}

// tidy gives up the lease, and sweeps, once no command needs it.
func (n *names) tidy() error {
	return n.locked(func() error {
		n.giveUp()
		if err := n.sweep(); err != nil {
			return err
		}
		if n.closed {
			n.vacate()
		}
		return nil
	})
}

// giveUp gives up the lease. The caller holds the lock.
func (n *names) giveUp() {
	if n.lease == nil {
		return
	}
	_ = os.Remove(n.lease.Name())
	_ = n.lease.Close()
	n.lease, n.needed = nil, nil
}

// close removes everything that no other process needs.
func (n *names) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count, n.closed = 0, true
	return n.tidy()
}

// Placeholders removes what a kill has left behind, and returns the names that exist only because commands of the user
// need them at the moment. State is that of Options.
func Placeholders(state string) []string {
	dirs := recordDirs(state)
	i := slices.IndexFunc(dirs[:], func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, recordName))
		return err == nil
	})
	if i < 0 { // nothing is made to find that out
		return nil
	}
	n, err := openNames(dirs[i])
	if err != nil {
		return nil
	}
	var paths []string
	_ = n.locked(func() error {
		record, err := n.record()
		for _, m := range record {
			paths = append(paths, m.path)
		}
		return err
	})
	return paths
}
