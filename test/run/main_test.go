//go:build unix

package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// program is the built program.
var program string

func TestMain(m *testing.M) {
	hermetic.Signals()
	hermetic.Weighing()
	if dir := os.Getenv(serving); dir != "" {
		os.Exit(serve(dir))
	}
	hermetic.AtOnce("4")
	os.Exit(measure.WithProgram("../..", func(file string) int {
		program = file
		return hermetic.Sample(m, "TestKnownAnswers", "TestQuestion", "TestCancel",
			"TestARunIsTakenBack", "TestUsage", "TestAtHome")
	}))
}

// serving makes the test binary a server, and names the directory in which servers tell each other.
const serving = "OMNIAGENT_TEST_SERVING"

// serve listens at a port until eight processes do, each on a loopback of its own.
func serve(dir string) int {
	l, err := net.Listen("tcp", "127.0.0.1:3000")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer l.Close()
	if _, err := os.CreateTemp(dir, "up-*"); err != nil { // each may have the same number in its namespace
		return 1
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if up, _ := filepath.Glob(filepath.Join(dir, "up-*")); len(up) == 8 {
			return 0
		}
	}
	return 1
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../.."); err != nil {
		t.Fatal(err)
	}
}

const wallsOff = "OMNIAGENT_AGENTS_WALLS=off"

// place is a home, a workspace, and agents in PATH.
type place struct {
	t                *testing.T
	home, work, bin  string
	env              []string
	allowed, targets []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	base, err := os.MkdirTemp("", "omniagent-run-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	p := &place{
		t: t, home: filepath.Join(base, "home"), work: filepath.Join(base, "work"), bin: filepath.Join(base, "bin"),
	}
	for _, dir := range []string{p.home, p.work, p.bin, filepath.Join(base, "tmp")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.env = []string{
		wallsOff, // the agents here leave marks outside of the workspace
		"HOME=" + p.home, "PATH=" + p.bin + ":/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + filepath.Join(base, "tmp"),
	}
	return p
}

// agent adds an agent: a shell script that gets the prompt on its standard input.
func (p *place) agent(name, script string) *place {
	p.t.Helper()
	p.put(filepath.Join(p.bin, name), "#!/bin/sh\n"+script)
	p.targets = append(p.targets, fmt.Sprintf(
		`{"id":%q,"cli":{"prompt":{"type":"stdin"},"flags":{"approval":{"values":{"yolo":[],"prompt":[]}}},`+
			`"modes":{"oneShot":{"command":%q,"args":[]},"interactive":{"command":%q,"args":[]}}}}`, name, name, name))
	p.put(filepath.Join(p.home, ".config/omniagent/agents/omniagent.config.json"),
		`{"targets":[`+strings.Join(p.targets, ",")+`]}`)
	p.allowed = append(p.allowed, name)
	return p.configured("").trusting(name)
}

// walled puts walls around the agents, which see what they write.
func (p *place) walled() *place {
	p.env = slices.DeleteFunc(p.env, func(entry string) bool { return entry == wallsOff })
	return p
}

// trusting lets programs start an agent.
func (p *place) trusting(name string) *place {
	p.t.Helper()
	cmd := exec.Command(program, "agents", "allow", name)
	cmd.Dir, cmd.Env = p.work, p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%s is not allowed: %v\n%s", name, err, out)
	}
	return p
}

// configured writes the person's own configuration: the agents, and more.
func (p *place) configured(more string) *place {
	p.t.Helper()
	p.put(filepath.Join(p.home, ".config/omniagent/config.toml"),
		"[agents]\nallow = [\"native\", \""+strings.Join(p.allowed, `", "`)+"\"]\n"+more)
	return p
}

// model lets the native agent work on a scripted model.
func (p *place) model(script string) *place {
	p.t.Helper()
	backend, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		p.t.Fatal(err)
	}
	server, err := modelserver.Start(backend, modelserver.Options{Key: "sk-test"})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = server.Close() })
	p.env = append(p.env, "OPENAI_BASE_URL="+server.URL()+"/v1", "OPENAI_API_KEY=sk-test")
	return p
}

// newest returns the id of the newest run, or the placeholder of the hint if no run exists.
func (p *place) newest() string {
	out, _ := p.command("runs", "list", "--output", "id").Output()
	if name, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); name != "" {
		return name
	}
	return "ID"
}

