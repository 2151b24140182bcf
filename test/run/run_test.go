//go:build unix

package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDone: the task is done, and what changed is told with lines.
func TestDone(t *testing.T) {
	t.Parallel()
	p := newPlace(t).walled().agent("scribe",
		`cat >task; printf 'one\ntwo\n' >new.txt; sed -i s/a/b/ old.txt; echo "I wrote it."`)
	p.put("old.txt", "a\n")
	a := p.run("scribe", "--yolo")
	a.is(t, 0, "succeeded", "done")
	if a.Data.Changed == nil {
		t.Fatal("what changed is not known")
	}
	files := map[string]string{}
	for _, f := range a.Data.Changed.Files {
		name, _ := strings.CutPrefix(f.Path, p.work+"/")
		files[name] = f.Status
		if name == "new.txt" && (f.Added == nil || *f.Added != 2 || *f.Removed != 0) {
			t.Errorf("%s", a)
		}
	}
	if len(files) != 3 || files["new.txt"] != "added" || files["old.txt"] != "modified" || a.Data.Changed.Count != 3 {
		t.Errorf("%s", a)
	}
	if p.read("task") != "the task" || strings.TrimSpace(a.Data.Text.Value) != "I wrote it." || a.Data.Attempts != 1 ||
		a.Data.ExitCode == nil || *a.Data.ExitCode != 0 || a.Data.Fingerprint == "" || len(a.Data.Evidence) == 0 {
		t.Errorf("%s", a)
	}
	diff, err := p.command("runs", "diff", a.Data.ID).Output()
	if err != nil || !strings.Contains(string(diff), "+two") || !strings.Contains(string(diff), "-a\n+b") {
		t.Errorf("%v %s", err, diff)
	}
	raw, err := p.command("runs", "logs", a.Data.ID, "--raw", "stdout").Output()
	if err != nil || string(raw) != "I wrote it.\n" {
		t.Errorf("%v %q", err, raw)
	}
	p.nothing()
}

// TestUnchanged: nothing differs, and that is told.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("reader", `echo "All is well."`)
	a := p.run("reader", "--yolo")
	a.is(t, 0, "succeeded", "done_unchanged")
	if a.Data.Changed == nil || a.Data.Changed.Count != 0 {
		t.Errorf("%s", a)
	}
}

