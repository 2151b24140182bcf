package start

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/testkit/order"
)

// TestPersistent: several turns in one process, one waiting while another runs; the end of the input ends it.
func TestPersistent(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[{"say":"You said ${input}"}]`)
	r := p.launch(t, env, append(args, "--session-id", "mine")...)
	r.say(`{"type":"user","content":"one"}`)
	r.say(`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"two"}]}}`)
	r.say(`not json`)
	r.say(`{"type":"dance"}`)
	r.say(`{"type":"tool_approval","id":"nothing","approved":true}`)
	r.say(`{"type":"user","content":"three"}`)
	messages, exit := r.end()
	var results []string
	for _, m := range messages {
		if m["type"] == "result" {
			results = append(results, fmt.Sprint(m["result"]))
		}
	}
	if want := "You said one|You said two|You said three"; strings.Join(results, "|") != want || exit != 0 ||
		messages[0]["session_id"] != "mine" {
		t.Errorf("exit %d, %q", exit, results)
	}
	for _, word := range []string{"dance", "not", "nothing"} {
		if !strings.Contains(r.stderr.String(), word) {
			t.Errorf("nothing is said of %q: %s", word, r.stderr.String())
		}
	}
}

// TestCodeOfFrames: over frames the exit code is that of the last turn, and a line that is not taken is told.
func TestCodeOfFrames(t *testing.T) {
	t.Parallel()
	const one, bad = `{"type":"user","content":"one"}`, `{"type":"user","mesage":{"role":"user","content":"one"}}`
	for name, tt := range map[string]struct {
		script, frames string
		exit, refused  int
	}{
		"it failed":            {`[{"error":400}]`, one, 1, 0},
		"nobody was asked":     {`[{"shell":"touch x"},{"say":"no"}]`, one, 3, 0},
		"nothing can be read":  {`[{"say":"fine"}]`, bad, 2, 1},
		"the first cannot be":  {`[{"say":"fine"}]`, bad + "\n" + one, 0, 1},
		"nothing was asked of": {`[{"say":"fine"}]`, "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "script.json", tt.script)
			r := p.launch(t, nil, "--rehearse", "--script", filepath.Join(p.work, "script.json"), "--input-format",
				"stream-json", "--permission-mode", "interactive")
			r.say(tt.frames)
			_ = r.stdin.Close()
			<-r.ended
			told, exit := strings.Join(r.lines, "\n"), r.cmd.ProcessState.ExitCode()
			if refused := strings.Count(told, `"subtype":"error",`); exit != tt.exit || refused != tt.refused {
				t.Errorf("exit %d, %d refused\n%s\n%s", exit, refused, told, r.stderr.String())
			}
		})
	}
}

// TestInterruptTool: what a tool started is gone, the call has a result, and the session goes on.
func TestInterruptTool(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, server := wires()[2].scripted(t,
		`[{"shell":"test -e begun || { echo begun > begun; sleep 1000; }"},{"say":"You said ${input}"}]`)
	mark := fmt.Sprintf("OMNI_TEST_MARK=%d.interrupt", os.Getpid())
	r := p.launch(t, append(env, mark), append(args, "--session-id", "mine", "--permission-mode", "auto")...)
	r.say(`{"type":"user","content":"go"}`)
	p.await(t, "begun")
	r.say(`{"type":"interrupt"}`)
	r.await(func(line string) bool { return strings.Contains(line, `"message_stop"`) })
	before := len(server.Requests())
	r.say(`{"type":"user","content":"still there?"}`)
	messages, exit := r.end()
	var kinds []string
	for _, m := range messages {
		kinds = append(kinds, fmt.Sprint(m["type"]))
	}
	if got := strings.Join(kinds, " "); exit != 0 ||
		!strings.Contains(got, "tool_use tool_result interrupt usage result message_stop") {
		t.Errorf("exit %d, %s", exit, got)
	}
	if raw := string(server.Requests()[before].Raw); !strings.Contains(raw, "tool_result") ||
		!strings.Contains(raw, "still there?") {
		t.Errorf("the model is not told what came of its call: %s", raw)
	}
}

// TestSignals end a turn as an interrupt does, and say so in the exit code.
func TestSignals(t *testing.T) {
	t.Parallel()
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			args, env, _ := wires()[0].scripted(t,
				`[{"say":"This is said before it stalls, and long enough to be seen.","stall":"middle"}]`)
			r := p.launch(t, env, append(args, "-p", "go")...)
			r.await(func(line string) bool { return strings.Contains(line, `"text"`) })
			if err := r.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			messages, exit := r.wait()
			if exit != code || len(messages) < 3 || messages[len(messages)-2]["is_error"] != true ||
				messages[len(messages)-2]["subtype"] != "cancelled" {
				t.Errorf("exit %d, %v", exit, messages)
			}
		})
	}
}

// TestModes: what each mode lets through, where nobody can be asked.
func TestModes(t *testing.T) {
	t.Parallel()
	script := `[{"calls":[{"read":"a.txt"},{"write":{"path":"w.txt","content":"x"}},{"shell":"touch s.txt"}]},{"say":"ok"}]`
	type outcome struct {
		failed string // of read, write, shell
		exit   int
	}
	for mode, wants := range map[string]struct{ walls, none outcome }{
		"default": {outcome{"nnn", 0}, outcome{"nny", 3}}, "prompt": {outcome{"nyy", 3}, outcome{"nyy", 3}},
		"interactive": {outcome{"yyy", 3}, outcome{"yyy", 3}},
		"auto-edit":   {outcome{"nnn", 0}, outcome{"nny", 3}}, "auto": {outcome{"nnn", 0}, outcome{"nnn", 0}},
		"deny":              {outcome{"yyy", 3}, outcome{"yyy", 3}},
		"default, no walls": {outcome{"nny", 3}, outcome{"nny", 3}}, "auto-edit, no walls": {
			outcome{"nny", 3},
			outcome{"nny", 3},
		}, "auto, no walls": {outcome{"nnn", 0}, outcome{"nnn", 0}},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "a.txt", "hi")
			args, env, _ := wires()[0].scripted(t, script)
			args = append(args, "-p", "go")
			word, open := strings.CutSuffix(mode, ", no walls")
			if open {
				args = append(args, "--sandbox", "off")
			}
			messages, exit := p.launch(t, env, append(args, "--permission-mode", word)...).end()
			want := wants.none
			if wallsOf(messages) == "namespaces" || wallsOf(messages) == "seatbelt" {
				want = wants.walls
			}
			if open != (wallsOf(messages) == "none") && wallsOf(messages) != "landlock" {
				t.Errorf("the walls are %q", wallsOf(messages))
			}
			var failed strings.Builder
			denials := 0
			for _, m := range messages {
				switch m["type"] {
				case "tool_result":
					failed.WriteString(map[any]string{true: "y", false: "n"}[m["is_error"]])
				case "result":
					list, _ := m["permission_denials"].([]any)
					denials = len(list)
				}
			}
			if t.Log(messages); failed.String() != want.failed || exit != want.exit ||
				denials != strings.Count(want.failed, "y") {
				t.Errorf("%s, exit %d, %d denials", failed.String(), exit, denials)
			}
			_, w := os.Stat(filepath.Join(p.work, "w.txt"))
			_, s := os.Stat(filepath.Join(p.work, "s.txt"))
			if (w == nil) != (want.failed[1] == 'n') || (s == nil) != (want.failed[2] == 'n') {
				t.Errorf("written: %v, touched: %v", w, s)
			}
		})
	}
}

// wallsOf is what the stream says about walls.
func wallsOf(messages []map[string]any) string {
	if len(messages) == 0 {
		return ""
	}
	told, _ := messages[0]["sandbox"].(map[string]any)
	name, _ := told["name"].(string)
	return name
}

// TestUsage: a wrong call says so on standard error and in the stream, and is 2.
func TestUsage(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"flag": {"--nonsense"}, "mode": {"--permission-mode", "maybe", "-p", "x"}, "provider": {
			"--provider", "acme",
			"-p", "x",
		}, "empty": {"-p", " "},
		"nothing": {"--provider", "openai"}, "protocol": {"--protocol-version", "7", "-p", "x"}, "id": {
			"--session-id",
			"../x", "-p", "x",
		}, "dir": {"--cwd", "/no/such/dir", "-p", "x"},
		"both": {"--resume", "a", "--session-id", "b", "-p", "x"}, "copilot, an address": {
			"--provider", "copilot", "--api-base", "http://127.0.0.1:1", "-p", "x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			r := p.launch(t, []string{"OPENAI_API_KEY=k"}, args...)
			messages, exit := r.end()
			if exit != 2 || len(messages) != 3 || messages[1]["type"] != "result" || messages[1]["is_error"] != true {
				t.Errorf("exit %d, %v", exit, messages)
			}
			if lines := strings.Split(strings.TrimSpace(r.stderr.String()), "\n"); !strings.HasPrefix(lines[0],
				"omniagent: ") {
				t.Errorf("%q", r.stderr.String())
			}
		})
	}
}

// TestHostGone: a host that does not read any more takes the turn with it, and what the turn started.
func TestHostGone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t,
		`[{"shell":"sleep 1000 & echo $!"},{"say":"a"},{"shell":"true"},{"say":"b"}]`)
	cmd := exec.Command(program, append([]string{"start", "--cwd", p.work, "-p", "go", "--permission-mode", "auto"},
		args...)...)
	cmd.Env = append(p.env, env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
		if code := cmd.ProcessState.ExitCode(); code == 0 {
			t.Error("exit 0")
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatal("it does not end")
	}
}

// TestInterruptAtOnce: an interruption right behind the message ends it, whatever has begun by then.
func TestInterruptAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[{"say":"x","stall":"start"}]`)
	r := p.launch(t, env, append(args, "--session-id", "mine")...)
	for range 20 {
		r.say(`{"type":"user","content":"go"}` + "\n" + `{"type":"interrupt"}`)
	}
	messages, exit := r.end()
	ends := 0
	for _, m := range messages {
		if m["type"] == "result" {
			ends++
		}
	}
	if exit != 0 || ends != 20 {
		t.Errorf("exit %d, %d ends\n%s", exit, ends, strings.Join(r.lines, "\n"))
	}
}

