//go:build unix

package run

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// elsewhere, as a key of atTerminal, calls omniagent answer with the words behind it, and types nothing.
const elsewhere = "answer "

// atTerminal calls the program on a terminal. Each key is typed when the words before it are shown.
func (p *place) atTerminal(keys [][2]string, args ...string) (shown string, code int) {
	p.t.Helper()
	cmd := p.command(args...)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
	if err != nil {
		p.t.Fatal(err)
	}
	defer terminal.Close()
	clock := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer clock.Stop()
	var all bytes.Buffer
	for block, from := make([]byte, 4096), 0; ; {
		n, err := terminal.Read(block)
		all.Write(block[:n])
		if len(keys) > 0 && bytes.Contains(all.Bytes()[from:], []byte(keys[0][0])) {
			from = all.Len()
			if words, ok := strings.CutPrefix(keys[0][1], elsewhere); ok {
				cmd := p.command("answer", words)
				if err := cmd.Start(); err != nil {
					p.t.Fatal(err)
				}
				defer cmd.Wait() //nolint:errcheck // it ends with the run, or with the next question
			} else if _, err := io.WriteString(terminal, keys[0][1]); err != nil {
				p.t.Fatal(err)
			}
			keys = keys[1:]
		}
		if err != nil {
			break
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return strings.ReplaceAll(all.String(), "\r\n", "\n"), cmd.ProcessState.ExitCode()
}

// TestAskedInPlace answers a question at the terminal, leaves it, and answers it later from elsewhere.
func TestAskedInPlace(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	rehearse := []string{"run", "--rehearse", "-p", "the task"} // by the native agent, which is the usual one
	shown, code := p.atTerminal([][2]string{{"\n> ", "5\r"}, {"in words.", "1\r"}}, rehearse...)
	asked := strings.Count(shown, "? Shall the greeting stay?")
	if code != 0 || !strings.Contains(shown, "native: done") || asked != 1 || p.read("greeting.txt") != "Hello!\n" {
		t.Errorf("%d: %s", code, shown)
	}
	if out, err := p.command("runs", "show", p.newest()).Output(); !strings.Contains(string(out), `"answer":"yes"`) {
		t.Errorf("what was answered is not on record: %v %s", err, out)
	}
	// what is typed before a question is there answers nothing
	shown, code = p.atTerminal([][2]string{{"is being started", "1\r\r"}, {"\n> ", "2\r"}}, rehearse...)
	if out, _ := p.command("runs", "show", p.newest()).Output(); !strings.Contains(string(out), `"answer":"no"`) {
		t.Errorf("%d: %s\n%s", code, shown, out)
	}
	shown, code = p.atTerminal([][2]string{{"\n> ", "\r"}}, rehearse...)
	works := strings.Count(shown, "native works")
	if code != 4 || !strings.Contains(shown, "hint: omniagent answer run-") || works != 1 {
		t.Errorf("%d: %s", code, shown)
	}
	p.call("answer", "yes").is(t, 0, "succeeded", "done_unchanged") // the file was there
	p.nothing()
}

// TestSeveralAskedInPlace: the questions of a form are asked one after the other, and their answers reach the agent; a
// text that is given later answers them all.
func TestSeveralAskedInPlace(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("script.json", `[{"write":{"path":"a.txt","content":"a"}},{"call":{"name":"AskUserQuestion","input":
		{"questions":[{"question":"Which?","header":"db","multiSelect":true,"options":[{"label":"Postgres",
		"description":"a server"},{"label":"SQLite","description":"a file"}]},{"question":"Name?","header":"n",
		"options":[{"label":"one","description":""},{"label":"two","description":""}],"multiSelect":false}]}}},
		{"say":"They: ${result}${input}"}]`)
	rehearse := []string{"run", "--rehearse", "--auto-edit", "--script", "script.json", "-p", "the task"}
	shown, code := p.atTerminal([][2]string{{"\n> ", "1,2\r"}, {"\n> ", "2\r"}}, rehearse...)
	for _, words := range []string{
		"  2  SQLite: a file\nType numbers with commas", "Which?\n-> Postgres, SQLite\nName?\n-> two",
	} {
		if code != 0 || !strings.Contains(shown, words) {
			t.Errorf("%d, without %q: %s", code, words, shown)
		}
	}
	if out, err := p.command("runs", "show", p.newest()).Output(); !strings.Contains(string(out),
		`"answer":"Which? Postgres, SQLite\nName? two"`) {
		t.Errorf("what was answered is not on record: %v %s", err, out)
	}
	shown, code = p.atTerminal([][2]string{{"\n> ", "1\r"}, {"? Name?", "\r"}}, rehearse...)
	if code != 4 || !strings.Contains(shown, "hint: omniagent answer run-") {
		t.Errorf("%d: %s", code, shown)
	}
	b := p.call("answer", "SQLite and two")
	if b.is(t, 0, "succeeded", "done_unchanged"); !strings.Contains(b.Data.Text.Value, "Answer: SQLite and two") {
		t.Errorf("%s", b)
	}
	p.nothing()
}

// TestAskedOnAfterAnAnswerElsewhere: the terminal says that a question is settled, and has the next one.
func TestAskedOnAfterAnAnswerElsewhere(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("../script.json", `[{"ask":"Which colour?"},{"ask":"Which size?"},{"say":"painted"}]`)
	shown, code := p.atTerminal([][2]string{{"\n> ", elsewhere + "yes"}, {"? Which size?", "1\r"}},
		"run", "--rehearse", "--script", "../script.json", "-p", "x")
	if code != 0 || !strings.Contains(shown, "\nIt was answered elsewhere.\n") || !strings.Contains(shown, "painted") {
		t.Errorf("%d: %s", code, shown)
	}
	p.nothing()
}

// TestAnApprovalIsForTheFileThatWasSeen: a file that changes between the question and the approval is asked about anew.
func TestAnApprovalIsForTheFileThatWasSeen(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("../script.json", `[{"write":{"path":"f","content":"its"}},{"say":"written"}]`)
	p.put("f", "old")
	a := p.call("run", "--rehearse", "--script", "../script.json", "--approval", "ask", "-p", "x")
	a.is(t, 4, "needs_input", "question")
	p.put("f", "mine")
	a = p.call("answer", a.Data.ID, "--approve")
	a.is(t, 4, "needs_input", "question")
	if p.read("f") != "mine" || !strings.Contains(a.Stdout, "the file has changed") {
		t.Errorf("%q %s", p.read("f"), a)
	}
	if p.call("answer", a.Data.ID, "--approve").is(t, 0, "succeeded", "done"); p.read("f") != "its" {
		t.Errorf("%q", p.read("f"))
	}
	p.nothing()
}

// TestWhatIsSaidBeforeAQuestion is on the screen before the question, once.
func TestWhatIsSaidBeforeAQuestion(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("../script.json", `[{"say":"Blue is calm, red is loud."},{"ask":"Which colour?"},{"say":"painted"}]`)
	shown, code := p.atTerminal([][2]string{{"\n> ", "1\r"}},
		"run", "--rehearse", "--script", "../script.json", "-p", "x")
	if code != 0 {
		t.Errorf("%d: %s", code, shown)
	}
	out, code := p.atTerminal(nil, "runs", "diff", p.newest())
	if code != 0 || !strings.Contains(out, "no file differs") {
		t.Errorf("runs diff of a run that changed nothing: %d: %s", code, out)
	}
	before, _, asked := strings.Cut(shown, "? Which colour?")
	if !asked || strings.Count(before, "Blue is calm, red is loud.") != 1 {
		t.Errorf("%d: %s", code, shown)
	}
	p.nothing()
}

// TestTerminalCloses: a run whose terminal closes is cancelled, however many signals come of that.
func TestTerminalCloses(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cmd := p.command("run", "--rehearse", "-p", "the task")
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	for seen, block := "", make([]byte, 4096); !strings.Contains(seen, "\n> "); {
		n, err := terminal.Read(block)
		if seen += string(block[:n]); err != nil {
			t.Fatalf("%v: %s", err, seen)
		}
	}
	for range 2 { // one is of the shell, one of the kernel
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP)
	}
	_ = terminal.Close()
	_ = cmd.Wait()
	if a := p.call("runs", "show", p.newest()); a.Data.Status != "cancelled" || cmd.ProcessState.ExitCode() != 129 {
		t.Errorf("exit %d, %s", cmd.ProcessState.ExitCode(), a)
	}
	p.nothing()
}

// TestAskedBeforehand asks at the terminal for what a task needs, and whether a tool may run.
func TestAskedBeforehand(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"shell":"echo x >$(echo made)"},{"say":"You said: ${input}"}]`)
	args := []string{
		"run", "--provider", "openai", "-m", "m", "--approval", "prompt", "-p", "Paint.",
		"--require", "colour=Which colour?",
	}
	keys := [][2]string{{"? Which colour?", "green\r"}, {"? May Bash run?", "maybe\r"}, {"Type y or n", "y\r"}}
	shown, code := p.atTerminal(keys, args...)
	if code != 0 || p.read("made") != "x\n" || !strings.Contains(shown, "green") {
		t.Errorf("%d: %s", code, shown)
	}
	p.put("made", "")
	keys[1], keys[2] = [2]string{"? May Bash run?", "n not today\r"}, [2]string{"never", ""}
	shown, code = p.atTerminal(keys, args...)
	if code != 7 || p.read("made") != "" || !strings.Contains(shown, "Denied: Bash") {
		t.Errorf("%d: %s", code, shown)
	}
	p.nothing()
}

// TestRehearsalIsNotBooked: what a script answered costs nothing and is continued by nobody.
func TestRehearsalIsNotBooked(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.call("run", "--rehearse", "-p", "the task").is(t, 4, "needs_input", "question")
	p.call("answer", "yes").is(t, 0, "succeeded", "done")
	said := func(args ...string) string {
		out, _ := p.command(args...).CombinedOutput()
		return string(out)
	}
	if got := said("usage"); !strings.Contains(got, `"usage":[]`) {
		t.Errorf("%s", got)
	}
	list := said("session", "list")
	_, id, _ := strings.Cut(list, `"sessions":[{"id":"`)
	id, _, found := strings.Cut(id, `"`)
	if !found || !strings.Contains(list, `"resume":""`) {
		t.Fatalf("%s", list)
	}
	if got := said("start", "--resume", id, "-p", "and now"); !strings.Contains(got, id+" was a rehearsal") {
		t.Errorf("%s", got)
	}
}

// TestAnswerWithoutARun answers the only open question without naming its run, and lists several.
func TestAnswerWithoutARun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if a := p.call("answer", "yes"); a.Code != 5 {
		t.Errorf("%s", a)
	}
	first := p.call("run", "--rehearse", "-p", "the first task")
	second := p.call("run", "--rehearse", "-p", "the second task")
	for _, a := range []answer{first, second} {
		a.is(t, 4, "needs_input", "question")
	}
	list := p.call("runs", "list").Stdout
	if strings.Count(list, `"question":"Shall the greeting stay?"`) != 2 || !strings.Contains(list, `"cwd":"`+p.work) {
		t.Errorf("%s", list)
	}
	several := p.call("answer", "yes")
	for _, a := range []answer{first, second} {
		if several.Code != 2 || !strings.Contains(several.Stderr, "omniagent answer "+a.Data.ID+" 'TEXT'") {
			t.Errorf("%s", several)
		}
	}
	if a := p.call("answer", "run", "yes"); a.Code != 2 || !strings.Contains(a.Stdout, "is not a run") {
		t.Errorf("%s", a)
	}
	if a := p.call("answer", "anything", "--approve"); a.Code != 2 {
		t.Errorf("something else than a run approves: %s", a)
	}
	status := p.call("status").Stdout
	if !strings.Contains(status, "the first task") || !strings.Contains(status, "Shall the greeting stay?") {
		t.Errorf("%s", status)
	}
	p.call("answer", first.Data.ID, "yes").is(t, 0, "succeeded", "done")
	p.call("run", "--rehearse", "-p", "the third task")
	if a := p.call("runs", "cancel"); a.Code != 2 {
		t.Errorf("%s", a)
	}
	if a := p.call("runs", "cancel", "--all"); a.Code != 0 || strings.Count(a.Stdout, `"status":"cancelled"`) != 2 {
		t.Errorf("%s", a)
	}
	if a := p.call("runs", "cancel", "--all"); a.Code != 0 || !strings.Contains(a.Stdout, `"noop"`) {
		t.Errorf("%s", a)
	}
	if a := p.call("answer", "yes"); a.Code != 5 {
		t.Errorf("%s", a)
	}
	p.nothing()
}