// TestRecord: the record has every member that the design asks for.
func TestRecord(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >/dev/null; echo done; echo oops >&2`)
	p.env = append(p.env, "SECRET_X=1", "NODE_OPTIONS=--require=x")
	a := p.run("scribe", "--yolo")
	shown := p.call("runs", "show", a.Data.ID)
	for _, member := range []string{
		"schema_version", "run_id", "task_id", "attempt", "session_key", "agent_id", "adapter_id", "cli_version",
		"executable", "fingerprint", "command_display", "cwd", "mode", "node_id", "queued_at", "started_at",
		"first_output_at", "ended_at", "duration_ms", "exit_code", "signal", "status", "timeout_reason", "retry_count",
		"clarification_count", "output_bytes", "truncated", "usage", "permission_denials", "changed",
		"policy_decisions", "env_keys", "summary", "error",
	} {
		if !strings.Contains(shown.Stdout, `"`+member+`":`) {
			t.Errorf("no %s", member)
		}
	}
	d := shown.Data
	if d.Bytes.Stdout != 5 || d.Bytes.Stderr != 5 || d.Executable != filepath.Join(p.bin, "scribe") ||
		!slices.Contains(d.EnvKeys, "HOME") || slices.Contains(d.EnvKeys, "SECRET_X") ||
		slices.Contains(d.EnvKeys, "NODE_OPTIONS") {
		t.Errorf("%s", shown)
	}
	info, err := os.Stat(d.Path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
}

// TestHang: silence ends at a clock of its own, with everything that was started.
func TestHang(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("mute", `sleep 1000`).agent("stubborn",
		`trap '' TERM INT; sleep 1000 & echo working; wait; wait`)
	a := p.run("mute", "--yolo", "--idle-timeout", "300ms")
	a.is(t, 10, "stalled", "idle")
	a = p.run("stubborn", "--yolo", "--idle-timeout", "300ms")
	a.is(t, 10, "stalled", "idle")
	shown := p.call("runs", "show", a.Data.ID)
	if shown.Data.TimeoutReason != "idle" {
		t.Errorf("%s", shown)
	}
	p.nothing()
}

// TestTooLong: an agent that shows signs of life ends at the time limit.
func TestTooLong(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("slow", `while :; do echo on; sleep 0.1; done`)
	a := p.run("slow", "--yolo", "--idle-timeout", "20s", "--timeout", "1s")
	a.is(t, 10, "timed_out", "max_duration")
	p.nothing()
}

// TestFlood: output without end takes no memory that grows with it, and every byte is kept.
func TestFlood(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("loud", `head -c 20000000 /dev/zero | tr '\0' 'x'`)
	a := p.run("loud", "--yolo")
	a.is(t, 0, "succeeded", "done_unchanged")
	info, err := os.Stat(filepath.Join(p.home, ".local/state/omniagent/runs", a.Data.ID, "stdout"))
	if err != nil || info.Size() != 20000000 {
		t.Errorf("%v %v", info, err)
	}
}

// TestCrash: an exit code of the agent, and a signal that somebody sends it.
func TestCrash(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("broken", `echo "it went wrong" >&2; exit 3`).agent("bad", `exit 7`).
		agent("shot", `echo one; kill -9 $$`)
	p.run("bad", "--yolo").is(t, 1, "failed", "crashed")
	a := p.run("shot", "--yolo")
	a.is(t, 1, "failed", "killed")
	if want := "omniagent runs logs " + a.Data.ID; !strings.Contains(strings.Join(a.Data.Summary.Next, ";"), want) {
		t.Errorf("no next step: %s", a)
	}
	p.nothing()
}

// TestSilentSuccess: an exit code of 0 without a word is a failure.
func TestSilentSuccess(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("empty", `exit 0`)
	p.run("empty", "--yolo").is(t, 1, "failed", "no_answer")
}

// TestRequired: what is missing is asked for before anything begins, all of it at once.
func TestRequired(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >README; echo done`)
	a := p.run("scribe", "--yolo", "--require", "colour=Which colour?", "--require", "size=How large?")
	a.is(t, 4, "needs_input", "missing_input")
	if len(a.Data.Questions) != 2 || a.Data.Questions[0].Text != "Which colour?" || p.read("README") != "" ||
		a.Error.Code != "NEEDS_INPUT" || !strings.Contains(a.Error.Suggestion, "omniagent answer "+a.Data.ID) {
		t.Errorf("%s", a)
	}
	for _, dry := range [][]string{{"--dry-run"}, nil} {
		wrong := p.call(append([]string{"answer", a.Data.ID, "--approve", "--question", "colour"}, dry...)...)
		if wrong.Code != 2 {
			t.Errorf("an approval does not name a colour: %s", wrong)
		}
	}
	a = p.call("answer", a.Data.ID, "blue", "--question", "colour")
	a.is(t, 4, "needs_input", "missing_input")
	a = p.call("answer", a.Data.ID, "large")
	a.is(t, 0, "succeeded", "done")
	if !strings.Contains(p.read("README"), "blue") || !strings.Contains(p.read("README"), "large") {
		t.Errorf("%q", p.read("README"))
	}
	again := p.call("answer", a.Data.ID, "red")
	if again.Code != 6 {
		t.Errorf("%s", again)
	}
	a = p.run("scribe", "--yolo", "--require", "colour=Which colour?", "--answer", "colour=green")
	a.is(t, 0, "succeeded", "done")
	if !strings.Contains(p.read("README"), "green") {
		t.Errorf("%q", p.read("README"))
	}
}

