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

// A rule of Landlock holds for an inode, whatever path leads to it, and for everything below it, mounts included. A
// directory can be reached by more than one path: over two mounts of it, or of one that holds it. So what is protected
// is protected under all its paths, and no directory that is the workspace, holds it or lies in it gets a right to
// write, whatever its path.

// inode is the identity of a file.
type inode struct{ device, number uint64 }

func inodeOf(path string) (inode, error) {
	var s unix.Stat_t
	err := unix.Lstat(path, &s)
	return inode{s.Dev, s.Ino}, err
}

// spotOfDisk is where a path leads on a file system, which is the same for all mounts of it.
type spotOfDisk struct{ device, path string }

func (s spotOfDisk) holds(other spotOfDisk) bool {
	return s.device == other.device && pathname.Within(s.path, other.path)
}

// mounted is one line of the table of mounts.
type mounted struct {
	from spotOfDisk
	at   string
}

// table is what is mounted, by the numbers of mounts.
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
		all[number] = mounted{spotOfDisk{fields[2], unescaped(fields[3])}, unescaped(fields[4])}
	}
	return all, nil
}

// unescaped replaces \040 and the like.
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

// spot returns where a path leads. What does not exist lies where its parent does.
func (t table) spot(path string) (spotOfDisk, error) {
	var s unix.Statx_t
	for at := path; ; at = filepath.Dir(at) {
		err := unix.Statx(unix.AT_FDCWD, at, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &s)
		if err != nil && at != "/" {
			continue
		}
		m, found := t[s.Mnt_id]
		if err != nil || s.Mask&unix.STATX_MNT_ID == 0 || !found || !pathname.Within(m.at, at) {
			return spotOfDisk{}, errors.Join(fmt.Errorf("on which mount %s lies is not known", path), err)
		}
		rel, _ := filepath.Rel(m.at, path)
		return spotOfDisk{m.from.device, filepath.Join(m.from.path, rel)}, nil
	}
}

// others returns the further paths of what is at a path.
func (t table) others(path string) (paths []string, err error) {
	where, err := t.spot(path)
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
		if there, err := t.spot(other); err == nil && there == where { // else another mount lies over it
			paths = append(paths, other)
		}
	}
	return paths, nil
}

// everyPath completes an order by the further paths of what is protected, and finds out which directories commands may
// only write by way of the supervisor.
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
	var disks []spotOfDisk
	for _, root := range roots {
		where, err := t.spot(root)
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
		where, err := t.spot(dir)
		if err != nil {
			return err
		}
		overlaps := func(root spotOfDisk) bool { return root.holds(where) || where.holds(root) }
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