func (p *place) put(path, content string) {
	p.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.work, path)
	}
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = hermetic.WriteProgram(path, []byte(content), 0o755)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// exists waits for a file of the workspace.
func (p *place) exists(name string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.work, name)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s did not appear", name)
		}
	}
}

// told is what the pieces of text of a run say together.
func (p *place) told(id string) string {
	p.t.Helper()
	out, err := p.command("runs", "watch", id).Output()
	if len(out) == 0 {
		p.t.Errorf("runs watch %s: %v", id, err)
	}
	return texts(out)
}

// texts is what the pieces of text in events say together.
func texts(events []byte) string {
	var text strings.Builder
	for line := range strings.Lines(string(events)) {
		var row struct {
			Text  string
			Delta bool
		}
		if json.Unmarshal([]byte(line), &row) == nil && row.Delta {
			text.WriteString(row.Text)
		}
	}
	return text.String()
}

func (p *place) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(p.work, name))
	return string(data)
}

// answer is what the program said.
type answer struct {
	Code   int `json:"-"`
	Stdout string
	Stderr string
	Data   struct {
		ID      string `json:"run_id"`
		Status  string
		Reason  string
		Agent   string
		Text    struct{ Value string }
		Session string `json:"session_id"`
		Changed *struct {
			Count int
			Files []struct {
				Path, Status   string
				Added, Removed *int
			}
		}
		Denials   []struct{ Tool, Reason string }
		Questions []struct {
			ID, Text, Tool, Input string
			Options               []string
		}
		DurationMS int64 `json:"duration_ms"`
		Usage      *struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		}
		WaitedMS    int64 `json:"waited_ms"`
		Attempts    int
		Evidence    []struct{ Value string }
		Fingerprint string
		ExitCode    *int `json:"exit_code"`
		Summary     struct {
			What, Why struct{ Value string }
			Next      []string `json:"next_steps"`
			Checks    []struct {
				Command string
				OK      bool
			}
		}
		Job            string   `json:"job_id"`
		PID            int      `json:"background_pid"`
		EnvKeys        []string `json:"env_keys"`
		Executable     string
		Path           string
		Clarifications int                            `json:"clarification_count"`
		Retries        int                            `json:"retry_count"`
		Bytes          struct{ Stdout, Stderr int64 } `json:"output_bytes"`
		TimeoutReason  string                         `json:"timeout_reason"`
		Answered       []struct{ Question, Answer string }
		Open           []struct{ Value string } `json:"open_questions"`
		Owner          *struct{ PID int }
		Namespace      *bool `json:"pid_namespace"`
		Ended          []struct {
			Program string
			PIDs    []int
		}
		Closed []struct {
			ID     string `json:"run_id"`
			Status string
		}
	}
	Error *struct {
		Code, Message, Suggestion string
		FixCommand                string `json:"fix_command"`
		Retryable                 bool
	}
}

func (a answer) String() string {
	return fmt.Sprintf("exit %d\n%s\n%s", a.Code, a.Stdout, a.Stderr)
}

func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = p.work, p.env
	return cmd
}

// call calls the program and reads its envelope, the last line.
func (p *place) call(args ...string) answer {
	p.t.Helper()
	return p.ended(p.command(append(args, "--output", "json")...))
}

func (p *place) ended(cmd *exec.Cmd) answer {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	clock := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	clock.Stop()
	a := answer{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
	lines := strings.Split(strings.TrimSpace(a.Stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &a); err != nil {
		p.t.Fatalf("no envelope: %v\n%s", err, a)
	}
	return a
}

const patience = time.Minute

// run hands over a task.
func (p *place) run(agent string, args ...string) answer {
	p.t.Helper()
	return p.call(append([]string{"run", "--agent", agent, "-p", "the task"}, args...)...)
}

// is checks how a run ended.
func (a answer) is(t *testing.T, code int, status, reason string) {
	t.Helper()
	if a.Code != code || a.Data.Status != status || a.Data.Reason != reason {
		t.Errorf("want %d %s %s:\n%s", code, status, reason, a)
	}
}

// left returns what still runs with this home in its environment.
func (p *place) left() []string {
	var all []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(env, []byte("HOME="+p.home+"\x00")) {
			args, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			all = append(all, e.Name()+" "+strings.ReplaceAll(string(args), "\x00", " "))
		}
	}
	return all
}

// nothing waits until nothing runs.
func (p *place) nothing() {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		left := p.left()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.t.Errorf("still alive: %q", left)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