// TestQuestion: what the native agent asks waits for a person, in another process, and the conversation goes on.
func TestQuestion(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"ask":"Which colour?","usage":{"input":100,"output":7}},{"say":"never said"}]`)
	began := time.Now()
	a := p.call("run", "--agent", "native", "-m", "m", "--provider", "openai", "-p", "go")
	a.is(t, 4, "needs_input", "question")
	if len(a.Data.Questions) != 1 || a.Data.Questions[0].Text != "Which colour?" || a.Data.Questions[0].Tool != "" {
		t.Fatalf("%s", a)
	}
	p.nothing()
	asked := time.Now()
	time.Sleep(time.Second) // the person thinks, and that is what is measured
	again := p.call("answer", a.Data.ID, "blue", "--provider", "openai")
	again.is(t, 7, "blocked", "question_repeated")
	if again.Data.Session != a.Data.Session || again.Data.Attempts != 2 || again.Error.Code != "QUESTION_REPEATED" {
		t.Errorf("%s", again)
	}
	shown := p.call("runs", "show", a.Data.ID)
	if d := shown.Data; d.WaitedMS < 1000 || d.WaitedMS > time.Since(asked).Milliseconds()+1000 ||
		d.DurationMS > time.Since(began).Milliseconds()-1000 {
		t.Errorf("it waited %d ms and lasted %d ms beside that", d.WaitedMS, d.DurationMS)
	}
	if u := shown.Data.Usage; u == nil || u.Input != 200 || u.Output != 14 {
		t.Errorf("the usage of both attempts is %+v", u)
	}
	if shown.Data.Clarifications != 1 || shown.Data.Retries != 0 || shown.Data.Answered[0].Answer != "blue" {
		t.Errorf("%s", shown)
	}
}

// TestLiveAnswer: an agent that is left behind waits for the answer, and goes on in the same turn.
func TestLiveAnswer(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"ask":"Which colour?"},{"say":"it was ${result}"}]`)
	a := p.call("run", "--agent", "native", "-m", "m", "--provider", "openai", "-p", "go", "--detach")
	if a.Code != 0 || a.Data.Job != a.Data.ID || a.Data.PID == 0 {
		t.Fatalf("%s", a)
	}
	p.reaches(a.Data.ID, "needs_input")
	b := p.call("answer", a.Data.ID, "blue")
	b.is(t, 0, "succeeded", "done_unchanged")
	if !strings.Contains(b.Data.Text.Value, "blue") || b.Data.Attempts != 1 || b.Data.WaitedMS == 0 {
		t.Errorf("%s", b)
	}
	if s := p.call("runs", "status", a.Data.ID); s.Code != 0 || s.Data.Status != "succeeded" {
		t.Errorf("%s", s)
	}
	if s := p.call("runs", "status", "run-00000000"); s.Code != 5 {
		t.Errorf("%s", s)
	}
	c := p.call("answer", a.Data.ID, "red")
	told := regexp.MustCompile(`^question \S+ was answered at 2\S+Z by process [1-9]\d*, and ` + a.Data.ID +
		` has ended \(succeeded\)$`)
	if c.Code != 6 || c.Error == nil || !told.MatchString(c.Error.Message) ||
		c.Error.Suggestion != "omniagent runs retry "+a.Data.ID {
		t.Errorf("%s", c)
	}
	p.nothing()
}

