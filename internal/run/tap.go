package run

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/fault"
	"omniagent/internal/process"
	"omniagent/internal/prompt"
	"omniagent/internal/redact"
)

// tap keeps what an agent writes, byte by byte, and knows its process.
type tap struct {
	out, err *os.File

	mu    sync.Mutex
	first time.Time // it wrote something
	began agent.Beginning
	cpu   time.Duration // of its processes, when it was last looked at
	ends  [2]end        // of its streams

	looked time.Time // for a prompt
}

// end is the end of a stream.
type end struct {
	process.Tail
	at time.Time // of the last byte; of the start, before the first
}

// stream is one of the two streams.
type stream struct {
	tap  *tap
	file *os.File
	end  *end
}

func (s stream) Write(p []byte) (int, error) {
	now := time.Now()
	s.tap.mu.Lock()
	if s.tap.first.IsZero() {
		s.tap.first = now.UTC()
	}
	s.end.at = now
	s.tap.mu.Unlock()
	_, _ = s.end.Write(p)
	return s.file.Write(p)
}

// prompt looks for a prompt at the ends of the streams.
func (t *tap) prompt(exited bool) *prompt.Signal {
	t.mu.Lock()
	p, pid := prompt.Program{Protocol: t.began.Protocol, Exited: exited}, t.began.PID
	out, err := t.ends[0].at, t.ends[1].at
	soon := !exited && time.Since(t.looked) < promptGap
	if !soon {
		t.looked = time.Now()
	}
	t.mu.Unlock()
	if pid == 0 || soon || p.Protocol && exited {
		return nil
	}
	p.Stdout = prompt.Stream{Tail: t.ends[0].Bytes(), Quiet: time.Since(out)}
	p.Stderr = prompt.Stream{Tail: t.ends[1].Bytes(), Quiet: time.Since(err)}
	if !exited {
		if min(p.Stdout.Quiet, p.Stderr.Quiet) < prompt.Quiet {
			return nil
		}
		pids, _ := family(pid)
		p.Wait = prompt.Waiting(nil, pids)
	}
	return prompt.Detect(p)
}

func (r *Run) tap() (*tap, error) {
	t := &tap{}
	t.ends[0].Most, t.ends[1].Most = tailSize, tailSize
	for name, file := range map[string]**os.File{outputFile: &t.out, errorFile: &t.err} {
		f, err := os.OpenFile(filepath.Join(r.Path(), name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			t.close()
			return nil, fault.New(fault.PermissionDenied, "%s of the agent cannot be kept", name).Because(err)
		}
		*file = f
	}
	return t, nil
}

func (t *tap) close() {
	for _, f := range []*os.File{t.out, t.err} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (t *tap) services() *agent.Tap {
	return &agent.Tap{
		Stdout: stream{t, t.out, &t.ends[0]}, Stderr: stream{t, t.err, &t.ends[1]},
		Began: func(b agent.Beginning) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.began, t.cpu = b, 0
			t.ends[0].at, t.ends[1].at = time.Now(), time.Now()
		},
	}
}

// fill adds what was started to the record of an attempt.
func (t *tap) fill(a *Attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.FirstOutput = t.first
	if t.began.PID == 0 {
		return
	}
	l, apart := t.began.Launch, t.began.Apart
	a.Apart = &apart
	a.Program, a.Args, a.Policies = cmp.Or(l.Spec.Install.RealPath, l.Path), redact.Args(l.Args), l.Policies
	for _, entry := range l.Env {
		name, _, _ := strings.Cut(entry, "=")
		a.EnvKeys = append(a.EnvKeys, name)
	}
	slices.Sort(a.EnvKeys)
}

// tailSize is how much of the end of a stream is looked at.
const tailSize = 8 << 10

// promptGap lies between two looks for a prompt, because each asks the kernel about every process.
const promptGap = 300 * time.Millisecond

// busy is how much time of a processor the processes of a silent agent have to take between two looks to count as work.
const busy = 2 * time.Second

// alive reports whether the agent's processes have worked since the last look.
func (t *tap) alive() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.began.PID == 0 {
		return false
	}
	_, cpu := family(t.began.PID)
	worked := cpu - t.cpu
	t.cpu = cpu
	return worked >= busy
}
