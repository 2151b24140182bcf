package run

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/redact"
	"omniagent/internal/sys/stuckprompt"
)

// tap stores everything that an agent writes, and watches its process.
type tap struct {
	dir     string // of the run
	secrets *secrets

	mu    sync.Mutex
	first time.Time // first output
	began agent.Beginning
	cpu   time.Duration // CPU time of its processes at the last check
	ends  [2]end        // of its streams
	lost  error         // why its output cannot be stored; nil if it is

	within  time.Duration // how long the agent may be silent; 0 for no limit
	looked  time.Time     // last look for a prompt
	resting int           // consecutive looks that found the agent at rest
	asked   []byte        // the first line at which one of its writes stopped; see stuckprompt.Stops
}

// end holds the end of a stream, and the file with all of it.
type end struct {
	process.Tail
	at    time.Time // time of the last byte, or of the start
	fresh bool      // the next byte begins a line
	name  string    // of the file with all output
	file  *os.File  // nil before the first output
	mask  redact.Stream
	size  int64 // of all output
}

// stream is one of the two streams.
type stream struct {
	tap *tap
	end *end
}

func (s stream) Write(p []byte) (int, error) {
	now := time.Now()
	s.tap.mu.Lock()
	if s.tap.first.IsZero() {
		s.tap.first = now.UTC()
	}
	s.end.at, s.tap.resting = now, 0
	if s.tap.began.Plain && s.tap.asked == nil && s.end == &s.tap.ends[0] && s.end.fresh {
		s.tap.asked = stuckprompt.Stops(p)
	}
	s.end.fresh = len(p) > 0 && p[len(p)-1] == '\n'
	file, err := s.tap.file(s.end)
	s.tap.mu.Unlock()
	_, _ = s.end.Write(p)
	if s.end.size += int64(len(p)); err == nil && s.end.size > mostLogged {
		err = fault.New(fault.OutputLimit, "%s of the agent reached the limit of %d MiB", s.end.name, mostLogged>>20).
			With("limit_bytes", mostLogged)
	}
	switch known := s.tap.secrets.values(); {
	case err != nil:
	case known == nil:
		_, err = file.Write(p)
	default:
		s.end.mask.Use(known)
		_, err = file.WriteString(s.end.mask.Feed(string(p)))
	}
	if err != nil {
		s.tap.mu.Lock()
		s.tap.lost = cmp.Or(s.tap.lost, err)
		s.tap.mu.Unlock()
	}
	return len(p), err
}