// reaches waits until a run is in a state.
func (p *place) reaches(id, status string) answer {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		a := p.call("runs", "show", id)
		if a.Data.Status == status {
			return a
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("not %s: %s", status, a)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestSignal: a signal ends the run and all that it started, and the record says so.
func TestSignal(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("mute", `sleep 1000`)
	cmd := p.command("run", "--agent", "mute", "-p", "x", "--yolo", "--output", "json")
	done := make(chan answer)
	go func() { done <- p.ended(cmd) }()
	id := p.appears()
	p.reaches(id, "running")
	_ = cmd.Process.Signal(syscall.SIGINT)
	a := <-done
	a.is(t, 130, "cancelled", "cancelled")
	if shown := p.call("runs", "show", id); shown.Data.Status != "cancelled" {
		t.Errorf("%s", shown)
	}
	p.nothing()
}

// appears waits for the first run and returns its id.
func (p *place) appears() string {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		found, _ := filepath.Glob(filepath.Join(p.home, ".local/state/omniagent/runs/run-*/run.json"))
		if len(found) > 0 {
			return filepath.Base(filepath.Dir(found[0]))
		}
		if time.Now().After(deadline) {
			p.t.Fatal("there is no run")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestCancel: a run that was left behind is ended from another process.
func TestCancel(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("mute", `sleep 1000`)
	a := p.run("mute", "--yolo", "--detach")
	p.reaches(a.Data.ID, "running")
	if s := p.call("runs", "status", a.Data.ID); s.Code != 3 || s.Data.Status != "running" {
		t.Errorf("%s", s)
	}
	for _, lists := range []string{"status", "doctor"} {
		if out, err := p.command(lists, "--output", "json").Output(); err != nil ||
			lists == "status" && !strings.Contains(string(out), a.Data.ID) ||
			lists == "doctor" && !strings.Contains(string(out), "1 under way") {
			t.Errorf("%v %s", err, out)
		}
	}
	if c := p.call("runs", "cancel", a.Data.ID); c.Code != 0 || c.Data.Status != "cancelled" {
		t.Errorf("%s", c)
	}
	if c := p.call("runs", "cancel", a.Data.ID); c.Code != 0 || !strings.Contains(c.Stdout, `"noop"`) {
		t.Errorf("%s", c)
	}
	if s := p.call("runs", "status", a.Data.ID); s.Code != 4 || s.Data.Status != "cancelled" {
		t.Errorf("%s", s)
	}
	p.nothing()
	out, err := p.command("runs", "watch", a.Data.ID).Output()
	var exit *exec.ExitError
	if !asExit(err, &exit) || exit.ExitCode() != 130 || !strings.Contains(string(out), `"status":"cancelled"`) {
		t.Errorf("%v %s", err, out)
	}
}

func asExit(err error, exit **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError) //nolint:errorlint // it is what Output returns
	*exit = e
	return ok
}

// TestKilled: kill -9 of the owner leaves nothing alive, and the next command says that nobody knows the outcome.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("mute", `touch began; sleep 1000`)
	a := p.run("mute", "--yolo", "--detach")
	p.reaches(a.Data.ID, "running")
	if err := syscall.Kill(a.Data.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	shown := p.reaches(a.Data.ID, "unknown_outcome")
	if shown.Error != nil || shown.Data.Reason != "owner_died" {
		t.Errorf("%s", shown)
	}
	p.nothing()
	if b := p.call("answer", a.Data.ID, "x"); b.Code != 6 {
		t.Errorf("%s", b)
	}
	if b := p.call("runs", "continue", a.Data.ID); b.Code != 6 {
		t.Errorf("%s", b)
	}
}

// TestWatch: a reader from any line on gets the rest.
func TestWatch(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("talk", `for i in 1 2 3 4 5; do echo line $i; sleep 0.05; done`)
	a := p.run("talk", "--yolo", "--detach")
	whole, err := p.command("runs", "watch", a.Data.ID).Output()
	if err != nil {
		t.Fatalf("%v %s", err, whole)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(whole), "\n"), "\n")
	for n := range lines {
		rest, err := p.command("runs", "watch", a.Data.ID, "--from", itoa(n+1)).Output()
		if err != nil || strings.TrimSpace(string(rest)) != strings.TrimSpace(strings.Join(lines[min(n, len(lines)-1):],
			"")) {
			t.Errorf("from %d: %v\n%s\nof\n%s", n+1, err, rest, whole)
		}
		if n < len(lines)-1 && !strings.HasPrefix(lines[n], `{"seq":`+itoa(n+1)+`,`) {
			t.Errorf("line %d: %s", n+1, lines[n])
		}
	}
}

func itoa(n int) string {
	if n >= 10 {
		return itoa(n/10) + string(rune('0'+n%10))
	}
	return string(rune('0' + n))
}

// TestChain: the next agent is tried when one cannot begin, and only then.
func TestChain(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `echo done`).agent("broken", `exit 1`)
	a := p.run("codex,scribe", "--yolo")
	a.is(t, 0, "succeeded", "done_unchanged")
	if a.Data.Agent != "scribe" || a.Data.Attempts != 2 ||
		!strings.Contains(a.Stdout, "codex could not begin: not installed") {
		t.Errorf("%s", a)
	}
	p.run("codex", "--yolo").is(t, 5, "failed", "not_installed")
	if a := p.run("broken,scribe", "--yolo"); a.Code != 1 || a.Data.Agent != "broken" {
		t.Errorf("%s", a)
	}
	if a := p.run("nosuch", "--yolo"); a.Code != 5 {
		t.Errorf("%s", a)
	}
}

// TestNotAllowed: a program that is not the one that was allowed is not started, and the next agent gets the task.
func TestNotAllowed(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("first", `touch started; echo one`).agent("second", `echo two`)
	p.run("first", "--yolo").is(t, 0, "succeeded", "done")
	p.put(filepath.Join(p.bin, "first"), "#!/bin/sh\ntouch again; echo one\n")
	a := p.run("first", "--yolo")
	a.is(t, 7, "blocked", "not_allowed")
	if !strings.Contains(a.Stderr, "omniagent agents allow first") || p.read("again") != "" {
		t.Errorf("%s", a)
	}
	if a := p.run("first,second", "--yolo"); a.Code != 0 || a.Data.Agent != "second" ||
		!strings.Contains(a.Stdout, "first could not begin: not allowed") {
		t.Errorf("%s", a)
	}
	if _, err := os.Stat(filepath.Join(p.work, "again")); err == nil {
		t.Error("the other program was started")
	}
	p.call("agents", "deny", "second")
	p.run("second", "--yolo").is(t, 7, "blocked", "not_allowed")
	p.call("agents", "allow", "first")
	p.run("first", "--yolo").is(t, 0, "succeeded", "done")
	p.nothing()
}

// TestQueue: no more runs than run.parallel are under way, and the others wait.
func TestQueue(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("mute", `sleep 1000`).agent("quick", `echo done`).configured("[run]\nparallel = 1\n")
	first := p.run("mute", "--yolo", "--detach")
	p.reaches(first.Data.ID, "running")
	second := p.run("quick", "--yolo", "--detach")
	p.reaches(second.Data.ID, "queued")
	p.call("runs", "cancel", first.Data.ID)
	if a := p.reaches(second.Data.ID, "succeeded"); a.Data.Agent != "quick" {
		t.Errorf("%s", a)
	}
	p.nothing()
}

// TestRetry: the task again, in a run of its own, with the answers that were given.
func TestRetry(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("flaky", `cat >task; if [ -e again ]; then echo done; else touch again; exit 4; fi`)
	a := p.run("flaky", "--yolo", "--require", "colour=Which?", "--answer", "colour=blue")
	a.is(t, 1, "failed", "crashed")
	b := p.call("runs", "retry", a.Data.ID)
	b.is(t, 0, "succeeded", "done_unchanged") // the same task is written again
	if b.Data.ID == a.Data.ID || !strings.Contains(p.read("task"), "blue") {
		t.Errorf("%s", b)
	}
	list := p.call("runs", "list")
	if strings.Count(list.Stdout, `"run_id"`) != 2 {
		t.Errorf("%s", list)
	}
	if c := p.call("runs", "delete", a.Data.ID, "--confirm-destructive"); c.Code != 0 {
		t.Errorf("%s", c)
	}
	if c := p.call("runs", "show", a.Data.ID); c.Code != 5 {
		t.Errorf("%s", c)
	}
}

// TestStream: the events come first, and the envelope is the last line.
func TestStream(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `echo done`)
	a := p.run("scribe", "--yolo", "--stream")
	a.is(t, 0, "succeeded", "done_unchanged")
	lines := strings.Split(strings.TrimSpace(a.Stdout), "\n")
	if len(lines) < 5 || !strings.Contains(lines[0], `"state":"starting"`) ||
		!strings.Contains(a.Stdout, `"kind":"text"`) {
		t.Errorf("%s", a)
	}
}

