package codex

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

func showEvidence(e agent.Evidence) string {
	var b strings.Builder
	fmt.Fprintf(&b, "answered=%d told=%v model=%s", e.Answered, e.DenialsKnown, e.Model)
	if e.Usage != nil {
		fmt.Fprintf(&b, " usage=%+v", *e.Usage)
	}
	b.WriteByte('\n')
	for _, d := range e.Denials {
		fmt.Fprintf(&b, "  denied %+v\n", d)
	}
	if e.Fault != nil {
		fmt.Fprintf(&b, "  fault %s %q %v fix=%q\n", e.Fault.Code, e.Fault.Message, e.Fault.Detail, e.Fault.FixCommand)
	}
	return b.String()
}

// The transcripts are of real runs: of each, what it proves.
func TestRollouts(t *testing.T) {
	files, err := filepath.Glob("testdata/rollouts/*.jsonl")
	if err != nil || len(files) < 30 {
		t.Fatal("testdata is missing", err)
	}
	var b strings.Builder
	for _, file := range files {
		fmt.Fprintf(&b, "%s: %s", strings.TrimSuffix(filepath.Base(file), ".jsonl"), showEvidence(readRollout(file, 0)))
	}
	golden(t, "testdata/rollouts.golden", b.String())
}

// The output of a command is never taken for a refusal.
func TestRejectedImitated(t *testing.T) {
	for _, text := range []string{
		"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\npatch rejected: writing outside " +
			"of the project",
		"Chunk ID: 1\nOutput:\napproval policy is Never; reject command",
		"Wall time: 0.1 seconds\nOutput:\npatch rejected: x",
		`exec_command failed: CreateProcess { message: "Rejected(\"rejected by user\")" }`,
		`exec_command failed: CreateProcess { message: "No such file or directory" }`,
		"Script error:\npatch rejected: x",
	} {
		if reason, denied := rejected(text, false); denied {
			t.Errorf("%q is taken for a refusal: %s", text, reason)
		}
	}
}