// file creates the file of a stream at the first output. The caller holds the lock.
func (t *tap) file(e *end) (f *os.File, err error) {
	if e.file == nil {
		e.file, err = os.OpenFile(filepath.Join(t.dir, e.name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	}
	return e.file, err
}

// unkept returns an error if some output could not be stored, which also ends the agent.
func (t *tap) unkept(agent string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost == nil || errors.Is(t.lost, fault.OutputLimit) {
		return t.lost
	}
	return fault.New(fault.DiskFull, "cannot save the output of %s", agent).Because(t.lost)
}

// prompt returns the prompt at the end of a stream, or nil. If an agent has ended without a line of its protocol, its
// output is judged like that of any program.
func (t *tap) prompt(exited bool) *stuckprompt.Signal {
	t.mu.Lock()
	p, pid := stuckprompt.Program{Exited: exited, Asked: t.asked}, t.began.PID
	out, err := t.ends[0].at, t.ends[1].at
	soon := !exited && time.Since(t.looked) < promptGap
	if !soon {
		t.looked = time.Now()
	}
	protocol, plain := t.began.Protocol, t.began.Plain
	t.mu.Unlock()
	if pid == 0 || soon {
		return nil
	}
	p.Stdout = stuckprompt.Stream{Tail: t.ends[0].Bytes(), Quiet: time.Since(out)}
	p.Stderr = stuckprompt.Stream{Tail: t.ends[1].Bytes(), Quiet: time.Since(err)}
	switch {
	case protocol:
		p.Speaks = stuckprompt.Driven
	case !plain && !exited, stuckprompt.Speaks(p.Stdout.Tail):
		p.Speaks = stuckprompt.Records
	}
	if !exited {
		if min(p.Stdout.Quiet, p.Stderr.Quiet) < stuckprompt.Quiet {
			return nil
		}
		p.Wait = t.wait(pid)
	}
	return stuckprompt.Detect(p)
}

// wait asks the kernel what the agent waits for. It reports Resting only if two consecutive looks found that, because a
// look reads one thread after the other.
func (t *tap) wait(pid int) stuckprompt.Wait {
	f := family(pid)
	var input fs.FileInfo
	if len(f.agent) > 0 {
		input = inputOf(f.agent[0])
	}
	wait := stuckprompt.Waiting(input, f.agent, t.within)
	if wait == stuckprompt.Resting && !slices.Equal(f.agent, family(pid).agent) {
		wait = stuckprompt.Working // a process has ended or begun
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if wait != stuckprompt.Resting {
		t.resting = 0
	} else if t.resting++; t.resting < 2 {
		return stuckprompt.Working
	}
	return wait
}

// last returns the last line that an agent without a protocol has printed.
func (t *tap) last() string {
	t.mu.Lock()
	plain, late := t.began.Plain, 0
	if t.ends[1].at.After(t.ends[0].at) {
		late = 1
	}
	t.mu.Unlock()
	if !plain {
		return ""
	}
	return cmp.Or(stuckprompt.Last(t.ends[late].Bytes()), stuckprompt.Last(t.ends[1-late].Bytes()))
}

func (r *Run) tap() *tap {
	t := &tap{dir: r.Path(), secrets: &r.secrets, within: r.Idle}
	for i, name := range []string{outputFile, errorFile} {
		t.ends[i].Most, t.ends[i].name, t.ends[i].fresh = tailSize, name, true
	}
	return t
}

func (t *tap) close() {
	for i := range t.ends {
		if f := t.ends[i].file; f != nil {
			_, _ = f.WriteString(t.ends[i].mask.End())
			_ = f.Close()
		}
	}
}

func (t *tap) services() *agent.Tap {
	return &agent.Tap{
		Stdout: stream{t, &t.ends[0]}, Stderr: stream{t, &t.ends[1]},
		Began: func(b agent.Beginning) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.began, t.cpu, t.asked = b, 0, nil
			for i := range t.ends {
				t.ends[i].at, t.ends[i].fresh = time.Now(), true
			}
		},
	}
}

// leaves returns the directories that the agent may leave behind if it is killed.
func (t *tap) leaves() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.began.RemoveIfEmpty
}

// fill adds the started process to the record of an attempt.
func (t *tap) fill(a *Attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.FirstOutput = t.first
	if t.began.PID == 0 {
		return
	}
	l, apart := t.began.Launch, t.began.OwnPIDs
	a.OwnPIDs = &apart
	a.Program, a.Args, a.Policies = cmp.Or(l.Spec.Install.RealPath, l.Path), redact.Args(l.Args), l.Policies
	for _, entry := range l.Env {
		name, _, _ := strings.Cut(entry, "=")
		a.EnvKeys = append(a.EnvKeys, name)
	}
	slices.Sort(a.EnvKeys)
}

// mostLogged is how much of a stream is stored. More ends the agent.
const mostLogged = 128 << 20

// tailSize is the size of the end of a stream that is searched for a prompt.
const tailSize = 8 << 10

// promptGap separates two looks for a prompt, because each asks the kernel about every process.
const promptGap = 300 * time.Millisecond

// busy is the CPU time that the processes of a silent agent must use between two checks to count as working.
const busy = 2 * time.Second

// alive reports whether the agent's processes have worked since the last check.
func (t *tap) alive() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.began.PID == 0 {
		return false
	}
	f := family(t.began.PID)
	worked := f.cpu - t.cpu
	t.cpu = f.cpu
	return worked >= busy
}
