package agents

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/agents/copilot"
	"omniagent/internal/kit/setting"
)

func copilotScreens() []scenario {
	return []scenario{
		{"screen under prompt", []string{
			"approval=prompt interactive", "sandbox=workspace-write interactive", "output=text interactive",
			"model interactive", "web=off interactive",
			"denials interactive", "records interactive", "screen: flags visible", "screen: dialog under prompt",
			"screen: resize",
		}, copilotScreenPrompt},
		{"screen under yolo", []string{
			"approval=yolo interactive", "sandbox=off interactive", "web=on interactive",
			"screen: no dialog under yolo",
		}, copilotScreenYolo},
		{"screen under auto-edit", []string{"approval=auto-edit interactive"}, copilotScreenAutoEdit},
		{"screen without forms", []string{
			"output=json interactive", "output=stream-json interactive",
			"output-schema interactive",
		}, copilotScreenForms},
		{
			"screen of a session",
			[]string{"session-id interactive", "resume interactive", "ask interactive"},
			copilotScreenSession,
		},
		{"suspend", []string{"screen: suspend"}, copilotSuspend},
	}
}

const copilotAsks = "Do you want to run this command?"

// copilotReady waits until the prompt can be typed at.
func copilotReady(s *screen) {
	s.t.Helper()
	s.sees("/ commands")
}

// copilotSees waits for a text that comes from the model. It is drawn in pieces, and other things between them: another
// width makes the CLI draw it whole.
func copilotSees(s *screen, text string) {
	s.t.Helper()
	for i := range uint16(patience / copilotLittle) {
		if copilotWaits(func() bool { return strings.Contains(s.letters()[s.seen:], letters(text)) }) {
			s.sees(text)
			return
		}
		s.resize(40, 119-i%2)
	}
	s.t.Fatalf("no %q in\n%s", text, tail(s.letters()))
}

// copilotEnters presses the key until a text appears: while a screen is drawn again the key may be lost. Once more does
// no harm.
func copilotEnters(s *screen, text string) {
	s.t.Helper()
	for i := range uint16(patience / copilotLittle) {
		s.types("\r")
		if copilotWaits(func() bool { return strings.Contains(s.letters()[s.seen:], letters(text)) }) {
			return
		}
		s.resize(40, 119-i%2)
	}
	s.t.Fatalf("no %q in\n%s", text, tail(s.letters()))
}

// copilotLeaves ends it as a person does, and wants the exit code 0.
func copilotLeaves(s *screen) {
	s.t.Helper()
	copilotQuits(s, func() bool {
		select {
		case <-s.done:
			return true
		default:
			return false
		}
	})
	if code := s.left(); code != 0 {
		s.t.Errorf("exit code %d", code)
	}
}

// copilotQuits presses the key twice: once more where the first only interrupted the turn, or was slower than the CLI's
// clock.
func copilotQuits(s *screen, over func() bool) {
	s.t.Helper()
	for range patience / copilotLittle {
		s.forget()
		s.types("\x03")
		if copilotWaits(func() bool {
			return strings.Contains(s.letters()[s.seen:], letters("ctrl+c again to exit"))
		}) {
			s.types("\x03")
			if copilotWaits(over) {
				return
			}
		}
	}
	s.t.Fatalf("it does not leave:\n%s", tail(s.letters()))
}

const copilotLittle = 5 * time.Second

// copilotWaits waits a little until something holds, and says whether it does.
func copilotWaits(holds func() bool) bool {
	for end := time.Now().Add(copilotLittle); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	return false
}

// copilotArgs is the command line of the CLI on the screen.
func copilotArgs(b *bench) string {
	for _, pid := range copilotProcesses(b) {
		if line := commandLine(pid); line != "" && strings.Contains(line, "copilot") &&
			!strings.Contains(line, "--agent") {
			return line
		}
	}
	return ""
}

func copilotShows(s *screen, texts ...string) {
	s.t.Helper()
	all := s.letters()
	for _, text := range texts {
		if !strings.Contains(all, letters(text)) {
			s.t.Errorf("%q is not in\n%s", text, tail(all))
		}
	}
}

