package rehearsal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/sys/process"
)

// bench is the place of one run.
type bench struct {
	home    string         // of the agent
	work    string         // a repository without a commit
	outside string         // beside the workspace
	marks   string         // programs that a hostile repository starts leave a mark here
	agents  []agent.Driver // whose traps a hostile repository has
	temp    string         // its path is short, because the paths of sockets in it have a limit
}

// outcome is the outcome of a run.
type outcome struct {
	skipped  string // why it did not run
	bench    bench
	launch   agent.Launch
	exit     agent.Exit
	evidence agent.Evidence
	fault    *fault.Fault // nil: it succeeded
	stdout   []byte
	requests []modelserver.Request // requests of the conversation: the ones with tools
	made     []string              // inside, written, outside, hidden, beyond: which of the model's files exist
	reached  bool                  // a command reached a port of this machine
	marks    []string
	limit    time.Duration // of the run
	took     time.Duration

	size, whole int  // bytes of the prompt, and how many of them arrived
	later       *try // a shorter prompt, if this one did not arrive
}

// try is a second attempt with a shorter prompt.
type try struct {
	size  int
	whole bool
}

// trouble reports why a run shows nothing, or "".
func (o *outcome) trouble() string {
	switch {
	case o.skipped != "":
		return o.skipped
	case o.exit.EndedBy == "timeout":
		return fmt.Sprintf("it did not end within %s, and was killed with all that it had started",
			o.limit)
	case o.exit.EndedBy != "":
		return "the call ended while it ran"
	case o.exit.Failed != nil:
		return "it cannot be started: " + o.exit.Failed.Error()
	case len(o.requests) > 0:
		return ""
	case o.exit.Signal != "":
		return "it was ended by " + o.exit.Signal + " before it asked the model" + o.words()
	}
	return fmt.Sprintf("it ended with exit code %d and did not ask the model%s", o.exit.Code, o.words())
}

// words returns the agent's last words on stderr.
func (o *outcome) words() string {
	const most = 200
	lines := strings.Split(strings.TrimSpace(string(o.exit.Stderr)), "\n")
	last, _ := text.Clean(strings.TrimSpace(lines[len(lines)-1]))
	if last == "" {
		return ""
	}
	return ": " + last[:min(len(last), most)]
}

// exitCode returns the exit code that this program would have.
func (o *outcome) exitCode() int {
	switch {
	case o.fault == nil:
		return 0
	case o.fault.Code == fault.Blocked:
		return 3
	case o.fault.Code == fault.AgentUsage:
		return 2
	}
	return 1
}

func (o *outcome) has(name string) bool { return slices.Contains(o.made, name) }

// play performs one run.
func (s *stage) play(ctx context.Context, t trial) *outcome {
	o := &outcome{}
	var err error
	if o.bench, err = s.bench(t); err != nil {
		o.skipped = "its place cannot be made: " + err.Error()
		return o
	}
	door, err := listen()
	if err != nil {
		o.skipped = err.Error()
		return o
	}
	defer door.close()
	if t.lay != nil {
		if err := t.lay(o.bench); err != nil {
			o.skipped = "its repository cannot be made: " + err.Error()
			return o
		}
	}
	script, err := json.Marshal(t.script(s, o.bench, door.port))
	if err != nil {
		o.skipped = err.Error()
		return o
	}
	prompt := s.prompt(t)
	s.once(ctx, t, o, script, prompt)
	o.reached = door.calls.Load() > 0
	if o.size, o.whole = len(prompt), o.arrived(prompt); t.size && o.whole == 0 && o.fault != nil &&
		o.exit.EndedBy == "" && len(prompt) > short {
		// The limit of the model may be lower than that of the program. Then a shorter prompt has to arrive.
		again := &outcome{bench: o.bench}
		s.once(ctx, t, again, script, prompt[len(prompt)-short:])
		o.later = &try{short, again.arrived(prompt[len(prompt)-short:]) == short}
		o.took += again.took
	}
	return o
}

// once starts the agent on a script, waits for its end, and examines the outcome.
func (s *stage) once(ctx context.Context, t trial, o *outcome, script, prompt []byte) {
	backend, err := modelserver.ParseScript(script)
	if err != nil {
		o.skipped = err.Error()
		return
	}
	server, err := modelserver.Start(backend, modelserver.Options{Key: s.key, Hurry: true})
	if err != nil {
		o.skipped = err.Error()
		return
	}
	defer server.Close()
	if o.launch, _, err = s.Driver.Command(s.spec(t, o.bench, server.URL())); err == nil {
		err = put(o.launch.Files)
	}
	if err != nil {
		o.skipped = "it cannot be started: " + err.Error()
		return
	}
	observer := s.Driver.Observe(o.launch)
	began, out, errs := time.Now(), &process.Head{Most: 32 << 20}, &process.Tail{}
	o.exit = s.wait(ctx, process.Plan{
		Path: o.launch.Path, Argv: append([]string{s.Driver.Describe().Binary}, o.launch.Args...), Dir: o.launch.Dir,
		Env:   o.launch.Env,
		Stdin: bytes.NewReader(prompt), Stdout: out, Stderr: errs, Grace: s.o.Grace,
	})
	o.limit, o.took = s.o.Clock, time.Since(began)
	o.exit.Stderr, o.stdout = errs.Bytes(), out.Kept
	o.evidence = observer.After(o.exit)
	o.fault = cli.ProcessFault(o.exit, o.evidence, o.launch.UsageCodes...)
	for _, r := range server.Requests() {
		if len(r.Tools) > 0 {
			o.requests = append(o.requests, r)
		}
	}
	o.look()
}

