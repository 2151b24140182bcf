//go:build unix

package chat

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/testkit/emulator"
)

// TestKeysWhileACommandRuns: however many keys wait, Ctrl-C ends the command.
func TestKeysWhileACommandRuns(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	w := p.open()
	w.await("test-model")
	w.enters("@!echo yes > begun; sleep 1000")
	p.comes(filepath.Join(p.work, "begun"), "yes")
	w.types(strings.Repeat("\r", 500) + "\x03")
	w.await("Command was interrupted")
	w.quits()
}

// TestAnsweringBesideACommand: a command of the person does not hold back the answer to a question of the turn, and a
// message behind it waits for its result.
func TestAnsweringBesideACommand(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"touch made"},{"say":"Said."}]`)
	w := p.open("--approval", "prompt")
	w.await("test-model")
	w.enters("first")
	w.await("y yes")
	w.enters("@!echo yes > begun; while ! test -e go; do sleep 0.05; done; echo seen")
	p.comes(filepath.Join(p.work, "begun"), "yes")
	w.enters("y")
	w.await("Said.")
	w.enters("and then?")
	w.await("the message waits for the end of the command")
	p.write("go", "")
	w.await("seen")
	w.await("y yes")
	w.enters("n")
	w.await("Said.")
	w.quits()
	requests := p.requests()
	if got := said(requests[len(requests)-2]); !strings.Contains(got, "seen") || !strings.Contains(got, "and then?") {
		t.Errorf("the result of the command is missing in %q", got)
	}
}

// TestNobodyAnswersOurs: where the input ends at a question of ours, it counts as no, and chat ends.
func TestNobodyAnswersOurs(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	key := p.write(filepath.Join(p.home, ".ssh", "id_ed25519"), "very secret\n")
	w := p.open("--plain")
	w.await("test-model")
	w.enters("look at @file:" + key)
	w.await("where logins and keys are kept")
	w.types("\x04")
	w.await("nothing was sent")
	if code := w.leaves(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if n := len(p.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestTerminatedInThePager: SIGTERM ends the pager too.
func TestTerminatedInThePager(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	pager := p.write(filepath.Join(p.home, "pager"), "#!/bin/sh\necho paging\nexec sleep 1000\n")
	if err := os.Chmod(pager, 0o755); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "PAGER="+pager)
	w := p.open()
	w.await("test-model")
	w.enters("@!seq 1 40")
	w.await("/show 1")
	w.enters("/show 1")
	w.await("paging")
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := w.leaves(); code != 143 {
		t.Errorf("exit %d, want 143", code)
	}
}

// TestQuittingInATurn: a line behind /quit is not lost in silence.
func TestQuittingInATurn(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"while ! test -e go; do sleep 0.05; done"},{"say":"Said."}]`)
	w := p.open("--yolo")
	w.await("test-model")
	w.enters("first")
	w.await("⏺ Bash")
	w.enters("/quit")
	w.await("Chat ends when everything is answered.")
	w.enters("one more thing")
	w.await("so this was not sent")
	p.write("go", "")
	if code := w.leaves(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestUndo takes back what this conversation did, and never what another one did.
func TestUndo(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"echo one > one"},{"say":"Said."}]`)
	made := func(want bool) {
		t.Helper()
		if _, err := os.Stat(filepath.Join(p.work, "one")); (err == nil) != want {
			t.Errorf("the file is there: %v", err == nil)
		}
	}
	w := p.open("--yolo")
	w.await("test-model")
	w.enters("first")
	w.await("Said.")
	w.enters("/undo")
	w.await("Took back the turn")
	made(false)
	w.enters("/redo")
	w.await("Took back the undo")
	made(true)
	p.write("one", "by hand")
	w.enters("/undo")
	w.await("hint: omniagent undo ")
	w.await("--take-old restores what has changed since too")
	made(true)
	w.quits()
	w = p.open("--yolo")
	w.await("test-model")
	w.enters("/undo")
	w.await("There is no turn of this conversation")
	w.enters("/redo")
	w.await("There is no undo of this conversation")
	made(true)
	w.quits()
}

// TestChangedWithoutAsking: the first turn that changes a file without a question says how to take it back, and no
// later one does.
func TestChangedWithoutAsking(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"write":{"path":"one","content":"x"}},{"say":"Said."}]`)
	w := p.open()
	w.await("test-model")
	const told = "changed without asking; /undo takes it back"
	w.enters("first")
	w.await("Said.")
	w.await(told)
	w.enters("second")
	w.await("Said.")
	w.quits()
	if n := strings.Count(w.text(), told); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// TestInterruptedAfterAChange: a turn that the person ends says that it has changed a file, after an earlier one too.
