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
	"unsafe"

	"golang.org/x/sys/unix"
)

// A command has no right to change a name in its workspace, nor to open a file there for writing: Landlock refuses it.
// A supervisor does that for it. Seccomp holds each such system call and tells the supervisor, which finds out where
// the path leads, refuses protected names, and else acts in the place of the command.
//
//	command ── open, mkdir, rename … ─▶ seccomp holds the call
//	supervisor ◀─ notification ── path ─▶ parent directory, opened ─▶ protected? ─▶ act there, without links
//	command ◀─ descriptor, or number of the error
//
// Nothing is mounted for that and nothing is made, so that nothing can come off or be left behind. A path that leads
// out of the workspace is left to the kernel, with which Landlock decides once more: a path that changes meanwhile
// gains nothing. Reading goes straight to the files.
//
// The supervisor is a few threads of a stage, outside of the sandbox. If they end, what they would do is refused.
type supervisor struct {
	listener int
	names    *guarded
	roots    []string // where it acts
	writable []string // what commands may change, there and elsewhere

	umask   uint32        // of the command
	unmask  atomic.Uint32 // how often a process has asked for another one
	strange bool          // /proc has other numbers for processes
	blunt   bool          // Landlock does not see truncation (before Linux 6.2), so none is left to the kernel

	moves   sync.RWMutex // a rename changes where other paths lead
	later   chan waiting // what cannot be opened yet
	locking sync.Mutex
	locks   map[inode]int // those made for commands, each with a descriptor of it
}

// mostAgain is how often a path is followed anew because it was changed.
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

// supervise starts the supervisor of what sent the listener.
func supervise(listener int, umask uint32, o *order) error {
	s := &supervisor{
		listener: listener, names: newGuarded(o), roots: o.Watched, writable: o.granted(),
		strange: o.OldProcesses, umask: umask, later: make(chan waiting, mostWaiting), locks: map[inode]int{},
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

// bare keeps the goroutine on a thread of its own, which has no more rights than the command.
func bare() error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	return dropCapabilities()
}

// serve answers on a thread that has a umask of its own.
func (s *supervisor) serve(begun chan<- error) {
	err := bare()
	unix.Umask(0)
	begun <- err
	r := &request{supervisor: s, known: known{living: -1}}
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

func (r *request) handle(n *notification) {
	r.id, r.pid = n.id, int(n.pid)
	d, known := deedOf(n.number, n.args)
	err := errGoOn
	if known {
		for again := 0; again == 0 || errors.Is(err, errMoved) && again < mostAgain; again++ {
			err = r.do(d)
		}
	}
	a := &r.answer
	*a = answer{id: n.id}
	var errno unix.Errno
	switch {
	case errors.Is(err, errAnswered):
		return
	case errors.Is(err, errGoOn):
		a.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	case errors.As(err, &errno):
		a.errno = -int32(errno)
	case err != nil:
		a.errno = -int32(unix.EACCES)
	}
	r.send(a)
}

func (s *supervisor) send(a *answer) {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), ioctlAnswer, uintptr(unsafe.Pointer(a)))
}

// request is one call that waits for its answer.
type request struct {
	*supervisor
	id  uint64
	pid int // of the thread that calls, in our numbers

	// Memory for all requests of a thread: what the garbage collector takes, every command waits for.
	answer answer
	block  [unix.PathMax]byte
	known  known
	mine   uint32 // the umask of our thread
	local  [1]unix.Iovec
	remote [1]unix.RemoteIovec
}

// valid reports whether the caller still waits, so that what was read belongs to it.
func (r *request) valid() bool {
	id := r.id
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(r.listener), ioctlValid, uintptr(unsafe.Pointer(&id)))
	return errno == 0
}

// text reads a string of the caller, page by page.
func (r *request) text(at uint64) (string, error) {
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
func (r *request) proc() (string, error) {
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
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return "", errGoOn
	}
	for line := range strings.Lines(string(text)) {
		if number, found := strings.CutPrefix(line, "Pid:"); found {
			return "/proc/" + strings.TrimSpace(number), nil
		}
	}
	return "", errGoOn
}

