package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
)

// The rights in rules.
const (
	rightsToRead = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	rightsToList = unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsOfFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsOfNodes = unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR // never granted
)

// ruleOfPort is LANDLOCK_RULE_NET_PORT.
const ruleOfPort = 2

// handled returns the access rights to files that a kernel with this ABI can refuse.
func handled(abi int) uint64 {
	all := uint64(1)<<13 - 1
	for since, right := range map[int]uint64{
		2: unix.LANDLOCK_ACCESS_FS_REFER, 3: unix.LANDLOCK_ACCESS_FS_TRUNCATE,
		5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
	} {
		if abi >= since {
			all |= right
		}
	}
	return all
}

// rules is a Landlock ruleset under construction.
type rules struct {
	fd  int
	all uint64 // the rights that it handles
}

// landlock restricts this thread to the policy. Where mounts enforce it already, this is a second barrier; otherwise it
// is the only one.
func landlock(o *order, r rules) error {
	defer unix.Close(r.fd)
	if err := r.readable(o); err != nil {
		return err
	}
	roots := 1 + len(o.Write)
	for i, dir := range o.granted() {
		fd, err := openNoLink(dir)
		if err == nil {
			err = r.rule(fd, dir, r.toWrite(o, dir))
		}
		if err != nil && (i < roots || !unreachable(err) && !errors.Is(err, unix.EACCES)) {
			return err
		}
	}
	if err := r.homes(o); err != nil {
		return err
	}
	if err := r.devices(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// newRules creates a ruleset, and sets o.ABI.
func newRules(o *order) (rules, error) {
	abi, err := landlockABI()
	if err != nil {
		return rules{}, err
	}
	o.ABI = abi
	r := rules{all: handled(abi)}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: r.all}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if abi >= 4 {
		size += unsafe.Sizeof(attr.Handled_access_net)
		if o.Network != "on" {
			attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if abi >= 6 {
		size += unsafe.Sizeof(attr.Scoped)
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return r, errno
	}
	unix.CloseOnExec(int(fd))
	r.fd = int(fd)
	if attr.Handled_access_net != 0 && o.ProxyPort != 0 {
		port := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(o.ProxyPort)}
		if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, ruleOfPort, uintptr(unsafe.Pointer(&port)), 0,
			0, 0); errno != 0 {
			return r, errno
		}
	}
	return r, nil
}

// toWrite returns the rights for a directory that commands may change. If the supervisor changes it, they may only
// read.
func (r rules) toWrite(o *order, dir string) uint64 {
	if o.Supervised && slices.Contains(o.Watched, dir) {
		return rightsToRead | rightsToList
	}
	return r.all &^ rightsOfNodes
}

// temporary returns the temporary directories. With namespaces that of the policy may be out of reach, and what lies in
// it has other names.
func (o *order) temporary() []string {
	if o.Tier == Namespaces {
		return []string{"/tmp", "/var/tmp", "/dev/shm"}
	}
	return []string{o.Temp}
}

// allow grants rights to a path and everything below it. Only some of them apply to a file.
func (r rules) allow(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return r.rule(fd, path, rights)
}

// openNoLink opens a path if no part of it is a link, which another command could put there. It cannot use openat2,
// which the filter refuses by now.
func openNoLink(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", path, err)
	}
	if real, err := os.Readlink(own(fd)); err != nil || real != path {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("%s leads to %q: %w", path, real, unix.ELOOP)
	}
	return fd, nil
}

// rule adds a rule for an open file, and closes the file.
func (r rules) rule(fd int, path string, rights uint64) error {
	defer unix.Close(fd)
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFile
	}
	if rights &= r.all; rights == 0 {
		return nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("%s: %w", path, errno)
	}
	return nil
}

// homes allows reading what commands see of home directories. With namespaces the mounts do that.
func (r rules) homes(o *order) error {
	if o.Tier != Landlock {
		return nil
	}
	var read []string
	for pair := range slices.Chunk(o.Seen, 2) {
		read = append(read, pair[0])
	}
	if o.LinkedHome != "" {
		read = append(read, o.LinkedHome)
	}
	for _, path := range read {
		err := r.allow(path, rightsToRead|rightsToList)
		if err != nil && !unreachable(err) && !errors.Is(err, unix.EACCES) {
			return err
		}
	}
	return nil
}

// devices allows the use of devices, but not to create any.
func (r rules) devices() error {
	names := append(deviceNames(), "ptmx", "pts")
	for _, name := range names {
		err := r.allow("/dev/"+name, rightsToList|rightsOfFile&^unix.LANDLOCK_ACCESS_FS_EXECUTE)
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EACCES) {
			return err
		}
	}
	return nil
}

// readable grants the right to read: everything if mounts hide the rest, else everything except what is hidden.
func (r rules) readable(o *order) error {
	tops := []string{"/"}
	if !o.All {
		tops = append(systemDirs(), o.Read...)
	}
	var hidden, stay []string
	if o.Tier == Landlock {
		// the superuser could read disks; devices grants the few that are needed
		hidden = slices.Concat(realPaths(o.Hidden), o.Homes, []string{"/dev"},
			realPaths(append(runDirs(), temporaryDirs()...)))
		path, _ := process.Value(o.Env, "PATH")
		stay, _ = stayInRun(path)
		stay = append(stay, o.Read...)
	}
	for _, path := range stay {
		err := r.allow(path, rightsToRead|rightsToList)
		if err != nil && !(errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES)) {
			return err
		}
	}
	for _, top := range tops {
		err := r.around(top, hidden)
		if err != nil && !(errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES)) {
			return err
		}
	}
	return nil
}

// around grants the right to read everything below top except what is hidden. Landlock can only grant, so on the way
// to a hidden path it grants each sibling. Names can be listed everywhere.
func (r rules) around(top string, hidden []string) error {
	beneath := slices.ContainsFunc(hidden, func(path string) bool { return pathname.Within(top, path) })
	if slices.ContainsFunc(hidden, func(path string) bool { return pathname.Within(path, top) }) {
		return r.allow(top, rightsToList)
	}
	if !beneath {
		return r.allow(top, rightsToRead|rightsToList)
	}
	if err := r.allow(top, rightsToList); err != nil {
		return err
	}
	entries, err := os.ReadDir(top)
	if err != nil {
		return nil // it cannot be read anyway
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink != 0 {
			continue // the target of a link counts
		}
		err := r.around(filepath.Join(top, entry.Name()), hidden)
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EACCES) &&
			!strings.HasPrefix(top, "/proc") {
			return err
		}
	}
	return nil
}

func realPaths(paths []string) (list []string) {
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			list = append(list, real)
		}
	}
	return list
}
