package sandbox

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"omniagent/internal/kit/pathname"

	"golang.org/x/sys/unix"
)

// A repository can take over an agent by files that the agent reads as its own configuration. These names do not exist
// for the agent's program: seccomp holds each call that looks at a path, and a supervisor answers ENOENT if the path
// has one of these names. It decides at each call, so a file that appears later counts too.
//
//	agent ── open, stat, readlink … ─▶ seccomp holds the call
//	supervisor ◀─ notification ── path ─▶ one of the names? by the agent's own program? ─▶ ENOENT
//	                                      else ─▶ the kernel goes on
//
// The agent is trusted, and the repository is not: so it does not matter that a path can change after the check, or
// that another program, such as git or a shell, sees the files.
//
// A held call takes longer than the agent's own work for it, so only those that matter are held. If one of the names
// exists when the agent starts, all are: an agent that sees a file and cannot read it takes that for an error.
// Otherwise only calls that open a file or enter a directory are held: a name that appears later can be seen, but not
// its content.
type hiddenFiles struct {
	supervisor
	names    [][]string // the elements of each
	makes    [][]string
	reviewed map[string]string
	own      []string // what the agent finds anyway
	shells   []string
	first    atomic.Int64 // the process that was started; 0: not yet
	ran      []string     // programs, and directories with such, that turned out to be the agent's own
}

// hideFiles installs the filter of an agent on this thread. If the filter holds calls, hideFiles starts the thread that
// answers them.
func hideFiles(o *order) (*hiddenFiles, error) {
	v := &hiddenFiles{
		reviewed: o.Reviewed, own: slices.Concat(o.Mine, o.Files, o.Readers), shells: o.Shells,
	}
	hides := len(o.Veiled) > 0 && (len(o.Readers) > 0 || o.Trial)
	if !hides && o.Ledger == 0 {
		return v, install(agentFilter(veilsNothing, false))
	}
	v.ledger, v.roots = o.openLedger(), realPaths(append([]string{o.Root}, o.Write...))
	for _, name := range o.Veiled {
		v.names = append(v.names, strings.Split(name, "/"))
	}
	for _, name := range o.OwnSettings {
		v.makes = append(v.makes, strings.Split(name, "/"))
	}
	held := veilsOpening
	if !hides {
		held = veilsNothing
	} else if v.anyThere(append([]string{o.Dir, o.Root}, o.Write...)) {
		held = veilsAll
	}
	// The thread that answers starts before the filter: it keeps the privileges, and its own calls are not held. It is
	// the only one, since the kernel would wake all of them for each call.
	listeners, begun := make(chan int), make(chan bool)
	go v.serve(listeners, begun)
	<-begun
	listener, err := listenTo(agentFilter(held, o.Ledger > 0))
	if err != nil {
		return nil, err
	}
	v.listener = listener
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), ioctlFlags, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	listeners <- listener
	return v, nil
}

