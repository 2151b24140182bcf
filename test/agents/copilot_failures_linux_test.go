package agents

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func copilotFailures() []scenario {
	return []scenario{
		{"denials", []string{"denial", "denials one-shot"}, copilotDenials},
		{"errors", []string{"API error"}, copilotErrors},
		{"server errors", nil, copilotServerErrors},
		{"rate limit", []string{"rate limit"}, copilotRateLimit},
		{"stall", []string{"stall"}, copilotStall},
		{"killed leader", nil, copilotKilled},
	}
}

func copilotDenials(b *bench) {
	o := b.run(`[{"shell":"touch made.txt"},{"say":"so be it"}]`)
	if o.code != 3 || o.report.code() != "BLOCKED_BY_POLICY" || len(o.report.Denials) != 1 ||
		o.report.Denials[0].Tool != "bash" || b.took("made.txt") {
		b.t.Errorf("%+v", o)
	}
	if o.report.AgentExit == nil || *o.report.AgentExit != 0 {
		b.t.Errorf("the CLI itself takes it for a failure: %+v", o.report)
	}
	// What ended the run comes first, and the denial is told all the same.
	o = b.run(`[{"shell":"touch made.txt"},{"error":400}]`)
	if o.code != 1 || o.report.code() != "API_ERROR" || len(o.report.Denials) != 1 {
		b.t.Errorf("a denial, then an error: %+v", o)
	}
	if o = b.run(`[{"read":"absent.txt"},{"say":"so be it"}]`); o.code != 0 || len(o.report.Denials) != 0 {
		b.t.Errorf("a failed tool is not a denial: %+v", o)
	}
}

func copilotErrors(b *bench) {
	for _, tt := range []struct {
		script, code string
		status       any
	}{
		{`[{"error":403}]`, "AUTH_REQUIRED", 403.0},
		{`[{"error":404}]`, "API_ERROR", 404.0},
		{`[{"error":"context_full"}]`, "CONTEXT_FULL", 400.0},
		{`[{"say":"a half","cut":"middle"}]`, "API_ERROR", nil},
	} {
		o := b.run(tt.script)
		if o.code != 1 || o.report.code() != tt.code || o.report.Error.Detail["status"] != tt.status {
			b.t.Errorf("%s: %+v %+v", tt.script, o, o.report.Error)
		}
	}
	if o := b.run(`[{"say":"recovered","cut":"middle","times":1}]`); o.code != 0 ||
		!strings.Contains(o.stdout, "recovered") {
		b.t.Errorf("an error that was overcome: %+v", o)
	}
	if o := b.run("", "--", "--nonsense"); o.code != 2 || o.report.code() != "AGENT_USAGE" {
		b.t.Errorf("a flag that it does not know: %+v", o)
	}
}

// copilotServerErrors: nothing keeps the CLI from asking five times more.
func copilotServerErrors(b *bench) {
	if o := b.run(`[{"error":500}]`); o.code != 1 || o.report.code() != "API_ERROR" ||
		o.report.Error.Detail["status"] != 500.0 {
		b.t.Errorf("%+v %+v", o, o.report.Error)
	}
}

func copilotRateLimit(b *bench) {
	if o := b.run(`[{"error":429,"retry_after":1}]`); o.code != 1 || o.report.code() != "RATE_LIMITED" ||
		o.report.Error.Detail["status"] != 429.0 {
		b.t.Errorf("%+v %+v", o, o.report.Error)
	}
}

// copilotStall: half an answer and then nothing. Our clock ends it, and nothing of it is left.
func copilotStall(b *bench) {
	o := b.run(`[{"say":"a half of it","stall":"middle"}]`, "--timeout", "8s")
	if o.code != 1 || o.report.code() != "TIMEOUT" {
		b.t.Errorf("%+v %+v", o, o.report.Error)
	}
	if left := copilotLeft(b); len(left) > 0 {
		b.t.Errorf("still there: %q", left)
	}
}

// copilotKilled: what runs is a child of a loader. Without our care it goes on after the loader is dead, and the
// command with it.
func copilotKilled(b *bench) {
	done := make(chan outcome, 1)
	go func() {
		done <- b.run(
			`[{"shell":"touch begun.txt; while ! test -e go; do sleep 0.1; done; touch late.txt"},{"say":"done"}]`,
			"--yolo")
	}()
	end := time.Now().Add(patience)
	for !b.took("begun.txt") {
		if time.Now().After(end) {
			b.t.Fatal("the command did not begin")
		}
		time.Sleep(20 * time.Millisecond)
	}
	leader := 0
	for _, p := range copilotProcesses(b) {
		if strings.Contains(commandLine(p), "--session-id=") && (leader == 0 || p < leader) &&
			!strings.Contains(commandLine(p), "--agent") {
			leader = p
		}
	}
	if leader == 0 || syscall.Kill(leader, syscall.SIGKILL) != nil {
		b.t.Fatalf("no leader in %q", copilotLeft(b))
	}
	o := <-done
	left := copilotLeft(b)
	b.put("go", "")
	if o.code != 1 || len(left) > 0 || b.took("late.txt") {
		b.t.Errorf("still there: %q; %+v", left, o)
	}
}

// copilotProcesses are those that work in the bench.
func copilotProcesses(b *bench) []int {
	var list []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if bytes.Contains(env, []byte("TMPDIR="+filepath.Join(b.base, "tmp"))) {
			list = append(list, pid)
		}
	}
	return list
}

// copilotLeft are the command lines of what still works in the bench.
func copilotLeft(b *bench) []string {
	var list []string
	for _, pid := range copilotProcesses(b) {
		if line := commandLine(pid); line != "" {
			list = append(list, fmt.Sprint(pid, " ", line))
		}
	}
	return list
}
