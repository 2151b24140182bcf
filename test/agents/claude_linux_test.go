package agents

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/llm/modelserver"
)

func claudeScenarios() []scenario {
	return slices.Concat([]scenario{
		{"pairs without a sandbox", []string{
			"pair prompt/-", "pair prompt/-, then passthrough", "pair prompt/off", "pair prompt/off, then passthrough",
			"pair auto-edit/off", "pair auto-edit/off, then passthrough", "pair yolo/-",
			"pair yolo/-, then passthrough", "pair yolo/off",
			"approval=prompt one-shot", "approval=auto-edit one-shot", "approval=yolo one-shot", "sandbox=off one-shot",
			"denials one-shot",
		}, claudePairs},
		{"pairs in the sandbox", []string{
			"pair prompt/workspace-write*", "pair auto-edit/-*", "pair auto-edit/workspace-write*",
			"pair yolo/workspace-write*",
			"pair yolo/off, then passthrough", "sandbox=workspace-write one-shot",
		}, claudePairsSandboxed},
		{"sandbox without helpers", nil, claudeHelpless},
		{"outputs", []string{
			"output=text one-shot", "output=json one-shot", "output=stream-json one-shot",
			"output-schema one-shot", "ask one-shot", "acp one-shot",
		}, claudeOutputs},
		{"model and web", []string{"model one-shot", "web=on one-shot", "web=off one-shot"}, claudeModelAndWeb},
		{"sessions", []string{"resume one-shot", "session-id one-shot", "records one-shot"}, claudeSessions},
		{"limit", []string{"prompt at the limit", "prompt beyond the limit"}, claudeLimit},
		{"errors", []string{"API error", "rate limit"}, claudeErrors},
		{"breaks", []string{"denial", "stall"}, claudeBreaks},
	}, claudeScreens(), claudeHostile())
}

// The sandbox as a person might ask for it in Claude Code's own words.
const claudeSandbox = `--settings={"sandbox":{"enabled":true,"failIfUnavailable":true,"autoAllowBashIfSandboxed":true,"allowUnsandboxedCommands":false}}`

func claudePairs(b *bench) {
	none, all := effect{code: 3}, effect{0, true, true, true}
	edits := effect{code: 3, shell: true, write: true} // touch outside of the workspace is not an edit
	b.does(none)
	b.does(none, "--approval", "prompt")
	b.does(none, "--sandbox", "off")
	b.does(edits, "--auto-edit", "--sandbox", "off")
	b.does(all, "--yolo")
	b.does(all, "--yolo", "--sandbox", "off")

	// The last mode holds, but none is stronger than a bypass.
	b.does(edits, "--approval", "prompt", "--", "--permission-mode", "acceptEdits")
	b.does(all, "--sandbox", "off", "--", "--dangerously-skip-permissions")
	b.does(none, "--auto-edit", "--sandbox", "off", "--", "--permission-mode", "default")
	b.does(all, "--yolo", "--", "--permission-mode", "default")
}

func claudePairsSandboxed(b *bench) {
	needPrograms(b, "bwrap", "socat")
	none, held := effect{code: 3}, effect{0, true, false, true}
	commands := effect{code: 3, shell: true} // the sandbox lets them run, nobody lets the file be written
	b.does(none, "--sandbox", "workspace-write")
	b.does(held, "--auto-edit")
	b.does(held, "--auto-edit", "--sandbox", "workspace-write")
	b.does(held, "--yolo", "--sandbox", "workspace-write")

	b.does(held, "--sandbox", "workspace-write", "--", "--dangerously-skip-permissions")
	b.does(commands, "--sandbox", "off", "--", claudeSandbox)
	b.does(commands, "--auto-edit", "--", "--permission-mode", "default")
	o := b.does(effect{code: 3, shell: true, write: true}, "--auto-edit", "--sandbox", "workspace-write", "--",
		"--settings={}")
	if !strings.Contains(o.stderr, "--sandbox workspace-write is ignored: the passthrough's --settings replaces ours") {
		b.t.Errorf("nothing is said of the lost sandbox: %s", o.stderr)
	}
	b.does(commands, "--yolo", "--sandbox", "workspace-write", "--", "--permission-mode", "default")
	b.does(held, "--yolo", "--sandbox", "off", "--", claudeSandbox)

	// Yolo turns off what a repository turns on, also where nobody typed --sandbox off. The CLI's own settings behind
	// -- still win.
	b.put(".claude/settings.json",
		`{"sandbox":{"enabled":true,"failIfUnavailable":true,"autoAllowBashIfSandboxed":true,"allowUnsandboxedCommands":false}}`)
	b.does(effect{0, true, true, true}, "--yolo")
	b.does(held, "--yolo", "--", claudeSandbox)
	b.took(".claude/settings.json")

	// Why yolo in a sandbox is not a bypass: that would let the file tools write anywhere.
	outside := b.base + "/outside.txt"
	script := `[{"write":{"path":"` + outside + `","content":"x"}},{"say":"ok"}]`
	if o := b.run(script, "--yolo", "--sandbox", "workspace-write"); o.code != 3 || b.took(outside) {
		b.t.Errorf("a file outside of the workspace: %+v", o)
	}
	if o := b.run(script, "--yolo", "--sandbox", "workspace-write", "--",
		"--dangerously-skip-permissions"); o.code != 0 || !b.took(outside) {
		b.t.Errorf("a file outside of the workspace, bypassed: %+v", o)
	}
}

