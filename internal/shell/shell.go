// Package shell runs the commands of a model: lines for a shell, in one directory, each in a process group of its own.
//
// It promises that a command cannot wait for a person (its input is the null device, there is no terminal, editors and
// pagers answer by themselves); that it ends within its time, asked first and killed then; that when Run returns
// nothing that it started is alive, that after Close nothing at all is, and that nothing outlives us either, whatever
// ends us; that what it prints needs a bounded amount of memory and of disk, is text without escape sequences, and is
// never cut without saying so and where the rest is. The directory that a command ends in is that of the next one, as
// long as it is beneath the root.
//
// It refuses to judge commands, to run them without the guard of process, and to hand on the secrets of our
// environment. It is no wall: a command reaches what the user reaches. The walls stand in a Starter.
package shell

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/process"
	"omniagent/internal/redact"
)

// How long a command may run.
const (
	DefaultTimeout = 2 * time.Minute
	MaxTimeout     = 10 * time.Minute
)

// MaxShown is how many characters of what a command printed are returned. The rest is in a file.
const MaxShown = 30_000

const (
	defaultGrace = 2 * time.Second
	progressGap  = 100 * time.Millisecond
)

// Options are what the commands of one conversation share.
type Options struct {
	Root string   // where commands begin, and where cd cannot lead out of
	Env  []string // what they get, whole; nil: Environment(os.Environ())
	// a directory for what is too long to show, which exists; empty: a temporary one that ends with Close
	Private string
	Starter Starter // nil: Plain
	// what is kept out of what commands print: out of what is returned, told and written to files
	Secrets *redact.Values
	Grace   time.Duration // from the request to end to the kill; 0: 2 s
}

// Shell runs the commands of one conversation. Its methods may be called at the same time.
type Shell struct {
	root    string
	env     []string
	starter Starter
	grace   time.Duration
	spills  *spills
	over    context.Context // ends with Close
	close   context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	dir    string
	closed bool
	jobs   []*job // in the order of their numbers
	begun  int    // starts in the background that are no jobs yet
}

// Command is a line to run.
type Command struct {
	Line    string
	At      string        // where it has to begin, as At has told; empty: wherever it is
	Timeout time.Duration // 0: DefaultTimeout; no more than MaxTimeout
}

// Reason says why a command ended.
type Reason int

// The reasons.
const (
	ByItself Reason = iota
	OutOfTime
	Stopped // the caller, or the end of the conversation
)

// Outcome is what a command that ran left behind.
type Outcome struct {
	// text, MaxShown characters together; a line in the middle names what was left out and where it is
	Stdout, Stderr string
	Exit           int           // -1 when a signal ended the shell
	Signal         string        // that signal, such as SIGKILL
	Reason         Reason        //
	Limit          time.Duration // the time that it had
	Masked         int           // how many secrets were left out; of one in the background, since it began
	// where it ended, if that is no directory beneath the root and the next command begins in the root
	Moved string
}

// New is a shell in the directory Root. It fails where there is no shell at all.
func New(o Options) (*Shell, error) {
	root, err := filepath.Abs(o.Root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err == nil && !isDirectory(root) {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, fault.New(fault.FileMissing, "%s is no directory to run commands in", o.Root).With("path",
			o.Root).Because(err)
	}
	if o.Env == nil {
		o.Env = Environment(os.Environ())
	}
	if o.Starter == nil {
		if _, _, err := find(o.Env); err != nil {
			return nil, err
		}
		o.Starter = Plain
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	s := &Shell{
		root: root, dir: root, env: o.Env, starter: o.Starter, grace: o.Grace,
		spills: &spills{given: o.Private, secrets: o.Secrets},
	}
	s.over, s.close = context.WithCancel(context.Background())
	return s, nil
}

// Dir is where the next command begins.
func (s *Shell) Dir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dir
}

// At is where the next command begins, relative to the root and with slashes. Who decides about a command asks for it,
// and hands it on with the command: one that would begin elsewhere by then is not started.
func (s *Shell) At() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at()
}

// at is called with the lock. A directory that was removed, or replaced by a link, is left for the root.
func (s *Shell) at() string {
	rel, err := filepath.Rel(s.root, s.dir)
	if err != nil || !s.beneath(s.dir) {
		s.dir, rel = s.root, "."
	}
	return filepath.ToSlash(rel)
}

// Run runs a command to its end. A failure of the command is an Outcome; an error means that it could not be started.
// progress is told what it prints, in pieces of whole lines where there are lines; it is nil, or called by one
// goroutine at a time and not after Run.
func (s *Shell) Run(ctx context.Context, c Command, progress func(string)) (Outcome, error) {
	limit := min(c.Timeout, MaxTimeout)
	if limit <= 0 {
		limit = DefaultTimeout
	}
	if err := s.enter(); err != nil {
		return Outcome{}, err
	}
	defer s.running.Done()
	if ctx.Err() != nil {
		return Outcome{}, fault.New(fault.Interrupted,
			"the command was not started: the turn was ended").Because(context.Cause(ctx))
	}
	r := newRecord(s.spills, progress != nil)
	defer r.discard()
	run, err := s.begin(c, r)
	if err != nil {
		return Outcome{}, err
	}
	told := r.tell(progress)
	o := s.await(ctx, run, limit)
	r.finish()
	told()
	o.Limit = limit
	if lost := run.left(); lost != "" {
		o.Moved = s.move(lost)
	}
	o.Stdout, o.Stderr = r.shown()
	o.Masked = r.masked()
	return o, nil
}

// enter is followed by running.Done.
func (s *Shell) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fault.New(fault.Interrupted, "the conversation is over: no command is started any more")
	}
	s.running.Add(1)
	return nil
}

// await waits for the end of what was started, and brings it about when the time is over or somebody asks for it.
func (s *Shell) await(ctx context.Context, run *started, limit time.Duration) Outcome {
	ended := make(chan process.Ending, 1)
	go func() { ended <- run.child.Wait() }()
	var clock <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		clock = timer.C
	}
	why := ByItself
	var e process.Ending
	select {
	case e = <-ended:
	case <-clock:
		why = OutOfTime
	case <-ctx.Done():
		why = Stopped
	case <-s.over.Done():
		why = Stopped
	}
	if why != ByItself {
		run.child.End(syscall.SIGTERM)
		if e = <-ended; !e.Ended { // it was faster
			why = ByItself
		}
	}
	return Outcome{Exit: e.ExitCode, Signal: e.Signal, Reason: why}
}

// move makes the directory that a command ended in that of the next one. It returns the directory if that cannot be.
func (s *Shell) move(to string) (refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beneath(to) {
		s.dir = to
		return ""
	}
	s.dir = s.root
	return to
}

// beneath says whether a directory is there, without a link on the way, and is the root or beneath it.
func (s *Shell) beneath(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !filepath.IsAbs(real) || !isDirectory(real) {
		return false
	}
	rel, err := filepath.Rel(s.root, real)
	return err == nil && real == dir && filepath.IsLocal(rel)
}

// Close ends all commands, those in the background too, and returns when none is left. The temporary directory goes as
// well.
func (s *Shell) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.close()
	s.running.Wait()
	s.mu.Lock()
	for _, j := range s.jobs {
		j.record.discard()
	}
	s.mu.Unlock()
	s.spills.remove()
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
