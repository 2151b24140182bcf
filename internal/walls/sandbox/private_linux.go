package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

// What a stage may be started for, other than walls.
const (
	toLayer = "layer" // put layers in place, then execute the program
	toJoin  = "join"  // start the program in existing namespaces
	toDial  = "dial"  // connect to what listens in them
	toAgent = "agent" // build the walls around an agent
)

// spaceFile is the first descriptor of a stage that joins: a user namespace, a mount namespace, perhaps a network.
const spaceFile = 5

// Entry is a program that is about to enter namespaces.
type Entry struct {
	Plan  process.Plan
	run   *running
	first bool // the namespaces are new
	own   bool // they have a network of their own
	made  Spaces
}

// Enter returns an entry with the plan of a program in new namespaces.
func (v Private) Enter(p process.Plan) (*Entry, error) {
	o := enterOrder(p, toLayer)
	o.Network = v.Network.name()
	for _, l := range v.Layers {
		o.Layers, o.Names = append(o.Layers, l.Lower, l.Upper, l.Work), append(o.Names, l.Name)
	}
	e := &Entry{run: &running{say: func(string) {}, network: v.Network}, first: true, own: !v.Network.Open}
	return e, e.wrap(p, o, nil, func(attr *syscall.SysProcAttr) {
		attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
		if e.own {
			attr.Cloneflags |= unix.CLONE_NEWNET
		}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE}
		attr.UidMappings, attr.GidMappings = mappings("uid", os.Geteuid()), mappings("gid", os.Getegid())
		attr.GidMappingsEnableSetgroups = len(attr.GidMappings) > 0 && attr.GidMappings[0].Size > 1
	})
}

// mappings returns the identity mapping of user or group numbers for a new namespace, as far as we may map them.
func mappings(kind string, own int) (list []syscall.SysProcIDMap) {
	only := []syscall.SysProcIDMap{{ContainerID: own, HostID: own, Size: 1}}
	if os.Geteuid() != 0 {
		return only
	}
	text, err := os.ReadFile("/proc/self/" + kind + "_map")
	if err != nil {
		return only
	}
	for line := range strings.Lines(string(text)) {
		var here, there, size int
		if n, _ := fmt.Sscan(line, &here, &there, &size); n == 3 {
			list = append(list, syscall.SysProcIDMap{ContainerID: here, HostID: here, Size: size})
		}
	}
	return list
}

// Join returns an entry with the plan of a program in existing namespaces.
func Join(p process.Plan, s Spaces) (*Entry, error) {
	o := enterOrder(p, toJoin)
	o.Network = "on"
	if s.Network != nil {
		o.Network = "off"
	}
	if s.Proxy != 0 {
		o.Env = append(withoutProxies(o.Env), proxies(s.Proxy, ownLoopback)...)
	}
	e := &Entry{run: &running{say: func(string) {}}, made: s}
	files := []*os.File{s.User, s.Mount}
	if s.Network != nil {
		files = append(files, s.Network)
	}
	return e, e.wrap(p, o, files, nil)
}

func withoutProxies(env []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return isProxy(name)
	})
}

func enterOrder(p process.Plan, to string) order {
	env := p.Env
	if env == nil {
		env = os.Environ()
	}
	env = slices.DeleteFunc(slices.Clone(env),
		func(entry string) bool { return strings.HasPrefix(entry, childMark+"=") })
	return order{To: to, Dir: p.Dir, Env: env, Program: p.Path}
}

// wrap sets e.Plan to a stage that starts the program.
func (e *Entry) wrap(p process.Plan, o order, files []*os.File, shape func(*syscall.SysProcAttr)) error {
	if err := e.run.prepare(o); err != nil {
		e.run.end(nil)
		return fault.New(fault.Internal, "no namespaces can be prepared").Because(err)
	}
	e.Plan = e.run.stage(p, e.run.end)
	e.Plan.Dir, e.Plan.Shape = "/", shape
	e.Plan.Files = append(e.Plan.Files, files...)
	return nil
}

// Spaces returns the namespaces of a child that was started, and lets the program begin. The caller has to close them.
// It fails if the child could not enter them; the child has ended then, or is about to.
func (e *Entry) Spaces(child *process.Child) (Spaces, error) {
	s, err := e.await(child)
	if err == nil && e.first {
		err = errNotMade
		e.run.using(func(control int) { err = unix.Sendmsg(control, []byte("go"), nil, nil, unix.MSG_NOSIGNAL) })
	}
	return s, err
}

