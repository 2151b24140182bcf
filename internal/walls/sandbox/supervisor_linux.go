package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A command may not change names in its workspace, nor open files there for writing: Landlock refuses it. A supervisor
// does that instead. Seccomp holds each such system call and notifies the supervisor, which finds out where the path
// leads, refuses protected names, and otherwise acts in place of the command.
//
//	command ── open, mkdir, rename … ─▶ seccomp holds the call
//	supervisor ◀─ notification ── path ─▶ parent directory, opened ─▶ protected? ─▶ act there, without links
//	command ◀─ descriptor, or number of the error
//
// Nothing is mounted or created for that, so nothing can be left behind. A path that leads out of the workspace is left
// to the kernel, where Landlock decides: a path that changes meanwhile gains nothing. Reading goes straight to the
// files.
//
// The supervisor is a few threads of a stage, outside of the sandbox. If they end, the calls that they would make are
// refused.
type supervisor struct {
	listener int
	names    *guarded
	roots    []string // where it acts
	writable []string // what commands may change, there and elsewhere
	grants   []string // the same, without links

	umask      uint32        // of the command
	unmask     atomic.Uint32 // how often a process has changed its own
	strange    bool          // the process numbers in /proc are those of another namespace
	attributes bool          // it changes attributes too
	blunt      bool          // Landlock does not see truncation (before Linux 6.2), so none is left to the kernel

	moves   sync.RWMutex // a rename changes where other paths lead
	later   chan waiting // what cannot be opened yet
	ledger  *ledger      // nil: nobody wants to know what is written
	locking sync.Mutex
	locks   map[inode]int // locks made for commands, each with an open descriptor
	told    *refusedPaths // nil: refused paths are not reported
}

// mostAgain is how often a path that has changed is resolved again.
const mostAgain = 16

// supervisors returns how many threads answer. On a small machine more of them only wake each other.
func supervisors() int { return max(1, min(4, runtime.NumCPU()/2)) }

// notification is struct seccomp_notif.
type notification struct {
	id      uint64
	pid     uint32
	flags   uint32
	number  uint32
	machine uint32
	from    uint64
	args    [6]uint64
}

// answer is struct seccomp_notif_resp.
type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// handing is struct seccomp_notif_addfd.
type handing struct {
	id      uint64
	flags   uint32
	from    uint32
	to      uint32
	toFlags uint32
}

const (
	ioctlReceive = unix.SECCOMP_IOCTL_NOTIF_RECV
	ioctlAnswer  = unix.SECCOMP_IOCTL_NOTIF_SEND
	ioctlValid   = unix.SECCOMP_IOCTL_NOTIF_ID_VALID
	ioctlHand    = unix.SECCOMP_IOCTL_NOTIF_ADDFD
	ioctlFlags   = unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS
)

var (
	errGoOn     = errors.New("the kernel decides")
	errAnswered = errors.New("it was answered")
	errMoved    = errors.New("the path leads elsewhere by now")
)

// supervise starts the supervisor of a listener. It fails if one of its threads cannot give up its rights.
func supervise(listener int, umask uint32, o *order) error {
	s := &supervisor{
		listener: listener, names: newGuarded(o), roots: o.Watched, writable: o.granted(),
		strange: o.OldProcesses, umask: umask, later: make(chan waiting, mostWaiting), locks: map[inode]int{},
		ledger: o.openLedger(), attributes: o.Tier == Landlock,
	}
	if o.Tells {
		s.told = &refusedPaths{}
	}
	for _, path := range s.writable {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			s.grants = append(s.grants, real)
		}
	}
	s.blunt = o.ABI < 3 && o.Tier == Namespaces
	signal.Notify(make(chan os.Signal, 1), unix.SIGXFSZ) // a file that would be too large is an error, not our end
	// Since Linux 6.6 the command goes on on the same processor, without a detour by the scheduler.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), ioctlFlags,
		unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	o.end = func() {
		over := make(chan bool)
		go func() { // this thread may be behind the walls
			s.leave()
			close(over)
		}()
		<-over
	}
	begun := make(chan error, supervisors()+1)
	go s.keepTrying(begun)
	for range supervisors() {
		go s.serve(begun)
	}
	for range supervisors() + 1 {
		if err := <-begun; err != nil {
			return fmt.Errorf("the supervisor of the workspace: %w", err)
		}
	}
	return nil
}

