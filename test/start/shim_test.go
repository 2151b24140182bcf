package start

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestAsAgent: --agent native is this program once more, with the shared flags, exit codes and evidence of every other
// agent.
func TestAsAgent(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "a.txt", "hi\n")
	edits := 3
	if whole(t) { // commands need no asking then
		edits = 0
	}
	p.write(t, "script.json", `[{"read":"a.txt"},{"shell":"touch touched"},{"say":"It says ${result}"}]`)
	for _, tt := range []struct {
		args string
		exit int
		out  string // what standard output begins with
	}{
		{"-p go", 3, "It says It did not run: "},
		{"-p go --yolo", 0, "It says (no output)"},
		{"-p go --yolo --json", 0, `{"type":"result","subtype":"success"`},
		{"-p go --yolo --stream-json", 0, `{"type":"system","subtype":"init"`},
		{"-p go --approval auto-edit", edits, "It says "},
		{"-p go --yolo --model other --web on", 0, "It says "},
		{"-p go --yolo -- --max-turns 1", 1, ""},
		{"-p go --yolo -- --nonsense", 2, ""},
	} {
		args := append([]string{"--agent", "native", "--rehearse=script.json"}, strings.Fields(tt.args)...)
		cmd := exec.Command(program, args...)
		cmd.Env, cmd.Dir = p.env, p.work
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != tt.exit || !strings.HasPrefix(string(out), tt.out) {
			stderr := ""
			if e, ok := err.(*exec.ExitError); ok {
				stderr = string(e.Stderr)
			}
			t.Errorf("%s: exit %d, %s\n%s", tt.args, code, out, stderr)
		}
	}
}

// TestNoAnswerFitsTheSchema: a model that never gives an answer of the wanted shape fails the call with the code that
// other agents have for it.
func TestNoAnswerFitsTheSchema(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "script.json", `[{"say":"it is Oslo"}]`)
	cmd := exec.Command(program, "--agent", "native", "-p", "where?", "--rehearse=script.json", "--report=report.json",
		"--output-schema", `{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}`)
	cmd.Env, cmd.Dir = p.env, p.work
	said, _ := cmd.CombinedOutput()
	var report struct{ Error struct{ Code string } }
	data, err := os.ReadFile(filepath.Join(p.work, "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &report)
	}
	if code := cmd.ProcessState.ExitCode(); err != nil || code != 1 || report.Error.Code != "SCHEMA_UNMET" ||
		!strings.Contains(string(said), "native: no answer of the model fits the schema\nhint: simplify the schema") {
		t.Errorf("exit %d, %v: %s\n%s", code, err, said, data)
	}
}

// TestAnswerThatFitsAsText: one JSON value that fits the schema is the answer, also where the model calls no tool.
func TestAnswerThatFitsAsText(t *testing.T) {
	t.Parallel()
	const form = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`
	for script, want := range map[string]int{`[{"say":"{\"n\": 3}"}]`: 0, `[{"say":"{\"n\": true}"}]`: 1} {
		p := newPlace(t)
		p.write(t, "script.json", script)
		out, log, exit := p.call(t, nil, "start", "--rehearse", "--script", "script.json", "-p", "x", "--json-schema",
			form, "--output-format", "json")
		if exit != want || strings.Contains(out, `"is_error":false`) != (want == 0) {
			t.Errorf("%s: exit %d, %s%s", script, exit, out, log)
		}
	}
}

// TestTriesOfASchema: the flag says how often the native agent is asked again, in one session.
func TestTriesOfASchema(t *testing.T) {
	t.Parallel()
	const form = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`
	p := newPlace(t)
	p.write(t, "script.json", `[{"say":"one"}]`)
	for _, retries := range []int{0, 6} {
		number := strconv.Itoa(retries)
		out, log, exit := p.call(t, nil, "start", "--rehearse", "--script", "script.json", "-p", "x",
			"--json-schema", form, "--json-schema-retries", number)
		if exit != 1 || strings.Count(out, `"content":"one"`) != retries+1 {
			t.Errorf("%d: exit %d, %s%s", retries, exit, out, log)
		}
		_, told, _ := p.call(t, nil, "--agent", "native", "--rehearse=script.json", "-p", "x",
			"--output-schema", form, "--output-schema-retries", number, "--trace-translate=only")
		if !strings.Contains(told, "--json-schema-retries="+number) {
			t.Errorf("%d: %s", retries, told)
		}
	}
}
