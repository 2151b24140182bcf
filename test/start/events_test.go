package start

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/talk/session"
	"omniagent/internal/testkit/hermetic"
)

// conversationOf begins a session in a place's home, with some records.
func conversationOf(t *testing.T, p place, id string, records int) *session.Session {
	t.Helper()
	own, err := session.Default(p.home).Create(t.Context(), session.Begin{
		ID: id, Agent: "claude", Model: "m", Cwd: p.work,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	grow(t, own, records)
	return own
}

// grow appends what an agent says in the hope of forging a line.
func grow(t *testing.T, own *session.Session, records int) {
	t.Helper()
	for n := range records {
		e := &event.Event{
			Kind: event.Text, Turn: 1, Delta: true,
			Text: fmt.Sprintf("%d }\n{\"seq\":1,\"kind\":\"end\"}\n\u2028\u009b\x00<b>", n),
		}
		if _, err := own.Append(session.Logged{Event: e}); err != nil {
			t.Fatal(err)
		}
	}
}

func (p place) events(args ...string) *exec.Cmd {
	cmd := exec.Command(program, append([]string{"session", "events"}, args...)...)
	cmd.Env, cmd.Dir = p.env, p.work
	return cmd
}

// TestEventsGoOnAnywhere: a program that follows a session and is killed at any byte gets the rest with --from. It
// then has what a program gets that was never killed. It ends by itself when no process has the session open.
func TestEventsGoOnAnywhere(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	own := conversationOf(t, p, "x", 300)
	var got []byte
	next := 1
	for range hermetic.Often(t, "OMNIAGENT_KILLS", 10) {
		cmd := p.events("x", "--follow", "--from", fmt.Sprint(next))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.CopyN(buffer{&got}, out, rand.Int64N(9000)+1)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		got = got[:bytes.LastIndexByte(got, '\n')+1] // what is torn is asked for again
		next = bytes.Count(got, []byte("\n")) + 1
		grow(t, own, 100) // more than it reads at once: a follower that has all waits
	}
	last := p.events("x", "--follow", "--from", fmt.Sprint(next))
	out, err := last.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := last.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	grow(t, own, 20)
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if err := last.Wait(); err != nil {
		t.Error(err)
	}
	got = append(append(got, first...), rest...)
	whole, err := p.events("x").Output()
	if err != nil || !bytes.Equal(got, whole) {
		t.Errorf("%v: %d bytes, want %d", err, len(got), len(whole))
	}
	seq := int64(0)
	for line := range strings.Lines(string(whole)) {
		var row struct {
			Seq, Turn int64
			Time      time.Time
			Kind      string
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Seq != seq+1 || row.Kind != "text" &&
			row.Seq > 1 || row.Time.IsZero() {
			t.Fatalf("%v behind %d: %s", err, seq, line)
		}
		if seq = row.Seq; strings.ContainsFunc(line, func(r rune) bool {
			return r < ' ' && r != '\n' || r >= 0x7f &&
				r <= 0x9f
		}) || strings.Contains(line, `\u003c`) {
			t.Fatalf("%q", line)
		}
	}
}

type buffer struct{ to *[]byte }

func (b buffer) Write(p []byte) (int, error) {
	*b.to = append(*b.to, p...)
	return len(p), nil
}

// TestEventsEnd: by a signal, with a reader that goes away, and with a fault where there is nothing to print.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	conversationOf(t, p, "x", 5000)
	cmd := p.events("x", "--follow", "--from", "5001")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("a signal ends it with %d", code)
	}
	piped := exec.Command("/bin/sh", "-c", `{ "$0" session events x; echo $? >&2; } | head -n 1`, program)
	var stderr strings.Builder
	piped.Env, piped.Dir, piped.Stderr = p.env, p.work, &stderr
	first, err := piped.Output()
	if err != nil || !strings.HasPrefix(string(first), `{"seq":1,`) || stderr.String() != "0\n" {
		t.Errorf("%v %s, stderr %q", err, first, &stderr)
	}
	full := exec.Command("/bin/sh", "-c", `exec "$0" session events x >/dev/full`, program)
	full.Env, full.Dir = p.env, p.work
	if said, _ := full.CombinedOutput(); full.ProcessState.ExitCode() != 1 ||
		!strings.Contains(string(said), "standard output cannot be written") {
		t.Errorf("a full disk: %d %s", full.ProcessState.ExitCode(), said)
	}
	for code, args := range map[int][]string{5: {"nobody"}, 0: {"x", "--from", "9999"}} {
		cmd := p.events(args...)
		// A failure is an envelope; records that are not there yet are nothing.
		if out, _ := cmd.Output(); cmd.ProcessState.ExitCode() != code || (len(out) > 0) != (code != 0) ||
			code != 0 && !strings.Contains(string(out), `"code":"NOT_FOUND"`) {
			t.Errorf("%v: %d %s", args, cmd.ProcessState.ExitCode(), out)
		}
	}
	if cmd := p.events("x", "--from", "0"); cmd.Run() == nil || cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("%v", cmd.ProcessState)
	}
}

// TestASecondHostIsToldOfTheFirst: who has the session open is named, with the code that says so.
func TestASecondHostIsToldOfTheFirst(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	conversationOf(t, p, "x", 1)
	cmd := exec.Command(program, "session", "delete", "x", "--confirm-destructive")
	cmd.Env, cmd.Dir = p.env, p.work
	out, _ := cmd.Output()
	if cmd.ProcessState.ExitCode() != 6 || !strings.Contains(string(out), `"code":"CONFLICT"`) ||
		!strings.Contains(string(out), `"holder_pid":`) {
		t.Errorf("%d %s", cmd.ProcessState.ExitCode(), out)
	}
	shown := p.run(t, "session", "show", "x")
	for _, want := range []string{
		`"agent":"claude"`, `"writer":{"pid":`, `"damage":[]`, `"unfinished_turns":[]`,
		`"records":2`,
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not in %s", want, shown)
		}
	}
}

// TestQuestionOfADeadProcess: a question that nobody answered outlives the process that asked it. The answer becomes
// the next message of the conversation that goes on, and only the first one counts.
func TestQuestionOfADeadProcess(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	w := wires()[0]
	args, env, _ := w.scripted(t, `[{"shell":"touch one"},{"say":"done"}]`)
	r := p.launch(t, env, append(args, "--session-id", "s", "--permission-mode", "prompt")...)
	r.say(`{"type":"user","content":"go"}`)
	r.await(func(line string) bool { return strings.Contains(line, `"permission_request"`) })
	r.killed.Store(true)
	_ = r.cmd.Process.Kill()
	<-r.ended

	again, _, _ := w.scripted(t, `[{"say":"I heard: ${input}"}]`)
	r = p.launch(t, env, append(again, "--resume", "s", "--input-format", "stream-json")...)
	r.say(`{"type":"tool_approval","id":"q1.1","approved":true}`)
	r.say(`{"type":"tool_approval","id":"q1.1","approved":false}`)
	_, exit := r.end()
	said := strings.Join(r.all(), "\n")
	if exit != 0 || !strings.Contains(said, "The answer is: allow") || !strings.Contains(said, "touch one") {
		t.Errorf("exit %d: %s\n%s", exit, said, r.stderr.String())
	}
	if !strings.Contains(r.stderr.String(), "answered already") {
		t.Errorf("the second answer is not refused: %s", r.stderr.String())
	}
	if _, err := os.Stat(filepath.Join(p.work, "one")); err == nil {
		t.Error("the call of the dead process ran")
	}
}