// bare locks the goroutine to a thread with its own umask and working directory, and drops the thread's capabilities.
func bare() error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	return dropCapabilities()
}

// serve answers the held calls on its own thread.
func (s *supervisor) serve(begun chan<- error) {
	err := bare()
	unix.Umask(0)
	r := s.newRequest()
	if err == nil {
		r.top, err = unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	begun <- err
	for n := new(notification); err == nil; *n = (notification{}) {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), ioctlReceive, uintptr(unsafe.Pointer(n)))
		switch errno {
		case 0:
			r.handle(n)
		case unix.EINTR, unix.ENOENT: // the process was killed meanwhile
		default:
			return
		}
	}
}

func (r *pathCall) handle(n *notification) {
	r.id, r.pid, r.began = n.id, int(n.pid), time.Now()
	d, known := changeOf(n.number, n.args)
	err := errGoOn
	if known {
		for again := 0; again == 0 || errors.Is(err, errMoved) && again < mostAgain; again++ {
			r.again = again > 0
			err = r.do(d)
		}
	}
	a := &r.answer
	*a = answer{id: n.id}
	var errno unix.Errno
	switch {
	case err == nil:
	case errors.Is(err, errAnswered):
		return
	case errors.Is(err, errGoOn):
		a.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	case errors.As(err, &errno):
		if errno == refusedName {
			r.tellRefused(d)
		}
		a.errno = -int32(errno)
	default:
		a.errno = -int32(unix.EACCES)
	}
	r.send(a)
}

func (s *supervisor) send(a *answer) {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), ioctlAnswer, uintptr(unsafe.Pointer(a)))
}

// pathCall is one held call that waits for its answer.
type pathCall struct {
	*supervisor
	id  uint64
	pid int // of the thread that calls, in our numbers

	began time.Time // to make the call here; zero: the kernel makes it
	again bool      // the path was resolved before, and the last element was a link or became one

	// Memory that all calls of a thread share: every command waits for the garbage collector.
	answer   answer
	top      int // the root directory, for a thread with a working directory of its own; -1: it has none
	procDirs [8]procDir
	block    [unix.PathMax]byte
	known    known
	mine     uint32 // the umask of our thread
	local    [1]unix.Iovec
	remote   [1]unix.RemoteIovec
}

func (s *supervisor) newRequest() *pathCall {
	r := &pathCall{supervisor: s, known: known{living: -1}, top: -1}
	for i := range r.procDirs {
		r.procDirs[i].dir = -1
	}
	return r
}

// valid reports whether the caller still waits, so that what was read belongs to it.
func (r *pathCall) valid() bool {
	id := r.id
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(r.listener), ioctlValid, uintptr(unsafe.Pointer(&id)))
	return errno == 0
}

// text reads a string of the caller, page by page.
func (r *pathCall) text(at uint64) (string, error) {
	text := r.block[:]
	for got := 0; got < len(text); {
		size := min(len(text)-got, int(4096-(at+uint64(got))%4096), max(256, got))
		r.local[0] = unix.Iovec{Base: &text[got], Len: uint64(size)}
		r.remote[0] = unix.RemoteIovec{Base: uintptr(at) + uintptr(got), Len: size}
		n, err := unix.ProcessVMReadv(r.pid, r.local[:], r.remote[:], 0)
		if err != nil || n <= 0 {
			return "", errGoOn // the kernel will find the same, or else Landlock refuses
		}
		for i := got; i < got+n; i++ {
			if text[i] == 0 {
				return string(text[:i]), nil
			}
		}
		got += n
	}
	return "", unix.ENAMETOOLONG
}

