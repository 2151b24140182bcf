package start

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// TestKilled ends the agent at random moments of a turn that writes and runs commands which leave processes behind.
// What was running is gone, each file is old or new, and the session can be resumed with at most its last record
// missing.
func TestKilled(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	old, fresh := strings.Repeat("old\n", 50_000), strings.Repeat("fresh\n", 50_000)
	script := fmt.Sprintf(`[
		{"say":"I begin."},
		{"write":{"path":"a.txt","content":%q}},
		{"shell":"sleep 1000 & setsid sleep 1001 & (setsid sh -c 'sleep 1002 &' &) ; sleep 0.01"},
		{"write":{"path":"a.txt","content":%q}},
		{"call":{"name":"Bash","input":{"command":"sleep 1003","run_in_background":true}}},
		{"shell":"sleep 0.02"},
		{"write":{"path":"b.txt","content":%q}},
		{"say":"done"}]`, fresh, old, fresh)
	w := wires()[0]
	args, env, _ := w.scripted(t, script)
	again, _, _ := w.scripted(t, `[{"say":"alive"}]`)
	for i := range hermetic.Often(t, "OMNIAGENT_KILLS", 10) {
		p := newPlace(t)
		p.write(t, "a.txt", old)
		mark := fmt.Sprintf("OMNI_TEST_MARK=%d.%d", os.Getpid(), random.Int64())
		r := p.launch(t, append(env, mark), append(args, "-p", "go", "--permission-mode", "auto", "--session-id",
			"s")...)
		_ = r.stdin.Close()
		r.await(func(line string) bool { return strings.Contains(line, `"init"`) })
		after := time.Duration(random.Int64N(int64(120 * time.Millisecond)))
		time.Sleep(after) // the moment itself, not a synchronisation
		r.killed.Store(true)
		_ = r.cmd.Process.Kill()
		<-r.ended
		over := time.Now().Add(10 * time.Second)
		for left := marked(mark); left != ""; left = marked(mark) {
			if time.Now().After(over) {
				t.Fatalf("moment %d, %v after the start, left:\n%s", i, after, left)
			}
			time.Sleep(5 * time.Millisecond)
		}
		for name, may := range map[string][]string{"a.txt": {old, fresh}, "b.txt": {"", fresh}} {
			data, _ := os.ReadFile(filepath.Join(p.work, name))
			if string(data) != may[0] && string(data) != may[1] {
				t.Fatalf("moment %d, %v after the start: %s has %d bytes", i, after, name, len(data))
			}
		}
		told := r.all()
		r = p.launch(t, env, append(again, "-p", "are you there?", "--resume", "s")...)
		messages, exit := r.end()
		if exit != 0 {
			locks, _ := os.ReadFile("/proc/locks")
			t.Logf("%s", locks)
		}
		if exit != 0 || messages[len(messages)-2]["result"] != "alive" {
			t.Fatalf("moment %d, %v after the start: exit %d\n%s\n%s", i, after, exit, strings.Join(r.lines, "\n"),
				r.stderr.String())
		}
		journal, _ := os.ReadFile(filepath.Join(p.home, ".yume", "sessions", "s.jsonl"))
		missing := 0
		for _, line := range told { // what the host has been told of tools is kept, but for the last answer
			if strings.Contains(line, `"tool_result"`) && !strings.Contains(line, "interrupted") {
				missing++
			}
		}
		if kept := bytes.Count(journal, []byte(`"kind":"result"`)); kept < missing-1 {
			t.Fatalf("moment %d: %d results were told, %d are kept", i, missing, kept)
		}
	}
}

// TestTurnOfADeadProcess: the process that resumes a session says on standard error that the turn before has no end,
// and has one result, which is that of its own message.
func TestTurnOfADeadProcess(t *testing.T) {
	t.Parallel()
	w := wires()[0]
	args, env, _ := w.scripted(t, `[{"shell":"touch made; sleep 1000"}]`)
	again, _, _ := w.scripted(t, `[{"say":"alive"}]`)
	for _, flags := range [][]string{
		nil,
		{"--output-format", "json"},
		{"--dialect", "claude", "--output-format", "stream-json", "--verbose"},
	} {
		p := newPlace(t)
		r := p.launch(t, env, append(args, "-p", "go", "--permission-mode", "auto", "--session-id", "s")...)
		p.await(t, "made")
		r.killed.Store(true)
		_ = r.cmd.Process.Kill()
		<-r.ended
		r = p.launch(t, env, append(append(again, "-p", "are you there?", "--resume", "s"), flags...)...)
		<-r.ended
		told := strings.Join(r.lines, "\n")
		if exit := r.cmd.ProcessState.ExitCode(); exit != 0 || strings.Count(told, `"type":"result"`) != 1 ||
			!strings.Contains(told, `"result":"alive"`) {
			t.Errorf("%v: exit %d\n%s", flags, exit, told)
		}
		if said := r.stderr.String(); !strings.Contains(said, "died before the turn ended") {
			t.Errorf("%v: standard error: %q", flags, said)
		}
	}
}

