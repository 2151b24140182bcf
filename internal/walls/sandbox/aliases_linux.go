package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/kit/pathname"

	"golang.org/x/sys/unix"
)

// A Landlock rule holds for an inode, by whatever path it is reached, and for everything below it, mounts included. Two
// mounts of a directory, or of one above it, give it two paths. So a name is protected under all its paths, and no
// directory that is, contains or lies in the workspace gets the right to write, whatever its path.

// inode is the identity of a file.
type inode struct{ device, number uint64 }

func inodeOf(path string) (inode, error) {
	var s unix.Stat_t
	err := unix.Lstat(path, &s)
	return inode{s.Dev, s.Ino}, err
}

// diskPath is a path within a file system, the same for all mounts of that file system.
type diskPath struct{ device, path string }

func (s diskPath) holds(other diskPath) bool {
	return s.device == other.device && pathname.Within(s.path, other.path)
}

// mounted is one line of the table of mounts.
type mounted struct {
	from diskPath
	at   string
}

// table is the mount table, by mount ID.
type table map[uint64]mounted

func readTable() (table, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	all := table{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		number, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			return nil, err
		}
		all[number] = mounted{diskPath{fields[2], unescaped(fields[3])}, unescaped(fields[4])}
	}
	return all, nil
}

// unescaped decodes the octal escapes of a mount table, such as \040.
func unescaped(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// diskPathOf returns where a path lies on its file system. What does not exist lies where its parent does.
func (t table) diskPathOf(path string) (diskPath, error) {
	var s unix.Statx_t
	for at := path; ; at = filepath.Dir(at) {
		err := unix.Statx(unix.AT_FDCWD, at, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &s)
		if err != nil && at != "/" {
			continue
		}
		m, found := t[s.Mnt_id]
		if err != nil || s.Mask&unix.STATX_MNT_ID == 0 || !found || !pathname.Within(m.at, at) {
			return diskPath{}, errors.Join(fmt.Errorf("on which mount %s lies is not known", path), err)
		}
		rel, _ := filepath.Rel(m.at, path)
		return diskPath{m.from.device, filepath.Join(m.from.path, rel)}, nil
	}
}

// others returns the other paths of the file at a path.
func (t table) others(path string) (paths []string, err error) {
	where, err := t.diskPathOf(path)
	if err != nil {
		return nil, err
	}
	for _, m := range t {
		rest, found := strings.CutPrefix(where.path, m.from.path)
		if m.from.device != where.device || !found || m.from.path != "/" && rest != "" && rest[0] != '/' {
			continue
		}
		other := filepath.Join(m.at, rest)
		if other == path || slices.Contains(paths, other) {
			continue
		}
		if place, err := t.diskPathOf(other); err == nil && place == where { // else another mount lies over it
			paths = append(paths, other)
		}
	}
	return paths, nil
}

// everyPath adds to an order the other paths of what is protected, and finds the directories that commands may write
// only through the supervisor.
func (o *order) everyPath() error {
	t, err := readTable()
	if err != nil {
		return fmt.Errorf("the table of mounts: %w", err)
	}
	lists := []*exact{&o.Kept, &o.Configs, &o.Hooks, &o.Locks, &o.Stay, &o.GitDirs}
	for _, list := range lists {
		for _, path := range slices.Clone(*list) {
			others, err := t.others(path)
			if err != nil {
				return err
			}
			*list = append(*list, others...)
		}
	}
	roots := append(exact{o.Root}, o.Write...)
	o.Watched = slices.Clone(roots)
	above := inodesAbove(slices.Concat(roots, o.Kept, o.Stay))
	var disks []diskPath
	for _, root := range roots {
		where, err := t.diskPathOf(root)
		if err != nil {
			return err
		}
		disks = append(disks, where)
	}
	for _, dir := range o.granted() {
		id, err := inodeOf(dir)
		if slices.Contains(o.Watched, dir) || err != nil {
			continue
		}
		where, err := t.diskPathOf(dir)
		if err != nil {
			return err
		}
		overlaps := func(root diskPath) bool { return root.holds(where) || where.holds(root) }
		if above[id] || slices.ContainsFunc(disks, overlaps) {
			o.Watched = append(o.Watched, dir)
		}
	}
	return nil
}

// inodesAbove returns the inodes of paths and of all directories above them.
func inodesAbove(paths []string) map[inode]bool {
	above, seen := map[inode]bool{}, map[string]bool{}
	for _, path := range paths {
		for ; !seen[path]; path = filepath.Dir(path) { // a path, not an inode: it has others above it elsewhere
			seen[path] = true
			if id, err := inodeOf(path); err == nil {
				above[id] = true
			}
		}
	}
	return above
}

// granted returns the directories that commands may change: those of the policy, of temporary files, and in home
// directories.
func (o *order) granted() []string {
	list := slices.Concat(append(exact{o.Root}, o.Write...), o.temporary())
	for pair := range slices.Chunk(o.Own, 2) {
		if o.Tier == Landlock {
			list = append(list, pair[0]) // pair[1] is the user's
		} else {
			list = append(list, pair[1])
		}
	}
	for copied := range slices.Chunk(o.Copies, 3) {
		list = append(list, copied[2])
	}
	return list
}
