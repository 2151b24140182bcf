//go:build unix

package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"omniagent/internal/sys/guardwait"
)

// guardian is our side of the guard of one child. The guard is a second process of this program that holds one end of a
// socket pair. If our end closes without the message "farewell", we have died, and the guard kills what we no longer
// can.
//
//	started ─▶ idle ── tell ──▶ guarding ── release ──▶ exits
//	   ▲                           │
//	   └──── watch: start again ◀──┤ the guard is killed
//	                               └ our end closes ─▶ kills the child's processes, exits
type guardian struct {
	mu      sync.Mutex
	mark    string
	child   string // the last message about the child
	pid     int
	tracked int
	conn    *os.File
	born    time.Time
	leaving bool // it may end
	reaped  bool
}

// A guard that is killed is replaced at once. One that exits right after its start cannot work here, and is started
// again less and less often.
const (
	guardIsYoung  = 200 * time.Millisecond
	youngDeaths   = 5
	longestDelay  = time.Second
	shortestDelay = 10 * time.Millisecond
)

// startGuard does not wait for the guard to be ready: what it has to know is in the socket before it exists.
func startGuard(mark string) (*guardian, error) {
	g := &guardian{mark: mark, tracked: -1}
	if err := g.spawn(); err != nil {
		return nil, err
	}
	go g.watch()
	return g, nil
}

// spawn needs the lock, unless there is no other goroutine yet.
func (g *guardian) spawn() error {
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer syscall.Close(theirs)
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err == nil {
		defer syscall.Close(null)
		_, err = io.WriteString(ours, "mark "+g.mark+"\n"+g.child)
	}
	if err == nil {
		keepDescriptors()
		attr := &syscall.SysProcAttr{Setsid: true}
		g.tracked = -1
		track(attr, &g.tracked)
		nothing := uintptr(null)
		g.pid, err = forkOurselves([]string{guardName, guardArgument}, &syscall.ProcAttr{
			Dir: "/", Env: guardEnvironment(), Files: []uintptr{nothing, nothing, nothing, uintptr(theirs)}, Sys: attr,
		})
	}
	if err != nil {
		_ = ours.Close()
		return err
	}
	g.conn, g.born = ours, time.Now()
	return nil
}

// forkOurselves runs our own program: the very file that runs, even if it was replaced, if the system can tell.
func forkOurselves(argv []string, attr *syscall.ProcAttr) (int, error) {
	if runtime.GOOS == "linux" {
		if pid, err := syscall.ForkExec("/proc/self/exe", argv, attr); !errors.Is(err, syscall.ENOENT) {
			return pid, err
		}
	}
	path, err := os.Executable()
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec(path, argv, attr)
}

// guardEnvironment returns an environment without secrets. It has the marks of the processes that run us, so that they
// recognise the guard as theirs.
func guardEnvironment() []string {
	// The guard starts faster with one processor, and waits most of its life.
	env := []string{guardwait.Variable + "=1", "GOMAXPROCS=1", "GOTRACEBACK=none"}
	if outer := os.Getenv(markVariable); outer != "" {
		env = append(env, markVariable+"="+outer)
	}
	return env
}

// socketPair returns a socket pair that every exec closes. The poller knows our end.
func socketPair() (ours *os.File, theirs int, err error) {
	syscall.ForkLock.RLock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, -1, err
	}
	_ = syscall.SetNonblock(pair[0], true)
	return os.NewFile(uintptr(pair[0]), "guard"), pair[1], nil
}

// watch replaces a guard that has died. It costs no thread: the end of the socket wakes it.
func (g *guardian) watch() {
	delay, young := shortestDelay, 0
	for {
		g.mu.Lock()
		conn := g.conn
		g.mu.Unlock()
		_, _ = conn.Read(make([]byte, 1)) // the guard never writes
		g.mu.Lock()
		if g.leaving {
			g.mu.Unlock()
			return
		}
		g.reap()
		if young++; time.Since(g.born) > guardIsYoung {
			delay, young = shortestDelay, 0
		}
		for young > youngDeaths || g.spawn() != nil {
			young = 0
			g.mu.Unlock()
			time.Sleep(delay)
			delay = min(2*delay, longestDelay)
			g.mu.Lock()
			if g.leaving {
				g.mu.Unlock()
				return
			}
		}
		g.reaped = false
		g.mu.Unlock()
	}
}

// reap needs the lock.
func (g *guardian) reap() {
	if g.reaped {
		return
	}
	for {
		if _, err := syscall.Wait4(g.pid, nil, 0, nil); err != syscall.EINTR {
			break
		}
	}
	g.reaped = true
	_ = g.conn.Close()
	if g.tracked >= 0 {
		_ = syscall.Close(g.tracked)
	}
}

// tell sends the guard the group of the child, and what the child leaves. all says that the session with that number is
// the child's too.
func (g *guardian) tell(pid int, all bool, leaves []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.child = fmt.Sprintf("child %d %t\n", pid, all)
	for _, path := range leaves {
		g.child += fmt.Sprintf("leaves %q\n", path)
	}
	if !g.reaped {
		_, _ = io.WriteString(g.conn, g.child)
	}
}

// process returns the number of the guard, 0 while there is none.
func (g *guardian) process() int {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reaped {
		return 0
	}
	return g.pid
}

// release ends the guard; dismiss also waits for its end.
func (g *guardian) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leaving {
		return
	}
	g.leaving = true
	if !g.reaped {
		_, _ = io.WriteString(g.conn, "farewell\n")
		_ = syscall.Kill(g.pid, syscall.SIGKILL)
	}
}

func (g *guardian) dismiss() {
	g.release()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reap()
}

// Guard is the main function of the guard: it waits for the end of the process that started it, kills the processes
// that it guards, and returns its exit code.
func Guard() int {
	signal.Ignore() // all signals that can be ignored
	var w guarded
	if text, waited := guardwait.Message(); waited {
		for line := range strings.Lines(text) {
			w.handle(line)
		}
		w.end()
		RemoveEmpty(w.leaves)
		return 0
	}
	conn := os.NewFile(guardwait.Socket, "guard")
	if info, err := conn.Stat(); err != nil || info.Mode()&os.ModeSocket == 0 {
		return 2
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if w.handle(lines.Text()) {
			return 0
		}
	}
	w.end()
	RemoveEmpty(w.leaves)
	return 0
}

// guarded is what a guard knows about the child.
type guarded struct {
	mark    string
	group   int  // 0: no child yet, or its number did not arrive
	session bool // the session with that number is the child's
	leaves  []string
}

// handle handles a line of the watched process. dismissed means that there is nothing left to do.
func (w *guarded) handle(line string) (dismissed bool) {
	if quoted, is := strings.CutPrefix(line, "leaves "); is {
		if path, err := strconv.Unquote(strings.TrimSpace(quoted)); err == nil {
			w.leaves = append(w.leaves, path)
		}
	}
	switch words := strings.Fields(line); {
	case len(words) == 2 && words[0] == "mark":
		w.mark = words[1]
	case len(words) == 3 && words[0] == "child":
		w.group, _ = strconv.Atoi(words[1])
		w.session = words[2] == "true"
	case len(words) == 1 && words[0] == "farewell":
		return true
	}
	return false
}
