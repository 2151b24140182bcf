package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPicker: at a terminal, a call that chooses no agent lets a person pick one, and remembers it if they want.
func TestPicker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range agents() {
		_ = os.Remove(filepath.Join(w.bin, name))
	}
	w.agent("codex", `echo "<codex $#>"; cat >/dev/null`)
	w.agent("gemini", `echo "<gemini>"; cat >/dev/null`)
	v := openWindow(t, w)
	v.types("$omniagent -p hello; echo code $?\n") // a prompt is for a call that nobody watches
	v.sees("omniagent: no agent is chosen; installed here: codex, gemini")
	v.sees("code 2")
	v.types("$omniagent; echo code $?\n")
	v.sees("No agent is chosen. Installed here:")
	v.sees("1  codex")
	v.sees("2  gemini")
	v.sees("Enter for none: ")
	v.types("\n")
	v.sees("omniagent: no agent is chosen; installed here: codex, gemini")
	v.sees("hint: omniagent --agent codex")
	v.sees("code 2")
	v.types("$omniagent; echo code $?\n")
	v.sees("Enter for none: ")
	v.types("geminy\n")
	v.sees("hint: omniagent --agent gemini")
	v.sees("code 2")
	v.types("$omniagent; echo code $?\n")
	v.sees("Enter for none: ")
	v.types("\x03")
	v.sees("code 130")
	v.types("$omniagent; echo code $?\n")
	v.sees("Enter for none: ")
	v.types("2\n")
	v.sees("Use gemini from now on? [y/N] ")
	v.types("y\n")
	v.sees("omniagent config unset agent --global forgets it")
	v.sees("<gemini>")
	v.types("\x04")
	v.sees("code 0")
	before := v.read
	v.types("$omniagent -p hello; echo code $?\n")
	v.sees("<gemini>")
	v.sees("code 0")
	v.mu.Lock()
	again := strings.Contains(v.all[before:v.read], "Which one?")
	v.mu.Unlock()
	if again {
		t.Error("it asks again")
	}
	v.types("$omniagent config unset agent --global; CI=1 $omniagent -p hello; echo code $?\n")
	v.sees("omniagent: no agent is chosen; installed here: codex, gemini")
	v.sees("code 2")
}

// TestNothingInstalled: at a terminal the ways to begin are listed; off it nothing changes.
func TestNothingInstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agents()...)
	v := openWindow(t, w)
	v.types("PATH= $omniagent; echo code $?\n")
	for _, line := range []string{
		"omniagent: no agent is chosen, and none is installed here", "hint: ways to begin:", "  omniagent demo",
		"  npm install -g @anthropic-ai/claude-code@", "  omniagent chat --rehearse", "  omniagent login anthropic",
		"code 2",
	} {
		v.sees(line)
	}
	r := w.run(nil, "-p", "hello")
	if r.code != 2 || strings.Contains(r.stderr, "ways to begin") || strings.Count(r.stderr, "\n") != 2 {
		t.Errorf("%+v", r)
	}
}