// TestWrong: wrong calls are refused before anything begins.
func TestWrong(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `echo done`)
	for _, args := range [][]string{
		{"run", "--agent", "scribe"},
		{"run", "-p", "x", "--agent", ","},
		{
			"run", "--agent", "scribe", "-p", "x", "--require",
			"colour",
		},
		{"run", "--agent", "scribe", "-p", "x", "--yolo", "--auto-edit"},
		{"run", "--agent", "scribe", "-p", "  "},
	} {
		if a := p.call(args...); a.Code != 2 && a.Code != 4 || a.Error == nil {
			t.Errorf("%q: %s", args, a)
		}
	}
	if a := p.call("run", "do it", "--agent", "scribe"); a.Code != 2 || // the hint is what was meant
		!strings.Contains(a.Stderr, "hint: omniagent run '--task=do it' --agent scribe") {
		t.Errorf("%s", a)
	}
	for _, args := range [][]string{
		{"runs", "show", "run-none"},
		{"runs", "cancel", "run-none"},
		{"answer", "run-none", "x"},
		{
			"runs", "retry",
			"run-none",
		},
		{"runs", "continue", "run-none"},
	} {
		if a := p.call(args...); a.Code != 5 || a.Error.Code != "NOT_FOUND" {
			t.Errorf("%q: %s", args, a)
		}
	}
}

