package sandbox

import (
	"cmp"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/process"
)

// stage returns the plan of a stage that starts the program. end is called when no process of it is left.
func (r *running) stage(p process.Plan, end func(*process.Ending)) process.Plan {
	after := p.After
	p.Name = cmp.Or(p.Name, p.Argv[0])
	p.Path, p.Argv = "/proc/self/exe", append([]string{stageName, stageArgument}, p.Argv...)
	p.Env, p.Files = stageEnvironment(p.Env), r.files()
	p.After = func(e *process.Ending) {
		end(e)
		if after != nil {
			after(e)
		}
	}
	return p
}

// running holds what a running command uses.
type running struct {
	order, theirs *os.File
	ledger        *readLedger // nil: nothing receives what is written
	home          *os.File    // where the stage receives home directories
	control       int         // our end; -1: none
	network       Network
	say           func(string)
	heard         func(string) // receives each report at once; may be nil

	mu      sync.Mutex
	told    []string
	stop    func()
	serving sync.WaitGroup
	over    bool
	users   sync.WaitGroup // of control
	ended   chan struct{}  // closed when told is complete
}

// using calls f while our end of the control socket is open. It returns false if the command has ended: a descriptor of
// that number may belong to another file by then.
func (r *running) using(f func(control int)) bool {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return false
	}
	r.users.Add(1)
	r.mu.Unlock()
	defer r.users.Done()
	f(r.control)
	return true
}

func (r *running) prepare(o order) error {
	r.control, r.ended = -1, make(chan struct{})
	fd, err := o.file()
	if err != nil {
		return err
	}
	r.order = os.NewFile(uintptr(fd), "order")
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	r.control, r.theirs = pair[0], os.NewFile(uintptr(pair[1]), "control")
	return nil
}

func (r *running) files() []*os.File {
	files := []*os.File{r.order, r.theirs}
	if r.home != nil {
		files = append(files, r.home)
	}
	if r.ledger != nil {
		files = append(files, r.ledger.theirs)
	}
	return files
}

// watch prepares the ledger of a stage whose other descriptors are known.
func (r *running) watch(o *order, w Watcher) (err error) {
	if w == nil {
		return nil
	}
	o.Ledger = controlFile + 1
	if r.home != nil {
		o.Ledger++
	}
	r.ledger, err = openLedger(w)
	return err
}

// serve waits for the listener of the command. If the network is not served, none comes.
func (r *running) serve() {
	if r.network.Serve == nil || r.network.Open {
		return
	}
	r.serving.Go(func() { r.hear(0) })
}

// hear reads the reports of the stage to the end.
func (r *running) hear(flags int) {
	text, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, nr, _, _, err := unix.Recvmsg(r.control, text, rights, flags|unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		r.mu.Lock()
		r.told = append(r.told, string(text[:n]))
		r.mu.Unlock()
		if r.heard != nil {
			r.heard(string(text[:n]))
		}
		if nr > 0 {
			r.listen(rights[:nr])
		}
	}
}

func (r *running) listen(rights []byte) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return
	}
	file := os.NewFile(uintptr(fds[0]), "proxy")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return
	}
	stop := r.network.Serve(listener)
	r.mu.Lock()
	r.stop = func() {
		if stop != nil {
			stop()
		}
		_ = listener.Close()
	}
	r.mu.Unlock()
}

// end releases what the command had, and corrects how it ended: process 1 of a namespace cannot end by a signal, so the
// stage reports it.
func (r *running) end(e *process.Ending) {
	r.mu.Lock()
	again := r.over
	r.over = true
	r.mu.Unlock()
	if again {
		return
	}
	if r.control > 0 {
		_ = unix.Shutdown(r.control, unix.SHUT_WR)
		_ = r.theirs.Close()
		r.serving.Wait() // their last end is closed, so this returns
		r.users.Wait()   // and so does this
		r.hear(unix.MSG_DONTWAIT)
		_ = unix.Close(r.control)
	}
	if r.ledger != nil {
		r.ledger.close()
	}
	if r.ended != nil { // it was prepared
		close(r.ended)
	}
	if r.stop != nil {
		r.stop()
	}
	if r.order != nil {
		_ = r.order.Close()
	}
	if r.home != nil {
		_ = r.home.Close()
	}
	for _, text := range r.told {
		r.say(text)
		if e == nil {
			continue
		}
		if number, ok := strings.CutPrefix(text, "signal "); ok && e.Signal == "" {
			if n, err := strconv.Atoi(number); err == nil && e.ExitCode == 128+n {
				e.ExitCode, e.Signal = -1, unix.SignalName(syscall.Signal(n))
			}
		}
		// that signal was for the processes that it left behind
		if number, ok := strings.CutPrefix(text, "ended "); ok && e.Signal == "SIGKILL" {
			if n, err := strconv.Atoi(number); err == nil {
				status := syscall.WaitStatus(n)
				if e.ExitCode, e.Signal = status.ExitStatus(), ""; status.Signaled() {
					e.ExitCode, e.Signal = -1, unix.SignalName(status.Signal())
				}
			}
		}
	}
}
