package agents

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func opencodeFailures() []scenario {
	return []scenario{
		{"errors", []string{"API error", "rate limit"}, opencodeErrors},
		{"stall", []string{"stall"}, opencodeStall},
	}
}

// opencodeErrors: what the CLI tells of an error by its own name, what it overcomes, and an error after a denial.
func opencodeErrors(b *bench) {
	for script, code := range map[string]string{
		`[{"error":403,"message":"not for you"}]`: "API_ERROR",
		`[{"error":500}]`:                         "API_ERROR",
		`[{"error":"context_full"}]`:              "CONTEXT_FULL",
	} {
		o := b.run(script, "--timeout", "5m")
		if o.code != 1 || o.report.code() != code {
			b.t.Errorf("%s: %s %+v", script, o.report.code(), o)
		}
	}
	o := b.run(`[{"error":429,"retry_after":1,"times":2},{"say":"at last"}]`)
	if o.code != 0 || !strings.Contains(o.stdout, "at last") || o.report.Error != nil {
		b.t.Errorf("overcome: %+v", o)
	}
	o = b.run(`[{"write":{"path":"w.txt","content":"x"}},{"error":400}]`, "--yolo", "--", "--agent", "plan")
	if o.code != 1 || o.report.code() != "API_ERROR" || len(o.report.Denials) != 1 {
		b.t.Errorf("an error after a denial: %+v", o)
	}
}

// opencodeStall: an answer that stops half-way, and a command that does not end. What the shell started is gone when we
// are, though it runs in a group of its own.
func opencodeStall(b *bench) {
	o := b.run(`[{"say":"half of it","stall":"middle"}]`, "--timeout", "20s")
	if o.code != 1 || !strings.Contains(o.stderr, "did not end within 20s") {
		b.t.Errorf("%+v", o)
	}
	mark := filepath.Join(b.work, "pid")
	cmd := exec.Command(program, "--agent", b.agent, "-p", "x", "--yolo",
		b.script(`[{"shell":"echo $$ >pid.new; mv pid.new pid; sleep 4711; touch after.txt"}]`))
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.work, b.environ(), &out, &out
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	limit := time.AfterFunc(runLimit, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	var pid int
	for end := time.Now().Add(patience); pid == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		data, _ := os.ReadFile(mark)
		_, _ = fmt.Sscan(string(data), &pid)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); pid == 0 || code != 143 {
		b.t.Errorf("pid %d, exit code %d: %s", pid, code, out.String())
	}
	if state := processState(pid); state != "" && state != "Z" {
		b.t.Errorf("the command lives on: %s %s", state, commandLine(pid))
	}
	if b.took("after.txt") {
		b.t.Error("the command went on")
	}
}

// processState is the letter of a process, empty where there is none.
func processState(pid int) string {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "State:"); ok {
			return strings.TrimSpace(rest)[:1]
		}
	}
	return ""
}
