package sandbox

import "golang.org/x/sys/unix"

// bpfCalls returns what the filter has to know about this machine, and its answers. last is the highest call that was
// considered.
func bpfCalls(inet bool) (machine, last uint32, calls map[uint32][]unix.SockFilter) {
	calls = bpfCommon(inet)
	for _, n := range []uint32{
		unix.SYS_IOPL, unix.SYS_IOPERM, // ports of devices
		// of old kernels
		unix.SYS_CREATE_MODULE, unix.SYS_QUERY_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_USELIB, unix.SYS__SYSCTL,
	} {
		calls[n] = bpfRefuse(unix.EPERM)
	}
	return unix.AUDIT_ARCH_X86_64, unix.SYS_RSEQ_SLICE_YIELD, calls
}

// oldCalls are the held calls that only this machine has.
func oldCalls() []uint32 {
	return []uint32{
		unix.SYS_CREAT, unix.SYS_MKDIR, unix.SYS_MKNOD, unix.SYS_SYMLINK, unix.SYS_LINK, unix.SYS_RENAME,
		unix.SYS_UNLINK, unix.SYS_RMDIR,
	}
}

// oldOpen is the number of open, which takes no directory.
func oldOpen() (number uint32, ok bool) { return unix.SYS_OPEN, true }

// oldChangeOf returns the change that an old call asks for.
func oldChangeOf(number uint32, a [6]uint64) (change, bool) {
	one := func(what act, flags uint64, mode uint64) (change, bool) {
		return change{act: what, dirs: [2]int32{here}, paths: [2]uint64{a[0]}, flags: flags, mode: uint32(mode)}, true
	}
	two := func(what act) (change, bool) {
		return change{act: what, dirs: [2]int32{here, here}, paths: [2]uint64{a[0], a[1]}}, true
	}
	switch number {
	case unix.SYS_OPEN:
		return one(opensFile, a[1]&0xffffffff, a[2])
	case unix.SYS_CREAT:
		return one(opensFile, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, a[1])
	case unix.SYS_MKDIR:
		return one(makesDirectory, 0, a[1])
	case unix.SYS_MKNOD:
		return one(makesNode, 0, a[1])
	case unix.SYS_UNLINK:
		return one(removes, 0, 0)
	case unix.SYS_RMDIR:
		return one(removes, unix.AT_REMOVEDIR, 0)
	case unix.SYS_SYMLINK:
		return two(makesLink)
	case unix.SYS_LINK:
		return two(makesName)
	case unix.SYS_RENAME:
		return two(moves)
	}
	return change{}, false
}

// oldAttributes are the calls that change attributes and that only this machine has.
func oldAttributes() []uint32 {
	return []uint32{
		unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
	}
}

// oldModes are those that change a mode.
func oldModes() []uint32 { return []uint32{unix.SYS_CHMOD} }

// oldAttribute returns the change that one of oldAttributes asks for.
func oldAttribute(
	number uint32, a [6]uint64, at func(dir int32, path, flags uint64, apply applying) (change, bool),
) (change, bool) {
	switch number {
	case unix.SYS_CHMOD:
		return modeChange(here, a[0], 0, a[1]), true
	case unix.SYS_CHOWN:
		return at(here, a[0], 0, owner(a[1], a[2]))
	case unix.SYS_LCHOWN:
		return at(here, a[0], unix.AT_SYMLINK_NOFOLLOW, owner(a[1], a[2]))
	case unix.SYS_UTIME:
		return at(here, a[0], 0, times(a[1], 8, 0))
	case unix.SYS_UTIMES:
		return at(here, a[0], 0, times(a[1], 16, 1000))
	case unix.SYS_FUTIMESAT:
		if a[1] == 0 {
			return at(int32(uint32(a[0])), 0, itself, times(a[2], 16, 1000))
		}
		return at(int32(uint32(a[0])), a[1], 0, times(a[2], 16, 1000))
	}
	return change{}, false
}

const newfstatat = unix.SYS_NEWFSTATAT

// oldLooks are the calls that look at a path without a directory, and that only this machine has. opening are those
// that open a file.
func oldLooks() (machine uint32, opening, others []uint32) {
	return unix.AUDIT_ARCH_X86_64, []uint32{unix.SYS_OPEN},
		[]uint32{unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK}
}

// opensNothing reports whether a call only tells whether a file exists and what it is.
func opensNothing(number uint32) bool {
	return number == unix.SYS_STAT || number == unix.SYS_LSTAT || number == newfstatat || number == unix.SYS_STATX
}

// looksHere reports whether a call takes no directory.
func looksHere(number uint32) bool {
	switch number {
	case unix.SYS_OPEN, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_CHDIR:
		return true
	}
	return false
}

// narrowMachine is i386, whose programs this machine may run, and the numbers of its private calls.
func narrowMachine() (machine uint32, numbers privateCalls) {
	return unix.AUDIT_ARCH_I386, privateCalls{ioctl: 54, keys: [3]uint32{288, 286, 287}}
}