// TestNobodyLeft: when the input has ended, a question is a denial at once.
func TestNobodyLeft(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[{"shell":"touch x"},{"say":"${result}"}]`)
	r := p.launch(t, env, append(args, "-p", "go", "--permission-mode", "interactive")...)
	messages, exit := r.end()
	if result := fmt.Sprint(messages[len(messages)-2]["result"]); exit != 3 || !strings.Contains(result, "nobody") {
		t.Errorf("exit %d, %s", exit, result)
	}
}

// TestSignalBefore: a signal is heard while the message is still awaited.
func TestSignalBefore(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cmd := exec.Command(program, "start", "--provider", "openai")
	cmd.Env, cmd.Dir = append(p.env, "OPENAI_API_KEY=k"), p.work
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	stderr := bufio.NewReader(said)
	if line, err := stderr.ReadString('\n'); err != nil || !strings.Contains(line, "the message from standard input") {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stderr)
	_ = cmd.Wait()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if code := cmd.ProcessState.ExitCode(); code != 143 || len(lines) != 3 ||
		!strings.Contains(lines[1], `"is_error":true`) {
		t.Errorf("exit %d, %q", code, lines)
	}
}

// TestSecondSignal: a user who does not wait still gets the end of the turn.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[{"shell":"echo begun > begun; trap '' TERM; sleep 1000"},{"say":"never"}]`)
	r := p.launch(t, env, append(args, "-p", "go", "--permission-mode", "auto")...)
	p.await(t, "begun")
	for range 2 {
		if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	messages, exit := r.wait()
	if m := messages[len(messages)-2]; exit != 143 || m["type"] != "result" || m["is_error"] != true {
		t.Errorf("exit %d, %v", exit, messages)
	}
}

