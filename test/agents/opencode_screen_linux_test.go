package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func opencodeScreens() []scenario {
	return []scenario{
		{"screen under prompt", []string{
			"screen: flags visible", "screen: dialog under prompt", "screen: resize", "approval=prompt interactive",
			"model interactive", "web=on interactive",
			"ask interactive", "denials interactive", "output=text interactive",
		}, opencodeScreenPrompt},
		{"screen under auto-edit", []string{
			"approval=auto-edit interactive", "output=json interactive",
			"output=stream-json interactive", "web=off interactive",
		}, opencodeScreenEdits},
		{
			"screen under yolo",
			[]string{"screen: no dialog under yolo", "approval=yolo interactive"},
			opencodeScreenYolo,
		},
		{"screen suspended", []string{"screen: suspend"}, opencodeSuspended},
	}
}

// opencodeLeaves ends the terminal interface as a person does.
func (s *screen) opencodeLeaves() {
	s.t.Helper()
	s.types("\x03")
	if code := s.left(); code != 0 {
		s.t.Errorf("exit code %d", code)
	}
}

// opencodeReady waits for the line below the input, which names the agent and the model, and returns the command line
// and the permission that the CLI was started with.
func (s *screen) opencodeReady(footer string) (command, permission string) {
	s.t.Helper()
	// It needs twenty seconds of a processor until it draws, which is a minute on a busy machine.
	for end := time.Now().Add(patience); !strings.Contains(s.letters(), letters(footer)) &&
		time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	s.sees("Ask anything")
	s.sees(footer)
	environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.group()))
	for _, entry := range strings.Split(string(environ), "\x00") {
		if value, ok := strings.CutPrefix(entry, "OPENCODE_PERMISSION="); ok {
			permission = value
		}
	}
	return commandLine(s.group()), permission
}

// comes waits for a file.
func (b *bench) comes(path string) {
	b.t.Helper()
	for end := time.Now().Add(patience); !b.took(path); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s did not come", path)
		}
	}
}

func opencodeScreenPrompt(b *bench) {
	url, fetched := b.page()
	s := b.open(`[{"shell":"touch made.txt"},{"ask":"Which one?"},{"web":"`+url+`/x"},{"say":"heard ${input}"}]`,
		"--model", "rehearsal/other", "--web", "--report", filepath.Join(b.home, "report.json"))
	command, permission := s.opencodeReady("Build · other")
	if command != "opencode -m rehearsal/other" ||
		permission != `{"edit":"ask","bash":"ask","webfetch":"allow","websearch":"allow"}` {
		b.t.Errorf("%s\n%s", command, permission)
	}
	s.enters("go on please")
	s.sees("Permission required")
	s.sees("touch made.txt")
	s.sees("Allow once")
	if b.took("made.txt") {
		b.t.Error("the command ran before it was allowed")
	}
	s.presses("\r", 5*time.Second, "the command is allowed", func() bool { return b.took("made.txt") })
	s.sees("Which one?")
	s.sees("enter")
	s.types("\r")
	s.sees("heard go on please")
	if fetched.Load() != 1 {
		b.t.Errorf("the page was fetched %d times", fetched.Load())
	}
	s.resize(24, 80)
	s.forget()
	s.sees("heard go on please")
	s.enters("once more")
	s.sees("Permission required")
	s.opencodeLeavesAnyhow() // without an answer
	if r := b.opencodeRecord(); r.Told || len(r.Denials) != 0 || r.Session != nil || b.took("made.txt") {
		b.t.Errorf("%+v", r)
	}
}

// opencodeLeavesAnyhow leaves where a dialog may stand before the input.
func (s *screen) opencodeLeavesAnyhow() {
	s.t.Helper()
	for range 5 {
		s.types("\x03")
		select {
		case <-s.done:
		case <-time.After(3 * time.Second):
			continue
		}
		break
	}
	if code := s.left(); code != 0 {
		s.t.Errorf("exit code %d", code)
	}
}

func opencodeScreenEdits(b *bench) {
	for _, form := range []string{"json", "stream-json"} {
		s := b.open("", "--output", form, "--trace-translate=only")
		s.sees("--output " + form + " is ignored: there is no such form in the terminal interface")
		s.sees(`"args":[]`)
		if code := s.left(); code != 0 {
			b.t.Errorf("%s: %d", form, code)
		}
	}
	url, fetched := b.page()
	s := b.open(`[{"write":{"path":"written.txt","content":"x"}},{"web":"`+url+
		`/x"},{"shell":"touch made.txt"},{"say":"heard ${input}"}]`,
		"--auto-edit", "--output", "json")
	command, permission := s.opencodeReady("Build · rehearsal")
	if command != "opencode" || permission != `{"bash":"ask","webfetch":"deny","websearch":"deny"}` {
		b.t.Errorf("%s\n%s", command, permission)
	}
	s.enters("go on please")
	b.comes("written.txt")
	s.sees("no web tool is offered")
	s.sees("Permission required")
	s.sees("touch made.txt")
	if fetched.Load() != 0 || b.took("made.txt") {
		b.t.Error("it did more than it may")
	}
	s.opencodeLeavesAnyhow()
}

func opencodeScreenYolo(b *bench) {
	outside := b.base + "/outside.txt"
	s := b.open(`[{"shell":"touch made.txt"},{"shell":"touch `+outside+
		`"},{"write":{"path":"written.txt","content":"x"}},{"say":"heard ${input}"}]`, "--yolo")
	command, permission := s.opencodeReady("Build auto")
	if command != "opencode --auto" || permission != `{"webfetch":"deny","websearch":"deny"}` {
		b.t.Errorf("%s\n%s", command, permission)
	}
	s.enters("go on please")
	s.sees("heard go on please")
	if !b.took("made.txt") || !b.took(outside) || !b.took("written.txt") {
		b.t.Error("something was not made")
	}
	s.lacks("Permission required")
	s.opencodeLeaves()
}

// opencodeSuspended: the CLI takes Ctrl-Z itself, and stops its whole group.
func opencodeSuspended(b *bench) {
	s := b.shell()
	s.enters("stty -g >before")
	s.sees("ready>")
	s.enters("omniagent --agent opencode " + b.script(`[{"say":"heard ${input}"}]`))
	s.opencodeReady("Build · rehearsal")
	s.presses("\x1a", 5*time.Second, "the key stops it", func() bool { return s.shows("ready>") })
	s.sees("ready>")
	s.enters("stty -g >during; echo usa''ble")
	s.sees("usable")
	s.sees("ready>")
	s.enters("fg")
	s.sees("Ask anything")
	s.enters("here again")
	s.sees("heard here again")
	s.types("\x03")
	s.sees("ready>")
	s.enters("stty -g >after; echo us''able")
	s.sees("usable")
	s.sees("ready>")
	before, _ := os.ReadFile(filepath.Join(b.work, "before"))
	for _, name := range []string{"during", "after"} {
		if data, _ := os.ReadFile(filepath.Join(b.work, name)); string(data) != string(before) || len(before) == 0 {
			b.t.Errorf("the terminal's modes %s: %s, not %s", name, data, before)
		}
	}
	s.enters("exit")
	if code := s.left(); code != 0 {
		b.t.Errorf("%d", code)
	}
}