// anyThere reports whether the agent's program would find one of the names in a directory, or above it.
func (v *hiddenFiles) anyThere(dirs []string) bool {
	for _, dir := range dirs {
		for at := dir; ; at = filepath.Dir(at) {
			for _, name := range v.names {
				path := filepath.Join(at, filepath.Join(name...))
				if unix.Faccessat(unix.AT_FDCWD, path, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) != unix.ENOENT &&
					!v.finds(path) {
					return true
				}
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return false
}

// veiling says which calls that look at a path are held.
type veiling int

const (
	veilsNothing veiling = iota
	veilsOpening         // a file, or enter a directory
	veilsAll
)

// agentFilter returns the filter for an agent, or nil if none is known for this machine. It refuses keys, input into a
// terminal and io_uring. With a ledger it also holds the calls that write.
func agentFilter(what veiling, ledger bool) []unix.SockFilter {
	machine, oldOpen, old := oldLooks()
	if machine == 0 {
		return nil
	}
	calls := map[uint32][]unix.SockFilter{}
	held := []unix.SockFilter{bpfReturn(unix.SECCOMP_RET_USER_NOTIF)}
	if ledger {
		bpfWriting(calls)
		bpfModes(calls)
		calls[unix.SYS_OPENAT2] = held
	}
	if what >= veilsOpening {
		for _, n := range append(oldOpen, unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_CHDIR) {
			calls[n] = held
		}
	}
	if what >= veilsAll {
		for _, n := range append(old, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT) {
			calls[n] = held
		}
		// With AT_EMPTY_PATH the call looks at a file that is open already.
		calls[newfstatat] = bpfOneOf(3, 0, []uint32{unix.AT_EMPTY_PATH}, bpfAllow(), held)
		calls[unix.SYS_STATX] = bpfOneOf(2, 0, []uint32{unix.AT_EMPTY_PATH}, bpfAllow(), held)
	}
	private := privateCalls{unix.SYS_IOCTL, [3]uint32{unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY}}
	private.refuse(calls)
	// Names are not hidden from 32-bit programs: the agent's own program is never one.
	narrow, numbers := narrowMachine()
	others := map[uint32][]unix.SockFilter{}
	numbers.refuse(others)
	missing := bpfRefuse(unix.ENOSYS)
	return filterOf(machine, calls, missing, filterOf(narrow, others, missing, missing))
}

// privateCalls are the numbers of calls that reach a person's keys and terminals.
type privateCalls struct {
	ioctl uint32
	keys  [3]uint32
}

// refuse refuses keys of the user, input into a terminal, and io_uring, whose operations no filter sees. The numbers of
// io_uring are the same on each machine.
func (p privateCalls) refuse(calls map[uint32][]unix.SockFilter) {
	refuse := bpfRefuse(unix.EPERM)
	for _, n := range p.keys {
		calls[n] = refuse
	}
	calls[p.ioctl] = bpfOneOf(1, 0, []uint32{unix.TIOCSTI, unix.TIOCLINUX}, refuse, bpfAllow())
	for _, n := range []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER} {
		calls[n] = bpfRefuse(unix.ENOSYS)
	}
}

func (v *hiddenFiles) serve(listeners <-chan int, begun chan<- bool) {
	runtime.LockOSThread()
	begun <- true
	<-listeners
	r := v.newRequest()
	for n := new(notification); ; *n = (notification{}) {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(v.listener), ioctlReceive, uintptr(unsafe.Pointer(n)))
		switch errno {
		case 0:
			r.id, r.pid = n.id, int(n.pid)
			r.answer = answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
			if v.hides(r, n) {
				r.answer = answer{id: n.id, errno: -int32(unix.ENOENT)}
			} else if v.ledger != nil {
				r.enter(n)
			}
			r.send(&r.answer)
		case unix.EINTR, unix.ENOENT:
		default:
			return
		}
	}
}

// hides reports whether the answer to a call is ENOENT.
func (v *hiddenFiles) hides(r *pathCall, n *notification) bool {
	if d, known := changeOf(n.number, n.args); known && d.act != opensFile {
		return false // it changes a name or a mode, and is held for the ledger alone
	}
	dir, at := here, n.args[0]
	if !looksHere(n.number) {
		dir, at = int32(uint32(n.args[0])), n.args[1]
	}
	path, err := r.text(at)
	if err != nil || !v.mayName(path) {
		return false
	}
	if !filepath.IsAbs(path) {
		base, err := r.lookedFrom(dir)
		if err != nil {
			return false
		}
		path = filepath.Join(base, path)
	}
	path = filepath.Clean(path)
	return !v.finds(path) && v.reads(r) && !(opensNothing(n.number) && isEmpty(path))
}

// isEmpty reports whether a path is an empty regular file. Claude Code's own sandbox creates empty files to keep others
// from appearing, and removes those that it finds. An empty file cannot take over an agent.
func isEmpty(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == 0
}

// mayName is a quick check of the text of a path: whether the last element of a name is in it. With reviewed files any
// relative path counts, because the directory of such a file may be the working directory.
func (v *hiddenFiles) mayName(path string) bool {
	return len(v.reviewed) > 0 && !filepath.IsAbs(path) || v.hasName(path)
}

// hasName reports whether the last element of a name is in a text.
func (v *hiddenFiles) hasName(text string) bool {
	return slices.ContainsFunc(v.names, func(name []string) bool { return strings.Contains(text, name[len(name)-1]) })
}

// lookedFrom returns the directory from which a relative path starts.
func (r *pathCall) lookedFrom(dir int32) (string, error) {
	proc, err := r.proc()
	if err != nil {
		return "", err
	}
	name := proc + "/cwd"
	if dir != unix.AT_FDCWD {
		name = proc + "/fd/" + strconv.Itoa(int(dir))
	}
	return os.Readlink(name)
}

// finds reports whether a path has none of the names in it, or leads to what the agent may find.
func (v *hiddenFiles) finds(path string) bool {
	if rest, is := v.inOwn(path); is && !v.hasName(rest) { // most: its settings have the names of a repository's
		return true
	}
	elements := strings.Split(path, "/")
	for _, name := range v.names {
		for i := 1; i+len(name) <= len(elements); i++ {
			if !slices.Equal(elements[i:i+len(name)], name) || v.isMade(elements[i:]) {
				continue
			}
			above, err := filepath.EvalSymlinks("/" + strings.Join(elements[1:i], "/"))
			if err != nil {
				continue
			}
			at := filepath.Join(above, strings.Join(elements[i:], "/"))
			if _, is := v.inOwn(at); !is && !v.isReviewed(at) {
				return false
			}
		}
	}
	return true
}

// inOwn reports whether a path lies in what belongs to the agent, and returns what follows.
func (v *hiddenFiles) inOwn(path string) (rest string, is bool) {
	for _, own := range v.own {
		if rest, is = strings.CutPrefix(path, own); is && (rest == "" || rest[0] == '/') {
			return rest, true
		}
	}
	return "", false
}

// isMade reports whether a path is a name that the agent creates, or lies below one.
func (v *hiddenFiles) isMade(elements []string) bool {
	return slices.ContainsFunc(v.makes, func(name []string) bool {
		return len(elements) >= len(name) && slices.Equal(elements[:len(name)], name)
	})
}

// isReviewed reports whether a file has the content that a person has reviewed, or such a file lies below it.
func (v *hiddenFiles) isReviewed(path string) bool {
	for file, sum := range v.reviewed {
		if file != path {
			if pathname.Within(path, file) {
				return true
			}
			continue
		}
		parent, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		data, err := readAt(parent, filepath.Base(path))
		_ = unix.Close(parent)
		return err == nil && fmt.Sprintf("%x", sha256.Sum256(data)) == sum
	}
	return false
}

// reads reports whether the caller is the agent's own program. PATH may name a script or a shim that executes the real
// program, which no file shows. So the programs that the agent's processes execute count too.
func (v *hiddenFiles) reads(r *pathCall) bool {
	proc, err := r.proc()
	if err != nil {
		return true
	}
	program, err := os.Readlink(proc + "/exe")
	if err != nil || v.isOwn(program) {
		return true
	}
	v.learn(proc)
	return v.isOwn(program)
}

func (v *hiddenFiles) isOwn(program string) bool {
	return first(v.own, program) != "" || first(v.ran, program) != ""
}

// learn notes the program that the agent's process executes, those that its shells start, and the packages that these
// run. proc is a process below it.
func (v *hiddenFiles) learn(proc string) {
	above := []string{proc}
	for main := v.first.Load(); ; {
		status := above[len(above)-1] + "/status"
		parent := statusField(status, "PPid")
		if parent == "" || parent == "0" {
			return // its parent has ended
		}
		if parent == strconv.Itoa(os.Getpid()) {
			if main != 0 && statusField(status, "Tgid") != strconv.FormatInt(main, 10) {
				return
			}
			break
		}
		above = append(above, "/proc/"+parent)
	}
	for _, proc := range slices.Backward(above) {
		program, err := os.Readlink(proc + "/exe")
		if err != nil {
			return
		}
		if !v.isOwn(program) {
			v.ran = append(v.ran, program)
		}
		text, _ := os.ReadFile(proc + "/cmdline")
		for argument := range strings.SplitSeq(string(text), "\x00") {
			if !filepath.IsAbs(argument) {
				continue
			}
			if dir := pathname.Packages(pathname.Real(argument)); dir != "" && !v.isOwn(dir) {
				v.ran = append(v.ran, dir)
			}
		}
		if !slices.Contains(v.shells, program) {
			return
		}
	}
}
