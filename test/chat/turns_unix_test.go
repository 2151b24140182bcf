//go:build unix

package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/kit/xnl"
	"omniagent/internal/llm/modelserver"
)

// TestQuestions: with the command or the difference in place, answered by a letter, a word, or a reason.
func TestQuestions(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"call":{"name":"Edit","input":{"file_path":"poem.txt","old_string":"line two","new_string":"LINE 2"}}},
		{"shell":"touch made; printf 'x\\n%.0s' 1 2 3 4 5 6 7 8 9"},{"say":"Said."}]`)
	p.write("poem.txt", "line one\nline two\n")
	w := p.open("--approval", "prompt")
	w.await("test-model")
	w.enters("first")
	w.await("-line two")
	w.await("+LINE 2")
	w.await("y yes")
	w.enters("yes")
	w.await("touch made")
	w.await("y yes")
	w.enters("not now, please")
	w.await("\nrefused: not now, please")
	w.await("Said.")
	w.enters("second")
	w.await("+LINE 2")
	w.await("y yes")
	w.enters("/status") // a command does not answer it
	w.await("agent:        native")
	w.enters("d") // is not offered
	w.await("not one of the answers here")
	w.await("y yes")
	w.enters("n")
	w.await("touch made")
	w.await("a always")
	w.enters("a")
	w.await("lines), /show ")
	w.await("Said.")
	w.enters("third")
	w.await("+LINE 2")
	w.await("y yes")
	w.enters("n")
	w.await("Said.") // the command was allowed before
	w.quits()
	if data, _ := os.ReadFile(filepath.Join(p.work, "poem.txt")); string(data) != "line one\nLINE 2\n" {
		t.Errorf("%q", data)
	}
	if _, err := os.Stat(filepath.Join(p.work, "made")); err != nil {
		t.Error(err)
	}
}

// TestALetterAnswers, but not one that was typed before the question stood there.
func TestALetterAnswers(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"touch made"},{"say":"Said."}]`)
	w := p.open("--approval", "prompt")
	w.await("test-model")
	w.types("y\ry") // the second may be read before the question or behind it
	w.await("y yes")
	if _, err := os.Stat(filepath.Join(p.work, "made")); err == nil {
		t.Fatal("a letter that was typed before the question has answered it")
	}
	w.pauses("\x12y") // a letter of a search does not answer
	if _, err := os.Stat(filepath.Join(p.work, "made")); err == nil {
		t.Fatal("a letter of a search has answered it")
	}
	w.types("\x07\x15n") // one that stands alone does
	w.await("\nrefused")
	w.await("Said.")
	w.quits()
}

// pauses types keys at a question, and waits for as long as letters need to count and to answer: a command that runs
// beside the question takes the time.
func (w *window) pauses(keys string) {
	w.t.Helper()
	w.types("\x15@!sleep 2; echo pau''sed\r" + keys)
	w.await("paused")
}

