package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// TestHelpOnATerminal: at 80 by 24 the help fits the width, has bold headings unless NO_COLOR is set, and is shown in
// the pager, since it is longer than the screen; a short page is not.
func TestHelpOnATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pager := filepath.Join(w.bin, "leaf")
	script := "#!/bin/sh\n/bin/cat >'" + filepath.Join(w.root, "paged") + "'\necho \"<paged $1>\"\n"
	if err := hermetic.WriteProgram(pager, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	paged := func() string {
		text, _ := os.ReadFile(filepath.Join(w.root, "paged"))
		_ = os.Remove(filepath.Join(w.root, "paged"))
		return string(text)
	}
	escape := regexp.MustCompile("\x1b\\[[0-9]*m")
	v := openWindow(t, w)
	v.types("export PAGER='leaf -x'\n")
	for _, args := range []string{"--help", "help", "help chat", "chat --help", "help flags"} {
		v.types("$omniagent " + args + "\n")
		v.sees("<paged -x>")
		v.sees("ready> ")
		page := paged()
		for line := range strings.Lines(escape.ReplaceAllString(page, "")) {
			if len([]rune(line)) > 81 && !strings.Contains(line, "  omniagent chat") {
				t.Errorf("%s: too long for the screen: %s", args, line)
			}
		}
		if !strings.Contains(page, "\x1b[1m") {
			t.Errorf("%s has no bold headings:\n%s", args, page)
		}
	}
	v.types("NO_COLOR=1 $omniagent --help\n")
	v.sees("<paged -x>")
	v.sees("ready> ")
	if page := paged(); strings.Contains(page, "\x1b") || !strings.Contains(page, "Usage: omniagent") {
		t.Errorf("with NO_COLOR:\n%s", page)
	}
	v.types("$omniagent errors; $omniagent help errors; echo code $?\n")
	v.sees("errors list")
	v.sees("errors list")
	v.sees("code 0")
	if page := paged(); page != "" {
		t.Errorf("it was paged:\n%s", page)
	}
	v.types("$omniagent lst; echo code $?\n")
	v.sees("did you mean agents list, config list,\r\nerrors list") // broken between words
	v.sees("hint: omniagent --help lists the commands")
	v.sees("code 2")
	if _, err := exec.LookPath("less"); err != nil {
		t.Skip("less is not installed")
	}
	v.types("unset PAGER LESS; $omniagent --help; echo code $?\n")
	v.sees("Usage: omniagent")
	v.types("q")
	v.sees("code 0")
}
