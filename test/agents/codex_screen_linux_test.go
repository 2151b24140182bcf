package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// codexEscalates makes the model ask for a command outside of the sandbox.
func codexEscalates(command string) string {
	return fmt.Sprintf(
		`{"call":{"name":"exec_command","input":{"cmd":%q,"sandbox_permissions":"require_escalated","justification":"it has to be"}}}`, command)
}

const (
	codexReady  = "rehearsal default" // the line below its box, once it has started
	codexDialog = "Would you like to run the following command?"
	codexBye    = "To continue this session"
)

func codexScreens() []scenario {
	const tui = " interactive"
	return []scenario{
		{"dialog and resize", []string{
			"approval=prompt" + tui, "screen: dialog under prompt", "screen: resize", "screen: flags visible",
			"output=json" + tui, "output=stream-json" + tui, "output=text" + tui,
			"ask" + tui, "denials" + tui,
		}, codexAsks},
		{"workspace screen", []string{
			"approval=auto-edit" + tui, "sandbox=workspace-write" + tui, "model" + tui,
			"web=on" + tui, "web=off" + tui,
		}, codexInside},
		{
			"yolo screen",
			[]string{"approval=yolo" + tui, "sandbox=off" + tui, "screen: no dialog under yolo"},
			codexAsksNothing,
		},
		{"suspend", []string{"screen: suspend"}, codexSuspends},
		{"not for screens", []string{"output-schema" + tui, "session-id" + tui}, codexNotThere},
	}
}

// codexOpens waits until it has started, and returns its own arguments.
func (b *bench) codexOpens(script string, args ...string) (*screen, []string) {
	b.t.Helper()
	s := b.open(script, args...)
	s.sees("default · ")
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if words := codexBelow(s.cmd.Process.Pid); words != nil {
			return s, words
		}
	}
	b.t.Fatal("there is no process of codex")
	return nil, nil
}

// codexBelow finds Codex's own program among what a process has started.
func codexBelow(pid int) []string {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(text)) {
			n, _ := strconv.Atoi(child)
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if words := strings.Split(string(line), "\x00"); strings.HasSuffix(words[0], "/bin/codex") &&
				slices.Contains(words, "--no-daemon") {
				return words
			}
			if words := codexBelow(n); words != nil {
				return words
			}
		}
	}
	return nil
}

// insists repeats keys until they have had their effect: what is typed while Codex asks the terminal where the cursor
// is, is lost.
func (s *screen) insists(keys, wanted string) {
	s.t.Helper()
	s.presses(keys, 3*time.Second, wanted, func() bool { return s.shows(wanted) })
	s.sees(wanted)
}

// asksCodex sends a line and waits for what follows. With its first letters the lines below the box change, so what was
// typed may be drawn in parts, with other text between them.
func (s *screen) asksCodex(line, wanted string) {
	s.t.Helper()
	s.types(line)
	for _, letter := range letters(line) {
		s.sees(string(letter))
	}
	s.types("\r")
	s.sees(wanted)
}

func (b *bench) has(words []string, wanted ...string) {
	b.t.Helper()
	for _, w := range wanted {
		if !slices.Contains(words, w) {
			b.t.Errorf("%s is not among %q", w, words)
		}
	}
}

// codexAsks: under prompt a command inside the workspace needs nobody. One that is to leave the sandbox needs a person,
// who says yes to one and no to another. What a person declined is not a denial.
func codexAsks(b *bench) {
	outside, second := filepath.Join(b.base, "outside.txt"), filepath.Join(b.base, "second.txt")
	report := filepath.Join(b.home, "report.json")
	s, words := b.codexOpens(`[{"shell":"touch inside.txt"},`+codexEscalates("touch "+outside)+`,`+
		codexEscalates("touch "+second)+`,{"say":"heard ${input}"}]`,
		"--output", "json", "--report", report)
	if !strings.Contains(s.raw, "--output json is ignored: the terminal interface has no form for programs") {
		b.t.Errorf("no warning in %q", s.raw[:min(300, len(s.raw))])
	}
	b.has(words, `approval_policy="on-request"`, `approvals_reviewer="user"`, `sandbox_mode="workspace-write"`,
		`web_search="disabled"`)
	if slices.Contains(words, "--json") {
		b.t.Errorf("sent: %q", words)
	}
	s.asksCodex("hello there", codexDialog)
	s.sees("touch "+outside, "enter to confirm")
	if !b.took("inside.txt") || b.took(outside) {
		b.t.Error("inside is not made without asking, or outside is")
	}
	s.types("y")
	s.sees(codexDialog)
	s.sees("touch " + second)
	if !b.took(outside) {
		b.t.Error("what a person agreed to was not done")
	}
	s.sees("enter to confirm")
	s.types("\x1b") // no
	s.sees("canceled", "interrupted")
	if b.took(second) {
		b.t.Error("what a person declined was done")
	}
	s.forget()
	s.resize(24, 80)
	if text := s.drawn(); text == "" {
		b.t.Error("it does not draw again")
	}
	s.insists("\x03", codexBye)
	if code := s.left(); code != 0 {
		b.t.Errorf("exit code %d", code)
	}
	if r := b.codexReport(); len(r.Denials) != 0 || r.Told {
		b.t.Errorf("denials of a screen are told: %+v", r)
	}
}

