package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// The test binary is also a program: a registry of commands that misbehave in every way a handler can. Tests start it
// as a real process, so that what is proven is what a caller would see.

const asProgram = "OMNIAGENT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	hermetic.Signals()
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	if os.Getenv(asProgram) == theWhole {
		os.Exit(handedIn().Main(os.Args[1:]))
	}
	if os.Getenv(asProgram) != "" {
		p, err := New(misbehaving())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(99)
		}
		os.Exit(p.Main(os.Args[1:]))
	}
	hermetic.InMemory()
	hermetic.AtOnce("4")
	os.Exit(m.Run())
}

// answered is what a process did.
type answered struct {
	stdout, stderr string
	code           int
	took           time.Duration
	envelope       map[string]any // nil when stdout is not one JSON object
}

func (a answered) at(t *testing.T, path string) any {
	t.Helper()
	var v any = a.envelope
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("no %s in %s (stderr %s)", path, a.stdout, a.stderr)
		}
		v = m[name]
	}
	return v
}

// world is a place of its own for a test's processes: home, directory, environment.
type world struct {
	home, dir string
	env       []string
	stdin     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{home: t.TempDir(), dir: t.TempDir()}
	w.env = []string{
		"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), asProgram + "=1",
		"GORACE=atexit_sleep_ms=0", "USER=tester",
	}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		w.env = append(w.env, "GOCOVERDIR="+dir)
	}
	return w
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env, cmd.Dir = w.env, w.dir
	return cmd
}

// run starts the misbehaving program and waits for it.
func (w *world) run(t *testing.T, args ...string) answered {
	t.Helper()
	cmd := w.command(args...)
	cmd.Stdin = strings.NewReader(w.stdin)
	return finish(t, cmd)
}

func finish(t *testing.T, cmd *exec.Cmd) answered {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	a := answered{stdout: stdout.String(), stderr: stderr.String(), took: time.Since(start)}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		a.code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	if json.Unmarshal(stdout.Bytes(), &a.envelope) != nil {
		a.envelope = nil
	}
	return a
}

// started is a process under way whose handler has said, on standard error, that it is at work.
type started struct {
	cmd            *exec.Cmd
	stdout, stderr *bytes.Buffer
	done           chan error
}

// start begins a call and returns once the file "ready" exists in the directory: handlers that wait make it.
func (w *world) start(t *testing.T, args ...string) *started {
	t.Helper()
	s := &started{cmd: w.command(args...), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, done: make(chan error, 1)}
	s.cmd.Stdout, s.cmd.Stderr = s.stdout, s.stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.done <- s.cmd.Wait() }()
	ready := filepath.Join(w.dir, "ready")
	for deadline := time.Now().Add(hermetic.Patience); ; {
		if _, err := os.Stat(ready); err == nil {
			_ = os.Remove(ready)
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("the handler never began: %s", s.stderr)
		}
		select {
		case err := <-s.done:
			t.Fatalf("it ended before it began: %v %s %s", err, s.stdout, s.stderr)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// end sends signals and waits for the process.
func (s *started) end(t *testing.T, signals ...os.Signal) answered {
	t.Helper()
	begun := time.Now()
	for _, sig := range signals {
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-s.done:
	case <-time.After(hermetic.Patience):
		_ = s.cmd.Process.Kill()
		t.Fatal("it did not end")
	}
	a := answered{
		stdout: s.stdout.String(), stderr: s.stderr.String(), code: s.cmd.ProcessState.ExitCode(),
		took: time.Since(begun),
	}
	if json.Unmarshal(s.stdout.Bytes(), &a.envelope) != nil {
		a.envelope = nil
	}
	return a
}

// ready tells the test that the handler is at work.
func ready(c *Call) { _ = os.WriteFile(filepath.Join(c.Dir(), "ready"), nil, 0o600) }

type anyData struct {
	Value string `json:"value"`
}

type itemData struct {
	Items Rows[item] `json:"items"`
}

type item struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// quick fills in what every declaration must say, so that a test's registry shows only what matters.
func quick(c Command) *Command {
	if c.Summary == "" {
		c.Summary = "a command of the tests"
	}
	if c.Class == "" {
		c.Class = Envelope
	}
	if c.Danger == "" {
		c.Danger = Safe
	}
	if c.Version == "" {
		c.Version = "1.0.0"
	}
	if c.Output == nil {
		c.Output = TypeOf[anyData]()
	}
	if c.Exits == nil {
		c.Exits = []Exit{{Code: Success, When: "it is done"}}
	}
	if c.Examples == nil {
		c.Examples = []Example{{"Call it", "oatest " + c.Path}}
	}
	if c.Scopes == nil {
		c.Scopes = []string{}
	}
	if c.Run == nil {
		c.Run = func(context.Context, *Call) (Result, error) { return Result{Data: anyData{"done"}}, nil }
	}
	return &c
}

// made registers commands that are already constructed.
func made(commands ...*Command) (all []Registered) {
	for _, c := range commands {
		all = append(all, Registered{Path: c.Path, Make: func() *Command { return c }})
	}
	return all
}

// misbehaving is the registry that the test binary runs.
func misbehaving() App {
	return App{
		Name: "oatest", Version: "9.8.7", Summary: "commands that misbehave",
		Groups: map[string]string{"group": "commands in a group"},
		Commands: made(slices.Concat([]*Command{
			quick(Command{Path: "ok"}),
			quick(Command{Path: "hang", Run: func(_ context.Context, c *Call) (Result, error) {
				ready(c)
				select {}
			}}),
			quick(Command{Path: "polite", Run: func(ctx context.Context, c *Call) (Result, error) {
				c.OnCleanup(func() { _ = os.WriteFile(filepath.Join(c.Dir(), "cleaned"), []byte("x"), 0o600) })
				ready(c)
				<-ctx.Done()
				return Result{Data: anyData{"half"}}, context.Cause(ctx)
			}}),
			quick(Command{
				Path: "panic",
				Run:  func(context.Context, *Call) (Result, error) { panic("something odd\x1b[31m") },
			}),
			quick(Command{Path: "fail", Run: func(context.Context, *Call) (Result, error) {
				return Result{}, fault.New(fault.FileMissing, "the file x does not exist")
			}, Exits: []Exit{{Code: Success, When: "never"}, {Code: NotFound, When: "always"}}}),
		},
			misbehavingArguments(),
			misbehavingOutput(), stalling(),
			misbehavingLifecycle(),
		)...),
	}
}
