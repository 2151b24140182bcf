package agents

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/agents/copilot"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

func copilotCells() []scenario {
	return []scenario{
		{"outputs", []string{
			"output=text one-shot", "output=json one-shot", "output=stream-json one-shot",
			"output-schema one-shot",
		}, copilotOutputs},
		{"web", []string{"model one-shot", "web=on one-shot", "web=off one-shot"}, copilotWeb},
		{"sessions", []string{"session-id one-shot", "resume one-shot", "records one-shot"}, copilotSessions},
		{"questions", []string{"ask one-shot"}, copilotQuestions},
		{"acp", []string{"acp *"}, copilotACP},
		{"long prompts", []string{"prompt at the limit", "prompt beyond the limit"}, copilotLong},
	}
}

func copilotOutputs(b *bench) {
	const script = `[{"say":"the answer"}]`
	for _, tt := range []struct{ form, sent, warns string }{
		{"text", "--output-format=text", ""},
		{"json", "--output-format=json", "--output json becomes the closest that there is: one object a line"},
		{"stream-json", "--output-format=json", ""},
	} {
		o := b.run(script, "--output", tt.form)
		if o.code != 0 || !slices.Contains(o.report.Argv, tt.sent) || !strings.Contains(o.stderr, tt.warns) ||
			tt.warns == "" && strings.Contains(o.stderr, "warning") {
			b.t.Errorf("%s: %q %s", tt.form, o.report.Argv, o.stderr)
		}
		lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
		if tt.form == "text" {
			if !strings.Contains(o.stdout, "the answer") || json.Valid([]byte(lines[0])) {
				b.t.Errorf("text: %s", o.stdout)
			}
			continue
		}
		var last struct {
			Type      string
			SessionID string
			ExitCode  *int
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Type != "result" ||
			last.ExitCode == nil || last.SessionID != o.report.Session {
			b.t.Errorf("%s ends with %s", tt.form, lines[len(lines)-1])
		}
	}
	if o := b.run(script, "--output", "json", "--strict"); o.code != 2 || o.stdout != "" {
		b.t.Errorf("--strict: %+v", o)
	}
	// A schema is not the agent's affair: nothing of it is sent, and we hold the answer to it.
	o := b.run(`[{"say":"{\"n\": 7}"}]`, "--output-schema",
		`{"type":"object","properties":{"n":{"const":7}},"required":["n"]}`)
	if o.code != 0 || o.stdout != "{\"n\":7}\n" || strings.Contains(strings.Join(o.report.Argv, " "), "const") {
		b.t.Errorf("schema: %+v", o)
	}
}

// copilotWeb: a fetch needs an approval unless --web gives it, and --web off withholds the tool.
func copilotWeb(b *bench) {
	page := copilotPage(b.t)
	script := `[{"web":"` + page + `"},{"say":"it says ${result}"}]`
	const words, none = "it says words of the page", "no web tool is offered"
	got := func(o outcome) string {
		flat := strings.Join(strings.Fields(o.stdout), " ")
		switch {
		case o.code == 3:
			return "denied"
		case strings.Contains(flat, none):
			return "withheld"
		case o.code == 0 && strings.Contains(flat, "words of the page"):
			return "fetched"
		}
		return words + ": neither"
	}
	if o := b.run(script, "--web", "on", "--model", "typed-model"); got(o) != "fetched" ||
		o.report.Model != "typed-model" {
		b.t.Errorf("on: %+v", o)
	}
	if o := b.run(script, "--web=on", "-m", "typed-model", "--", "--excluded-tools=web_fetch", "--model",
		"another-model"); got(o) != "withheld" || o.report.Model != "another-model" {
		b.t.Errorf("on, and excluded by the passthrough: %+v", o)
	}
	server := copilotModel(b, script)
	b.env = append(b.env, "COPILOT_OFFLINE=") // where it is offline there is no such tool anyway
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "denied"},
		{[]string{"--web", "off"}, "withheld"},
		{[]string{"--yolo"}, "withheld"},
		{[]string{"--yolo", "--web", "off", "--", "--allow-all-urls"}, "withheld"},
		{[]string{"--yolo", "--", "--allow-all-urls"}, "fetched"},
	} {
		o := b.start(nil, append([]string{"-p", "hello there"}, tt.args...)...)
		if offered := copilotOffers(copilotAsked(b, server), "web_fetch"); got(o) != tt.want ||
			offered != (tt.want != "withheld") {
			b.t.Errorf("%q: %s, offered %t, want %s: %+v", tt.args, got(o), offered, tt.want, o)
		}
	}
}

