package process

import (
	"cmp"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
)

// Plan describes a program to start with given streams.
type Plan struct {
	Argv []string // the name that the program gets, and its arguments
	Path string   // the file of the program, absolute
	Dir  string   // empty: ours
	Env  []string // passed on unchanged, with a mark added; nil: ours

	// An *os.File is passed on as it is: a terminal stays one, and no byte passes through us. Any other stream is
	// relayed through a pipe. nil is the null device. A Stdin that blocks or never ends does not delay Wait, so it may
	// still be read from after Wait returns; a child that does not read it is not an error. A Stdout that blocks delays
	// the child, as it should, and delays Wait until a second after End.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Whole          bool // a Stdout that is relayed gets each short write of the child as one, on Linux

	Terminal *os.File      // not nil: a person works with the child, and it gets this terminal
	Detach   bool          // processes that left the child's session may outlive a child that ends by itself
	Grace    time.Duration // from End to the kill; 0: 5 s
	Standby  *Standby      // a waiting guard, for one child; nil, or taken: start another
	// give the child its own PID namespace, if the system allows it: see CheckPIDNamespace. A child with a Terminal,
	// a Shape or Detach never has one.
	OwnPIDs  bool
	Register *Register // where the running child is listed; nil: nowhere
	Note     string    // is listed with the child; see OwnNotes

	// For callers that put another program around this one.
	Name string // name of the program in messages; empty: the first of Argv
	// changes how the process is made, on Unix; but not sessions, groups and the parent-death signal
	Shape func(*syscall.SysProcAttr)
	// the program ends when we end, and all that it has started with it, as process 1 of a PID namespace: no guard is
	// needed
	Bound bool
	Files []*os.File // become the descriptors from 3 on, on Unix; the caller closes them
	// files and directories that do not exist now, and are removed if they are empty when the child has ended
	RemoveIfEmpty []string
	// called once, before Wait returns, when nothing of the child is left; it may correct the ending; nil: not started
	After func(*Ending)
}

// Ending is how a child ended.
type Ending struct {
	ExitCode int           // -1 if a signal ended it
	Signal   string        // that signal, such as SIGKILL
	Ended    bool          // End was called before the exit
	Duration time.Duration // from Start to the exit of the program
	Lost     error         // why some output did not reach a Stdout or Stderr that is not a file; nil: all did
}

// Child is a program that was started.
//
//	Start ─▶ running ─┬─ exits ──────────────────────────────────────────▶ sweep ─▶ settle ─▶ Wait returns
//	                  ├─ End ─▶ asked ─ End again, or the grace ends ─▶ killed ─▶ sweep
//	                  └─ SIGTSTP, SIGCONT: stopped and continued together with us
type Child struct {
	plan  Plan
	began time.Time
	mark  string // in the environment of everything that it starts
	pid   int    // also the number of its group
	done  chan struct{}
	final Ending // owned by supervise until done is closed

	mu     sync.Mutex
	exited bool          // the program has exited; it may still be a zombie
	gone   bool          // its number may be reused
	ended  bool          // End was called before the exit
	asked  chan struct{} // closed by the first End
	hurry  chan struct{} // closed when the grace period is over
	kills  *time.Timer   // closes hurry

	place  *registration // in the register
	listed chan struct{} // closed when place is taken

	system // the part for this system
}

// Start starts a program. It fails, with a fault that says why, if the program or the guard cannot be started.
//
// While the child runs, this process stands in for its parent: Start handles SIGTSTP and SIGCONT, for which no other
// code may be notified, and the terminal, if there is one, must not be read or written. The caller handles SIGINT,
// SIGTERM and SIGHUP and calls End.
func Start(p Plan) (*Child, error) {
	c, err := start(p)
	if err == nil {
		return c, nil
	}
	if c == nil && p.After != nil {
		p.After(nil)
	}
	return nil, err
}