// codexInside: with auto-edit a command inside the workspace needs nobody.
func codexInside(b *bench) {
	s, words := b.codexOpens(`[{"shell":"touch inside.txt"},{"search":"weather"},`+
		codexEscalates("touch "+filepath.Join(b.base, "outside.txt"))+`]`,
		"--approval", "auto-edit", "--model", "gpt-5.2-codex", "--web", "--output", "text", "--sandbox",
		"workspace-write")
	b.has(words, "--ask-for-approval", "on-request", `approvals_reviewer="user"`, "--sandbox", "workspace-write",
		"--model", "gpt-5.2-codex", `web_search="live"`)
	if !strings.Contains(s.letters(), "gpt-5.2-codex") {
		b.t.Errorf("the model is not shown: %s", tail(s.letters()))
	}
	s.asksCodex("hello there", codexDialog)
	s.sees("outside.txt")
	if !b.took("inside.txt") || b.took(filepath.Join(b.base, "outside.txt")) {
		b.t.Error("inside is not made without asking, or outside is")
	}
	s.lacks("no search tool is offered")
}

func codexAsksNothing(b *bench) {
	outside := filepath.Join(b.base, "outside.txt")
	s, words := b.codexOpens(`[{"shell":"touch `+outside+`"},{"say":"heard ${input}"}]`, "--yolo")
	b.has(words, "--ask-for-approval", "never", `sandbox_mode="danger-full-access"`)
	s.asksCodex("hello there", "heard hello there")
	s.lacks(codexDialog)
	if !b.took(outside) {
		b.t.Error("not made")
	}
	s.insists("\x03", codexBye)
	if code := s.left(); code != 0 {
		b.t.Errorf("exit code %d", code)
	}
}

// codexSuspends: Codex takes Ctrl-Z for what it means everywhere.
func codexSuspends(b *bench) {
	s := b.shell()
	modes := func() string {
		s.forget()
		s.enters("stty -a | tr '\\n' ' '; echo the-$((40+2))")
		from := s.seen // behind what was typed
		s.sees("the-42")
		return s.letters()[from:s.seen]
	}
	before := modes()
	bash := s.group()
	s.enters("omniagent --agent codex --rehearse")
	s.sees(codexReady)
	if s.group() == bash {
		b.t.Error("bash is in front while the agent runs")
	}
	s.presses("\x1a", 5*time.Second, "the key stops it", func() bool { return s.shows("Stopped") })
	s.sees("Stopped")
	s.sees("ready>")
	if s.group() != bash {
		b.t.Error("bash is not in front")
	}
	if now := modes(); now != before {
		b.t.Errorf("the terminal is left as\n%s, was\n%s", now, before)
	}
	s.sees("ready>")
	s.enters("fg")
	s.sees(codexReady)
	s.insists("hello", "hello")
	s.types("\r")
	s.sees("• ok")
	s.insists("\x03", codexBye)
	s.sees("ready>")
	if now := modes(); now != before {
		b.t.Errorf("the terminal is left as\n%s, was\n%s", now, before)
	}
	s.enters("exit")
	s.left()
}

// codexNotThere: there is one answer to fit a schema with one-shot runs alone, and Codex's ids are its own.
func codexNotThere(b *bench) {
	s := b.open("", "--output-schema", "{}")
	s.sees("--output-schema needs a prompt")
	if code := s.left(); code != 2 {
		b.t.Errorf("exit code %d", code)
	}
	s = b.open("", "--output", "stream-json", "--strict")
	s.sees("does not do all that was asked for")
	if code := s.left(); code != 2 {
		b.t.Errorf("exit code %d", code)
	}
	s = b.open("", "--output", "text", "--strict", "--trace-translate=only")
	s.sees("OA_TRANSLATION=")
	if code := s.left(); code != 0 {
		b.t.Errorf("exit code %d", code)
	}
	s.lacks("session-id")
}