// claudeHelpless: the CLI refuses to start without the programs of a sandbox that was typed. It is known before, and
// told once.
func claudeHelpless(b *bench) {
	few := filepath.Join(b.base, "few")
	if err := os.Mkdir(few, 0o755); err != nil {
		b.t.Fatal(err)
	}
	for _, name := range []string{"sh", "bash", "git", "node"} {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, filepath.Join(few, name)); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.env = append(b.env, "PATH="+bin+":"+few)
	const warning = "--sandbox workspace-write becomes the closest that there is: the CLI will not start, as it " +
		"needs bwrap and socat, not found in PATH"
	const hint = "apt-get install bubblewrap socat"
	o := b.run("", "--sandbox", "workspace-write")
	if o.code != 1 || o.report.code() != "AGENT_REFUSED" || strings.Count(o.stderr, warning) != 1 ||
		strings.Count(o.stderr, "hint: "+hint) != 1 || strings.Count(o.stderr, "hint: ") > 2 {
		b.t.Errorf("%+v", o)
	}
	o = b.run("", "--sandbox", "workspace-write", "--strict", "--trace-translate=only")
	if o.code != 2 || strings.Count(o.stderr, warning+"\n") != 1 {
		b.t.Errorf("--strict: %+v", o)
	}
	if o := b.run(""); o.code != 0 || strings.Contains(o.stderr, "warning") {
		b.t.Errorf("not typed: %+v", o)
	}
}

func claudeOutputs(b *bench) {
	const answer = `[{"say":"the answer"}]`
	if o := b.run(answer, "--output", "text"); o.code != 0 || o.stdout != "the answer\n" || o.stderr != "" {
		b.t.Errorf("text: %+v", o)
	}
	var result struct{ Type, Result string }
	if o := b.run(answer, "--output", "json"); json.Unmarshal([]byte(o.stdout), &result) != nil ||
		result.Type != "result" || result.Result != "the answer" {
		b.t.Errorf("json: %+v", o)
	}
	o := b.run(answer, "--output", "stream-json")
	lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
	for _, line := range []string{lines[0], lines[len(lines)-1]} {
		if err := json.Unmarshal([]byte(line), &result); err != nil || result.Type != "system" &&
			result.Result != "the answer" {
			b.t.Errorf("stream-json: %v %+v", err, o)
		}
	}
	if len(lines) < 3 {
		b.t.Errorf("stream-json: %+v", o)
	}
	// Text was not typed, so the CLI's own flag decides.
	if o := b.run(answer, "--", "--output-format", "json"); json.Unmarshal([]byte(o.stdout), &result) != nil ||
		result.Result != "the answer" {
		b.t.Errorf("json by passthrough: %+v", o)
	}

	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	if o := b.run(`[{"json":{"n":7}}]`, "--output-schema", schema); o.code != 0 || o.stdout != "{\"n\":7}\n" ||
		!slices.Contains(o.report.Argv, "--json-schema="+schema) {
		b.t.Errorf("schema: %+v", o)
	}
	if o := b.run(`[{"say":"no such thing"}]`, "--", "--json-schema="+schema); o.code != 0 ||
		o.stdout != "no such thing\n" {
		b.t.Errorf("the CLI's own schema: %+v", o)
	}
	if o := b.run(`[{"ask":"which one?"},{"say":"Which one do you mean?"}]`); o.code != 0 ||
		o.stdout != "no ask tool is offered\nWhich one do you mean?\n" {
		b.t.Errorf("a question: %+v", o)
	}
	if o := b.run("", "--", "--acp"); o.code != 1 || !strings.Contains(o.stderr, "unknown option '--acp'") {
		b.t.Errorf("it speaks the protocol by itself: %+v", o)
	}
}