// start also returns the child if it was started but could not be listed.
func start(p Plan) (*Child, error) {
	if len(p.Argv) == 0 || p.Path == "" {
		return nil, fault.New(fault.MissingArgument, "no program was given")
	}
	if err := passableArguments(p.Path, p.Argv); err != nil {
		return nil, err
	}
	if p.Env == nil {
		p.Env = os.Environ()
	}
	p.Name = cmp.Or(p.Name, p.Argv[0])
	p.Grace = cmp.Or(p.Grace, defaultGrace)
	c := &Child{
		plan: p, began: time.Now(), done: make(chan struct{}), asked: make(chan struct{}), hurry: make(chan struct{}),
		listed: make(chan struct{}),
	}
	var err error
	if c.place, err = p.Register.reserve(); err != nil {
		return nil, err
	}
	if err := c.start(); err != nil {
		c.place.leave()
		return nil, err
	}
	err = c.place.take(c)
	close(c.listed)
	if err != nil { // it could not be found later
		c.End(os.Kill)
		c.Wait()
	}
	return c, err
}

func (p Plan) apart() bool { return p.OwnPIDs && p.Terminal == nil && p.Shape == nil && !p.Detach }

// PID returns the number of the program and, except on Windows, of its group.
func (c *Child) PID() int { return c.pid }

// Signal sends a signal to the whole group, if the program still runs.
func (c *Child) Signal(s os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.exited {
		c.signalGroup(s)
	}
}

// End asks the group to end, with s, and kills it when the grace period is over or End is called again; then Wait
// returns. After the program has exited, End only ends the wait for the readers of its output.
func (c *Child) End(s os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := closed(c.asked)
	if !again {
		close(c.asked)
	}
	if c.gone {
		return
	}
	if !c.exited {
		c.ended = true
	}
	if again || s == os.Kill {
		c.killNow()
		return
	}
	if !c.exited {
		c.askGroup(s)
	}
	c.killLater()
}

// killLater needs the lock.
func (c *Child) killLater() {
	c.kills = time.AfterFunc(c.plan.Grace, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.killNow()
	})
}

// killNow needs the lock.
func (c *Child) killNow() {
	if !closed(c.hurry) {
		close(c.hurry)
	}
	if !c.gone {
		c.killGroup()
	}
}

// graceFor waits for the rest of a group whose leader has exited, until the grace period is over: a shell dies of
// SIGTERM long before a git that it started has removed its lock.
func (c *Child) graceFor(left func() bool) {
	over, enough := make(chan time.Time), make(chan struct{})
	defer close(enough)
	go func() {
		select {
		case <-c.hurry:
			close(over)
		case <-enough:
		}
	}()
	pollUntil(func() bool { return !left() }, over)
}

// Wait returns when the program has exited, nothing that it started is left (but see Detach), and its output was passed
// on. Several goroutines may call it, and more than once.
func (c *Child) Wait() Ending {
	<-c.done
	return c.final
}

// Tidy removes the empty Plan.RemoveIfEmpty before the child has ended.
func (c *Child) Tidy() { RemoveEmpty(c.plan.RemoveIfEmpty) }

// settle runs when nothing of the child is left.
func (c *Child) settle() {
	if c.plan.After != nil {
		c.plan.After(&c.final)
	}
	RemoveEmpty(c.plan.RemoveIfEmpty)
	<-c.listed
	c.place.leave()
	close(c.done)
}

// markVariable holds a random value in the environment of a child. What the child starts inherits it, also after it has
// left the group or its parent is dead.
const (
	markVariable = "OMNIAGENT_CHILD_MARK"
	markBytes    = 16
)

func newMark() string { return ident.Hex(markBytes) }

// marked returns env with the mark added to those of the runs that this process belongs to, so that an outer run still
// finds what we start. The rest of env is unchanged.
func marked(env []string, mark string) []string {
	if outer, _ := Value(env, markVariable); outer != "" {
		mark = outer + "," + mark
	}
	env = slices.DeleteFunc(slices.Clone(env),
		func(entry string) bool { return strings.HasPrefix(entry, markVariable+"=") })
	return append(env, markVariable+"="+mark)
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