func TestStopped(t *testing.T) {
	for text, want := range map[string]bool{
		"touch: cannot touch 'a': Read-only file system\n":                 true,
		"a\nbash: line 1: x: Read-only file system":                        true,
		"OSError: [Errno 30] Read-only file system: 'x'":                   true,
		"Error: EROFS: read-only file system, open 'x'":                    true,
		"Error: Os { kind: ReadOnlyFilesystem } (os error 30)":             true,
		"docs: a Read-only file system is mounted when\n":                  false,
		"cat: /etc/shadow: Permission denied\n":                            false,
		"grep: the words Read-only file system: seen in the documentation": false,
	} {
		if got := stopped(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Only records added after the start belong to a run that resumes a session.
func TestReadFrom(t *testing.T) {
	const file = "testdata/rollouts/resumed.jsonl"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	second := bytes.LastIndex(data, []byte(`"type":"task_started"`))
	from := bytes.LastIndexByte(data[:second], '\n') + 1
	all, later := readRollout(file, 0), readRollout(file, int64(from))
	if all.Usage.Input <= later.Usage.Input || later.Usage.Input == 0 {
		t.Errorf("usage of all %+v, of the second turn %+v", all.Usage, later.Usage)
	}
	if none := readRollout(file, int64(len(data))); none.Answered != agent.Unknown || none.Usage != nil {
		t.Errorf("of nothing: %+v", none)
	}
}

func TestReadTorn(t *testing.T) {
	data, err := os.ReadFile("testdata/rollouts/error-401.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.jsonl")
	write := func(data []byte) agent.Evidence {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return readRollout(path, 0)
	}
	for i := range data {
		e := write(data[:i])
		if whole := i == len(data); e.Fault != nil && !whole {
			t.Fatalf("a line torn at %d of %d is believed", i, len(data))
		}
	}
	if e := write(data); e.Fault == nil {
		t.Error("the whole one is not")
	}
	long := append(bytes.Repeat([]byte("x"), maxLine+10), '\n')
	if e := write(append(long, data...)); e.Fault == nil || e.DenialsKnown {
		t.Errorf("behind a long line: fault %v, told %v", e.Fault, e.DenialsKnown)
	}
	if e := write(append(bytes.Repeat([]byte("short\n"), maxRead/6+1), data...)); e.Fault == nil || e.DenialsKnown {
		t.Errorf("at the end of a long file: fault %v, told %v", e.Fault, e.DenialsKnown)
	}
	if e := readRollout(filepath.Join(t.TempDir(), "none"), 0); e.DenialsKnown || e.Answered != agent.Unknown {
		t.Errorf("of no file: %+v", e)
	}
}

// Without a sandbox the same message is one of the machine, not of a policy.
func TestStoppedWithoutSandbox(t *testing.T) {
	for _, name := range []string{"stopped", "stopped-with-item"} {
		data, err := os.ReadFile(filepath.Join("testdata", "rollouts", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "x.jsonl")
		free := bytes.ReplaceAll(data, []byte(`"sandbox_policy":{"type":"read-only"`),
			[]byte(`"sandbox_policy":{"type":"danger-full-access"`))
		if bytes.Equal(free, data) {
			t.Fatal("the transcript names no sandbox")
		}
		if err := os.WriteFile(path, free, 0o600); err != nil {
			t.Fatal(err)
		}
		if e := readRollout(path, 0); len(e.Denials) != 0 {
			t.Errorf("%s: %+v", name, e.Denials)
		}
	}
}

// A sandbox that could not run anything is why the run did nothing; one that ran something else is not broken.
func TestUnstarted(t *testing.T) {
	const (
		context = `{"type":"turn_context","payload":{"model":"m","sandbox_policy":{"type":"workspace-write"}}}`
		none    = `bwrap: execvp codex-linux-sandbox: No such file or directory`
		space   = `bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)`
	)
	call := func(id string, code int, printed string) string {
		return fmt.Sprintf(
			`{"type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":%q}}`, id) +
			"\n" +
			fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call_output","call_id":%q,"output":%q}}`,
				id,
				fmt.Sprintf(
					"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code %d\nOriginal token count: "+
						"1\nOutput:\n%s\n", code, printed))
	}
	for _, c := range []struct {
		name   string
		lines  []string
		broken bool
	}{
		{"no helper", []string{context, call("a", 1, none)}, true},
		{"no namespaces, twice", []string{context, call("a", 1, space), call("b", 1, space)}, true},
		{
			"without a sandbox",
			[]string{strings.ReplaceAll(context, "workspace-write", fullAccess), call("a", 1, none)},
			false,
		},
		{"another ran", []string{context, call("a", 1, none), call("b", 0, "")}, false},
		{"another ran and failed", []string{context, call("b", 2, "no such file"), call("a", 1, none)}, false},
		{"printed by a command that succeeded", []string{context, call("a", 0, none)}, false},
		{"more than that line", []string{context, call("a", 1, none+"\nmore")}, false},
	} {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(path, []byte(strings.Join(c.lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		e := readRollout(path, 0)
		if broken := e.Fault != nil && e.Fault.Code == fault.AgentRefused; broken != c.broken || len(e.Denials) != 0 {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
}

// TestManyCalls: calls without a result, and denials, are held up to a limit; beyond it some may be missing.
func TestManyCalls(t *testing.T) {
	r := rollout{calls: map[string]string{}, complete: true}
	for i := range maxOpen + 1 {
		if !r.complete {
			t.Fatalf("incomplete after %d calls", i)
		}
		r.line(fmt.Appendf(nil,
			`{"type":"response_item","payload":{"type":"function_call","name":"x","call_id":"%d"}}`, i))
	}
	if r.complete || len(r.calls) != maxOpen {
		t.Errorf("%d calls are held, complete: %t", len(r.calls), r.complete)
	}
	r.complete, r.denials = true, make([]event.Denial, maxOpen)
	if r.deny("c", "x", "no"); r.complete || len(r.denials) != maxOpen {
		t.Errorf("%d denials are held, complete: %t", len(r.denials), r.complete)
	}
}
