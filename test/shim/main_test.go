//go:build unix

package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/term"

	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// program is the built program.
var program string

const stubVariable = "OMNIAGENT_STUB"

// TestMain builds the program once. Called under the name of an agent, this binary is a stub of it.
func TestMain(m *testing.M) {
	hermetic.Signals()
	hermetic.Weighing()
	if spec := os.Getenv(stubVariable); spec != "" && slices.Contains(agents(), filepath.Base(os.Args[0])) {
		os.Exit(stub(spec))
	}
	hermetic.AtOnce("4")
	os.Exit(measure.WithProgram("../..", func(file string) int {
		program = file
		return hermetic.Sample(m, "TestAccepted", "TestBadInput", "TestNotInstalled",
			"TestARunIsTakenBack", "TestEvents", "TestQuit")
	}))
}

func agents() []string { return []string{"claude", "codex", "copilot", "gemini", "opencode"} }

// behaviour is what a stub does, from the variable.
type behaviour struct {
	Record string        `json:"record"` // directory of the records
	Exits  []int         `json:"exits"`  // by call; the last one stays
	Echo   bool          `json:"echo"`   // standard input goes to standard output
	Say    string        `json:"say"`
	Moan   string        `json:"moan"`  // to stderr
	Times  int           `json:"times"` // how often it moans
	Says   []string      `json:"says"`  // by call; the last one stays
	Family string        `json:"family"`
	First  time.Duration `json:"first"`  // how long it says nothing
	After  time.Duration `json:"after"`  // a silence after the first line
	Piece  time.Duration `json:"piece"`  // a pause before each line
	Repeat int           `json:"repeat"` // how often it says Say
}

// speak says something, at the pace of the stub.
func (b *behaviour) speak(say string) {
	time.Sleep(b.First)
	for i := range max(1, b.Repeat) {
		for j, line := range slices.Collect(strings.Lines(say)) {
			time.Sleep(b.Piece)
			_, _ = os.Stdout.WriteString(line)
			if i == 0 && j == 0 {
				time.Sleep(b.After)
			}
		}
	}
}

// call is one start of a stub.
type call struct {
	Agent    string
	Args     []string
	Stdin    string
	Terminal bool // standard input is one
	OutIsTTY bool
	Env      []string
	Dir      string
}

// stub is an agent that writes down how it was called.
func stub(spec string) int {
	var b behaviour
	if err := json.Unmarshal([]byte(spec), &b); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	c := call{Agent: filepath.Base(os.Args[0]), Args: os.Args[1:], Env: os.Environ()}
	c.Dir, _ = os.Getwd()
	c.Terminal = term.IsTerminal(0)
	c.OutIsTTY = term.IsTerminal(1)
	if b.Family != "" {
		return family(b.Family)
	}
	if !c.Terminal {
		if b.Echo {
			_, _ = io.Copy(os.Stdout, os.Stdin)
		} else {
			data, _ := io.ReadAll(os.Stdin)
			c.Stdin = string(data)
		}
	}
	data, _ := json.Marshal(c)
	n := 0
	for ; ; n++ {
		file, err := os.OpenFile(filepath.Join(b.Record, fmt.Sprintf("call%03d", n)), os.O_WRONLY|os.O_CREATE|os.O_EXCL,
			0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		_, _ = file.Write(data)
		_ = file.Close()
		break
	}
	if len(b.Says) > 0 {
		b.Say = b.Says[min(n, len(b.Says)-1)]
	}
	b.speak(b.Say)
	_, _ = os.Stderr.WriteString(strings.Repeat(b.Moan, max(1, b.Times)))
	if len(b.Exits) == 0 {
		return 0
	}
	return b.Exits[min(n, len(b.Exits)-1)]
}

// world is a machine with stub agents.
type world struct {
	t       *testing.T
	root    string // work directory
	home    string
	bin     string
	record  string
	without []string
	behave  behaviour
	env     []string
}

func newWorld(t *testing.T, without ...string) *world {
	t.Helper()
	base := t.TempDir()
	w := &world{
		t: t, root: base + "/work", home: base + "/home", bin: base + "/bin", record: base + "/record",
		without: without,
	}
	// A repository of its own, or one that somebody left in the temporary directory would be its.
	for _, dir := range []string{w.root, w.root + "/.git", w.home, w.bin, w.record} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range agents() {
		if slices.Contains(without, name) {
			continue
		}
		if err := os.Symlink(self, filepath.Join(w.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.behave.Record = w.record
	return w
}

func (w *world) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// command is a call of the program.
func (w *world) command(args ...string) *exec.Cmd {
	spec, err := json.Marshal(w.behave)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = w.root
	cmd.Env = append([]string{
		"PATH=" + w.bin, "HOME=" + w.home, "TMPDIR=" + w.t.TempDir(), stubVariable + "=" + string(spec), "TERM=xterm",
		"GORACE=atexit_sleep_ms=0",
	}, w.env...)
	return cmd
}

type result struct {
	code           int
	stdout, stderr string
}

// run calls the program with text on standard input; nil is the null device.
func (w *world) run(stdin io.Reader, args ...string) result {
	w.t.Helper()
	cmd := w.command(args...)
	var out, errOut strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut
	err := runWithin(cmd, 30*time.Second)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func runWithin(cmd *exec.Cmd, limit time.Duration) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	return cmd.Wait()
}

// calls are the starts of agents, in order.
func (w *world) calls() []call {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.record, "call*"))
	if err != nil {
		w.t.Fatal(err)
	}
	var calls []call
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		var c call
		if err := json.Unmarshal(data, &c); err != nil {
			w.t.Fatal(err)
		}
		calls = append(calls, c)
	}
	return calls
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../.."); err != nil {
		t.Fatal(err)
	}
}
