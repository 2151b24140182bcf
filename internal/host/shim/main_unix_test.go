//go:build unix

package shim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

const stubName = "omniagent-shim-stub"

// TestMain lets the test binary be the guard and the agent.
func TestMain(m *testing.M) {
	hermetic.Signals()
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	if os.Args[0] == stubName {
		os.Exit(stub(os.Args[1]))
	}
	hermetic.InMemory()
	os.Exit(m.Run())
}

// stub returns the agent: it writes its prompt down and says the line of its script that is next.
func stub(dir string) int {
	prompt, _ := io.ReadAll(os.Stdin)
	if len(os.Args) > 2 && len(prompt) == 0 {
		prompt = []byte(os.Args[2])
	}
	n := 0
	for ; ; n++ {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("prompt%d", n)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			continue
		}
		_, _ = f.Write(prompt)
		_ = f.Close()
		break
	}
	script, _ := os.ReadFile(filepath.Join(dir, "script"))
	var says []string
	_ = json.Unmarshal(script, &says)
	if len(says) == 0 {
		return 0
	}
	say := says[min(n, len(says)-1)]
	if say == "die" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if code, ok := strings.CutPrefix(say, "exit "); ok {
		n, _ = strconv.Atoi(code)
		return n
	}
	_, _ = os.Stdout.WriteString(say)
	if strings.HasPrefix(say, "wait") {
		time.Sleep(time.Hour)
	}
	return 0
}

// fake is a driver of the stub.
type fake struct {
	cli.Program
	dir    string
	path   string // empty: not installed
	limit  agent.Limit
	native bool
	stream bool
	files  bool
	by     agent.PromptBy
	bare   bool
	seen   *[]agent.Spec
}

func (d fake) Locate(env agent.Env) (agent.Install, error) {
	if d.path == "" {
		return d.Program.Locate(agent.Env{})
	}
	return agent.Install{Path: d.path}, nil
}

func (d fake) Matrix(string) agent.Matrix { return agent.Matrix{Limit: d.limit} }

func (d fake) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	if d.seen != nil {
		*d.seen = append(*d.seen, s)
	}
	l := agent.Launch{
		Path: s.Install.Path, Args: append([]string{d.dir}, s.Passthrough...), Translated: 1, Env: s.Env, Dir: s.Dir,
		Spec: s, Native: d.native,
		Refusals: []agent.Refusal{
			{Reason: "It is shut.", Fix: "Open it.", Command: "open it"},
			{Reason: "It is blue", Fix: "paint it", Codes: []int{1, 7}},
		},
	}
	if l.Prompt = d.by; d.by == agent.ByArgument {
		l.PromptAt, l.PromptBare = 1, d.bare
	}
	if d.files {
		l.Files = []agent.File{{Path: filepath.Join(s.Temp, "in/file"), Data: []byte("data")}}
	}
	return l, nil, nil
}

func (d fake) Decode(setting.Output) agent.Decoder {
	if !d.stream {
		return nil
	}
	return &cli.JSONLines{Parse: func(line []byte) []event.Event {
		var e struct {
			Text, Final string
			Structured  json.RawMessage
		}
		_ = json.Unmarshal(line, &e)
		if e.Text != "" {
			return []event.Event{{Kind: event.Text, Text: e.Text}}
		}
		return []event.Event{{Kind: event.Ended, End: &event.End{OK: true, Text: e.Final, Structured: e.Structured}}}
	}}
}

// world is one machine.
type world struct {
	t       *testing.T
	dir     string // of the stub
	work    string
	temp    string
	drivers []agent.Driver
	custom  []agent.Driver
	targets func(*agentsfile.File) ([]agent.Driver, error)
	trust   *config.Trust
	env     []string
	signals chan os.Signal
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), work: t.TempDir(), temp: t.TempDir(), signals: make(chan os.Signal, 1)}
	// The root of the repository, so that nothing above the temporary directory is taken for it.
	if err := os.Mkdir(filepath.Join(w.work, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.trust = config.OpenTrust(filepath.Join(w.dir, "trust.json"))
	return w
}

// agent returns one that is installed, changed by with.
func (w *world) agent(name string, with func(*fake)) fake {
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	d := fake{
		Program: cli.Program{ID: name, About: agent.About{
			Title: strings.ToUpper(name), Binary: stubName, InstallCommand: "install " + name,
		}},
		dir: w.dir, path: self,
	}
	if with != nil {
		with(&d)
	}
	return d
}

func (w *world) script(says ...string) {
	data, _ := json.Marshal(says)
	w.write(filepath.Join(w.dir, "script"), string(data))
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) shim() *Shim {
	return &Shim{
		Name: "omniagent", Version: "1", Drivers: w.drivers, Root: func([]string) int { return 0 },
		Rehearse: func(_, home string) (agent.Rehearsal, func(), error) {
			return agent.Rehearsal{Home: home}, func() {}, nil
		},
		Settings: func(dir string) Settings {
			host := Host{Env: w.env}
			set, err := config.Load(config.Options{Keys: Keys(), Getenv: host.lookup, Dir: dir})
			return Settings{
				Set: set, Err: err, Trust: w.trust, Temp: w.temp, State: w.dir, Custom: w.custom, Targets: w.targets,
			}
		},
	}
}

type result struct {
	code           int
	stdout, stderr string
}

// run calls the shim with that file as standard input; nil is the null device.
func (w *world) run(stdin *os.File, args ...string) result {
	w.t.Helper()
	open := func(name string) *os.File {
		f, err := os.CreateTemp(w.dir, name)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = f.Close() })
		return f
	}
	if stdin == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			w.t.Fatal(err)
		}
		defer null.Close()
		stdin = null
	}
	out, errOut := open("out"), open("err")
	code := w.shim().Main(Host{
		Args: args, Env: append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), w.env...),
		Dir: w.work, Stdin: stdin, Stdout: out, Stderr: errOut, Signals: w.signals,
	})
	stdout, _ := os.ReadFile(out.Name())
	stderr, _ := os.ReadFile(errOut.Name())
	if left, _ := os.ReadDir(w.temp); len(left) != 0 {
		w.t.Errorf("left behind: %v", left)
	}
	return result{code, string(stdout), string(stderr)}
}

// prompts returns what the agent got, start by start.
func (w *world) prompts() (list []string) {
	for n := 0; ; n++ {
		data, err := os.ReadFile(filepath.Join(w.dir, fmt.Sprintf("prompt%d", n)))
		if err != nil {
			return list
		}
		list = append(list, string(data))
	}
}

// pipe returns a pipe as standard input.
func (w *world) pipe(content []byte) *os.File {
	r, p, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = r.Close() })
	go func() {
		_, _ = io.Copy(p, bytes.NewReader(content))
		_ = p.Close()
	}()
	return r
}

func (w *world) file(content []byte) *os.File {
	path := filepath.Join(w.dir, "stdin")
	w.write(path, string(content))
	f, err := os.Open(path)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = f.Close() })
	return f
}

// reported returns the agent that the report names.
func (w *world) reported() string {
	var r Report
	data, err := os.ReadFile(filepath.Join(w.work, "r.json"))
	if err != nil {
		return ""
	}
	if err := json.Unmarshal(data, &r); err != nil {
		w.t.Error(err)
	}
	return r.Agent
}