func claudeModelAndWeb(b *bench) {
	server := b.claudeLogin(`[{"web":"http://127.0.0.1:9/page"},{"say":"heard ${input}"}]`)
	asked := func(args ...string) (outcome, modelserver.Request) {
		before := len(server.Requests())
		o := b.start(nil, append([]string{"-p", "hello there"}, args...)...)
		return o, claudeRequest(b, server.Requests()[before:])
	}
	o, r := asked("--model", "haiku")
	if o.code != 0 || !strings.HasPrefix(r.Model, "claude-haiku-") ||
		!strings.HasPrefix(o.report.Model, "claude-haiku-") {
		b.t.Errorf("model %s: %+v", r.Model, o)
	}
	if claudeOffers(r, "WebFetch") || claudeOffers(r, "WebSearch") ||
		!strings.Contains(o.stdout, "no web tool is offered") {
		b.t.Errorf("web off, and the tools are offered: %+v", o)
	}
	o, r = asked("--web")
	if o.code != 0 || len(o.report.Denials) > 0 || !claudeOffers(r, "WebFetch") || !claudeOffers(r, "WebSearch") {
		b.t.Errorf("web on: %+v", o)
	}
	// What nobody typed gives way to the CLI's own lists. Without a rule the tool is offered, and denied.
	o, r = asked("--", "--allowedTools=Read")
	if o.code != 3 || len(o.report.Denials) != 1 || o.report.Denials[0].Tool != "WebFetch" ||
		!claudeOffers(r, "WebFetch") {
		b.t.Errorf("their list of tools: %+v", o)
	}
	o, r = asked("--web=off", "--", "--allowedTools=WebFetch")
	if o.code != 0 || claudeOffers(r, "WebFetch") {
		b.t.Errorf("web off, typed: %+v", o)
	}
}

func claudeSessions(b *bench) {
	server := b.claudeLogin(`[{"say":"heard ${input}"}]`)
	const id = "11111111-2222-4333-8444-555555555555"
	transcript := filepath.Join(b.home, ".claude", "projects", claudeSlug(b.work), id+".jsonl")
	o := b.start(nil, "-p", "a first question", "--", "--session-id", id)
	text, err := os.ReadFile(transcript)
	if o.code != 0 || o.report.Session != id || err != nil || !bytes.Contains(text, []byte("heard a first question")) {
		b.t.Fatalf("%v %+v", err, o)
	}
	before := len(server.Requests())
	o = b.start(nil, "-p", "a question too many", "--", "--session-id", id)
	if o.code != 1 || !strings.Contains(o.stderr, "already in use") || len(server.Requests()) != before {
		b.t.Errorf("an id that is taken: %+v", o)
	}
	elsewhere := filepath.Join(b.base, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o755); err != nil {
		b.t.Fatal(err)
	}
	o = b.start(nil, "-p", "a second question", "--cwd", elsewhere, "--", "--resume", id)
	last := claudeRequest(b, server.Requests()[before:])
	if o.code != 0 || o.report.Session != id || o.report.Answered == nil ||
		!bytes.Contains(last.Raw, []byte("heard a first question")) {
		b.t.Errorf("resumed from elsewhere: %+v", o)
	}
	// Elsewhere the same id begins another session.
	o = b.start(nil, "-p", "a third question", "--cwd", elsewhere, "--", "--session-id", id)
	last = claudeRequest(b, server.Requests())
	if o.code != 0 || o.report.Session != id || bytes.Contains(last.Raw, []byte("heard a first question")) {
		b.t.Errorf("the same id elsewhere: %+v", o)
	}
	// The id that we choose.
	o = b.start(nil, "-p", "another matter")
	path := filepath.Join(filepath.Dir(transcript), o.report.Session+".jsonl")
	if _, err := os.Stat(path); err != nil || !slices.Contains(o.report.Argv, "--session-id="+o.report.Session) ||
		o.report.Session == id {
		b.t.Errorf("%v %+v", err, o)
	}
}

