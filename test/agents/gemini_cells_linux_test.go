package agents

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func geminiCells() []scenario {
	return []scenario{
		{"a session and its next", []string{
			"output=text one-shot", "output=json one-shot", "output=stream-json one-shot", "model one-shot",
			"session-id one-shot", "resume one-shot",
			"records one-shot", "ask one-shot", "web=on one-shot", "web=off one-shot",
		}, geminiSessions},
		{"container", []string{"sandbox=workspace-write one-shot", "sandbox=off one-shot"}, geminiContainer},
		{"denials", []string{"denial", "denials one-shot"}, geminiDenials},
		{"errors", []string{"API error", "rate limit", "stall"}, geminiErrors},
		{"limit", []string{"prompt at the limit", "prompt beyond the limit"}, geminiLimit},
		{
			"forms that it lacks",
			[]string{"output-schema one-shot", "output-schema interactive", "acp one-shot"},
			geminiForms,
		},
	}
}

// geminiRecords are the files that the last report was read from.
func geminiRecords(b *bench) []string {
	b.t.Helper()
	var r struct{ Records []string }
	data, err := os.ReadFile(filepath.Join(b.home, "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Records
}

// geminiSessions asks three times in one session, in all forms, and looks at what the model was offered.
func geminiSessions(b *bench) {
	p := geminiSettle(b, `[{"say":"heard ${input}"}]`, "TRUST_FOLDER")
	tools := []string{"run_shell_command", "write_file", "google_web_search", "web_fetch", "ask_user"}

	o := b.start(nil, "-p", "first words", "--model", "chosen")
	id := o.report.Session
	if o.code != 0 || o.stdout != "heard first words\n" || o.report.Model != "chosen" || o.report.Answered == nil ||
		!*o.report.Answered {
		b.t.Errorf("text: %+v", o)
	}
	if got := p.offered(tools...); got != "" || p.asked(0)[0].Model != "chosen" {
		b.t.Errorf("offered %q by default, to the model %s", got, p.asked(0)[0].Model)
	}
	if r := geminiRecords(b); len(id) != 36 || !slices.Equal(r, p.transcripts()) || len(r) != 1 ||
		!strings.Contains(r[0], id[:8]) {
		b.t.Errorf("session %s, records %q, of %q", id, r, p.transcripts())
	}

	o = b.start(nil, "-p", "second words", "--output", "json", "--web", "on", "--", "--resume", id, "-m", "another")
	var object struct {
		Session  string `json:"session_id"`
		Response string
	}
	if err := json.Unmarshal([]byte(o.stdout), &object); err != nil || o.code != 0 || object.Session != id ||
		object.Response != "heard second words" || o.report.Session != id {
		b.t.Errorf("json, resumed: %v %+v", err, o)
	}
	if got := p.offered(tools...); got != "google_web_search" {
		b.t.Errorf("with the web, but without approval, %q is offered", got)
	}
	if all := p.asked(0); !strings.Contains(string(all[len(all)-1].Raw), "first words") ||
		all[len(all)-1].Model != "another" {
		b.t.Error("what was said before is not known, or the passthrough's model not asked")
	}

	o = b.start(nil, "-p", "third words", "--output", "stream-json", "--approval", "auto-edit", "--web", "on",
		"--model", "chosen", "--", "--resume", id)
	lines := bytes.Split(bytes.TrimSpace([]byte(o.stdout)), []byte("\n"))
	for _, line := range lines {
		if !json.Valid(line) {
			b.t.Errorf("no JSON: %s", line)
		}
	}
	if o.code != 0 || len(lines) < 4 || !bytes.Contains(lines[0], []byte(`"session_id":"`+id)) ||
		!bytes.Contains(lines[len(lines)-1], []byte(`"status":"success"`)) {
		b.t.Errorf("stream-json: %+v", o)
	}
	if got := p.offered(tools...); got != "write_file google_web_search web_fetch" {
		b.t.Errorf("with the web and auto-edit %q is offered", got)
	}

	if o := b.start(nil, "-p", "again", "--", "--session-id="+id); o.code != 2 || o.report.AgentExit == nil ||
		*o.report.AgentExit != 42 {
		b.t.Errorf("an id that is there already: %+v", o)
	}
}

// geminiDocker puts a container runtime into PATH that writes down how it was called. Whether it has the image is in
// its answer.
func geminiDocker(b *bench, image string) (calls func() string) {
	b.t.Helper()
	record := filepath.Join(b.base, "docker.txt")
	b.put(filepath.Join(b.base, "docker", "docker"), "#!/bin/sh\necho \"$@\" >>"+record+"\ncase $1 in images) echo "+
		image+" ;; pull) exit 1 ;; run) echo CONTAINED ;; esac\n")
	b.env = append(b.env, "PATH="+filepath.Join(b.base, "docker")+":"+bin+":"+filepath.Dir(program)+":"+
		os.Getenv("PATH"))
	return func() string { data, _ := os.ReadFile(record); return string(data) }
}

// geminiContainer: --sandbox is sent where a runtime is, and starts everything in a container that has the workspace
// and our policy. Without the image nothing is done. --sandbox off outweighs the environment.
func geminiContainer(b *bench) {
	geminiDocker(b, "")
	o := b.does(effect{code: 1}, "--approval", "yolo", "--sandbox", "workspace-write")
	if o.report.code() != "AGENT_REFUSED" || !strings.Contains(o.stderr, "hint: Fetch the image while docker runs.") &&
		!strings.Contains(o.stderr, "docker pull us-docker.pkg.dev/") {
		b.t.Errorf("without the image: %+v", o)
	}

	calls := geminiDocker(b, "0123456789ab")
	o = b.run("", "--approval", "yolo", "--sandbox", "workspace-write")
	var run string
	for line := range strings.Lines(calls()) {
		if strings.HasPrefix(line, "run ") {
			run = line
		}
	}
	if !strings.Contains(run, b.work+":"+b.work) || !strings.Contains(run, "web-off.toml:ro") ||
		strings.Contains(run, "--privileged") {
		b.t.Errorf("the container is started with %q\n%s", run, o.stderr)
	}
	if o.code == 0 && o.report.Answered != nil && *o.report.Answered {
		b.t.Errorf("nobody answered: %+v", o)
	}

	before := calls()
	b.env = append(b.env, "GEMINI_SANDBOX=docker")
	b.does(geminiYolo(), "--approval", "yolo", "--sandbox", "off")
	if calls() != before {
		b.t.Errorf("--sandbox off: %s", strings.TrimPrefix(calls(), before))
	}
}

// geminiDenials: what is refused at a call is known. What is withheld is not, unless a model calls it all the same.
func geminiDenials(b *bench) {
	rule := b.put(filepath.Join(b.home, "rule.toml"),
		"[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"touch inside.txt\"\ndecision = "+
			"\"deny\"\npriority = 999\n")
	b.does(effect{code: 3, outside: true, write: true}, "--approval", "yolo", "--", "--policy="+rule)

	const called = `[{"call":{"name":"run_shell_command","input":{"command":"touch inside.txt"}}},{"say":"done"}]`
	for _, form := range []string{"text", "stream-json"} {
		o := b.run(called, "--output", form)
		if o.code != 3 || o.report.code() != "BLOCKED_BY_POLICY" || len(o.report.Denials) != 1 ||
			o.report.Denials[0].Tool != "run_shell_command" || b.took("inside.txt") {
			b.t.Errorf("%s: a tool that is withheld was called: %+v", form, o)
		}
	}
	if o := b.run(`[{"call":{"name":"made_up","input":{}}},{"say":"done"}]`); o.code != 0 ||
		len(o.report.Denials) != 0 {
		b.t.Errorf("a tool that there is not: %+v", o)
	}
	o := b.run(`[{"call":{"name":"run_shell_command","input":{"command":"touch inside.txt"}}},{"error":500}]`)
	if o.code != 1 || o.report.code() != "API_ERROR" || len(o.report.Denials) != 1 {
		b.t.Errorf("an error behind a denial: %+v", o)
	}
}

// geminiErrors: in text the status is in standard error alone, in JSON in the exit code as well.
func geminiErrors(b *bench) {
	for script, want := range map[string]string{
		`[{"error":403}]`: "API_ERROR", `[{"error":500}]`: "API_ERROR", `[{"error":"context_full"}]`: "CONTEXT_FULL",
		`[{"error":429,"message":"You exceeded your current quota."}]`: "RATE_LIMITED",
		`[{"say":"half of it","cut":"middle"}]`:                        "",
	} {
		o := b.run(script, "--timeout", "5m")
		if o.code != 1 || want != "" && o.report.code() != want || want == "" && o.report.code() == "" {
			b.t.Errorf("%s: exit code %d, %+v, want %s\n%s\n%s", script, o.code, o.report.Error, want, o.stdout,
				o.stderr)
		}
	}
	if o := b.run(`[{"error":403}]`, "--output", "json"); o.code != 1 || o.report.AgentExit == nil ||
		*o.report.AgentExit != 403-256 || o.report.Error.Detail["status"] != 403.0 {
		b.t.Errorf("403 in JSON: %+v %+v", o, o.report.Error)
	}
	if o := b.run(`[{"stall":"middle","say":"half of it"}]`, "--timeout", "8s"); o.code != 1 ||
		o.report.code() != "TIMEOUT" && o.report.code() != "TIMED_OUT" {
		b.t.Errorf("a stall: %+v", o)
	}
}

// geminiLimit: the longest prompt arrives whole, and none that is longer gets to the CLI.
func geminiLimit(b *bench) {
	const limit = 4_000_000
	p := geminiSettle(b, `[{"say":"got ${input.length}"}]`, "TRUST_FOLDER")
	prompt := append(bytes.Repeat([]byte("x"), limit-4), "tail"...)
	o := b.start(prompt, "--model", "m")
	if o.code != 0 || o.stdout != "got 4000000\n" {
		b.t.Errorf("at the limit: exit code %d, %q, %s", o.code, o.stdout, o.stderr)
	}
	n := len(p.server.Requests())
	if o := b.start(append(prompt, 'x'), "--model", "m"); o.code != 2 ||
		!strings.Contains(o.stderr, "longer than the 4,000,000 characters that Gemini CLI takes") {
		b.t.Errorf("beyond it: exit code %d, %s", o.code, o.stderr)
	}
	if o := b.start(append([]byte("x"), bytes.Repeat([]byte("😀"), 2_000_000)...), "--model", "m"); o.code != 2 ||
		!strings.Contains(o.stderr, "8,000,000 bytes") {
		b.t.Errorf("too many bytes: exit code %d, %s", o.code, o.stderr)
	}
	if len(p.server.Requests()) != n {
		b.t.Error("a prompt beyond the limit was sent")
	}
}

// geminiForms: it has no schema of its own, so that the model is asked without one and the answer is held to it by us.
// With --acp in the passthrough it speaks that protocol.
func geminiForms(b *bench) {
	p := geminiSettle(b, `[{"say":"{\"n\": 7}"}]`, "TRUST_FOLDER")
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	o := b.start(nil, "-p", "x", "--output-schema", schema, "--model", "m")
	if o.code != 0 || o.stdout != "{\"n\":7}\n" || len(p.asked(0)) != 1 || len(p.asked(0)[0].Schema) > 0 {
		b.t.Errorf("schema: %+v", o)
	}
	s := b.sit(program, "--agent", "gemini", "--output-schema", schema)
	s.sees("--output-schema needs a prompt")
	if code := s.left(); code != 2 {
		b.t.Errorf("a schema without a prompt: exit code %d", code)
	}
	o = b.start(
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`+
			"\n"), "--", "--acp")
	if o.code != 0 || !strings.Contains(o.stdout, `"protocolVersion":1`) {
		b.t.Errorf("ACP: %+v", o)
	}
}