func TestInterruptedAfterAChange(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"write":{"path":"one","content":"x"}},{"shell":"while test -e wait; do sleep 0.05; done"},
		{"say":"Said."}]`)
	w := p.open("--yolo")
	w.await("test-model")
	const told = "changed without asking; /undo takes it back"
	w.enters("first")
	w.await("Said.")
	w.await(told)
	p.write("wait", "")
	if err := os.Remove(filepath.Join(p.work, "one")); err != nil {
		t.Fatal(err)
	}
	w.enters("second")
	w.await("⏺ Bash")
	w.types("\x03")
	w.await("interrupted")
	w.await(told)
	w.quits()
}

// TestTakenBack: what waits is seen, and Up takes back the last of it, to be typed on. It is not sent.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"while ! test -e go; do sleep 0.05; done"},{"say":"You said: ${input}"}]`)
	w := p.before(emulator.Pyte(t, 80, 24), 80, 24, "--yolo")
	w.shows("/help lists", false)
	w.types("@!echo carried\r")
	w.shows("\ncarried", false)
	w.types("a turn\r")
	w.shows("⏺ Bash", true)
	w.types("and then this\r")
	w.shows("> and then this · Up takes it back", true)
	w.types("/clear\r")
	w.shows("> /clear · Up takes it back", true)
	w.types("\x1b[A")
	w.shows("Esc interrupts\n> /clear\n", true)
	w.types("\x15\x1b[A")
	w.shows("Esc interrupts\n> and then this\n", true)
	w.types(" too\r")
	w.shows("> and then this too · Up takes it back", true)
	p.write("go", "")
	w.shows("You said: ", false)
	w.shows("\n> and then this too\n", false)
	w.types("/quit\r")
	w.leaves()
	if seen := strings.Join(w.look.Look().Lines, "\n"); strings.Contains(seen, "interrupted") ||
		!strings.Contains(seen, "2 turns") {
		t.Error(seen)
	}
	for _, r := range p.requests() {
		if words := fmt.Sprint(r.Messages); strings.Contains(words, "and then this") &&
			!strings.Contains(words, "and then this too") {
			t.Errorf("it was sent: %s", words)
		}
	}
}

// TestTakenBackAtAQuestion: Up takes back what waits while a question is open too. Sent again, it answers nothing.
// While a line is being typed, nothing says that Up takes something back.
func TestTakenBackAtAQuestion(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"while ! test -e go; do sleep 0.05; done"},{"ask":"Which?"},
		{"say":"They: ${result}"}]`)
	w := p.before(emulator.Pyte(t, 80, 24), 80, 24, "--yolo")
	w.shows("/help lists", false)
	w.types("a turn\r")
	w.shows("⏺ Bash", true)
	w.types("oops\r")
	w.shows("> oops · Up takes it back", true)
	p.write("go", "")
	w.shows("│ 2. no", true)
	w.shows("> oops · Up takes it back", true)
	w.types("half")
	w.shows("> oops\n", true)
	w.types("\x15\x1b[A")
	w.shows("Esc interrupts\n> oops\n", true)
	w.types(" again\r")
	w.shows("> oops again · Up takes it back", true)
	w.types("1\r")
	w.shows("-> yes", true)
	w.shows("Return skips", true) // in the next turn
	w.types("2\r")
	w.shows("-> no", false)
	w.types("/quit\r")
	w.leaves()
}

// TestUndoDuringATurn checks that an undo that is typed during a turn is about that turn: it says that it waits, and
// happens before the next message, which waits for it.
func TestUndoDuringATurn(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"echo line >>made; while ! test -e go; do sleep 0.05; done"},
		{"say":"You said: ${input}"}]`)
	w := p.open("--yolo")
	w.await("test-model")
	w.enters("first")
	w.await("⏺ Bash")
	p.comes(filepath.Join(p.work, "made"), "line")
	w.enters("second")
	w.await("waits for the end of the turn")
	w.enters("third")
	w.await("waits for the end of the turn")
	w.enters("/undo")
	w.await("/undo waits for the end of the turn; Ctrl-C interrupts it")
	w.await("the messages that wait are sent after that")
	w.types("\x1b")
	w.await("Took back the turn")
	p.write("go", "")
	w.await("> second\n")
	w.await("You said:")
	w.await("> third\n")
	w.await("You said:")
	if data, _ := os.ReadFile(filepath.Join(p.work, "made")); string(data) != "line\nline\n" {
		t.Errorf("%q", data)
	}
	w.quits()
}

// TestUndoOfATurnWithoutChanges checks that such an undo does not take back an earlier turn.
func TestUndoOfATurnWithoutChanges(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"if test -e made; then while ! test -e go; do sleep 0.05; done; fi; echo >made"},
		{"say":"Said."}]`)
	w := p.open("--yolo")
	w.await("test-model")
	w.enters("first")
	w.await("Said.")
	w.enters("second")
	w.await("⏺ Bash")
	w.enters("/undo")
	w.await("/undo waits for the end of the turn")
	w.types("\x1b")
	w.await("That turn changed nothing here")
	if _, err := os.Stat(filepath.Join(p.work, "made")); err != nil {
		t.Error(err)
	}
	w.quits()
}
