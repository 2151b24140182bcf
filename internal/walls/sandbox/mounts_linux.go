package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/kit/pathname"

	"golang.org/x/sys/unix"
)

// The namespace begins with a copy of the caller's mounts, which become read-only in place, all at once. Before that,
// each writable path is copied as a detached mount, which is then put over its place. No old root has to be detached,
// because there is no new root: no name leads to anything that was writable before.
//
//	copy writable paths, take home directories ─▶ all read-only ─▶ put them in place ─▶ protect ─▶ hide

const (
	cloneTree = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE
	coverDir  = "/dev/.hidden/directory"
	coverFile = "/dev/.hidden/file"
)

// placed is a detached mount and its place.
type placed struct {
	path     string
	fd       int
	attrs    uint64
	optional bool
}

func mounts(o *order) error {
	err := overrides(false)
	if err != nil {
		return err
	}
	if o.Dir, err = os.Getwd(); err != nil {
		return fmt.Errorf("the directory of the command: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	list, err := copyWritable(o)
	if err != nil {
		return err
	}
	if err := mountOwn(o, func() error { return mountProc(o) }); err != nil {
		return err
	}
	if err := putAll(list); err != nil {
		return err
	}
	for _, dir := range ownRunDirs() { // what lies in it has its place
		readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &readOnly); err != nil {
			return fmt.Errorf("%s cannot be made read-only: %w", dir, err)
		}
	}
	if err := keep(o); err != nil {
		return err
	}
	if err := hide(o.Hidden); err != nil {
		return err
	}
	if err := unix.Access(o.Dir, unix.X_OK); err != nil {
		return fmt.Errorf("%s cannot be the directory of a command: %w", o.Dir, err)
	}
	return nil
}

// mountOwn makes everything read-only, and mounts the program's own /dev, /run and, by processes, /proc.
func mountOwn(o *order, processes func() error) error {
	devices, err := deviceClones()
	if err != nil {
		return err
	}
	everything := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &everything); err != nil {
		return fmt.Errorf("not everything can be made read-only: %w", err)
	}
	if err := mountDevices(o, devices); err != nil {
		return fmt.Errorf("/dev: %w", err)
	}
	if err := processes(); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if err := mountRun(o); err != nil {
		return fmt.Errorf("/run: %w", err)
	}
	return nil
}

// copyWritable copies the mounts of writable paths, in the order in which they are put back: parents first.
func copyWritable(o *order) (list []placed, err error) {
	add := func(from, to string, attrs uint64) error {
		fd, err := take(from)
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		list = append(list, placed{path: to, fd: fd, attrs: attrs | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV})
		return nil
	}
	for _, dir := range temporaryDirs() {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || dir == o.Root || slices.Contains(o.Write, dir) ||
			slices.Contains(o.Homes, dir) {
			continue
		}
		if err := add(o.Temp, dir, 0); err != nil {
			return nil, err
		}
	}
	if !pathname.Within("/tmp", o.Temp) && !pathname.Within("/var/tmp", o.Temp) {
		if err := add(o.Temp, o.Temp, 0); err != nil {
			return nil, err
		}
	}
	for _, dir := range append([]string{o.Root}, o.Write...) {
		if err := add(dir, dir, 0); err != nil {
			return nil, err
		}
	}
	read := slices.Clone(o.Read)
	for pair := range slices.Chunk(o.Seen, 2) {
		if pair[0] == pair[1] && first(runDirs(), pair[1]) != "" {
			read = append(read, pair[1])
		}
	}
	for _, path := range read {
		if first(append(runDirs(), temporaryDirs()...), path) == "" || pathname.Within(o.Root, path) {
			continue
		}
		if err := add(path, path, unix.MOUNT_ATTR_RDONLY); err != nil && !errors.Is(err, unix.ENOENT) {
			return nil, err
		}
	}
	if homes := outermost(o.Homes); len(homes) > 0 {
		fds, err := receiveHomes(o)
		if err != nil {
			return nil, err
		}
		for i, home := range homes { // a workspace at the same place is mounted over it
			list = append([]placed{{path: home, fd: fds[i]}}, list...)
		}
	}
	slices.SortStableFunc(list, parentsFirst)
	return list, nil
}

func parentsFirst(a, b placed) int { return strings.Compare(a.path+"/", b.path+"/") }