// Try returns why a started child cannot enter its namespaces, or nil if it could. The child ends without its program.
func (e *Entry) Try(child *process.Child) error {
	s, err := e.await(child)
	s.Close()
	e.run.using(func(control int) { _ = unix.Shutdown(control, unix.SHUT_RDWR) })
	child.Wait()
	return err
}

var errNotMade = errors.New("the namespaces were not made")

// await waits until the child is in its namespaces. A short program may have ended by then.
func (e *Entry) await(child *process.Child) (s Spaces, err error) {
	if e.run.using(func(control int) { s, err = e.hear(control, child) }) {
		return s, err
	}
	<-e.run.ended
	for _, said := range e.run.told {
		if s, done, err := e.heard(said, child); done {
			return s, err
		}
	}
	return Spaces{}, errNotMade
}

func (e *Entry) hear(control int, child *process.Child) (Spaces, error) {
	_ = e.run.theirs.Close()
	text, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, nr, _, _, err := unix.Recvmsg(control, text, rights, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return Spaces{}, errNotMade
		}
		if nr > 0 {
			e.run.listen(rights[:nr])
			continue
		}
		if s, done, err := e.heard(string(text[:n]), child); done {
			return s, err
		}
	}
}

// heard interprets a message of the child; done is false if more are to come.
func (e *Entry) heard(said string, child *process.Child) (s Spaces, done bool, err error) {
	if why, failed := strings.CutPrefix(said, "failed "); failed {
		return s, true, errors.New(why)
	}
	if !e.first {
		return e.made, true, nil
	}
	port, ready := strings.CutPrefix(said, "ready ")
	if !ready {
		return s, false, nil
	}
	err = e.open(child.PID(), port)
	return e.made, true, err
}

func (e *Entry) open(pid int, port string) (err error) {
	dir := fmt.Sprintf("/proc/%d/ns/", pid)
	if e.made.User, err = os.Open(dir + "user"); err == nil {
		e.made.Mount, err = os.Open(dir + "mnt")
	}
	if err == nil && e.own {
		e.made.Network, err = os.Open(dir + "net")
	}
	e.made.Proxy, _ = strconv.Atoi(port)
	return err
}

// enter puts the layers in place and, once the caller allows it, executes the program.
func enter(o *order, signals chan os.Signal) int {
	port, err := layered(o)
	if err != nil {
		return fail(err)
	}
	if port != 0 {
		o.Env = append(withoutProxies(o.Env), proxies(port, ownLoopback)...)
	}
	tell("ready " + strconv.Itoa(port))
	word := make([]byte, 16)
	for {
		n, err := unix.Read(controlFile, word)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return exitNoWalls
		}
		break
	}
	if err := moveTo(o.Dir); err != nil {
		return fail(fmt.Errorf("%s cannot be entered: %w", o.Dir, err))
	}
	if err := giveUpMounting(); err != nil {
		return fail(err)
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail(fmt.Errorf("descriptors could stay open: %w", err))
	}
	signal.Stop(signals)
	if early := pending(signals); len(early) > 0 { // the program would never get it
		return died(early[0])
	}
	err = syscall.Exec(o.Program, os.Args[2:], o.marked())
	return notFound(o.Program, err)
}