// known is the umask of the last caller of a thread. To ask for it takes longer than all else.
type known struct {
	pid    int
	since  uint32 // the count of changes when it was asked for
	living int    // a file of the process, which can be read while it lives, also if its number is used again; -1: none
	umask  uint32
}

// mask returns the umask of the caller.
func (r *request) mask() uint32 {
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

// mayHave sets our umask. Only the kernel knows whether it counts where a file is made.
func (r *request) mayHave(umask uint32) {
	if umask != r.mine {
		unix.Umask(int(umask))
		r.mine = umask
	}
}

// hand gives a descriptor to the caller, and closes ours before the caller goes on: a program that it has just written
// could not be started while somebody else has it open.
func (r *request) hand(fd int, flags int) error {
	h := handing{id: r.id, from: uint32(fd), toFlags: uint32(flags & unix.O_CLOEXEC)}
	theirs, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(r.listener), ioctlHand, uintptr(unsafe.Pointer(&h)))
	_ = unix.Close(fd)
	if errno != 0 {
		return errno
	}
	r.send(&answer{id: r.id, value: int64(theirs)})
	return errAnswered
}

// spot is where a path leads: to a name in a directory. Close it.
type spot struct {
	dir   int    // of the name, open without rights; -1: none
	name  string // a dot: the directory itself
	path  string // of the directory and the name, by what the kernel says
	slash bool   // the path had one at its end
	own   int    // or it leads to this descriptor of the caller; -1: it does not
}

func (s spot) close() {
	if s.dir >= 0 {
		_ = unix.Close(s.dir)
	}
}

// spot follows a path of the caller, and the last element too if it says so. It fails with errGoOn if the path leads
// out of the workspace.
func (r *request) spot(dir int32, path string, follow bool) (spot, error) {
	at, owned := unix.AT_FDCWD, false
	drop := func() {
		if owned {
			_ = unix.Close(at)
		}
	}
	if path == "" {
		return spot{}, unix.ENOENT
	}
	if n, ok := descriptor(path); ok {
		return spot{dir: -1, own: n}, nil
	}
	if dir, path = beginning(dir, path); strings.HasPrefix(path, "/proc/") { // another one for each process
		return spot{}, errGoOn
	}
	if path[0] != '/' {
		base, err := r.base(dir)
		if err != nil {
			return spot{}, err
		}
		at, owned = base, true
	}
	for range mostLinks + 1 {
		s, target, err := r.step(at, path, follow)
		if err != nil {
			drop()
			return s, err
		}
		if target == "" {
			drop()
			if !r.inside(s.path) {
				s.close()
				return s, errGoOn
			}
			if !r.valid() {
				s.close()
				return s, errAnswered
			}
			return s, nil
		}
		if n, ok := descriptor(target); ok {
			drop()
			s.close()
			return spot{dir: -1, own: n}, nil
		}
		drop()
		if strings.HasPrefix(target, "/proc/") {
			s.close()
			return s, errGoOn
		}
		if strings.HasSuffix(target, "/") {
			s.slash = true
		}
		if at, owned, path = s.dir, true, target; s.slash {
			path += "/"
		}
	}
	drop()
	return spot{}, unix.ELOOP
}

