//go:build amd64 || arm64

package sandbox

import "golang.org/x/sys/unix"

// bpfCommon returns the answers to calls that amd64 and arm64 share.
func bpfCommon(inet bool) map[uint32][]unix.SockFilter {
	refuse, missing := bpfRefuse(unix.EPERM), bpfRefuse(unix.ENOSYS)
	calls := map[uint32][]unix.SockFilter{}
	for _, n := range bpfRefused() {
		calls[n] = refuse
	}
	// Programs can do without these. No filter can see the flags of clone3,
	// but it can see those of clone.
	for _, n := range []uint32{
		unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
		unix.SYS_IO_URING_REGISTER,
	} {
		calls[n] = missing
	}
	const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	calls[unix.SYS_CLONE] = append([]unix.SockFilter{bpfLoad(bpfArguments)},
		bpfIf(unix.BPF_JSET, namespaces, refuse, bpfAllow())...)

	const kinds = 0xf // the rest of a type are flags
	calls[unix.SYS_SOCKET] = refuse
	if inet {
		calls[unix.SYS_SOCKET] = bpfOneOf(0, 0, []uint32{unix.AF_INET, unix.AF_INET6},
			bpfOneOf(1, kinds, []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}, bpfAllow(), refuse), refuse)
	}
	// A pair of datagram sockets is not closed: either end can send to any socket with a name. A
	// connected pair cannot.
	calls[unix.SYS_SOCKETPAIR] = bpfOneOf(0, 0, []uint32{unix.AF_UNIX},
		bpfOneOf(1, kinds, []uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}, bpfAllow(), refuse), refuse)

	// A limit on processor time could end a process outside that no signal reaches.
	calls[unix.SYS_PRLIMIT64] = bpfOneOf(0, 0, []uint32{0}, bpfAllow(), refuse)

	// The shell outside would run input put into a terminal, and a line discipline is kernel code that nobody needs.
	// Some requests to file systems change what can only be read, and Landlock does not check them: they make names,
	// make upper and lower case the same, or make files and whole subvolumes read-only for good.
	calls[unix.SYS_IOCTL] = bpfOneOf(1, 0xff00, ofFileSystems(),
		bpfOneOf(1, 0, asksFileSystems(), bpfAllow(), refuse),
		bpfOneOf(1, 0, []uint32{
			unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, linksOfOCFS2, setsAttributesOfFAT,
		}, refuse, bpfAllow()))

	// Allowed are reading it, Linux for 64 and for 32 bits, each also with an old version number, and addresses without
	// ASLR, which debuggers and sanitizers set for their children. All others are old behaviours with old holes.
	const unshuffled, old = 0x0040000, 0x0020000
	calls[unix.SYS_PERSONALITY] = bpfOneOf(0, 0, []uint32{0xffffffff, 0, 8, old, old | 8, unshuffled, unshuffled | 8},
		bpfAllow(), refuse)
	return calls
}

// bpfOutside adds the answers to calls that reach processes outside by their numbers. A program may change its own
// scheduling, with the number 0; programs expect that a priority is refused. Thread libraries choose processors by
// their own thread numbers, which no filter can tell from others, so this is among the holes. POSIX message queues have
// names that all programs share.
func bpfOutside(calls map[uint32][]unix.SockFilter) {
	refuse := bpfRefuse(unix.EPERM)
	for _, n := range []uint32{unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR} {
		calls[n] = bpfOneOf(0, 0, []uint32{0}, bpfAllow(), refuse)
	}
	const ofProcess = 1 // IOPRIO_WHO_PROCESS
	itself := func(process uint32) []unix.SockFilter {
		return bpfOneOf(0, 0, []uint32{process}, bpfOneOf(1, 0, []uint32{0}, bpfAllow(), refuse), refuse)
	}
	calls[unix.SYS_SETPRIORITY], calls[unix.SYS_IOPRIO_SET] = itself(unix.PRIO_PROCESS), itself(ofProcess)
	calls[unix.SYS_MQ_OPEN], calls[unix.SYS_MQ_UNLINK] = refuse, refuse
}

// Requests of file systems whose kind other file systems use for harmless ones.
const (
	linksOfOCFS2        = 0x40186f04
	setsAttributesOfFAT = 0x40047211
)

// ofFileSystems are the kinds of requests to file systems: of all and of ext4, of XFS, btrfs and bcachefs.
func ofFileSystems() []uint32 { return []uint32{'f' << 8, 'v' << 8, 'X' << 8, 0x94 << 8, 0xbc << 8} }

