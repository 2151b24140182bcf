package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/guardwait"
)

// namespace is a PID namespace for one child. Its first process, the keeper, ends with our end of a socket, and the
// kernel ends the rest with it. So it needs no guard.
//
//	newNamespace ─▶ waits ── start ──▶ the program runs ── kill ──▶ ends ── await ──▶ nothing is left
//	                          └ fails: as if it was killed
type namespace struct {
	conn    *os.File
	drop    bool // the starter has a privilege that the program must not get
	starter int
	keeper  int
	held    []int // pidfds of both, which distinguish them from adopted processes
}

// starterTakes is how long a starter may take to answer.
const starterTakes = 10 * time.Second

// newNamespace creates a namespace, and returns when its keeper is ready.
func newNamespace() (n *namespace, err error) {
	adoptOrphans()
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer syscall.Close(theirs)
	n = &namespace{conn: ours, drop: !maySetUp()}
	defer func() {
		if err != nil {
			n.dismiss()
		}
	}()
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return n, err
	}
	defer syscall.Close(null)
	keepDescriptors()
	attr, tracked := &syscall.SysProcAttr{Setsid: true}, -1
	track(attr, &tracked)
	if n.drop {
		attr.Cloneflags = unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	nothing := uintptr(null)
	if n.starter, err = forkOurselves([]string{guardName, guardwait.Starter}, &syscall.ProcAttr{
		Env: guardEnvironment(), Files: []uintptr{nothing, nothing, nothing, uintptr(theirs)}, Sys: attr,
	}); err != nil {
		return n, err
	}
	n.held = append(n.held, tracked)
	var failed syscall.Errno
	for ready := false; !ready || n.keeper == 0; {
		r, err := n.report()
		switch {
		case err != nil:
			return n, err
		case r.PID == 1: // so the keeper knows itself
			ready, failed = true, syscall.Errno(r.Errno)
		case r.Errno != 0:
			return n, syscall.Errno(r.Errno)
		default:
			n.keeper = int(r.PID)
			fd, err := unix.PidfdOpen(n.keeper, 0)
			if err != nil {
				return n, err
			}
			n.held = append(n.held, fd)
		}
	}
	if failed != 0 {
		return n, fmt.Errorf("/proc cannot be mounted in one: %w", failed)
	}
	return n, nil
}

// maySetUp reports whether this process may create the namespaces without a user namespace around them.
func maySetUp() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// report returns the next report. It fails if the starter ends, or does not answer within starterTakes.
func (n *namespace) report() (r guardwait.Report, err error) {
	raw, err := n.conn.SyscallConn()
	if err != nil {
		return r, err
	}
	failed := raw.Control(func(fd uintptr) {
		list := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(n.held[0]), Events: unix.POLLIN}}
		over := time.Now().Add(starterTakes)
		for err = unix.EINTR; err == unix.EINTR; {
			_, err = unix.Poll(list, int(max(0, time.Until(over)/time.Millisecond)))
		}
		if err == nil && list[0].Revents&unix.POLLIN == 0 {
			err = errors.New("the starter of the namespace did not answer")
		}
	})
	if err = errors.Join(failed, err); err == nil {
		_, err = io.ReadFull(n.conn, (*[unsafe.Sizeof(r)]byte)(unsafe.Pointer(&r))[:])
	}
	return r, err
}

