package process

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/ident"
)

// Plan is a program to start with streams of ours.
type Plan struct {
	Argv []string // what the program is told to be called, and its arguments
	Path string   // its file, absolute
	Dir  string   // empty: ours
	Env  []string // handed on whole, with a mark added; nil: ours

	// An *os.File is handed on as it is: a terminal stays one, and no byte passes through us. Any other is relayed
	// through a pipe. nil is the null device. A Stdin that blocks or never ends does not hold Wait up, which is why it
	// may still be read from when Wait returns; that the child does not read it is no error. A Stdout that blocks holds
	// the child up, as it should, and Wait until a second after End.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	Terminal *os.File      // not nil: the child is a session with a person, and this terminal is handed over to it
	Detach   bool          // what left the child's session outlives it, should it end by itself; without, nothing does
	Grace    time.Duration // from End to the kill; 0: 5 s
	Standby  *Standby      // a guard that waits already, for one child; nil, or taken: another is started

	// For who puts another program around this one.
	Name string // what the program is called in messages; empty: the first of Argv
	// adds to how the process is made, on Unix; sessions, groups and the signal at our end are not its business
	Shape func(*syscall.SysProcAttr)
	Files []*os.File // become the descriptors from 3 on, on Unix; they stay the caller's
	// called once, before Wait returns, when nothing of the child is left, and may correct the ending; nil: not started
	After func(*Ending)
}

// Ending is how a child ended.
type Ending struct {
	ExitCode int           // -1 when a signal ended it
	Signal   string        // that signal, such as SIGKILL
	Ended    bool          // End was called before it had exited
	Duration time.Duration // from Start to the exit of the program
	MaxRSS   int64         // bytes that its largest process needed, as far as the program waited for it; 0: not known
	Lost     error         // why not all that it wrote was handed on to a Stdout or Stderr that is no file; nil: it was
}

// Child is a program that was started.
type Child struct {
	plan  Plan
	began time.Time
	mark  string // in the environment of all that it starts
	pid   int    // its group has the same number
	done  chan struct{}
	final Ending // before done is closed, only supervise has it

	mu     sync.Mutex
	exited bool          // the program has; it may still be a zombie
	gone   bool          // its number is not ours any more
	ended  bool          // End came before it had exited
	asked  chan struct{} // closed by the first End
	hurry  chan struct{} // closed when the grace is over
	kills  *time.Timer   // what closes it

	system // what it takes on this system
}

// Start starts a program. It fails when the program cannot be started, with a fault that says why, or when the guard
// cannot.
//
// As long as the child runs, this process is what it has for a parent: SIGTSTP and SIGCONT are handled here, nobody
// else may be notified of them, and the terminal, if there is one, is not ours to read or write. SIGINT, SIGTERM and
// SIGHUP are the caller's, who calls End.
func Start(p Plan) (*Child, error) {
	c, err := start(p)
	if err != nil && p.After != nil {
		p.After(nil)
	}
	return c, err
}

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
	if p.Name == "" {
		p.Name = p.Argv[0]
	}
	if p.Grace == 0 {
		p.Grace = defaultGrace
	}
	c := &Child{
		plan: p, began: time.Now(),
		done: make(chan struct{}), asked: make(chan struct{}), hurry: make(chan struct{}),
	}
	if err := c.start(); err != nil {
		return nil, err
	}
	return c, nil
}

// PID is the number of the program and, but on Windows, of its group.
func (c *Child) PID() int { return c.pid }

// Signal sends a signal to the whole group, if the program still runs.
func (c *Child) Signal(s os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.exited {
		c.signalGroup(s)
	}
}

// End asks the group to end, with s, and kills it when the grace is over, or when End is called again; Wait then
// returns. On a program that has exited it only ends the wait for those who read what it wrote.
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
	c.kills = time.AfterFunc(c.plan.Grace, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.killNow()
	})
}

// killNow is called with the lock.
func (c *Child) killNow() {
	if !closed(c.hurry) {
		close(c.hurry)
	}
	if !c.gone {
		c.killGroup()
	}
}

// graceFor waits for the rest of a group whose leader has exited, until the grace is over: a shell dies of SIGTERM long
// before the git beneath it has removed its lock.
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

// Wait returns when the program has exited, nothing that it started is left (but see Detach), and what it wrote was
// handed on. It may be called by many, and again.
func (c *Child) Wait() Ending {
	<-c.done
	return c.final
}

// settle is called when nothing of the child is left.
func (c *Child) settle() {
	if c.plan.After != nil {
		c.plan.After(&c.final)
	}
	close(c.done)
}

// markVariable holds a random value in the environment of a child. What the child starts inherits it, also after it has
// left the group or its parent is dead.
const (
	markVariable = "OMNIAGENT_CHILD_MARK"
	markBytes    = 16
)

func newMark() string { return ident.Hex(markBytes) }

// marked is env with the mark beside those of the runs that we are ourselves part of, so that an outer one still finds
// what we start. All else in it is as it was.
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