// TestHostDoesNotRead: a host that holds standard output open and reads nothing keeps no signal from being heard.
func TestHostDoesNotRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "big.txt", strings.Repeat(strings.Repeat("x", 80)+"\n", 2000))
	var steps []string
	for i := range 100 {
		steps = append(steps, fmt.Sprintf(`{"call":{"name":"Read","input":{"file_path":"big.txt","offset":%d}}}`, i+1))
	}
	args, env, server := wires()[0].scripted(t, "["+strings.Join(steps, ",")+"]")
	cmd := exec.Command(program, append([]string{"start", "--cwd", p.work, "-p", "go"}, args...)...)
	cmd.Env = append(p.env, env...)
	out, err := cmd.StdoutPipe() // never read
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for before, over := -1, time.Now().Add(patience); time.Now().Before(over); time.Sleep(100 * time.Millisecond) {
		asked := len(server.Requests())
		if asked > 1 && asked == before { // it waits for the host
			break
		}
		before = asked
	}
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // two signals at once may be one
	}
	done := make(chan struct{})
	go func() { _, _ = cmd.Process.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatal("it does not end")
	}
}

// TestQuestionLine: a call that waits for an answer is followed by a line that says so, and one that runs is not. The
// answer may name the question.
func TestQuestionLine(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "a.txt", "hi")
	args, env, _ := wires()[0].scripted(t,
		`[{"calls":[{"read":"a.txt"},{"shell":"touch one"},{"shell":"touch two"},{"write":{"path":"three","content":"x"}}]},{"say":"done"}]`)
	r := p.launch(t, env, append(args, "--session-id", "mine", "--permission-mode", "prompt")...)
	r.say(`{"type":"user","content":"go"}`)
	question := func(n int) map[string]any {
		t.Helper()
		var found []map[string]any
		r.await(func(line string) bool {
			var m map[string]any
			if json.Unmarshal([]byte(line), &m) == nil && m["subtype"] == "permission_request" &&
				!slices.ContainsFunc(found, func(f map[string]any) bool {
					return f["question_id"] == m["question_id"]
				}) {
				found = append(found, m)
			}
			return len(found) == n
		})
		return found[n-1]
	}
	r.say(fmt.Sprintf(`{"type":"tool_approval","id":%q,"approved":true}`, question(1)["tool_use_id"])) // by the call
	r.say(fmt.Sprintf(`{"type":"tool_approval","id":%q,"approved":false,"reason":"not two"}`,
		question(2)["question_id"]))
	r.say(fmt.Sprintf(`{"type":"tool_approval","id":%q,"option":"yes"}`, question(3)["question_id"])) // it stays open
	r.say(fmt.Sprintf(`{"type":"tool_approval","id":%q,"option":"allow"}`, question(3)["question_id"]))
	r.await(func(line string) bool { return strings.Contains(line, `"message_stop"`) })
	messages, exit := r.end()
	var kinds []string
	for _, m := range messages {
		kinds = append(kinds,
			strings.TrimSpace(fmt.Sprint(m["type"])+" "+map[any]string{"permission_request": "?"}[m["subtype"]]))
		if m["subtype"] == "permission_request" && (m["text"] == "" || len(m["options"].([]any)) < 2) {
			t.Errorf("%v", m)
		}
	}
	want := "system tool_use tool_result tool_use system ? tool_result tool_use system ? tool_result tool_use system " +
		"? tool_result text usage result message_stop"
	if got := strings.Join(kinds, " "); got != want || exit != 0 {
		t.Errorf("exit %d: %s\n%s", exit, got, r.stderr.String())
	}
	if said := r.stderr.String(); !strings.Contains(said, `has no option "yes", only allow, always, deny`) {
		t.Errorf("standard error: %q", said)
	}
	for name, made := range map[string]bool{"one": true, "two": false, "three": true} {
		if _, err := os.Stat(filepath.Join(p.work, name)); (err == nil) != made {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSteer: what is said while a turn runs reaches that turn, or has one of its own, and the host learns which.
func TestSteer(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, server := wires()[0].scripted(t,
		`[{"shell":"echo begun > begun; while ! test -e go; do sleep 0.02; done"},{"say":"You said ${input}"}]`)
	r := p.launch(t, env, append(args, "--session-id", "mine", "--permission-mode", "auto", "--sandbox", "off")...)
	r.say(`{"type":"user","content":"dig"}`)
	p.await(t, "begun")
	var steers, words []string
	for i := range 20 {
		words = append(words, fmt.Sprintf("and mind cat %d.", i))
		steers = append(steers, fmt.Sprintf(`{"type":"user","content":%q,"steer":true}`, words[i]))
	}
	r.say(strings.Join(steers, "\n"))
	r.await(func(string) bool { return strings.Count(strings.Join(r.lines, ""), `"steered"`) == len(steers) })
	p.write(t, "go", "")
	r.await(func(line string) bool { return strings.Contains(line, `"message_stop"`) })
	r.say(`{"type":"user","content":"now?","steer":true}`)
	messages, exit := r.end()
	var course []string
	for _, m := range messages {
		if m["type"] == "result" || m["subtype"] == "steered" || m["subtype"] == "queued" {
			course = append(course,
				strings.TrimSpace(fmt.Sprint(m["subtype"])+" "+
					map[bool]string{true: fmt.Sprint(m["turn"])}[m["turn"] != nil]))
		}
	}
	want := strings.Repeat("steered 1, ", len(steers)) + "success, queued 2, success"
	if got := strings.Join(course, ", "); got != want || exit != 0 {
		t.Errorf("exit %d: %s\n%s\n%s", exit, got, strings.Join(r.lines, "\n"), r.stderr.String())
	}
	raw, from := string(server.Requests()[1].Raw), 0
	for _, w := range words {
		at := strings.Index(raw[from:], w)
		if at < 0 {
			t.Fatalf("the model does not hear %q behind the others: %s", w, raw)
		}
		from += at
	}
}

// TestSteersInOrder: what became of messages that came too late for a turn is told in the order of these messages.
func TestSteersInOrder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[{"shell":"trap '' TERM INT HUP; echo begun > begun; `+
		`while ! test -e go; do sleep 0.02; done"},{"say":"You said ${input}"}]`)
	r := p.launch(t, env, append(args, "--session-id", "mine", "--permission-mode", "auto", "--sandbox", "off")...)
	r.say(`{"type":"user","content":"dig"}`)
	p.await(t, "begun")
	const late = 30
	r.say(`{"type":"interrupt"}` + strings.Repeat("\n"+`{"type":"user","content":"more","steer":true}`, late))
	// The turn that was interrupted cannot end meanwhile.
	r.await(func(string) bool { return strings.Count(strings.Join(r.lines, ""), `"queued"`) == late })
	p.write(t, "go", "")
	messages, exit := r.end()
	var got, want []string
	for _, m := range messages {
		if m["subtype"] == "queued" {
			got, want = append(got, fmt.Sprint(m["turn"])), append(want, strconv.Itoa(len(want)+2))
		}
	}
	if exit != 0 || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("exit %d, told in the order %s: %s", exit, strings.Join(got, " "), r.stderr.String())
	}
}

// TestNotDeaf: the host is heard while a change of the mode takes its time and while nobody reads standard output.
func TestNotDeaf(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "big.txt", strings.Repeat(strings.Repeat("x", 80)+"\n", 50))
	var steps []string
	for i := range 60 {
		steps = append(steps, fmt.Sprintf(`{"shell":"cat big.txt; echo %d"}`, i))
	}
	args, env, _ := wires()[0].scripted(t, "["+strings.Join(steps, ",")+
		`,{"shell":"echo begun > begun; sleep 1000"},{"say":"never"}]`)
	cmd := exec.Command(program,
		append([]string{
			"start", "--cwd", p.work, "--session-id", "mine", "--permission-mode", "auto", "--sandbox",
			"off",
		}, args...)...)
	cmd.Env = append(p.env, env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe() // read late
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(in, `{"type":"user","content":"go"}`+"\n")
	p.await(t, "begun") // the agent has not waited for the host
	_, _ = io.WriteString(in, `{"type":"set_permission_mode","mode":"deny"}`+"\n"+`{"type":"interrupt"}`+"\n")
	_ = in.Close()
	data, _ := io.ReadAll(out)
	_ = cmd.Wait()
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if err := order.Flat(lines); err != nil || !strings.Contains(lines[len(lines)-2], `"subtype":"cancelled"`) ||
		cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("exit %d, %v: %.300q", cmd.ProcessState.ExitCode(), err, lines[len(lines)-2])
	}
}

// TestKeepNothing: a conversation that is not to be kept leaves nothing in the home directory, and cannot be resumed.
func TestKeepNothing(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"yume", "claude"} {
		p := newPlace(t)
		args, env, _ := wires()[0].scripted(t, `[{"say":"You said ${input}"}]`)
		args = append([]string{"--dialect", dialect},
			append(args, "--session-id", "0b0b0b0b-1111-4222-8333-444444444444", "--no-session-persistence")...)
		r := p.launch(t, env, append(args, "-p", "go", "--output-format", "json")...)
		r.say("")
		_ = r.stdin.Close()
		<-r.ended
		if got := strings.Join(r.lines, ""); !strings.Contains(got, `"result":"You said go"`) ||
			!strings.Contains(got, `"session_id":"0b0b0b0b-1111-4222-8333-444444444444"`) {
			t.Errorf("%s: %s\n%s", dialect, got, r.stderr.String())
		}
		if left, err := os.ReadDir(filepath.Join(p.home, ".yume", "sessions")); err == nil && len(left) > 0 {
			t.Errorf("%s: %v", dialect, left)
		}
	}
}