// proc returns the directory of the caller in /proc.
func (r *pathCall) proc() (string, error) {
	if !r.strange {
		return "/proc/" + strconv.Itoa(r.pid), nil
	}
	fd, err := unix.PidfdOpen(r.pid, unix.O_EXCL) // of a thread, since Linux 6.9
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.PidfdOpen(r.pid, 0)
	}
	if err != nil {
		return "", errGoOn // a thread that is not the first of its process
	}
	defer unix.Close(fd)
	number := statusField("/proc/self/fdinfo/"+strconv.Itoa(fd), "Pid")
	if number == "" {
		return "", errGoOn
	}
	return "/proc/" + number, nil
}

// procDir is the open directory of a thread in /proc. Nothing is found there once the thread has ended, even if its
// number is used again.
type procDir struct{ pid, dir int }

// ofCaller opens, with O_PATH, a name in the caller's directory in /proc.
func (r *pathCall) ofCaller(name string, flags int) (int, error) {
	l := &r.procDirs[r.pid%len(r.procDirs)]
	if l.dir >= 0 && l.pid == r.pid {
		fd, err := unix.Openat(l.dir, name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
		if !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENOENT) {
			return fd, err
		}
	}
	if l.dir >= 0 {
		_ = unix.Close(l.dir)
		l.dir = -1
	}
	proc, err := r.proc()
	if err != nil {
		return -1, err
	}
	dir, err := unix.Open(proc, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	l.pid, l.dir = r.pid, dir
	return unix.Openat(dir, name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
}

// known is the umask of the last caller of a thread. It is cached because asking takes longer than all else.
type known struct {
	pid    int
	since  uint32 // the count of changes when it was asked for
	living int    // a file of the process, which can be read while it lives, also if its number is used again; -1: none
	umask  uint32
}

// mask returns the umask of the caller.
func (r *pathCall) mask() uint32 {
	changes := r.unmask.Load()
	if changes == 0 {
		return r.umask
	}
	k := &r.known
	if k.living >= 0 {
		if k.pid == r.pid && k.since == changes {
			if n, err := unix.Pread(k.living, r.block[:1], 0); err == nil && n == 1 {
				return k.umask
			}
		}
		_ = unix.Close(k.living)
		k.living = -1
	}
	proc, err := r.proc()
	if err != nil {
		return 0o077
	}
	living, err := unix.Open(proc+"/comm", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0o077
	}
	text, _ := os.ReadFile(proc + "/status")
	mask, alone := uint64(0o077), false // another thread may be about to change it
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); key {
		case "Umask":
			if mask, err = strconv.ParseUint(value, 8, 12); err != nil {
				mask = 0o077
			}
		case "Threads":
			alone = value == "1"
		}
	}
	if !alone {
		_ = unix.Close(living)
		return uint32(mask)
	}
	*k = known{r.pid, changes, living, uint32(mask)}
	return k.umask
}

// mayHave sets our umask. Only the kernel knows whether it applies where a file is made.
func (r *pathCall) mayHave(umask uint32) {
	if umask != r.mine {
		unix.Umask(int(umask))
		r.mine = umask
	}
}

// hand gives a descriptor to the caller, and closes ours before the caller goes on: a program that it has just written
// could not be started while somebody else has it open.
func (r *pathCall) hand(fd int, flags int) error {
	h := handing{id: r.id, from: uint32(fd), toFlags: uint32(flags & unix.O_CLOEXEC)}
	theirs, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(r.listener), ioctlHand, uintptr(unsafe.Pointer(&h)))
	_ = unix.Close(fd)
	if errno != 0 {
		return errno
	}
	r.send(&answer{id: r.id, value: int64(theirs)})
	return errAnswered
}
