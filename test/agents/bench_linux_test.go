package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// patience ends a test that waits for what does not come. It is not a measurement: on a busy machine one turn of an
// agent takes more than a minute. Runs that our own clock is not to end get --timeout 5m, which is as long.
const (
	patience = 5 * time.Minute
	runLimit = patience + time.Minute // for what our own clocks have not ended
)

// bench is a place where one agent works: a repository without a commit.
type bench struct {
	t     *testing.T
	agent string
	entry string // the name that runs know it by, if that is not its own
	base  string // holds the two others; outside of the workspace
	work  string
	home  string
	env   []string // more of it
	last  int      // counts the scripts
}

func newBench(t *testing.T, agent string) *bench {
	t.Helper()
	base, err := os.MkdirTemp(benches, "omniagent-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, base) })
	b := &bench{t: t, agent: agent, base: base, work: filepath.Join(base, "work"), home: filepath.Join(base, "home")}
	for _, dir := range []string{b.work, b.home, filepath.Join(base, "tmp")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", b.work).CombinedOutput(); err != nil {
		t.Fatalf("git: %v %s", err, out)
	}
	return b
}

// benches is where they are: in no repository but their own, and not in the system's temporary directory, where codex
// lets commands write whatever its sandbox is, and makes no home.
const benches = "/var/tmp"

// removeAll tries again: an agent that was killed may have left something that is just being removed.
func removeAll(t *testing.T, dir string) {
	for range 100 {
		if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("cannot be removed:", dir)
}

// on makes the bench report to another test, such as a part of its own.
func (b *bench) on(t *testing.T) *bench {
	other := *b
	other.t = t
	return &other
}

// script writes what the model will do, and returns the flag that says so. Empty: it answers "ok" to everything.
func (b *bench) script(text string) string {
	b.t.Helper()
	if text == "" {
		return "--rehearse"
	}
	b.last++
	file := b.put(filepath.Join(b.home, "script-"+string(rune('a'+b.last%26))+".json"), text)
	return "--rehearse=" + file
}

// put writes a file, below the workspace unless the path is absolute, and returns its path.
func (b *bench) put(path, text string) string {
	b.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.work, path)
	}
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = hermetic.WriteProgram(path, []byte(text), 0o755)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return path
}

// took reports whether a file is there, and removes it.
func (b *bench) took(path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.work, path)
	}
	_, err := os.Stat(path)
	_ = os.Remove(path)
	return err == nil
}

// environ is small, so that nothing of the machine's own settings takes part.
func (b *bench) environ() []string {
	return append([]string{
		"PATH=" + bin + ":" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "HOME=" + b.home, "TERM=xterm-256color",
		"LANG=C.UTF-8", "IS_SANDBOX=1",
		"TMPDIR=" + filepath.Join(b.base, "tmp"), "SHELL=/bin/bash",
		"COPILOT_PKG_CACHE_HOME=" + filepath.Join(bin, "..", "..", "copilot-programs"), // 235 MB that it unpacks
	}, b.env...)
}

// report is what --report writes, as far as the tests look at it.
type report struct {
	ExitCode  int      `json:"exit_code"`
	AgentExit *int     `json:"agent_exit_code"`
	Version   string   `json:"agent_version"`
	Session   string   `json:"session_id"`
	Model     string   `json:"model"`
	Argv      []string `json:"argv"`
	Walls     *struct {
		Name string
	} `json:"walls"`
	Answered *bool `json:"answered"`
	Denials  []struct{ Tool, Reason string }
	Error    *struct {
		Code    string
		Message string
		Detail  map[string]any
	}
}

func (r report) code() string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

type outcome struct {
	code           int
	stdout, stderr string
	report         report
	took           time.Duration
}

// run asks the agent "hello there" on a script.
func (b *bench) run(script string, args ...string) outcome {
	b.t.Helper()
	return b.start(nil, append([]string{"-p", "hello there", b.script(script)}, args...)...)
}

// start calls the program once, with the agent and a report. stdin may be nil.
func (b *bench) start(stdin []byte, args ...string) outcome {
	b.t.Helper()
	record := filepath.Join(b.home, "report.json")
	_ = os.Remove(record)
	args = append([]string{"--agent", b.agent, "--report", record}, args...)
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = b.work, b.environ()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	limit := time.AfterFunc(runLimit, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !limit.Stop() {
		b.t.Errorf("%q did not end within %v", args, runLimit)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	o := outcome{
		code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: errOut.String(), took: time.Since(began),
	}
	if data, err := os.ReadFile(record); err == nil {
		if err := json.Unmarshal(data, &o.report); err != nil {
			b.t.Fatal(err)
		}
	}
	return o
}

// sent are the arguments that the agent would be started with. Nothing is started.
func (b *bench) sent(args ...string) []string {
	b.t.Helper()
	o := b.start(nil, append([]string{"--trace-translate=only", "--rehearse"}, args...)...)
	_, line, found := strings.Cut(o.stderr, "OA_TRANSLATION=")
	var t struct{ Args []string }
	if line, _, _ = strings.Cut(line, "\n"); !found || json.Unmarshal([]byte(line), &t) != nil {
		b.t.Fatalf("no translation: %+v", o)
	}
	return t.Args
}
