package agents

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

func codexCells() []scenario {
	const one = " one-shot"
	return []scenario{
		{
			"outputs",
			[]string{"output=text" + one, "output=json" + one, "output=stream-json" + one, "acp *"},
			codexOutputs,
		},
		{"walls", nil, codexWalls},
		{"web and model", []string{"web=on" + one, "web=off" + one, "model" + one, "ask" + one}, codexWeb},
		{"schema", []string{"output-schema" + one, "session-id" + one}, codexSchema},
		{"limit", []string{"prompt at the limit", "prompt beyond the limit"}, codexLimit},
		{"errors", []string{"API error", "rate limit", "stall"}, codexErrors},
		{"no repository", nil, codexOutside},
		{"broken sandbox", nil, codexBroken},
		{"patches", nil, codexPatches},
	}
}

func codexOutputs(b *bench) {
	const script = `[{"say":"the answer"}]`
	o := b.run(script)
	if o.stdout != "the answer\n" || b.sentToCodex("--json") {
		b.t.Errorf("text: %+v", o)
	}
	for form, warns := range map[string]bool{"json": true, "stream-json": false} {
		o := b.run(script, "--output", form)
		if o.code != 0 || !b.sentToCodex("--json") ||
			!strings.HasPrefix(o.stdout, `{"type":"thread.started","thread_id":"`+o.report.Session+`"}`) {
			b.t.Errorf("%s: %+v", form, o)
		}
		if strings.Contains(o.stderr, "JSON lines, not one object") != warns {
			b.t.Errorf("%s: %s", form, o.stderr)
		}
		if o := b.run(script, "--output", form, "--strict"); (o.code == 2) != warns {
			b.t.Errorf("%s --strict: %+v", form, o)
		}
		if o := b.run(script, "--output", form, "--", "--json"); o.code != 2 {
			b.t.Errorf("%s twice: %+v", form, o)
		}
	}
	// ACP is not a part of it: the word would be a prompt.
	if help := b.codexHelp(); strings.Contains(help, "acp") || !strings.Contains(help, "app-server") {
		b.t.Errorf("its help: %s", help)
	}
}

func (b *bench) codexHelp() string {
	b.t.Helper()
	s := b.sit(filepath.Join(bin, "codex"), "--help")
	s.left()
	<-s.done
	return s.letters()
}

// codexWalls: what the sandbox lets through, and what it does not. A connection that it stops is not a denial in our
// report.
func codexWalls(b *bench) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	defer listener.Close()
	var calls atomic.Int32
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			_ = c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	network := `[{"shell":"cat < /dev/tcp/127.0.0.1/` + port + `"}]`
	if o := b.run(network, "--auto-edit"); o.code != 0 || calls.Load() != 0 {
		b.t.Errorf("network: %d connections, %+v", calls.Load(), o)
	}
	if o := b.run(network, "--yolo"); o.code != 0 || calls.Load() != 1 {
		b.t.Errorf("network without a sandbox: %d connections, %+v", calls.Load(), o)
	}
	temp := filepath.Join(b.base, "tmp", "t.txt")
	if o := b.run(`[{"shell":"touch `+temp+`"}]`, "--auto-edit"); o.code != 0 || !b.took(temp) {
		b.t.Errorf("temporary directory: %+v", o)
	}
	if o := b.run(`[{"shell":"touch .git/hooks/pre-commit"}]`, "--auto-edit"); o.code != 3 ||
		b.took(".git/hooks/pre-commit") {
		b.t.Errorf(".git: %+v", o)
	}
}

func codexWeb(b *bench) {
	const script, none = `[{"search":"weather"},{"say":"that was it"}]`, "no search tool is offered"
	if o := b.run(script); !strings.Contains(o.stdout, none) || !b.sentToCodex(`web_search="disabled"`) {
		b.t.Errorf("off: %+v", o)
	}
	if o := b.run(script, "--web"); strings.Contains(o.stdout, none) || !b.sentToCodex(`web_search="live"`) ||
		o.code != 0 {
		b.t.Errorf("on: %+v", o)
	}
	if o := b.run(script, "--web=off", "--", "-c", `web_search="live"`); strings.Contains(o.stdout, none) {
		b.t.Errorf("the passthrough decides: %+v", o)
	}
	o := b.run(`[{"ask":"which one?"},{"say":"heard ${result}"}]`, "--model", "gpt-5.2-codex")
	if o.report.Model != "gpt-5.2-codex" || !b.sentToCodex("--model", "gpt-5.2-codex") {
		b.t.Errorf("model: %+v", o)
	}
	// A question reaches nobody, and nothing marks it.
	if o.code != 0 || !strings.Contains(o.stdout, "request_user_input is unavailable") || len(o.report.Denials) != 0 {
		b.t.Errorf("a question: %+v", o)
	}
	if o := b.run("", "--", "--model", "gpt-5.2-codex"); o.code != 0 || o.report.Model != "gpt-5.2-codex" {
		b.t.Errorf("model in the passthrough: %+v", o)
	}
	if o := b.run("", "--model", "gpt-5", "--", "--model", "gpt-5.2-codex"); o.code != 2 {
		b.t.Errorf("two models: %+v", o)
	}
}

func codexSchema(b *bench) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	o := b.run(`[{"json":{"n":7}}]`, "--output-schema", schema)
	if o.code != 0 || o.stdout != "{\"n\":7}\n" || !b.sentToCodex("--output-schema") {
		b.t.Errorf("%+v", o)
	}
	first, second := b.run(""), b.run("")
	if len(first.report.Session) != 36 || first.report.Session[14] != '7' ||
		first.report.Session == second.report.Session {
		b.t.Errorf("ids of its own: %s, %s", first.report.Session, second.report.Session)
	}
	if slices.ContainsFunc(b.codexReport().Argv, func(w string) bool {
		return strings.Contains(w, first.report.Session) || strings.Contains(w, "session")
	}) {
		b.t.Errorf("sent: %q", b.codexReport().Argv)
	}
}