func copilotScreenPrompt(b *bench) {
	copilotBoxed(b)
	record := filepath.Join(b.home, "screen.json")
	s := b.open(`[{"shell":"D=`+b.base+
		`; touch made.txt $D/outside.txt"},{"web":"http://127.0.0.1:1/"},{"say":"that was all, ${input}"}]`,
		"--approval", "prompt", "--sandbox", "workspace-write", "--output", "text", "--model", "fancy-model", "--web",
		"off", "--report", record)
	copilotReady(s)
	s.enters("hi there")
	copilotSees(s, copilotAsks)
	copilotShows(s, "Manual Approval", "sandbox enabled", "fancy-model")
	if args := copilotArgs(b); !strings.Contains(args, "--sandbox --excluded-tools=web_fetch") &&
		!strings.Contains(args, "--sandbox --model fancy-model --excluded-tools=web_fetch") ||
		strings.Contains(args, "--output-format") || !strings.Contains(args, "--model fancy-model") {
		b.t.Errorf("%q", args)
	}
	if logs, _ := filepath.Glob(filepath.Join(b.home, ".local", "state", "omniagent", "rehearsal", "*", ".copilot",
		"session-state", "*", "events.jsonl")); len(logs) == 0 {
		b.t.Error("there is no record")
	}
	if b.took("made.txt") {
		b.t.Error("it did not wait for the answer")
	}
	s.types("\r")
	copilotSees(s, "no web tool is offered")
	copilotSees(s, "that was all, hi there")
	if inside, outside := b.took("made.txt"), b.took(filepath.Join(b.base, "outside.txt")); !inside || outside {
		b.t.Errorf("allowed: made inside %t, outside %t", inside, outside)
	}
	s.forget()
	s.resize(24, 80)
	s.sees("Manual Approval")
	if text := s.letters(); strings.Contains(text[min(len(text), s.seen):], strings.Repeat("─", 81)) {
		b.t.Error("a line is wider than the screen")
	}
	copilotLeaves(s)
	data, err := os.ReadFile(record)
	if err != nil || !strings.Contains(string(data), `"denials_known": false`) ||
		!strings.Contains(string(data), `"mode": "interactive"`) {
		b.t.Errorf("%v %s", err, data)
	}
}

func copilotScreenYolo(b *bench) {
	page := copilotPage(b.t)
	s := b.open(`[{"shell":"touch made.txt `+b.base+
		`/outside.txt"},{"write":{"path":"written.txt","content":"x"}},{"web":"`+page+
		`"},{"say":"that was all: ${result}"}]`,
		"--yolo", "--sandbox", "off", "--web")
	copilotReady(s)
	s.enters("hi there")
	copilotSees(s, "that was all")
	copilotSees(s, "words of the page")
	s.lacks("Do you want")
	s.lacks("sandbox enabled")
	copilotShows(s, "Allow All")
	if args := copilotArgs(b); !strings.Contains(args, "--yolo --no-sandbox --allow-all-urls") {
		b.t.Errorf("%q", args)
	}
	if !b.took("made.txt") || !b.took("written.txt") || !b.took(filepath.Join(b.base, "outside.txt")) {
		b.t.Error("something was not made")
	}
	copilotLeaves(s)
}

func copilotScreenAutoEdit(b *bench) {
	s := b.open(`[{"write":{"path":"written.txt","content":"x"}},{"shell":"touch made.txt"},{"say":"that was all"}]`,
		"--auto-edit")
	copilotReady(s)
	s.enters("hi there")
	copilotSees(s, copilotAsks)
	if !b.took("written.txt") || b.took("made.txt") {
		b.t.Error("the file was not written without asking, or the command did not wait")
	}
	if args := copilotArgs(b); !strings.Contains(args, "--allow-tool=write") {
		b.t.Errorf("%q", args)
	}
	s.forget()
	s.types("\x1b")
	s.sees("/ commands")
	if b.took("made.txt") {
		b.t.Error("it ran what was refused")
	}
	copilotLeaves(s)
}

