//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Landlock does not check changes of modes, owners, times and extended attributes. With namespaces, mounts refuse them
// outside the workspace. With Landlock alone, the supervisor makes them, and only to what commands may write.

// bpfAttributes adds the calls that change attributes. Newer calls fail with ENOSYS: programs fall back to the older
// ones.
func bpfAttributes(calls map[uint32][]unix.SockFilter) {
	held := []unix.SockFilter{bpfReturn(unix.SECCOMP_RET_USER_NOTIF)}
	for _, n := range append(oldAttributes(),
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT, unix.SYS_SETXATTR,
		unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR) {
		calls[n] = held
	}
	for _, n := range []uint32{unix.SYS_FCHMODAT2, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT} {
		calls[n] = bpfRefuse(unix.ENOSYS)
	}
}

// Flags of our own.
const (
	itself = 1 << 32 // the call names no path but a descriptor
	toMode = 1 << 33 // it changes a mode
)

// attributeOf returns the change of an attribute that a call asks for, and false for other calls.
func attributeOf(number uint32, a [6]uint64) (change, bool) {
	at := func(dir int32, path, flags uint64, apply applying) (change, bool) {
		return change{
			act: marks, dirs: [2]int32{dir}, paths: [2]uint64{path}, flags: flags & (itself | 0xffffffff), apply: apply,
		}, true
	}
	first := int32(uint32(a[0]))
	of := func(apply applying) (change, bool) { return at(first, 0, itself, apply) }
	switch number {
	case unix.SYS_FCHMOD:
		return modeChange(first, 0, itself, a[1]), true
	case unix.SYS_FCHMODAT:
		return modeChange(first, a[1], 0, a[2]), true
	case unix.SYS_FCHOWN:
		return of(owner(a[1], a[2]))
	case unix.SYS_FCHOWNAT:
		return at(first, a[1], a[4], owner(a[2], a[3]))
	case unix.SYS_UTIMENSAT:
		if a[1] == 0 {
			return of(times(a[2], 16, 1))
		}
		return at(first, a[1], a[3], times(a[2], 16, 1))
	case unix.SYS_SETXATTR:
		return at(here, a[0], 0, extended(a[1], a[2], a[3], a[4]))
	case unix.SYS_LSETXATTR:
		return at(here, a[0], unix.AT_SYMLINK_NOFOLLOW, extended(a[1], a[2], a[3], a[4]))
	case unix.SYS_FSETXATTR:
		return of(extended(a[1], a[2], a[3], a[4]))
	case unix.SYS_REMOVEXATTR:
		return at(here, a[0], 0, noExtended(a[1]))
	case unix.SYS_LREMOVEXATTR:
		return at(here, a[0], unix.AT_SYMLINK_NOFOLLOW, noExtended(a[1]))
	case unix.SYS_FREMOVEXATTR:
		return of(noExtended(a[1]))
	}
	return oldAttribute(number, a, at)
}

// modeChange returns the change of a mode.
func modeChange(dir int32, path, flags, to uint64) change {
	mode := uint32(to) & 0o7777
	return change{
		act: marks, dirs: [2]int32{dir}, paths: [2]uint64{path}, flags: flags | toMode, mode: mode,
		apply: func(_ *pathCall, fd int) error { return unix.Chmod(own(fd), mode) },
	}
}

// triesModes reports whether a change only flips the owner's right to execute. Git does that to the configuration of a
// new repository, to find out whether modes are kept.
func (d change) triesModes(file *unix.Stat_t) bool {
	return d.flags&toMode != 0 && (file.Mode^d.mode)&0o7777 == unix.S_IXUSR && file.Nlink == 1
}

func owner(user, group uint64) applying {
	return func(_ *pathCall, fd int) error {
		return unix.Fchownat(fd, "", int(int32(user)), int(int32(group)), unix.AT_EMPTY_PATH)
	}
}

// times sets the times at an address: seconds and, if each pair takes 16 bytes, fractions in units of part nanoseconds.
func times(address uint64, size int, part int64) applying {
	return func(r *pathCall, fd int) error {
		if address == 0 {
			return unix.UtimesNanoAt(unix.AT_FDCWD, own(fd), nil, 0)
		}
		raw, err := r.bytes(address, 2*size)
		if err != nil {
			return err
		}
		var both [2]unix.Timespec
		for i := range both {
			both[i].Sec = int64(binary.NativeEndian.Uint64(raw[i*size:]))
			if size < 16 {
				continue
			}
			if both[i].Nsec = int64(binary.NativeEndian.Uint64(raw[i*size+8:])); part > 1 {
				if both[i].Nsec < 0 || both[i].Nsec >= 1e6 {
					return unix.EINVAL
				}
				both[i].Nsec *= part
			}
		}
		return unix.UtimesNanoAt(unix.AT_FDCWD, own(fd), both[:], 0)
	}
}