// take returns a detached copy of a mount. It refuses a path with a link, which a command may have created.
func take(path string) (int, error) {
	fd, err := openPlain(path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return unix.OpenTree(fd, "", cloneTree|unix.AT_EMPTY_PATH)
}

// openPlain opens a path. Only its last element may be a link, which is not followed.
func openPlain(path string) (int, error) {
	dir, name := filepath.Split(path)
	if name == "" {
		return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY, Resolve: unix.RESOLVE_NO_SYMLINKS}
	parent, err := unix.Openat2(unix.AT_FDCWD, dir, &how)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	return unix.Openat(parent, name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
}

// put attaches the mount. In a temporary directory its place has to be created first.
func (m placed) put() error {
	defer unix.Close(m.fd)
	to, err := openPlain(m.path)
	if errors.Is(err, unix.ENOENT) {
		if err = makePlace(m.path, m.fd); err == nil {
			to, err = openPlain(m.path)
		}
	}
	if err != nil {
		return err
	}
	defer unix.Close(to)
	return attach(m.fd, to, m.attrs)
}

// putAll attaches mounts in their order.
func putAll(list []placed) error {
	for _, m := range list {
		if err := m.put(); err != nil && !m.optional {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return nil
}

func makePlace(path string, fd int) error {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return err
	}
	if s.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(path, 0o700)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

func attach(fd, to int, attrs uint64) error {
	if attrs != 0 {
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
			&unix.MountAttr{Attr_set: attrs}); err != nil {
			return err
		}
	}
	return unix.MoveMount(fd, "", to, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// makeReadOnly mounts a copy of a path over the path. A mount point cannot be moved or removed.
func makeReadOnly(path string) error {
	at, err := openPlain(path)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	fd, err := unix.OpenTree(at, "", cloneTree|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return attach(fd, at, unix.MOUNT_ATTR_RDONLY)
}

// keep covers the existing protected names with read-only mounts, parents first. The supervisor protects the names; the
// mounts protect their permissions and times.
func keep(o *order) error {
	for _, path := range o.Covers {
		if err := makeReadOnly(path); err != nil && !unreachable(err) {
			return fmt.Errorf("%s cannot be protected: %w", path, err)
		}
	}
	return nil
}

// hide covers each existing path with something unreadable. It follows links, because the target is what has to be
// hidden.
func hide(paths []string) error {
	for _, path := range paths {
		at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if unreachable(err) || errors.Is(err, unix.EACCES) {
			continue // it is absent, or cannot be reached without a sandbox either
		}
		if err != nil {
			return fmt.Errorf("%s cannot be hidden: %w", path, err)
		}
		var s unix.Stat_t
		err = unix.Fstat(at, &s)
		cover := coverFile
		if s.Mode&unix.S_IFMT == unix.S_IFDIR {
			cover = coverDir
		}
		fd := -1
		if err == nil {
			fd, err = unix.OpenTree(unix.AT_FDCWD, cover, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		}
		if err == nil {
			err = attach(fd, at, unix.MOUNT_ATTR_RDONLY)
			_ = unix.Close(fd)
		}
		_ = unix.Close(at)
		if err != nil {
			return fmt.Errorf("%s cannot be hidden: %w", path, err)
		}
	}
	return nil
}

// unreachable reports whether an error means that a path leads to nothing for every user.
func unreachable(err error) bool {
	return slices.ContainsFunc([]error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG}, func(no error) bool {
		return errors.Is(err, no)
	})
}

func deviceClones() (list []placed, err error) {
	for _, name := range deviceNames() {
		path := "/dev/" + name
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if errors.Is(err, unix.ENOENT) && name != "null" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, placed{path: path, fd: fd, attrs: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC})
	}
	return list, nil
}

// mountDevices mounts a /dev with the few devices that programs need, and with terminals and shared memory that
// belong to this command alone.
func mountDevices(o *order, devices []placed) error {
	const flags = unix.MS_NOSUID | unix.MS_NOEXEC
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", flags, "mode=0755,size=64k"); err != nil {
		return err
	}
	for _, d := range devices {
		if err := os.WriteFile(d.path, nil, 0o600); err != nil {
			return err
		}
		if err := d.put(); err != nil {
			return fmt.Errorf("%s: %w", d.path, err)
		}
	}
	for _, dir := range []string{"/dev/pts", "/dev/shm", filepath.Dir(coverDir)} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(unix.Mkdir(coverDir, 0), unix.Mknod(coverFile, unix.S_IFREG, 0)); err != nil {
		return err
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, "/dev/"+name); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", "/dev/pts", "devpts", flags, "newinstance,ptmxmode=0666,mode=0600"); err != nil {
		return fmt.Errorf("pts: %w", err)
	}
	const shared = "mode=1777,size=25%"
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, shared); err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/dev", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// mountProc mounts a /proc that shows only the processes of the namespace. It is read-only: to the kernel, the
// superuser outside is the superuser here, and could change settings of the machine. Where the kernel refuses, as in
// many containers, the old /proc stays; it reveals no secrets of processes in another user namespace.
func mountProc(o *order) error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	err := unix.Mount("proc", "/proc", "proc", flags, "")
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		o.OldProcesses = true
		return nil
	}
	if err != nil {
		return err
	}
	limitNumbers(o.Limits)
	return unix.MountSetattr(unix.AT_FDCWD, "/proc", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// limitNumbers limits the processes by the range of their numbers, because limits per user do not apply to the
// superuser. Since Linux 6.14 each namespace has its own range; before that, the superuser would change it for the
// machine.
func limitNumbers(l Limits) {
	if !ownNumbers() {
		return
	}
	most := cmp.Or(l.Processes, defaultProcesses)
	_ = os.WriteFile("/proc/sys/kernel/pid_max", []byte(strconv.Itoa(max(most, 301)+ofStage)), 0)
}

func ownNumbers() bool {
	var major, minor int
	_, _ = fmt.Sscanf(release(), "%d.%d", &major, &minor)
	return runtime.GOOS == "linux" && (major > 6 || major == 6 && minor >= 14)
}
