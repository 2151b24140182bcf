package guardwait

import (
	"runtime"
	"syscall"
	"unsafe"
)

// A child in a PID namespace needs two processes more:
//
//	we ── fork, exec ──▶ starter ─┬─ fork ────────▶ keeper, process 1 of the namespace
//	                              ├─ fork, exec ──▶ the program
//	                              └─ exits
//
// The starter is this program again. It exists because a process with several threads cannot enter a user namespace.
// Its children are ours and not its own (CLONE_PARENT), so the kernel reports to us what it reports to a parent.
const (
	Starter = "--omniagent-starter" // the first argument of the starter
	// MostFiles is how many descriptors come with an order.
	MostFiles = 64
)

// Report is a message of the starter, or of the keeper, whose PID in the namespace is 1.
type Report struct{ Errno, PID int32 }

// Order tells the starter what to start.
type Order struct {
	Arguments int32 // how many there are
	Drop      int32 // not 0: the program must not get the privilege in the new user namespace
}

// start is the main function of the starter. It creates the namespaces and the keeper, reports that, starts the program
// of the order, and reports that.
func start() {
	runtime.LockOSThread() // from here on the namespaces of this thread differ from those of the others
	showName()
	syscall.CloseOnExec(Socket)
	err := syscall.Unshare(syscall.CLONE_NEWNS | syscall.CLONE_NEWPID)
	if err == nil {
		// Later mounts outside are visible inside, but not the other way round.
		err = syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, "")
	}
	pid := 0
	if err == nil {
		pid, err = forkKeeper()
	}
	report(pid, err)
	if err == nil {
		report(startProgram())
	}
	syscall.Exit(0)
}

func report(pid int, err error) {
	code, _ := err.(syscall.Errno)
	r := Report{int32(code), int32(pid)}
	_, _ = syscall.Write(Socket, (*[unsafe.Sizeof(r)]byte)(unsafe.Pointer(&r))[:])
}

// forkKeeper starts the keeper, which mounts /proc and reports that. It ends when our end of the socket closes, and the
// kernel then kills all processes of the namespace. The parent-death signal would not do: it comes when a thread ends.
// The kernel reaps orphans for the keeper, because it ignores their signal.
//
// The keeper does not execute anything, which would take another millisecond. So it is a copy of this process without
// the other threads, and must not use the runtime: no allocation, no growth of the stack, no locks. The pragmas are
// those of the standard library's fork, for the same reasons.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkKeeper() (pid int, err error) {
	var (
		proc    = [...]byte{'p', 'r', 'o', 'c', 0}
		target  = [...]byte{'/', 'p', 'r', 'o', 'c', 0}
		root    = [...]byte{'/', 0}
		ignored = [16]uint64{1} // see ignore
		r       = Report{PID: 1}
		poll    struct {
			fd             int32
			wanted, result int16
		}
	)
	const (
		flags  = syscall.CLONE_PARENT | uintptr(syscall.SIGCHLD)
		how    = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
		hangUp = 0x10
	)
	child, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	if child != 0 {
		return int(child), nil
	}
	for s := uintptr(1); s < 32; s++ {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&ignored)), 0, 8, 0, 0)
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_CHDIR, uintptr(unsafe.Pointer(&root)), 0, 0)
	_, _, errno = syscall.RawSyscall6(syscall.SYS_MOUNT, uintptr(unsafe.Pointer(&proc)),
		uintptr(unsafe.Pointer(&target)), uintptr(unsafe.Pointer(&proc)), how, 0, 0)
	r.Errno = int32(errno)
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, Socket, uintptr(unsafe.Pointer(&r)), unsafe.Sizeof(r))
	for poll.fd = Socket; poll.result&hangUp == 0; { // what is written there is for the starter
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1, 0, 0, 0, 0)
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	return 0, nil
}

// startProgram waits for an order and carries it out. An order is an Order, with a file and the descriptors of the
// program. The file has texts that end with a zero byte: the path, the directory, the arguments, the environment.
func startProgram() (pid int, err error) {
	o, files, err := receive()
	if err != nil {
		return 0, err
	}
	text, err := whole(files[0])
	if err != nil {
		return 0, err
	}
	words := split(text)
	path, dir, arguments := words[0], words[1], words[2:2+o.Arguments]
	attr := &syscall.ProcAttr{
		Dir: dir, Env: words[2+o.Arguments:], Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_PARENT, Setsid: true},
	}
	for _, fd := range files[1:] {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	if o.Drop != 0 {
		dropPrivileges()
	}
	return syscall.ForkExec(path, arguments, attr)
}

// receive returns the order. It ends the process if no order will come.
func receive() (o Order, files []int, err error) {
	control, n := make([]byte, syscall.CmsgSpace(4*MostFiles)), 0
	for {
		block := (*[unsafe.Sizeof(o)]byte)(unsafe.Pointer(&o))[:]
		if _, n, _, _, err = syscall.Recvmsg(Socket, block, control, syscall.MSG_CMSG_CLOEXEC); err != syscall.EINTR {
			break
		}
	}
	messages, err := syscall.ParseSocketControlMessage(control[:max(n, 0)])
	if err != nil || len(messages) == 0 {
		syscall.Exit(1)
	}
	files, err = syscall.ParseUnixRights(&messages[0])
	return o, files, err
}

func whole(file int) ([]byte, error) {
	var s syscall.Stat_t
	if err := syscall.Fstat(file, &s); err != nil {
		return nil, err
	}
	text := make([]byte, s.Size)
	for at := 0; at < len(text); {
		n, err := syscall.Pread(file, text[at:], int64(at))
		if n <= 0 {
			return nil, err
		}
		at += n
	}
	return text, nil
}

// dropPrivileges gives up the privilege over the new user namespace. It is in the ambient set, because execve would
// otherwise have removed it.
func dropPrivileges() {
	const ambient, clear, version3 = 47, 4, 0x20080522
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, ambient, clear, 0, 0, 0, 0)
	header := struct{ version, pid uint32 }{version: version3}
	var none [6]uint32
	_, _, _ = syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)),
		0)
}