// TestDeletionAsks: at a terminal, what destroys shows what would be lost and asks; off it nothing changes.
func TestDeletionAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keep := func() string {
		r := w.run(nil, "--agent", "native", "-p", "hello", "--output", "events", "--provider", "openai", "--api-base",
			"http://127.0.0.1:1/v1", "--model", "m")
		_, rest, _ := strings.Cut(r.stdout, `"session_id":"`)
		id, _, found := strings.Cut(rest, `"`)
		if !found || id == "" {
			t.Fatalf("there is no session: %+v", r)
		}
		return id
	}
	there := func(id string) bool { return w.run(nil, "session", "show", id).code == 0 }
	id := keep()
	if r := w.run(nil, "session", "delete", id, "--yes"); r.code != 2 || !there(id) ||
		!strings.Contains(r.stderr, "--confirm-destructive") {
		t.Errorf("off a terminal: %+v", r)
	}
	v := openWindow(t, w)
	for _, no := range []string{"\n", "n\n", "nonsense\n"} {
		v.types("$omniagent session delete " + id + "; echo code $?\n")
		v.sees("session  " + id)
		v.sees("Delete one conversation for ever? [y/N] ")
		v.types(no)
		v.sees("omniagent: nothing was done")
		v.sees("--confirm-destructive does it without a question")
		v.sees("code 2")
		if !there(id) {
			t.Fatalf("%q deletes it", no)
		}
	}
	v.types("$omniagent session delete " + id + "; echo code $?\n")
	v.sees("[y/N] ")
	v.types("\x03")
	v.sees("code 130")
	v.types("$omniagent session delete " + id + " --non-interactive; echo code $?\n")
	v.sees("to do it: omniagent session delete " + id + " --non-interactive --confirm-destructive")
	v.sees("code 2")
	v.types("$omniagent session delete " + id + "; echo code $?\n")
	v.sees("[y/N] ")
	v.types("y\n")
	v.sees("code 0")
	if there(id) {
		t.Error("it was not deleted")
	}
	id = keep()
	v.types("$omniagent session delete " + id + " -y; echo code $?\n")
	v.sees("code 0")
	if there(id) {
		t.Error("--yes does not answer the question")
	}
}

// TestUndoAsksAboutEachFile changes files after a turn, and answers for one of them at the terminal.
func TestUndoAsksAboutEachFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "claude")
	w.link(w.program("../agent", "#!/bin/sh\nfor f in a b c d; do echo agent >$f; done\nprintf done\n"), "claude")
	w.env = []string{"PATH=" + w.bin + ":/usr/bin:/bin"}
	for _, name := range []string{"a", "b", "c"} {
		w.file(name, "before\n")
	}
	if r := w.run(nil, "--agent", "claude", "-p", "q"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	w.file("a", "mine\n")
	w.file("b", "mine\n")
	w.file("d", "mine\n")
	v := openWindow(t, w)
	v.types("$omniagent undo; echo code $?\n")
	v.sees("a: it is not certain that the turn changed it: nothing saw who wrote it; restore it all the same? [y/N] ")
	v.types("\x03")
	v.sees("code 130")
	v.types("$omniagent undo --take-all; echo code $?\n")
	v.sees("a: it has changed since the turn left it; restore it all the same? [y/N] ")
	v.types("\x03")
	v.sees("code 130")
	v.types("$omniagent undo --take-all; echo code $?\n")
	v.sees("a: it has changed since the turn left it; restore it all the same? [y/N] ")
	v.types("y\n")
	v.sees("b: it has changed since the turn left it; restore it all the same? [y/N] ")
	v.types("\n")
	v.sees("d: it has changed since the turn left it; remove it all the same? [y/N] ")
	v.types("\n")
	v.sees("Restored 2 paths:")
	v.sees("Kept unchanged:")
	v.sees("code 3")
	for name, want := range map[string]string{"a": "before\n", "b": "mine\n", "c": "before\n", "d": "mine\n"} {
		if text, err := os.ReadFile(filepath.Join(w.root, name)); err != nil || string(text) != want {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	v.types("$omniagent redo; echo code $?\n")
	v.sees("code 0")
	v.types("$omniagent undo --keep-mine --take-all; echo code $?\n")
	v.sees("Restored 1 path:")
	v.sees("code 3")
}

// TestDeniedBySeed: without a command the native agent asks about each change, so a call with nobody to ask denies it.
// The denial names what lets it run, which does.
func TestDeniedBySeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(script, []byte(`[{"shell": "echo x > made"}, {"say": "Done."}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--agent", "native", "-p", "go", "--rehearse=" + script}
	r := w.run(nil, args...)
	if r.code != 3 || !strings.Contains(r.stderr, "hint: --approval default runs what can be contained") {
		t.Errorf("%+v", r)
	}
	if r := w.run(nil, append(args, "--approval", "default")...); r.code != 0 {
		t.Errorf("what was advised: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.root, "made")); err != nil {
		t.Error(err)
	}
}