// longestAttribute is the longest value that the kernel accepts.
const longestAttribute = 65536

func extended(name, value, size, flags uint64) applying {
	return func(r *pathCall, fd int) error {
		key, err := r.text(name)
		switch {
		case err != nil:
			return unix.EFAULT
		case size > longestAttribute:
			return unix.E2BIG
		}
		data, err := r.bytes(value, int(size))
		if err != nil {
			return err
		}
		return unix.Setxattr(own(fd), key, data, int(int32(flags)))
	}
}

func noExtended(name uint64) applying {
	return func(r *pathCall, fd int) error {
		key, err := r.text(name)
		if err != nil {
			return unix.EFAULT
		}
		return unix.Removexattr(own(fd), key)
	}
}

// bytes reads memory of the caller.
func (r *pathCall) bytes(at uint64, size int) ([]byte, error) {
	data := make([]byte, size)
	for got := 0; got < size; {
		local := []unix.Iovec{{Base: &data[got], Len: uint64(size - got)}}
		remote := []unix.RemoteIovec{{Base: uintptr(at) + uintptr(got), Len: size - got}}
		n, err := unix.ProcessVMReadv(r.pid, local, remote, 0)
		if err != nil || n <= 0 {
			return nil, unix.EFAULT
		}
		got += n
	}
	return data, nil
}

// mark changes an attribute. It refuses what only the kernel could decide, because Landlock does not check it.
func (r *pathCall) mark(d change) error {
	fd, path, err := r.marked(d)
	switch {
	case errors.Is(err, errGoOn) && d.flags&itself != 0:
		return unix.EBADF
	case errors.Is(err, errGoOn):
		return unix.EPERM
	case err != nil:
		return err
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return err
	}
	switch {
	case s.Mode&unix.S_IFMT == unix.S_IFLNK && d.flags&(itself|unix.AT_SYMLINK_NOFOLLOW) == 0:
		return errMoved
	case path[0] != '/' || s.Nlink == 0 && strings.HasPrefix(path, "/memfd:"): // a pipe, or memory with a name
	case first(r.grants, path) == "":
		return unix.EPERM
	case d.triesModes(&s) && r.names.config[path]:
	case r.names.protects(path) && !r.names.sample(path), r.names.twin(&s):
		return refusedName
	case r.names.lock(path) && !r.isOwnLock(&s):
		return refusedName
	}
	if !r.valid() {
		return errAnswered
	}
	if err := d.apply(r, fd); err != nil {
		return err
	}
	r.ledger.add(entryWrote, r.began, path, "", &s, &unix.Stat_t{})
	return nil
}

// seeMark records in the ledger that the kernel is about to change a mode.
func (r *pathCall) seeMark(d change) {
	fd, path, err := r.marked(d)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	if unix.Fstat(fd, &s) == nil && r.inside(path) {
		r.ledger.add(entryWrote, time.Time{}, path, "", &s, &unix.Stat_t{})
	}
}

// bpfModes adds the calls that change modes. They are held only for the ledger.
func bpfModes(calls map[uint32][]unix.SockFilter) {
	held := []unix.SockFilter{bpfReturn(unix.SECCOMP_RET_USER_NOTIF)}
	for _, n := range append(oldModes(), unix.SYS_FCHMOD, unix.SYS_FCHMODAT) {
		calls[n] = held
	}
	calls[unix.SYS_FCHMODAT2] = bpfRefuse(unix.ENOSYS)
}

// marked opens, with O_PATH, the file that a call to change attributes names.
func (r *pathCall) marked(d change) (fd int, path string, err error) {
	if d.flags&itself != 0 {
		return r.opened(int(d.dirs[0]))
	}
	if path, err = r.text(d.paths[0]); err != nil {
		return -1, "", err
	}
	if path == "" && d.flags&unix.AT_EMPTY_PATH != 0 {
		if d.dirs[0] == here {
			path = "."
		} else {
			return r.opened(int(d.dirs[0]))
		}
	}
	follow := followed(d.flags&unix.AT_SYMLINK_NOFOLLOW == 0 || strings.HasSuffix(path, "/"))
	s, err := r.anywhere(d.dirs[0], path, follow)
	if err != nil {
		return -1, "", err
	}
	defer s.close()
	if s.own >= 0 {
		return r.opened(s.own)
	}
	flags := unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if s.slash {
		flags |= unix.O_DIRECTORY
	}
	fd, err = unix.Openat(s.dir, s.name, flags, 0)
	return fd, s.path, err
}