// TestAReasonIsNoLetter: what is typed key by key is a reason, although its first letter alone would be an answer.
func TestAReasonIsNoLetter(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"touch made"},{"say":"Said."}]`)
	w := p.open("--approval", "prompt")
	w.await("test-model")
	w.enters("first")
	w.await("y yes")
	w.pauses("")
	w.types("y\x1b[Cou must not\r") // the key between them makes the first letter one by itself
	w.await("\nrefused: you must not")
	w.await("Said.")
	w.quits()
	if _, err := os.Stat(filepath.Join(p.work, "made")); err == nil {
		t.Error("the first letter was taken for an answer")
	}
}

// TestLeavingWhileAsked: Ctrl-D at a question says that chat leaves behind the answer.
func TestLeavingWhileAsked(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"touch made"},{"say":"Said."}]`)
	w := p.open("--approval", "prompt")
	w.await("test-model")
	w.enters("first")
	w.await("y yes")
	w.types("\x04")
	w.await("Chat ends when everything is answered.")
	w.enters("n")
	if code := w.leaves(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestKeysOfATurn: Ctrl-C and Escape end it, what is typed meanwhile waits, and Ctrl-G reaches it.
func TestKeysOfATurn(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"while ! test -e go; do sleep 0.05; done"},{"say":"You said: ${input}"}]`)
	w := p.open("--yolo")
	w.await("test-model")
	for _, key := range []string{"\x03", "\x1b", "half a li\x03", "ne\x1b"} { // what is typed stays
		w.enters("\x15a turn")
		w.await("⏺ Bash")
		w.types(key)
		w.await("interrupted")
	}
	w.enters("a third")
	w.await("⏺ Bash")
	w.enters("and then this")
	w.await("waits for the end of the turn")
	w.types("quickly\x07")
	w.await("the turn that runs hears it")
	p.write("go", "")
	w.await("> and then this\n") // and not the line above the prompt
	w.await("You said: and then this")
	w.enters("/clear") // it happens behind the turn, and in one Ctrl-C only interrupts
	w.await(", conversation ")
	w.types("\x03")
	w.await("Ctrl-C again leaves")
	w.types("\x03")
	if code := w.leaves(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestPostponed: what cannot happen in a turn happens behind it, in the order in which it was typed; what cannot happen
// at all is said at once.
func TestPostponed(t *testing.T) {
	t.Parallel()
	p := newPlaceOf(t, scripts{
		"":       parsed(t, `[{"say":"ok"}]`),
		"a turn": parsed(t, `[{"shell":"while ! test -e go; do sleep 0.05; done"},{"say":"The turn is over."}]`),
	})
	w := p.open("--yolo")
	w.await("test-model")
	w.enters("a turn")
	w.await("⏺ Bash")
	w.enters("/agent cloude")
	w.await("claude is the nearest")
	w.enters("queued")
	w.await("· the message waits for the end of the turn")
	w.enters("@!echo from a command")
	w.await("from a command")
	w.await("\nfrom a command")
	w.enters("/clear --dry-run")
	w.await("/clear takes no arguments")
	w.enters("/clear")
	w.await("· /clear waits for the end of the turn")
	w.enters("of another conversation")
	w.await("· the message waits for the end of the turn")
	w.enters("/quit")
	p.write("go", "")
	for _, what := range []string{
		"The turn is over.", "> queued", "ok", "conversation sess-", "> of another conversation", "ok", "Go on with",
	} {
		w.await(what)
	}
	if code := w.leaves(); code != 0 {
		t.Errorf("exit %d", code)
	}
	var got []string
	for _, r := range p.requests() {
		words := strings.Split(strings.TrimSpace(said(r)), "\n")
		got = append(got, fmt.Sprint(len(r.Messages), " ", words[len(words)-1]))
	}
	if last := fmt.Sprint(p.requests()[len(got)-1].Messages); !strings.Contains(last, "@!echo from a command\nfrom a") {
		t.Errorf("what the command printed does not travel: %s", last)
	}
	if n := len(got); n != 4 || got[3] != "1 of another conversation" {
		t.Errorf("%q", got)
	}
}

// TestKilled: every message that was on the screen is there again, and the record is whole.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"I begin."},{"call":{"name":"TodoWrite","input":{"todos":[{"content":"one","status":"in_progress","activeForm":"doing one"}]}}},
		{"shell":"touch begun; while ! test -e go; do sleep 0.05; done"},{"say":"Said."}]`)
	w := p.open("--yolo")
	w.await("test-model")
	w.enters("hello")
	w.await("I begin.")
	w.await("⏺ Bash")
	dirs, err := filepath.Glob(filepath.Join(p.home, ".eidolon/projects/*/sessions/*"))
	if err != nil || len(dirs) != 1 {
		t.Fatal(dirs, err)
	}
	p.comes(filepath.Join(dirs[0], "todos.json"), "doing one") // what the journal has is written at once, but behind it
	w.kill()
	data, err := os.ReadFile(filepath.Join(dirs[0], "history.xnl"))
	if err != nil {
		t.Fatal(err)
	}
	nodes, _, err := xnl.Parse(string(data))
	var tags []string
	for _, n := range nodes {
		tags = append(tags, n.Tag)
	}
	if got := strings.Join(tags, " "); err != nil || !strings.Contains(got, "system user assistant") {
		t.Errorf("%s, %v", got, err)
	}
	for _, name := range []string{"todos.json", "history.json"} {
		var any any
		data, err := os.ReadFile(filepath.Join(dirs[0], name))
		if err != nil || json.Unmarshal(data, &any) != nil {
			t.Errorf("%s: %v %s", name, err, data)
		}
	}
	again := p.open("--continue", "--yolo")
	again.await("> hello")
	again.await("I begin.")
	again.await("⏺ Bash")
	p.write("go", "")
	again.enters("/sessions")
	again.await("no other conversation")
	again.enters("go on")
	again.await("Said.")
	again.quits()
	if all := p.requests(); len(all) == 0 || len(all[len(all)-1].Messages) < 3 {
		t.Errorf("it does not go on: %v", all)
	}
}

// TestReminders: before the first two messages and every tenth, and never by changing what was sent before, which the
// model's API has cached.
func TestReminders(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	w := p.open()
	w.await("test-model")
	for i := range 12 {
		message := fmt.Sprintf("message %d", i)
		w.enters(message)
		w.await("> " + message)
		w.await("\nok")
	}
	w.quits()
	if strings.Contains(w.text(), "Do not mention") {
		t.Error("the person sees it")
	}
	requests := p.requests()
	reminded(t, requests, 12, 0, 1, 10)
	for i, r := range requests {
		if i == 0 {
			continue
		}
		before, now := texts(t, requests[i-1]), texts(t, r)
		if !strings.HasPrefix(now, strings.TrimSuffix(before, "\n")) {
			t.Errorf("message %d: what was sent before is another now", i)
		}
	}
}