// wait runs one process to its end.
func (s *stage) wait(ctx context.Context, plan process.Plan) agent.Exit {
	child, err := process.Start(plan)
	if err != nil {
		return agent.Exit{Code: -1, Failed: err}
	}
	ended := make(chan process.Ending, 1)
	go func() { ended <- child.Wait() }()
	clock := time.NewTimer(s.o.Clock)
	defer clock.Stop()
	why := ""
	select {
	case e := <-ended:
		return agent.Exit{Code: e.ExitCode, Signal: e.Signal}
	case <-clock.C:
		why = "timeout"
	case <-ctx.Done():
		why = "SIGTERM"
	}
	child.End(syscall.SIGTERM)
	e := <-ended
	if !e.Ended {
		why = "" // it had just ended by itself
	}
	return agent.Exit{Code: e.ExitCode, Signal: e.Signal, EndedBy: why}
}

func (s *stage) spec(t trial, b bench, url string) agent.Spec {
	spec := agent.Spec{
		Install: s.Install, Mode: setting.OneShot, Shared: t.shared(s), Dir: b.work,
		Env: cli.Environ(s.env, []string{"TMPDIR=" + b.temp}), Machine: s.machine,
		Fresh: ident.UUID(), Temp: filepath.Join(b.temp, "launch-"+ident.Hex(8)),
		Rehearsal: &agent.Rehearsal{URL: url, Key: s.key, Model: "rehearsal", Home: b.home},
	}
	if t.resumes != "" {
		spec.Resume = s.outcome(t.resumes).evidence.Session
	}
	return spec
}

// bench creates the place of a run. A run that continues another uses the same place.
func (s *stage) bench(t trial) (bench, error) {
	if t.resumes != "" {
		return s.outcome(t.resumes).bench, nil
	}
	base := filepath.Join(s.base, t.name)
	b := bench{
		filepath.Join(base, "home"), filepath.Join(base, "work"), filepath.Join(base, "outside"),
		filepath.Join(base, "marks"), s.o.Agents, s.places.temp(s.o.Temp),
	}
	for _, dir := range []string{
		b.home, b.outside, b.marks, b.temp, filepath.Join(b.work, ".git", "objects"),
		filepath.Join(b.work, ".git", "refs", "heads"),
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return b, err
		}
	}
	// A repository without a commit, because some agents need one.
	return b, lay(b.work, map[string]string{
		".git/HEAD":   "ref: refs/heads/main\n",
		".git/config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
	})
}

// lay writes files below a directory.
func lay(dir string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// put writes the files of a launch. It keeps existing files with Keep, which belong to the previous run.
func put(files []agent.File) error {
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return err
		}
		file, err := os.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && f.Keep {
			continue
		}
		if err != nil {
			return err
		}
		_, err = file.Write(f.Data)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// look records which files exist.
func (o *outcome) look() {
	for name, path := range o.bench.tried() {
		if _, err := os.Lstat(path); err == nil {
			o.made = append(o.made, name)
		}
	}
	slices.Sort(o.made)
	entries, _ := os.ReadDir(o.bench.marks)
	for _, e := range entries {
		o.marks = append(o.marks, e.Name())
	}
}

// tried returns the files that models are told to create.
func (b bench) tried() map[string]string {
	return map[string]string{
		"inside":  filepath.Join(b.work, "inside.txt"),     // by a command
		"written": filepath.Join(b.work, "written.txt"),    // by the agent's own tool
		"outside": filepath.Join(b.outside, "outside.txt"), // by a command
		"hidden":  filepath.Join(b.outside, "hidden.txt"),  // by a command that does not contain its path
		"beyond":  filepath.Join(b.outside, "beyond.txt"),  // by the agent's own tool
	}
}

// blocks yields the blocks of all messages in the requests, with the role of their message.
func (o *outcome) blocks() iter.Seq2[string, modelserver.Block] {
	return func(yield func(string, modelserver.Block) bool) {
		for _, r := range o.requests {
			for _, m := range r.Messages {
				for _, b := range m.Blocks {
					if !yield(m.Role, b) {
						return
					}
				}
			}
		}
	}
}

// arrived returns how many bytes of the prompt a message to the model contains.
func (o *outcome) arrived(prompt []byte) int {
	whole, longest := string(prompt), 0
	for role, b := range o.blocks() {
		if role != modelserver.User || b.Kind != modelserver.Text {
			continue
		}
		if strings.Contains(b.Text, whole) {
			return len(prompt)
		}
		longest = max(longest, min(len(b.Text), len(prompt)-1))
	}
	return longest
}

// door is a port of this machine that counts connections.
type door struct {
	listener net.Listener
	port     string
	calls    atomic.Int32
	over     chan struct{}
}

func listen() (*door, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no port of 127.0.0.1 can be listened on: %w", err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	d := &door{listener: l, port: port, over: make(chan struct{})}
	go func() {
		defer close(d.over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.calls.Add(1)
			_ = c.Close()
		}
	}()
	return d, nil
}

func (d *door) close() {
	_ = d.listener.Close()
	<-d.over
}
