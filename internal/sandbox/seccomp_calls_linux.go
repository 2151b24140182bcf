//go:build amd64 || arm64

package sandbox

import "golang.org/x/sys/unix"

// bpfCommon returns the answers to calls that both machines have.
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

	// The shell outside would run input put into a terminal; a line discipline is kernel code that nobody needs.
	calls[unix.SYS_IOCTL] = bpfOneOf(1, 0, []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD}, refuse, bpfAllow())

	// Reading it, Linux for 64 and for 32 bits, each also with an old version number, and addresses without ASLR,
	// which debuggers and sanitizers set for their children. All others are old behaviours with old holes.
	const unshuffled, old = 0x0040000, 0x0020000
	calls[unix.SYS_PERSONALITY] = bpfOneOf(0, 0, []uint32{0xffffffff, 0, 8, old, old | 8, unshuffled, unshuffled | 8},
		bpfAllow(), refuse)
	return calls
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
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
		// the machine itself
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_VHANGUP,
		unix.SYS_SYSLOG,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
		unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
		unix.SYS_SETTIMEOFDAY, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME,
		unix.SYS_SETDOMAINNAME,
	}
}