// asksFileSystems are the requests of these kinds that read, or that write to a file open for writing.
func asksFileSystems() []uint32 {
	const getsFlags, getsMoreFlags, getsVersion, getsExtents = 0x80086601, 0x801c581f, 0x80087601, 0xc020660b
	return []uint32{
		getsFlags, getsMoreFlags, getsVersion, getsExtents, unix.FICLONE, unix.FICLONERANGE, unix.FIDEDUPERANGE,
	}
}

// bpfRefused are the calls that both machines have and that no command may make.
func bpfRefused() []uint32 {
	return []uint32{
		// other processes, their memory and their descriptors
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
		unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		// keys of the user
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		// wide interfaces of the kernel
		unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE,
		unix.SYS_NFSSERVCTL,
		// other views of the file system
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2,
		unix.SYS_MOVE_MOUNT,
		unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG,
		unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FILE_SETATTR,
		// the machine itself
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_VHANGUP,
		unix.SYS_SYSLOG,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
		unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
		unix.SYS_SETTIMEOFDAY, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME,
		unix.SYS_SETDOMAINNAME,
	}
}

// bpfHeld adds the calls that a supervisor makes in place of programs.
func bpfHeld(calls map[uint32][]unix.SockFilter) {
	bpfWriting(calls)
	calls[unix.SYS_UMASK] = []unix.SockFilter{bpfReturn(unix.SECCOMP_RET_USER_NOTIF)}
	calls[unix.SYS_OPENAT2] = bpfRefuse(unix.ENOSYS) // no filter can see its flags
	// A program that confines itself would go on changing the workspace, since the supervisor does that for it.
	calls[unix.SYS_LANDLOCK_CREATE_RULESET] = bpfOneOf(2, 0, []uint32{asksForWalls},
		bpfRefuse(unix.EALREADY), bpfRefuse(unix.EOPNOTSUPP))
}

// bpfWriting holds the calls that open files for writing or change names.
func bpfWriting(calls map[uint32][]unix.SockFilter) {
	held := []unix.SockFilter{bpfReturn(unix.SECCOMP_RET_USER_NOTIF)}
	for _, n := range append(oldCalls(),
		unix.SYS_TRUNCATE, unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_SYMLINKAT, unix.SYS_LINKAT, unix.SYS_RENAMEAT,
		unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT) {
		calls[n] = held
	}
	toWrite := func(flags uint32) []unix.SockFilter {
		return append([]unix.SockFilter{bpfLoad(bpfArguments + 8*flags)},
			bpfIf(unix.BPF_JSET, writing, held, bpfAllow())...)
	}
	calls[unix.SYS_OPENAT] = toWrite(2)
	if n, ok := oldOpen(); ok {
		calls[n] = toWrite(1)
	}
}

// changeOf returns the change that a held call asks for, and false for other calls.
func changeOf(number uint32, a [6]uint64) (change, bool) {
	dir := func(i int) int32 { return int32(uint32(a[i])) }
	one := func(what act, flags uint64, mode uint64) (change, bool) {
		return change{act: what, dirs: [2]int32{dir(0)}, paths: [2]uint64{a[1]}, flags: flags, mode: uint32(mode)}, true
	}
	two := func(what act, flags uint64) (change, bool) {
		return change{act: what, dirs: [2]int32{dir(0), dir(2)}, paths: [2]uint64{a[1], a[3]}, flags: flags}, true
	}
	switch number {
	case unix.SYS_OPENAT:
		return one(opensFile, a[2]&0xffffffff, a[3])
	case unix.SYS_MKDIRAT:
		return one(makesDirectory, 0, a[2])
	case unix.SYS_MKNODAT:
		return one(makesNode, 0, a[2])
	case unix.SYS_UNLINKAT:
		return one(removes, a[2]&0xffffffff, 0)
	case unix.SYS_SYMLINKAT:
		return change{act: makesLink, dirs: [2]int32{here, dir(1)}, paths: [2]uint64{a[0], a[2]}}, true
	case unix.SYS_LINKAT:
		return two(makesName, a[4]&0xffffffff)
	case unix.SYS_RENAMEAT:
		return two(moves, 0)
	case unix.SYS_RENAMEAT2:
		return two(moves, a[4]&0xffffffff)
	case unix.SYS_TRUNCATE:
		return change{act: truncates, dirs: [2]int32{here}, paths: [2]uint64{a[0]}, size: int64(a[1])}, true
	case unix.SYS_UMASK:
		return change{act: masks}, true
	}
	if d, known := attributeOf(number, a); known {
		return d, true
	}
	return oldChangeOf(number, a)
}