// copilotScreenForms: a screen has no form of output and no schema. It says so, and with --strict nothing starts.
func copilotScreenForms(b *bench) {
	for _, form := range []string{"json", "stream-json"} {
		s := b.open("", "--output", form)
		s.sees("--output " + form + " is ignored: only one-shot runs have a form of output")
		copilotReady(s)
		if args := copilotArgs(b); args == "" || strings.Contains(args, "--output-format") {
			b.t.Errorf("%q", args)
		}
		copilotLeaves(s)
		s = b.open("", "--output", form, "--strict")
		if code := s.left(); code != 2 {
			b.t.Errorf("%s, --strict: %d", form, code)
		}
	}
	if code := b.open("", "--output-schema", "{}").left(); code != 2 {
		b.t.Errorf("a schema: %d", code)
	}
}

// copilotScreenSession: an id of ours, a question to the person, and the same conversation again.
func copilotScreenSession(b *bench) {
	const id = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
	server := copilotModel(b, `[{"call":{"name":"ask_user","input":{"message":"Which colour?",
		"requestedSchema":{"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"]}},"required":["colour"]}}}},{"say":"that was all, ${result}"}]`)
	s := b.sit(program, "--agent", "copilot", "--", "--session-id="+id)
	s.sees("Do you trust the files in this folder?")
	s.types("\r")
	copilotReady(s)
	s.enters("the first words")
	copilotSees(s, "Which colour?")
	copilotSees(s, "blue")
	copilotEnters(s, "that was all")
	if !copilotOffers(copilotAsked(b, server), "ask_user") || !copilotSaid(copilotAsked(b, server), "red") {
		b.t.Errorf("the answer did not arrive: %+v", copilotAsked(b, server).Messages)
	}
	if _, err := os.Stat(filepath.Join(b.home, ".copilot", "session-state", id, "events.jsonl")); err != nil {
		b.t.Error(err)
	}
	copilotLeaves(s)
	spec := copilotSpec(b, setting.Interactive, b.work)
	spec.Resume = id
	launch, _, err := copilot.New().Command(spec)
	if err != nil {
		b.t.Fatal(err)
	}
	again := b.on(b.t)
	again.env = launch.Env
	s = again.sit(launch.Path, launch.Args...)
	if s.sees("the first words", "Do you trust the files in this folder?") != "the first words" {
		copilotEnters(s, "the first words")
	}
	copilotReady(s)
	copilotLeaves(s)
}

// copilotSuspend: the CLI handles the key itself, and stops its whole group.
func copilotSuspend(b *bench) {
	s := b.shell()
	// Without the size of the window, which is changed below to have the CLI draw itself again.
	s.types("stty -g > before.txt; omniagent --agent copilot " + b.script(`[{"say":"heard ${input}"}]`) +
		"; echo ended\n")
	copilotReady(s)
	front := s.group()
	s.presses("\x1a", 5*time.Second, "the key stops it", func() bool { return s.shows("Stopped") })
	s.sees("Stopped")
	s.sees("ready>")
	if s.group() == front {
		b.t.Error("the shell is not in front")
	}
	if err := syscall.Kill(-front, 0); err != nil {
		b.t.Error("nothing waits:", err)
	}
	s.types("stty -g > stopped.txt; echo ali''ve\n")
	s.sees("alive")
	s.types("fg\n")
	copilotReady(s)
	s.presses("hi there", 10*time.Second, "what is typed is shown", func() bool { return s.shows("hi there") })
	s.sees("hi there")
	copilotEnters(s, "heard hi there")
	copilotQuits(s, func() bool { return strings.Contains(s.letters()[s.seen:], "ready>") })
	s.forget()
	s.types("stty -g > after.txt; echo do''ne\n")
	s.sees("done")
	before, _ := os.ReadFile(filepath.Join(b.work, "before.txt"))
	for _, name := range []string{"stopped.txt", "after.txt"} {
		if data, err := os.ReadFile(filepath.Join(b.work, name)); err != nil || string(data) != string(before) {
			b.t.Errorf("%s: the terminal's modes differ: %v\n%s\n%s", name, err, before, data)
		}
	}
	if raw := s.raw; strings.LastIndex(raw, "\x1b[?1049l") < strings.LastIndex(raw, "\x1b[?1049h") {
		b.t.Error("the terminal is left on its other page", strconv.Quote(tail(raw)))
	}
	s.types("exit\n")
	if code := s.left(); code != 0 {
		b.t.Errorf("bash: %d", code)
	}
}