// TestKnownAnswers: an agent that cannot go on with a session gets the task again, with what was answered.
func TestKnownAnswers(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("fake", `cat >asked; if grep -q blue asked; then cp asked README; echo done
else printf 'Which colour? '; sleep 1000; fi`)
	a := p.run("fake", "--yolo", "--idle-timeout", "2s")
	a.is(t, 4, "needs_input", "question")
	b := p.call("answer", a.Data.ID, "blue")
	b.is(t, 0, "succeeded", "done")
	if got := p.read("README"); !strings.HasPrefix(got, "the task\n") || !strings.Contains(got, "Answer: blue") {
		t.Errorf("%q", got)
	}
	if b.Data.Attempts != 2 {
		t.Errorf("%s", b)
	}
}

// TestBinaryDiff: git apply makes of the diff what the run made, also of files that are not text, and takes it back.
func TestBinaryDiff(t *testing.T) {
	t.Parallel()
	p := newPlace(t).walled().agent("painter", `head -c 3000 /dev/urandom >added; printf 'a\0c' >changed; rm deleted; chmod +x mode
printf 'text\n' >lines; : >emptied; ln -sf added link; echo done`)
	before := filepath.Join(t.TempDir(), "before")
	for _, name := range []string{"changed", "deleted", "mode", "emptied"} {
		p.put(name, name+"\x00\n"+strings.Repeat("\x01\xff", 100))
		if err := os.Chmod(filepath.Join(p.work, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.put("lines", "other\n")
	for _, repository := range []string{"", "sha1", "sha256"} {
		if repository != "" {
			p.sh("rm -rf .git; git init -q --object-format=" + repository + " .")
		}
		p.sh("rm -rf " + before + "; cp -a . " + before)
		a := p.run("painter", "--yolo")
		a.is(t, 0, "succeeded", "done")
		diff, err := p.command("runs", "diff", a.Data.ID).Output()
		if err != nil || !strings.Contains(string(diff), "GIT binary patch") {
			t.Fatalf("%v\n%s", err, diff)
		}
		p.put("../patch", string(diff))
		patch := filepath.Dir(p.work) + "/patch"
		p.sh("cd " + before + "; git apply " + patch + "; diff -r --no-dereference -x .git . " + p.work +
			"; git apply --reverse " + patch + "; test -f deleted; test ! -e added")
		p.sh("rm -rf ./*; cp -a " + before + "/. .")
	}
}

// sh runs a line of a shell in the workspace.
func (p *place) sh(line string) {
	p.t.Helper()
	cmd := exec.Command("sh", "-ec", line)
	cmd.Dir = p.work
	cmd.Env = append(slices.Clone(p.env), "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// TestOnlyWhatGitIgnoresChanged: the words for a person have what git ignores, and what takes it back.
func TestOnlyWhatGitIgnoresChanged(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put(filepath.Join(p.home, "script.json"), `[{"shell":"echo x >build.log"},{"say":"ok"}]`)
	p.put(".gitignore", "*.log\n")
	p.sh("git init -q && git add . && git -c user.name=a -c user.email=a@example.org commit -qm first")
	script := filepath.Join(p.home, "script.json")
	out, err := p.command("run", "--rehearse", "--script", script, "--yolo", "-p", "build", "--output",
		"plain").CombinedOutput()
	if said := string(out); err != nil || strings.Contains(said, "no file changed") ||
		!strings.Contains(said, "No file has changed, but for 1 file that git ignores.") ||
		!strings.Contains(said, "Take back: omniagent undo") {
		t.Errorf("%v: %s", err, said)
	}
}