// TestRemindersOfMessagesThatWait: a message that is sent before the one before it is answered counts too.
func TestRemindersOfMessagesThatWait(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	w := p.open()
	w.await("test-model")
	for i := range 4 {
		w.enters(fmt.Sprintf("message %d", i))
	}
	for range 4 {
		w.await("\nok")
	}
	w.quits()
	reminded(t, p.requests(), 4, 0, 1)
}

// reminded wants that many requests, and a reminder in these.
func reminded(t *testing.T, requests []modelserver.Request, count int, want ...int) {
	t.Helper()
	got := []int{}
	for i, r := range requests {
		if strings.Contains(said(r), "Do not mention") {
			got = append(got, i)
		}
	}
	if len(requests) != count || !slices.Equal(got, want) {
		t.Fatalf("%d requests, reminded in %v; want %d and %v", len(requests), got, count, want)
	}
}

// texts are the messages of a request as they were sent.
func texts(t *testing.T, r any) string {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var request struct {
		System   any
		Messages []any
	}
	if err := json.Unmarshal(data, &request); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintln(&b, request.System)
	for _, m := range request.Messages {
		line, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// TestStopped: Ctrl-Z gives the terminal back to the shell, and fg goes on where it was.
func TestStopped(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	p.env = append(p.env, "PS1=shell> ", "PS2=", "ENV=", "OMNIAGENT="+program)
	w := p.start(exec.Command("sh", "-i"), 80, 24)
	w.await("shell> ")
	w.enters(`"$OMNIAGENT" chat ` + strings.Join(p.args, " "))
	w.await("test-model of anthropic")
	w.types("half a mess\x1a")
	w.await("shell> ")
	w.enters("stty -a | grep -o -w -e '-*icanon'")
	w.await("\nicanon")
	w.enters("fg")
	w.await("> half a mess")
	w.types("age\r")
	w.await("\nok")
	w.enters("/quit")
	w.await("Go on with")
	w.await("shell> ") // what is typed before is still the conversation's
	w.enters("exit")
	w.leaves()
	if got := said(p.requests()[0]); !strings.HasSuffix(got, "half a message") {
		t.Errorf("%q", got)
	}
}

// TestLeftRaw: what kill -9 leaves raw, the next command on the terminal puts back.
func TestLeftRaw(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	p.env = append(p.env, "OMNIAGENT="+program)
	state := `stty -a | grep -o -w -e '-*icanon' -e '-*echo' | tr '\n' ' '; echo`
	w := p.start(exec.Command("sh", "-c", `"$OMNIAGENT" chat `+strings.Join(p.args, " ")+"; "+state+
		`; "$OMNIAGENT" version >/dev/null; `+state), 80, 24)
	w.await("test-model of anthropic")
	markers, err := filepath.Glob(filepath.Join(p.home, ".local/state/omniagent/terminals/*.json"))
	if err != nil || len(markers) != 1 {
		t.Fatal(markers, err)
	}
	data, err := os.ReadFile(markers[0])
	var owner struct{ PID int }
	if err != nil || json.Unmarshal(data, &owner) != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if err := syscall.Kill(owner.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.await("-icanon -echo ")
	w.await("icanon echo ")
	w.leaves()
}

// TestNotified: who looks at another window hears of a question, by the program that is configured, or by a bell.
func TestNotified(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"bell":         "",
		"notification": "",
		"program":      `run.notify = ["sh", "-c", "cat >\"$HOME/told\""]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, `[{"shell":"touch made"},{"say":"end"}]`)
			p.write(filepath.Join(p.home, ".config/omniagent/config.toml"), config)
			if name == "notification" {
				p.env = append(p.env, "TERM_PROGRAM=ghostty")
			}
			w := p.open("--approval", "prompt")
			w.await("test-model")
			w.types("\x1b[O") // another window comes to the front
			w.enters("go")
			w.await("y yes")
			told := filepath.Join(p.home, "told")
			if config != "" {
				p.comes(told, `"task":"a question"`)
			}
			w.enters("y")
			w.await("end")
			w.quits()
			w.mu.Lock()
			defer w.mu.Unlock()
			if rang := strings.Contains(w.raw.String(), "\a"); rang != (config == "") {
				t.Errorf("the bell: %v", rang)
			}
			told9 := strings.Contains(w.raw.String(), "\x1b]9;omniagent: a question\a")
			if told9 != (name == "notification") {
				t.Errorf("the notification: %v", told9)
			}
		})
	}
}

// TestPicked: --resume without an id, and /resume, let the person choose from a list that typing narrows.
func TestPicked(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	for _, message := range []string{"about apples", "about pears"} {
		w := p.open()
		w.await("test-model")
		w.enters(message)
		w.await("\nok")
		w.quits()
	}
	w := p.open("--resume")
	w.await("? Which conversation?")
	w.await("about apples")
	w.enters("apples")
	w.await("> about apples")
	w.await("\nok")
	w.enters("/resume")
	w.await("? Which conversation?")
	w.await("about pears")
	w.types("\x1b") // stays
	w.await("a message, /help")
	w.enters("and plums")
	w.await("\nok")
	w.quits()
	requests := p.requests()
	if all := fmt.Sprint(requests[2].Messages); !strings.Contains(all, "about apples") ||
		!strings.Contains(all, "plums") {
		t.Errorf("%s", all)
	}
	// The one that was opened before the choice is gone: nobody said anything there.
	if ids := strings.Fields(p.run("session", "list", "--output", "id")); len(ids) != 2 {
		t.Errorf("%q", ids)
	}
}

// TestControlSequences: what a model and a tool say is shown, and obeyed by no terminal.
func TestControlSequences(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"a\u001b[2Jb\u001b]0;title\u0007c"},{"shell":"printf 'd\\033[2Je\\a'"},{"say":"end"}]`)
	w := p.open("--yolo")
	w.await("test-model")
	w.enters("go")
	w.await("end")
	w.quits()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, bad := range []string{"\x1b[2J", "\x1b]0;", "\a"} {
		if strings.Contains(w.raw.String(), bad) {
			t.Errorf("%q was written", bad)
		}
	}
}

// TestScreenReader: nothing moves, nothing is erased, nothing ticks.
func TestScreenReader(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"# Title\n\nWell."},{"shell":"sleep 2"},{"say":"end"}]`)
	w := p.open("--yolo", "--screen-reader")
	w.await("test-model")
	w.enters("go")
	w.await("Well.")
	w.await("⏺ Bash")
	w.await("end")
	w.quits()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range moves.FindAllString(w.raw.String(), -1) {
		if one != "\r" && !strings.HasSuffix(one, "h") && !strings.HasSuffix(one, "l") {
			t.Errorf("%q was written", one)
		}
	}
}

// TestScreenReaderIsAsked: what can be answered is said, since a screen reader reads nothing below the prompt.
func TestScreenReaderIsAsked(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"touch made"},{"say":"end"}]`)
	w := p.open("--approval", "prompt", "--screen-reader")
	w.await("test-model")
	w.enters("go")
	w.await("touch made")
	w.await("y yes")
	w.enters("yes")
	w.await("(no output)")
	w.await("end")
	w.quits()
}

