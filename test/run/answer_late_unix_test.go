//go:build unix

package run

import (
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestAnAnswerIsForTheQuestionThatWasShown: while a person is asked whether to answer a question, somebody else does.
// The run asks another one since, which the person has not seen.
func TestAnAnswerIsForTheQuestionThatWasShown(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("script.json", `[{"ask":"Which colour?"},{"ask":"Which file may go?"},{"say":"done"}]`)
	p.put("far/a.txt", "a\n")
	id := p.call("run", "--rehearse", "--script", p.work+"/script.json", "-p", "go", "--cwd", p.work+"/far").Data.ID
	cmd := p.command("answer", "blue")
	cmd.Env = append(cmd.Env, "TERM=xterm")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	shown := ""
	for block := make([]byte, 4096); !strings.Contains(shown, "Answer it? [y/N] "); {
		n, err := terminal.Read(block)
		if shown += string(block[:n]); err != nil {
			t.Fatalf("%v %s", err, shown)
		}
	}
	if a := p.call("answer", id, "red"); a.Data.Status != "needs_input" {
		t.Fatalf("%s", a)
	}
	_, _ = io.WriteString(terminal, "y\r")
	rest, _ := io.ReadAll(terminal)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 6 || !strings.Contains(string(rest), "was answered at") {
		t.Errorf("%d %s", code, rest)
	}
	if a := p.call("runs", "show", id); a.Data.Status != "needs_input" {
		t.Errorf("%s", a)
	}
}

// TestACallIsShownBeforeItIsAnswered: the whole of what a tool gets, however long its title is.
func TestACallIsShownBeforeItIsAnswered(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	long := "echo " + strings.Repeat("harmless ", 40) + "; touch made"
	p.put("script.json", `[{"shell":"`+long+`"},{"say":"done"}]`)
	p.put("far/a.txt", "a\n")
	a := p.call("run", "--rehearse", "--script", p.work+"/script.json", "-p", "go", "--sandbox", "off",
		"--cwd", p.work+"/far")
	if a.Data.Status != "needs_input" {
		t.Fatalf("%s", a)
	}
	shown, _ := p.atTerminal([][2]string{{"Answer it? [y/N] ", "n\r"}}, "answer", "--approve")
	if !strings.Contains(shown, "; touch made") {
		t.Errorf("%s", shown)
	}
}