func claudeLimit(b *bench) {
	const limit = 10 << 20
	server := b.claudeLogin(`[{"say":"heard ${input.length}"}]`)
	// No model that the CLI knows reads so much: it says so itself, unless it is told that this one does.
	o := b.start(bytes.Repeat([]byte("x"), limit))
	if o.code != 1 || o.report.code() != "CONTEXT_FULL" || len(server.Requests()) != 0 {
		b.t.Errorf("%d requests: %+v", len(server.Requests()), o)
	}
	b.env = append(b.env, "CLAUDE_CODE_MAX_CONTEXT_TOKENS=100000000", "DISABLE_COMPACT=1")
	o = b.start(bytes.Repeat([]byte("x"), limit))
	if o.code != 0 || o.stdout != "heard 10485760\n" {
		b.t.Errorf("%+v", o)
	}
	before := len(server.Requests())
	o = b.start(bytes.Repeat([]byte("x"), limit+1))
	if o.code != 2 || !strings.Contains(o.stderr, "10,485,760 bytes") || len(server.Requests()) != before {
		b.t.Errorf("%+v", o)
	}
}

func claudeErrors(b *bench) {
	for script, code := range map[string]string{
		`[{"error":403}]`: "AUTH_REQUIRED", `[{"error":404}]`: "API_ERROR", `[{"error":500}]`: "API_ERROR",
		`[{"error":529}]`:            "API_ERROR",
		`[{"error":"context_full"}]`: "CONTEXT_FULL", `[{"error":429,"retry_after":600}]`: "RATE_LIMITED",
	} {
		if o := b.run(script, "--timeout", "5m"); o.code != 1 || o.report.code() != code {
			b.t.Errorf("%s: %+v, want %s", script, o, code)
		}
	}
}

func claudeBreaks(b *bench) {
	// What was denied before stays in the report; the error is what ended it.
	o := b.run(`[{"shell":"touch inside.txt"},{"error":500}]`, "--timeout", "5m")
	if o.code != 1 || o.report.code() != "API_ERROR" || len(o.report.Denials) != 1 || b.took("inside.txt") {
		b.t.Errorf("an error after a denial: %+v", o)
	}
	o = b.run(`[{"error":500,"times":1},{"say":"in the end"}]`, "--timeout", "5m")
	if o.code != 1 || o.report.code() != "API_ERROR" {
		b.t.Errorf("it tried again: %+v", o)
	}
	const long = `{"say":"the beginning of a long answer"`
	o = b.run("["+long+`,"cut":"middle"}]`, "--timeout", "5m")
	if o.code != 1 || o.report.code() != "API_ERROR" {
		b.t.Errorf("a connection that drops: %+v", o)
	}
	o = b.run("["+long+`,"stall":"middle"}]`, "--timeout", "8s")
	if o.code != 1 || o.report.code() != "TIMEOUT" {
		b.t.Errorf("a stall: %+v", o)
	}
}

// claudeLogin lets the CLI work on a model that stays for several runs, without the private home of a rehearsal. The
// last call holds.
func (b *bench) claudeLogin(script string) *modelserver.Server {
	b.t.Helper()
	const key = "sk-claude-test-0123456789abcdef"
	backend, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		b.t.Fatal(err)
	}
	server, err := modelserver.Start(backend, modelserver.Options{Key: key})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = server.Close() })
	b.env = append(b.env,
		"ANTHROPIC_BASE_URL="+server.URL(), "ANTHROPIC_API_KEY="+key, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_MAX_RETRIES=0")
	b.put(filepath.Join(b.home, ".claude.json"), `{"hasCompletedOnboarding":true,"theme":"dark","autoUpdates":false,`+
		`"customApiKeyResponses":{"approved":["`+key[len(key)-20:]+`"],"rejected":[]}}`)
	return server
}

// claudeRequest is the last request of the conversation, with tools.
func claudeRequest(b *bench, list []modelserver.Request) modelserver.Request {
	b.t.Helper()
	for _, r := range slices.Backward(list) {
		if len(r.Tools) > 0 {
			return r
		}
	}
	b.t.Errorf("the model was not asked in %d requests", len(list))
	return modelserver.Request{}
}

// claudeOffers reports whether the model could call that tool, at once or after asking for it.
func claudeOffers(r modelserver.Request, tool string) bool {
	if slices.ContainsFunc(r.Tools, func(t modelserver.Tool) bool { return t.Name == tool }) {
		return true
	}
	for _, m := range r.Messages {
		for _, block := range m.Blocks {
			if strings.Contains(block.Text, "deferred tools") && strings.Contains(block.Text+"\n", "\n"+tool+"\n") {
				return true
			}
		}
	}
	return false
}

// claudeSlug is the CLI's name for a directory.
func claudeSlug(dir string) string { return strings.NewReplacer("/", "-", ".", "-").Replace(dir) }