// TestSkipped: a question that the person skips is neither refused nor a failure.
func TestSkipped(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"ask":"Which colour?"},{"say":"Said."}]`)
	w := p.open()
	w.await("test-model")
	w.enters("first")
	w.await("Return skips")
	w.enters("")
	w.await("\nskipped")
	w.await("Said.")
	w.quits()
	if shown := w.text(); strings.Contains(shown, "failed") || strings.Contains(shown, "refused") {
		t.Error(shown)
	}
}

// TestRehearsed: a rehearsal says that it is one, has no other model, and offers no conversation that it cannot
// continue.
func TestRehearsed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	w := p.open()
	w.await("test-model")
	w.enters("one")
	w.await("\nok")
	w.quits()
	w = p.sized(80, 24, "chat", "--rehearse")
	w.await("native, in a rehearsal: a script answers.")
	w.enters("/model gpt-9")
	w.await("nothing was changed: in a rehearsal")
	w.enters("/sessions")
	w.await("a rehearsal continues none of them")
	w.enters("/resume")
	w.await("a rehearsal cannot continue a saved conversation")
	w.quits()
	if shown := w.text(); strings.Contains(shown, "Which conversation?") || strings.Contains(shown, "gpt-9 now") {
		t.Error(shown)
	}
	p.run("run", "--rehearse", "--script", p.write("script.json", `[{"say":"Said."}]`), "-p", "two")
	w = p.open("--continue") // and not with the rehearsal
	w.await("> one")
	w.quits()
}

// TestClearKeepsTheMode: a new conversation asks for all that the one before asked for.
func TestClearKeepsTheMode(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	w := p.open()
	w.await("test-model")
	w.enters("/permissions plan")
	w.await("the permission mode is plan now")
	w.enters("/clear")
	w.await("permission mode plan")
	w.enters("/permissions")
	w.await("The mode is plan.")
	w.enters("/permissions auto-edit")
	w.await("the permission mode is auto-edit now")
	w.enters("/clear")
	w.await(", conversation ")
	w.enters("/permissions")
	w.await("The mode is default.") // only a person loosens it
	w.enters("/quit")
	if code := w.leaves(); code != 0 {
		t.Errorf("exit %d", code)
	}
}