// codexLimit: characters, not bytes.
func codexLimit(b *bench) {
	const limit = 1 << 20
	script := b.script(`[{"say":"${input.length}"}]`)
	for letter, size := range map[string]int{"a": limit, "é": 2 * limit} {
		text := bytes.Repeat([]byte(letter), limit)
		if o := b.start(text, script); len(text) != size || o.code != 0 || strings.TrimSpace(o.stdout) != "1048576" {
			b.t.Errorf("%d of %q: exit code %d, %.200s %.2000s", limit, letter, o.code, o.stdout,
				o.stderr[max(0, len(o.stderr)-500):])
		}
		if o := b.start(append(text, 'x'), script); o.code != 2 ||
			!strings.Contains(o.stderr, "longer than the 1,048,576 characters") || o.report.Argv != nil {
			b.t.Errorf("one more than %d of %q: exit code %d, %.500s", limit, letter, o.code, o.stderr)
		}
	}
}

// codexErrors: what is special beside the errors that all agents are tried with.
func codexErrors(b *bench) {
	for script, want := range map[string]struct {
		code   string
		status float64
	}{
		`[{"error":403}]`: {"API_ERROR", 403},
		`[{"error":404}]`: {"API_ERROR", 0},
		// a second attempt would succeed: the rehearsal makes none
		`[{"error":500,"times":1}]`:                              {"API_ERROR", 500},
		`[{"error":429,"retry_after":60}]`:                       {"RATE_LIMITED", 429},
		`[{"error":"context_full"}]`:                             {"CONTEXT_FULL", 0},
		`[{"cut":"middle"}]`:                                     {"API_ERROR", 0},
		`[{"shell":"touch ` + b.base + `/x.txt"},{"error":401}]`: {"AUTH_REQUIRED", 401},
	} {
		o := b.run(script)
		if o.code != 1 || o.report.code() != want.code || o.report.Error.Detail["status"] != status(want.status) {
			b.t.Errorf("%s: exit code %d, %+v\n%s", script, o.code, o.report.Error, o.stderr)
		}
		// The error counts more than the denial before it, which is told all the same.
		if denied := strings.Contains(script, "shell"); denied != (len(o.report.Denials) == 1) {
			b.t.Errorf("%s: %+v", script, o.report.Denials)
		}
	}
	o := b.run(`[{"stall":"middle"}]`, "--timeout", "6s")
	if o.code != 1 || o.report.code() != "TIMEOUT" || !strings.Contains(o.stderr, "did not end within 6s") {
		b.t.Errorf("stall: %+v", o)
	}
}

// status is a number as JSON has it, or nothing.
func status(n float64) any {
	if n == 0 {
		return nil
	}
	return n
}

// codexOutside: the rehearsal is refused where a call without it would be, and says what helps.
func codexOutside(b *bench) {
	const flag = "add -- --skip-git-repo-check at the end"
	if err := os.RemoveAll(filepath.Join(b.work, ".git")); err != nil {
		b.t.Fatal(err)
	}
	o := b.run("")
	if o.code != 1 || o.report.code() != "AGENT_REFUSED" || !strings.Contains(o.stderr, flag) ||
		!strings.Contains(o.stderr, "git init "+b.work) {
		b.t.Errorf("%+v", o)
	}
	if o := b.run("", "--", "-m", "x"); o.code != 1 || strings.Contains(o.stderr, flag) ||
		!strings.Contains(o.stderr, "add --skip-git-repo-check at the end") {
		b.t.Errorf("with a passthrough: %+v", o)
	}
	for _, words := range [][]string{{"--", "--skip-git-repo-check"}, {"--", "-m", "x", "--skip-git-repo-check"}} {
		if o := b.run("", words...); o.code != 0 {
			b.t.Errorf("%q: %+v", words, o)
		}
	}
}

// codexBroken: where its sandbox cannot run anything Codex goes on and ends with exit code 0, and we do not.
func codexBroken(b *bench) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		b.t.Skip("without bubblewrap in PATH codex takes its own, which works there too")
	}
	b.env = append(b.env, "TMPDIR="+b.home)
	o := b.run(`[{"shell":"touch inside.txt"}]`, "--auto-edit")
	if o.code != 1 || o.report.code() != "AGENT_REFUSED" || *o.report.AgentExit != 0 || b.took("inside.txt") ||
		!strings.Contains(o.stderr, "hint: Codex's home lies in "+b.home) {
		b.t.Errorf("%+v", o)
	}
	if o := b.run(`[{"shell":"touch inside.txt"}]`, "--yolo"); o.code != 0 || !b.took("inside.txt") {
		b.t.Errorf("without a sandbox: %+v", o)
	}
}

// codexPatches: with models of its own Codex gives the model a script in which it edits files.
func codexPatches(b *bench) {
	const script = `[{"write":{"path":"written.txt","content":"x"}},{"say":"done"}]`
	o := b.run(script, "--model", "gpt-6.1-sol", "--", "--sandbox", "read-only")
	if o.code != 3 || b.took("written.txt") || len(o.report.Denials) != 1 ||
		!strings.HasPrefix(o.report.Denials[0].Reason, "patch rejected: ") {
		b.t.Errorf("%+v", o)
	}
	if b.codexReport().Told {
		b.t.Error("what such a script catches is not known")
	}
	if o := b.run(script, "--model", "gpt-6.1-sol"); o.code != 0 || !b.took("written.txt") {
		b.t.Errorf("%+v", o)
	}
}