// copilotSpec is what the driver would be asked for, in the bench, by a host that continues sessions itself.
func copilotSpec(b *bench, mode setting.Mode, dir string) agent.Spec {
	b.t.Helper()
	d := copilot.New()
	variables := map[string]string{}
	for _, entry := range b.environ() {
		name, value, _ := strings.Cut(entry, "=")
		variables[name] = value
	}
	install, err := d.Locate(agent.Env{Dir: dir, Lookup: func(name string) (string, bool) {
		v, ok := variables[name]
		return v, ok
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	s := agent.Spec{
		Install: install, Mode: mode, Shared: setting.Defaults(), Dir: dir, Env: b.environ(),
		Machine: agent.Machine{
			Root: os.Geteuid() == 0, OS: runtime.GOOS,
			Has: func(p string) bool { _, err := exec.LookPath(p); return err == nil },
		},
	}
	s.Shared.Approval = setting.Chosen[setting.Approval]{Value: setting.Yolo, Origin: setting.Typed}
	s.Shared = s.Shared.Derive()
	return s
}

// copilotSessions: the id is ours, the log is where the table says, and a session continues what was said before.
func copilotSessions(b *bench) {
	server := copilotModel(b, `[{"shell":"pwd > where.txt"},{"say":"done"}]`)
	first := b.start(nil, "-p", "the first words", "--yolo")
	id := first.report.Session
	if first.code != 0 || !slices.Contains(first.report.Argv, "--session-id="+id) || !b.took("where.txt") {
		b.t.Fatalf("%+v", first)
	}
	if _, err := os.Stat(filepath.Join(b.home, ".copilot", "session-state", id, "events.jsonl")); err != nil {
		b.t.Error(err)
	}
	o := b.start(nil, "-p", "the second words", "--yolo", "--", "--session-id="+id)
	if o.code != 0 || o.report.Session != id || !copilotSaid(copilotAsked(b, server), "the first words") {
		b.t.Errorf("the id again: %+v", o)
	}
	elsewhere := filepath.Join(b.base, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o755); err != nil {
		b.t.Fatal(err)
	}
	b.took("where.txt")
	// Left to itself, the CLI goes to the directory of the session.
	o = b.start(nil, "-p", "the third words", "--yolo", "--cwd", elsewhere, "--", "--resume="+id)
	if o.code != 0 || o.report.Session != id || !copilotSaid(copilotAsked(b, server), "the second words") ||
		!b.took("where.txt") {
		b.t.Errorf("resumed by the passthrough: %+v", o)
	}
	s := copilotSpec(b, setting.OneShot, elsewhere)
	s.Resume = id
	launch, _, err := copilot.New().Command(s)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(launch.Path, launch.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin = launch.Dir, launch.Env, strings.NewReader("the fourth words")
	if out, err := cmd.CombinedOutput(); err != nil || !copilotSaid(copilotAsked(b, server), "the third words") ||
		!b.took(filepath.Join(elsewhere, "where.txt")) {
		b.t.Errorf("resumed by the driver: %v %s", err, out)
	}
	o = b.start(nil, "-p", "words", "--", "--resume=99999999-2222-4333-8444-555555555555")
	if o.code != 1 || o.report.code() != "NOT_FOUND" {
		b.t.Errorf("an unknown session: %+v", o)
	}
}

func copilotQuestions(b *bench) {
	if o := b.run(`[{"ask":"which colour?"}]`); o.code != 0 || !strings.Contains(o.stdout, "no ask tool is offered") {
		b.t.Errorf("%+v", o)
	}
	if o := b.run(`[{"say":"Which colour shall it be?"}]`); o.code != 0 || !strings.Contains(o.stdout, "Which colour") {
		b.t.Errorf("%+v", o)
	}
}

// copilotACP: it speaks version 1. The form does not depend on the mode.
func copilotACP(b *bench) {
	copilotModel(b, "[]")
	cmd := exec.Command(filepath.Join(bin, "copilot"), "--acp")
	cmd.Dir, cmd.Env = b.work, b.environ()
	cmd.Stdin = strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":2,"clientCapabilities":{}}}` + "\n")
	out, err := cmd.Output()
	line, _, _ := bytes.Cut(out, []byte("\n"))
	var answer struct {
		Result struct{ ProtocolVersion int }
	}
	if jerr := json.Unmarshal(line, &answer); err != nil || jerr != nil || answer.Result.ProtocolVersion != 1 {
		b.t.Errorf("%v %s", err, out)
	}
}

// copilotLong: there is no limit of ours. What the model can read arrives whole, through a pipe; what is longer is
// refused by the CLI before it is sent, and that is not a success.
func copilotLong(b *bench) {
	server := copilotModel(b, `[{"say":"it has ${input.length} characters"}]`)
	long := append(bytes.Repeat([]byte("word "), 60_000), "end"...)
	o := b.start(long)
	if o.code != 0 || !strings.Contains(o.stdout, "it has 300003 characters") {
		b.t.Errorf("%d bytes: %+v", len(long), o)
	}
	before := len(server.Requests())
	longer := append(bytes.Repeat([]byte("word "), 400_000), "end"...)
	o = b.start(longer)
	if o.code != 1 || o.report.code() != "CONTEXT_FULL" || len(server.Requests()) != before {
		b.t.Errorf("%d bytes, %d requests: %+v", len(longer), len(server.Requests())-before, o)
	}
}
