// Package shell runs the commands of a model: lines for a shell, in one directory, each in its own process group.
//
// It promises: a command cannot wait for a person (its input is the null device, there is no terminal, editors and
// pagers exit by themselves); it ends within its time limit, at first by request and then by a kill; when Run returns,
// nothing that it started is alive, after Close nothing at all is, and nothing outlives this process, however that
// ends; output needs bounded memory and disk, is text without escape sequences, and a cut says what is missing and
// where it is. The next command begins in the directory in which the last one ended, if that is below the root.
//
// It does not judge commands. It never runs them without the guard of package process, and never passes on the secrets
// of our environment. It is not a sandbox: a command can reach what the user can reach. A Starter adds the sandbox.
package shell

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/redact"
)

// Time limits of a command.
const (
	DefaultTimeout = 2 * time.Minute
	MaxTimeout     = 10 * time.Minute
)

// MaxShown is how many characters of a command's output are returned. The rest is in a file.
const MaxShown = 30_000

const defaultGrace = 2 * time.Second

// Options are what the commands of one conversation share.
type Options struct {
	Root string   // where commands begin, and where cd has to stay
	Env  []string // their complete environment; nil: Environment(os.Environ())
	// an existing directory for output that is too long to show; empty: a temporary one until Close
	Private string
	Starter Starter // nil: Plain
	Opened  Starter // of a command for which a person has opened the network; nil: Starter
	// Ready is called before each command, with the context of the call; an error means that the command is not
	// started. nil: nothing has to be ready.
	Ready func(ctx context.Context) error
	// removed from the output: from what is returned and written to files
	Secrets *redact.Values
	Grace   time.Duration // from the request to end until the kill; 0: 2 s
	// Kept returns what walls kept commands from since it was last asked, a line each; nil: nothing is known of that.
	Kept func() []string
}

// Shell runs the commands of one conversation. Its methods may be called from several goroutines.
type Shell struct {
	root    string
	env     []string
	starter Starter
	opened  Starter
	ready   func(context.Context) error // may be nil
	kept    func() []string
	grace   time.Duration
	spills  *spills
	over    context.Context // ends with Close
	close   context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	dir    string
	closed bool
	jobs   []*job // in the order of their numbers
	begun  int    // background commands that are starting
}

// Command is a line to run.
type Command struct {
	Line    string
	At      string        // where it has to begin, as At returned it; empty: anywhere
	Timeout time.Duration // 0: DefaultTimeout; no more than MaxTimeout
	Network bool          // a person has opened the network for it
}

// Reason is why a command ended.
type Reason int

// The reasons.
const (
	ByItself Reason = iota
	OutOfTime
	Stopped // by the caller, or by the end of the conversation
)

// Outcome is the result of a command that ran.
type Outcome struct {
	// at most MaxShown characters together; a line in the middle says what was left out and where it is
	Stdout, Stderr string
	Exit           int           // -1 if a signal ended the shell
	Signal         string        // that signal, such as SIGKILL
	Reason         Reason        //
	Limit          time.Duration // its time limit
	Masked         int           // how many secrets were removed; for a background command, since it began
	// where it ended, if that is not a directory below the root, so that the next command begins in the root
	Moved string
	Kept  []string // what walls kept it, or one that ran at the same time, from
}

// New returns a shell in the directory Root. It fails if there is no shell.
func New(o Options) (*Shell, error) {
	root, err := filepath.Abs(o.Root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err == nil && !isDirectory(root) {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, fault.New(fault.FileMissing, "%s is not a directory to run commands in", o.Root).With("path",
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
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	s := &Shell{
		root: root, dir: root, env: o.Env, starter: o.Starter, opened: o.Opened, ready: o.Ready, kept: o.Kept,
		grace: o.Grace, spills: &spills{given: o.Private, secrets: o.Secrets},
	}
	s.over, s.close = context.WithCancel(context.Background())
	return s, nil
}

// At returns where the next command begins, relative to the root and with slashes. A decision about a command uses this
// directory and passes it on with the command, which is not started if it would begin elsewhere by then.
func (s *Shell) At() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at()
}

// at needs the lock. If the directory was removed or replaced by a link, at returns the root.
func (s *Shell) at() string {
	rel, err := filepath.Rel(s.root, s.dir)
	if err != nil || !s.beneath(s.dir) {
		s.dir, rel = s.root, "."
	}
	return filepath.ToSlash(rel)
}

// Run runs a command to its end. If the command fails, that is an Outcome; an error means that it was not started.
func (s *Shell) Run(ctx context.Context, c Command) (Outcome, error) {
	limit := min(c.Timeout, MaxTimeout)
	if limit <= 0 {
		limit = DefaultTimeout
	}
	if err := s.enter(); err != nil {
		return Outcome{}, err
	}
	defer s.running.Done()
	if ctx.Err() != nil {
		return Outcome{}, fault.New(fault.Interrupted, "the command was not started: the turn was ended").
			Because(context.Cause(ctx))
	}
	r := newRecord(s.spills)
	defer r.discard()
	run, err := s.begin(ctx, c, r)
	if err != nil {
		return Outcome{}, err
	}
	o := s.await(ctx, run, limit)
	r.finish()
	o.Limit = limit
	if lost := run.finalDir(); lost != "" {
		o.Moved = s.move(lost)
	}
	o.Stdout, o.Stderr = r.text()
	o.Masked = r.masked()
	if s.kept != nil {
		o.Kept = s.kept()
	}
	return o, nil
}

// enter counts a command that is about to run. The caller has to call running.Done.
func (s *Shell) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fault.New(fault.Interrupted, "the conversation is over: no command is started any more")
	}
	s.running.Add(1)
	return nil
}

// await waits for the end of a command, and ends it when the time is over or somebody wants it to end.
//
//	running ─┬─ it ends ─────────────────────────▶ ByItself
//	         ├─ time limit ─▶ SIGTERM, grace, kill ─▶ OutOfTime
//	         └─ ctx, Close ─▶ SIGTERM, grace, kill ─▶ Stopped
func (s *Shell) await(ctx context.Context, run *runningLine, limit time.Duration) Outcome {
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
		if e = <-ended; !e.Ended { // it ended first
			why = ByItself
		}
	}
	return Outcome{Exit: e.ExitCode, Signal: e.Signal, Reason: why}
}

// move makes the directory in which a command ended that of the next one. It returns the directory if it may not.
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

// beneath reports whether a directory exists, has no link in its path, and is the root or below it.
func (s *Shell) beneath(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !filepath.IsAbs(real) || !isDirectory(real) {
		return false
	}
	return real == dir && pathname.Within(s.root, real)
}

// Close ends all commands, including those in the background, and returns when none is left. It removes the temporary
// directory.
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