// marked lists the processes that have the mark in their environment.
func marked(mark string) string {
	names, _ := filepath.Glob("/proc/[0-9]*")
	var found strings.Builder
	for _, name := range names {
		env, err := os.ReadFile(name + "/environ")
		if err != nil || !bytes.Contains(env, []byte(mark)) {
			continue
		}
		line, _ := os.ReadFile(name + "/cmdline")
		stat, _ := os.ReadFile(name + "/stat")
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && !strings.HasPrefix(rest, "Z") {
			fmt.Fprintf(&found, "%s %q\n", name, line)
		}
	}
	return found.String()
}

// TestHostIsGoneWhileACommandRuns: a host that goes away while a command runs takes the turn with it at once, although
// nothing is to be written, and all is saved.
func TestHostIsGoneWhileACommandRuns(t *testing.T) {
	t.Parallel()
	args, env, _ := wires()[2].scripted(t,
		`[{"shell":"touch made; sleep 1000 & setsid sleep 1001 & sleep 1002"},{"say":"done"}]`)
	p := newPlace(t)
	mark := fmt.Sprintf("OMNI_TEST_MARK=gone.%d", os.Getpid())
	cmd := exec.Command(program,
		append([]string{"start", "--cwd", p.work, "--session-id", "s", "--permission-mode", "auto"}, args...)...)
	cmd.Env, cmd.Dir = append(append(p.env, env...), mark), p.home
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	_ = w.Close()
	if _, err := io.WriteString(in, `{"type":"user","content":"go"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for over := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.work, "made")); err == nil {
			break
		}
		if time.Now().After(over) {
			t.Fatal("the command does not run")
		}
	}
	_, _ = in.Close(), out.Close()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(15 * time.Second):
		t.Fatalf("it goes on without a host:\n%s", marked(mark))
	}
	if left := marked(mark); left != "" {
		t.Errorf("left:\n%s", left)
	}
	journal, _ := os.ReadFile(filepath.Join(p.home, ".yume", "sessions", "s.jsonl"))
	if !bytes.Contains(journal, []byte("interrupted")) {
		t.Errorf("not saved: %s", journal)
	}
}

// TestLongInputIsNotHeld: input without an end takes memory for a few messages at most, in each form that is read, and
// the limit is told.
func TestLongInputIsNotHeld(t *testing.T) {
	t.Parallel()
	const most, sent = 450 << 10, 700 // KiB of memory at the peak, MiB of input
	for name, c := range map[string]struct {
		begin, text string
		args        []string
	}{
		"one line":        {text: "a", args: []string{"--input-format", "text"}},
		"blank lines":     {text: " \n"},
		"like a frame":    {begin: `{"type":"user","content":"`, text: "a"},
		"a frame":         {begin: `{"type":"user","content":"`, text: "a", args: []string{"--session-id", "s"}},
		"with a prompt":   {text: "line\n", args: []string{"-p", "go", "--dialect", "claude"}},
		"frame of Claude": {text: "a", args: []string{"--input-format", "stream-json", "--dialect", "claude"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			args, env, _ := wires()[0].scripted(t, `[{"say":"ok"}]`)
			cmd := exec.Command(program, append(append([]string{"start", "--cwd", p.work}, args...), c.args...)...)
			var out bytes.Buffer
			cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = append(p.env, env...), p.home, &out, &out
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(in, c.begin)
			block, peak := strings.Repeat(c.text, 1<<20/len(c.text)), 0
			for i := 0; i < sent && err == nil && peak <= most; i++ {
				_, err = io.WriteString(in, block)
				peak = max(peak, memoryOf(cmd.Process.Pid))
			}
			_ = in.Close()
			if peak > most {
				_ = cmd.Process.Kill()
			}
			_ = cmd.Wait()
			if peak == 0 || peak > most || !strings.Contains(out.String(), "64 MiB") {
				t.Errorf("%d KiB at the peak: %.2000s", peak, out.String())
			}
			t.Logf("%d KiB at the peak", peak)
		})
	}
}

// memoryOf is the peak memory of a process in KiB, or 0 when it has ended.
func memoryOf(pid int) (peak int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if _, rest, ok := strings.Cut(string(text), "VmHWM:"); ok {
		_, _ = fmt.Sscan(rest, &peak)
	}
	return peak
}