// start starts the program as a child of this process. It may be called once.
func (n *namespace) start(path string, argv []string, attr *syscall.ProcAttr) (pid, tracked int, err error) {
	order, err := writeOrder(slices.Concat([]string{path, attr.Dir}, argv, attr.Env))
	if err != nil {
		return 0, -1, err
	}
	defer unix.Close(order)
	o := guardwait.Order{Arguments: int32(len(argv))}
	if n.drop {
		o.Drop = 1
	}
	files := []int{order}
	for _, f := range attr.Files {
		files = append(files, int(f))
	}
	if len(files) > guardwait.MostFiles {
		return 0, -1, unix.E2BIG
	}
	raw, err := n.conn.SyscallConn()
	if err != nil {
		return 0, -1, err
	}
	syscall.ForkLock.RLock() // adopted waits until the new process has a pidfd
	failed := raw.Control(func(fd uintptr) {
		block := (*[unsafe.Sizeof(o)]byte)(unsafe.Pointer(&o))[:]
		err = unix.Sendmsg(int(fd), block, unix.UnixRights(files...), nil, unix.MSG_NOSIGNAL)
	})
	var r guardwait.Report
	if err = errors.Join(failed, err); err == nil {
		r, err = n.report()
	}
	if err == nil && r.Errno != 0 {
		err = syscall.Errno(r.Errno)
	}
	if err == nil {
		tracked, err = unix.PidfdOpen(int(r.PID), 0)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		n.abandon()
		return 0, -1, err
	}
	awaitDeath(n.starter, time.Now().Add(deathTakes))
	n.starter = 0
	return int(r.PID), tracked, nil
}

// writeOrder returns a file with the texts, each of which ends with a zero byte.
func writeOrder(texts []string) (fd int, err error) {
	size := 0
	for _, text := range texts {
		if strings.ContainsRune(text, 0) {
			return -1, unix.EINVAL
		}
		size += len(text) + 1
	}
	all := make([]byte, 0, size)
	for _, text := range texts {
		all = append(append(all, text...), 0)
	}
	if fd, err = unix.MemfdCreate("omniagent-order", unix.MFD_CLOEXEC); err != nil {
		return -1, err
	}
	for at := 0; at < len(all); {
		n, err := unix.Pwrite(fd, all[at:], int64(at))
		if err != nil {
			unix.Close(fd)
			return -1, err
		}
		at += n
	}
	return fd, nil
}

// abandon ends the namespace after a program could not be executed. Process 1 does not end before the child that failed
// was reaped, and the starter cannot tell which it is.
func (n *namespace) abandon() {
	n.kill()
	over := time.NewTimer(deathTakes)
	defer over.Stop()
	pollUntil(func() bool {
		reapUnheld()
		reaped, err := syscall.Wait4(n.keeper, nil, syscall.WNOHANG, nil)
		return reaped == n.keeper || err != nil
	}, over.C)
	n.keeper = 0
}

// reapUnheld reaps dead children of all threads, except those that other code waits for.
func reapUnheld() {
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	held := heldByPidfd()
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		text, _ := readWhole(list)
		for _, pid := range numbers(text) {
			if s, ok := statOf(pid); ok && !s.runs() && !held[pid] {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			}
		}
	}
}

// kill kills what is in the namespace. The kernel has done so when dismiss returns.
func (n *namespace) kill() {
	if n.keeper > 0 {
		_ = syscall.Kill(n.keeper, syscall.SIGKILL)
	}
}

// dismiss ends the namespace. The program has been reaped.
func (n *namespace) dismiss() {
	n.kill()
	_ = n.conn.Close()
	over := time.Now().Add(deathTakes)
	for _, pid := range []int{n.starter, n.keeper} {
		if pid > 0 {
			awaitDeath(pid, over)
		}
	}
	for _, fd := range n.held {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// groupRuns reports whether any process of a group runs.
func groupRuns(group int) bool {
	return slices.ContainsFunc(everyProcess(), func(pid int) bool {
		s, ok := statOf(pid)
		return ok && s.group == group && s.runs()
	})
}

// CheckPIDNamespace tries to create a PID namespace, as Plan.OwnPIDs asks for, and returns why that is impossible.
func CheckPIDNamespace() error {
	n, err := newNamespace()
	if err == nil {
		n.dismiss()
		return nil
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS) { // it has nothing to do with a disk
		err = errors.New("the limit on namespaces is reached")
	}
	return fault.New(fault.ServiceDown, "no PID namespace can be made").Because(err)
}