// step finds the directory of the last element of a path. If that is a link which is to be followed, it returns where
// it leads.
func (r *request) step(at int, path string, follow bool) (s spot, target string, err error) {
	s = spot{dir: -1, own: -1}
	trimmed := strings.TrimRight(path, "/")
	s.slash = len(trimmed) < len(path)
	parent, name := ".", trimmed
	if i := strings.LastIndexByte(trimmed, '/'); i >= 0 {
		parent, name = trimmed[:i+1], trimmed[i+1:]
	} else if trimmed == "" {
		parent, name = "/", "."
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if name == "." || name == ".." {
		parent, name = trimmed+"/", "."
	}
	if s.dir, err = unix.Openat2(at, parent, &how); err != nil {
		s.dir = -1
		if errors.Is(err, unix.ELOOP) {
			err = errGoOn // over /proc, where each process has its own
		}
		return s, "", err
	}
	s.name = name
	real, err := r.pathOf(s.dir)
	if err != nil || strings.HasPrefix(real, "/proc/") || real[0] != '/' {
		s.close()
		return s, "", errGoOn
	}
	if s.path = real; name == "." {
		return s, "", nil
	}
	if s.path = filepath.Join(real, name); !follow {
		return s, "", nil
	}
	if n, err := unix.Readlinkat(s.dir, name, r.block[:]); err == nil && n > 0 {
		return s, string(r.block[:n]), nil
	}
	return s, "", nil
}

// pathOf returns the path of an open file, as the kernel knows it.
func (r *request) pathOf(fd int) (string, error) {
	n, err := unix.Readlink(own(fd), r.block[:])
	if errors.Is(err, unix.ENAMETOOLONG) {
		return r.deepPath(fd)
	}
	if err != nil || n == 0 {
		return "", unix.EACCES
	}
	return string(r.block[:n]), nil
}

// deepPath returns a path for a directory that has none because it would be too long: that of one above it, and a name
// which no file has. No protected name lies so deep, but for those beneath one.
func (r *request) deepPath(fd int) (string, error) {
	at, err := unix.Openat(fd, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for err == nil {
		n, errPath := unix.Readlink(own(at), r.block[:])
		if errPath == nil && n > 0 {
			_ = unix.Close(at)
			return string(r.block[:n]) + "/\x00", nil
		}
		up, errUp := unix.Openat(at, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		_ = unix.Close(at)
		if at, err = up, errUp; !errors.Is(errPath, unix.ENAMETOOLONG) {
			err = unix.EACCES
		}
	}
	return "", unix.EACCES
}

// own is the name of a descriptor of ours.
func own(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// descriptor returns the number of the descriptor of the caller that a path names.
func descriptor(path string) (int, bool) {
	for i, name := range []string{"/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		if path == name {
			return i, true
		}
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"} {
		if number, found := strings.CutPrefix(path, dir); found {
			n, err := strconv.ParseUint(number, 10, 31)
			return int(n), err == nil
		}
	}
	return 0, false
}

// beginning returns where a path begins that names a directory of the caller by way of /proc.
func beginning(dir int32, path string) (int32, string) {
	for _, at := range []string{"/proc/self/cwd/", "/proc/thread-self/cwd/"} {
		if rest, found := strings.CutPrefix(path, at); found && strings.Trim(rest, "/") != "" {
			return here, strings.TrimLeft(rest, "/")
		}
	}
	for _, at := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"} {
		if rest, found := strings.CutPrefix(path, at); found {
			number, rest, _ := strings.Cut(rest, "/")
			n, err := strconv.ParseUint(number, 10, 31)
			if rest = strings.TrimLeft(rest, "/"); err == nil && rest != "" {
				return int32(n), rest
			}
		}
	}
	return dir, path
}

// base opens the directory from which a relative path begins.
func (r *request) base(dir int32) (int, error) {
	proc, err := r.proc()
	if err != nil {
		return -1, err
	}
	name := proc + "/cwd"
	if dir != unix.AT_FDCWD {
		name = proc + "/fd/" + strconv.Itoa(int(dir))
	}
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, errGoOn
	}
	return fd, nil
}

// held opens what a descriptor of the caller is, without rights.
func (r *request) held(number int) (fd int, path string, err error) {
	proc, err := r.proc()
	if err != nil {
		return -1, "", err
	}
	fd, err = unix.Open(proc+"/fd/"+strconv.Itoa(number), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, "", errGoOn
	}
	if path, err = r.pathOf(fd); err != nil || !r.inside(path) || !r.valid() {
		_ = unix.Close(fd)
		return -1, "", errGoOn
	}
	return fd, path, nil
}

// inside reports whether a path is or lies in a directory where the supervisor acts.
func (r *request) inside(path string) bool { return first(r.roots, path) != "" }
