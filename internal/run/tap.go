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
	"omniagent/internal/redact"
)

// tap keeps what an agent writes, byte by byte, and knows its process.
type tap struct {
	out, err *os.File

	mu    sync.Mutex
	first time.Time // it wrote something
	pid   int
	began agent.Launch
	cpu   time.Duration // of its processes, when it was last looked at
}

// stream is one of the two streams.
type stream struct {
	tap  *tap
	file *os.File
}

func (s stream) Write(p []byte) (int, error) {
	s.tap.mu.Lock()
	if s.tap.first.IsZero() {
		s.tap.first = time.Now().UTC()
	}
	s.tap.mu.Unlock()
	return s.file.Write(p)
}

func (r *Run) tap() (*tap, error) {
	t := &tap{}
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
	return &agent.Tap{Stdout: stream{t, t.out}, Stderr: stream{t, t.err}, Began: func(pid int, l agent.Launch) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.pid, t.cpu, t.began = pid, 0, l
	}}
}

// fill adds what was started to the record of an attempt.
func (t *tap) fill(a *Attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.FirstOutput = t.first
	if t.pid == 0 {
		return
	}
	l := t.began
	a.Program, a.Args, a.Policies = cmp.Or(l.Spec.Install.RealPath, l.Path), redact.Args(l.Args), l.Policies
	for _, entry := range l.Env {
		name, _, _ := strings.Cut(entry, "=")
		a.EnvKeys = append(a.EnvKeys, name)
	}
	slices.Sort(a.EnvKeys)
}

// busy is how much time of a processor the processes of a silent agent have to take between two looks to count as work.
const busy = 2 * time.Second

// alive reports whether the agent's processes have worked since the last look.
func (t *tap) alive() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pid == 0 {
		return false
	}
	cpu := cpuOf(t.pid)
	worked := cpu - t.cpu
	t.cpu = cpu
	return worked >= busy
}