// moveTo changes the working directory for the program that replaces this process. Its name leads into the layers only
// now.
func moveTo(dir string) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, _, errno := syscall.RawSyscall(unix.SYS_FCHDIR, uintptr(fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// marked returns the environment of the program, with the mark by which its guard finds it.
func (o *order) marked() []string {
	if mark := os.Getenv(childMark); mark != "" {
		return append(o.Env, childMark+"="+mark)
	}
	return o.Env
}

func layered(o *order) (port int, err error) {
	if err := overrides(false); err != nil {
		return 0, err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return 0, fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	for layer := range slices.Chunk(o.Layers, 3) {
		if err := overlay(layer[0], layer[1], layer[2], o.Names[0]); err != nil {
			return 0, fmt.Errorf("no layer can be put over %s: %w", layer[0], err)
		}
		o.Names = o.Names[1:]
	}
	if o.Network == "on" {
		return 0, nil
	}
	if err := loopback(); err != nil {
		return 0, fmt.Errorf("the network: %w", err)
	}
	return network(o)
}

// giveUpMounting keeps root of the namespace from removing the layers: CAP_SYS_ADMIN does not come back when a program
// is executed. Other users lose all capabilities then.
func giveUpMounting() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	have, err := capabilities()
	if err != nil {
		return err
	}
	for i := range have {
		have[i].Inheritable = 0
	}
	if err := setCapabilities(have); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0)
}

// join starts the program in the namespaces, and ends as it does. A process with several threads cannot enter a user
// namespace, so a copy of this one does.
func join(o *order, signals chan os.Signal) int {
	n := 2
	if o.Network != "on" {
		n = 3
	}
	program, argv, env := o.Program, os.Args[2:], o.marked()
	keep := uintptr(3)
	if o.Call != "" { // the copy is a stage itself
		program, argv, env, keep = "/proc/self/exe", []string{stageName, stageArgument, toDial}, stageEnvironment(env),
			5
	}
	if err := unix.CloseRange(uint(keep), ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail(fmt.Errorf("descriptors could stay open: %w", err))
	}
	later := listen() // catches them from now on, so that Stop only waits for those that have come
	child, where, err := forkInto(n, o.Dir, program, argv, env)
	if err != nil {
		return fail(fmt.Errorf("%s: %w", where, err))
	}
	signal.Stop(signals)
	for _, s := range pending(signals) { // it may have come before there was a program
		_ = syscall.Kill(child, s)
	}
	tell("joined")
	if o.Call == "" { // else the copy listens to the caller
		go dieWithCaller(nil)
	}
	status := await(child)
	_ = pending(later)
	if status.Signaled() {
		return died(status.Signal())
	}
	return status.ExitStatus()
}

// forkInto starts a program in the namespaces of the descriptors from spaceFile on. where is what it failed at. The
// child is a copy without the other threads, and must not use the runtime: no allocation, no growth of the stack, no
// locks. The pragmas are those of the standard library's fork, for the same reasons.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkInto(spaces int, dir, program string, argv, env []string) (pid int, where string, err error) {
	path, errPath := unix.BytePtrFromString(program)
	in, errDir := unix.BytePtrFromString(dir)
	args, errArgs := syscall.SlicePtrFromStrings(argv)
	vars, errVars := syscall.SlicePtrFromStrings(env)
	if err := errors.Join(errPath, errDir, errArgs, errVars); err != nil {
		return 0, "the call", err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, "a pipe", err
	}
	var (
		failure [2]uint64 // where, why
		none    uint64
		all     = ^uint64(0)
		end     = uintptr(pipe[1])
		fall    [4]uint64 // the default action for a signal
		asking  = askedBy()
		last    = uintptr(spaceFile + spaces)
	)
	// no handler of the runtime may run in the copy
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)),
		uintptr(unsafe.Pointer(&none)), 8, 0, 0)
	child, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && child == 0 {
		for fd := uintptr(spaceFile); fd < last && errno == 0; fd++ {
			_, _, errno = syscall.RawSyscall(unix.SYS_SETNS, fd, 0, 0)
		}
		if errno == 0 {
			failure[0] = 1
			_, _, errno = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(in)), 0, 0)
		}
		if errno == 0 {
			_, _, errno = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0, 0)
		}
		if errno == 0 {
			failure[0] = 2
			for i := range asking { // one that comes now ends the copy; a handler of the runtime would swallow it
				if asking[i] != 0 {
					_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, asking[i],
						uintptr(unsafe.Pointer(&fall)), 0, 8, 0, 0)
				}
			}
			_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&none)), 0,
				8, 0, 0)
			_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)),
				uintptr(unsafe.Pointer(&args[0])), uintptr(unsafe.Pointer(&vars[0])))
		}
		failure[1] = uint64(errno)
		_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, end, uintptr(unsafe.Pointer(&failure)), unsafe.Sizeof(failure))
		for {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, exitNoWalls, 0, 0)
		}
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0)
	runtime.KeepAlive([]any{path, in, args, vars})
	_ = unix.Close(pipe[1])
	defer unix.Close(pipe[0])
	if errno != 0 {
		return 0, "a process", errno
	}
	block := (*[unsafe.Sizeof(failure)]byte)(unsafe.Pointer(&failure))[:]
	if n, _ := unix.Read(pipe[0], block); n == len(block) {
		places := []string{"the namespaces cannot be entered", dir, program}
		return 0, places[failure[0]], syscall.Errno(failure[1])
	}
	return int(child), "", nil
}

// askedBy returns the signals that ask a program to end, and 0 for those that the caller ignores.
func askedBy() (numbers [4]uintptr) {
	for i, s := range ending() {
		if !signal.Ignored(s) {
			numbers[i] = uintptr(s)
		}
	}
	return numbers
}
