//go:build unix

package run

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// report is what the native agent's model gets of a piece of work that it delegated.
type report struct {
	Chunk  string `json:"chunk_id"`
	Goal   string
	Agent  string
	Status string
	Files  []struct {
		Path, Status   string
		Added, Removed *int
	} `json:"files_changed"`
	Acceptance []struct{ Criterion, Status, Reason string }
	Summary    string
	Questions  []string
	Next       string `json:"next_step"`
	Run        string `json:"run_id"`
}

// delegating is a place whose native agent has one agent to delegate to: a script that is called with the mode.
func delegating(t *testing.T, script, input string) *place {
	t.Helper()
	p := newPlace(t).walled()
	p.moded("scribe", script).trusting("scribe")
	return p.model(`[{"call":{"name":"Delegate","input":` + input + `}},{"say":"The user hears: ${result}"}]`)
}

// moded adds an agent that is told its mode as its argument.
func (p *place) moded(name, script string) *place {
	p.t.Helper()
	p.put(filepath.Join(p.bin, name), "#!/bin/sh\n"+script)
	values := []string{}
	for _, mode := range []string{"prompt", "auto-edit", "yolo"} {
		values = append(values, fmt.Sprintf(`%q:[%q]`, mode, mode))
	}
	p.targets = append(p.targets, fmt.Sprintf(
		`{"id":%q,"cli":{"prompt":{"type":"stdin"},"flags":{"approval":{"values":{%s}}},`+
			`"modes":{"oneShot":{"command":%q,"args":[]},"interactive":{"command":%q,"args":[]}}}}`,
		name, strings.Join(values, ","), name, name))
	p.put(filepath.Join(p.home, ".config/omniagent/agents/omniagent.config.json"),
		`{"targets":[`+strings.Join(p.targets, ",")+`]}`)
	p.allowed = append(p.allowed, name)
	return p.configured("")
}

// host is a host of Claude Code's in front of the program.
type host struct {
	t     *testing.T
	say   func(line string)
	lines chan map[string]any
	seen  []map[string]any
}

// start begins a conversation with the native agent. It is over when the test is.
func (p *place) start(args ...string) *host {
	p.t.Helper()
	cmd := p.command(append([]string{
		"start", "--dialect", "claude", "--provider", "openai", "--model", "gpt-test", "--output-format", "stream-json",
		"--input-format", "stream-json", "--verbose",
	}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	h := &host{t: p.t, lines: make(chan map[string]any, 1000)}
	h.say = func(line string) { _, _ = in.Write([]byte(line + "\n")) }
	p.t.Cleanup(func() {
		_ = in.Close()
		clock := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		clock.Stop()
		p.nothing()
	})
	go func() {
		defer close(h.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			var m map[string]any
			if json.Unmarshal(s.Bytes(), &m) == nil {
				h.lines <- m
			}
		}
	}()
	h.say(`{"type":"user","message":{"role":"user","content":"go"},"parent_tool_use_id":null,"session_id":""}`)
	return h
}

// await returns the next line of a kind.
func (h *host) await(kind string) map[string]any {
	h.t.Helper()
	clock := time.After(patience)
	for {
		select {
		case m, ok := <-h.lines:
			if !ok {
				h.t.Fatalf("no line %s:\n%v", kind, h.seen)
			}
			h.seen = append(h.seen, m)
			if m["type"] == kind {
				return m
			}
		case <-clock:
			h.t.Fatalf("no line %s:\n%v", kind, h.seen)
		}
	}
}

// asked awaits a question, and returns its request.
func (h *host) asked() (id string, request map[string]any) {
	h.t.Helper()
	m := h.await("control_request")
	request, _ = m["request"].(map[string]any)
	return fmt.Sprint(m["request_id"]), request
}

func (h *host) answer(id, body string) {
	h.say(`{"type":"control_response","response":{"subtype":"success","request_id":"` + id + `","response":` + body +
		`}}`)
}

// report awaits the end of the turn, and returns the report that the model got.
func (h *host) report() (r report) {
	h.t.Helper()
	result := h.await("result")
	_, text, _ := strings.Cut(fmt.Sprint(result["result"]), "The user hears: ")
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		h.t.Fatalf("no report: %v\n%v", err, h.seen)
	}
	return r
}

const plainGoal = `{"goal":"write new.txt"}`

// TestDelegate: another agent does the work as a run, and the model gets the packet's reply.
func TestDelegate(t *testing.T) {
	t.Parallel()
	p := delegating(t, `cat >task; printf 'one\ntwo\n' >new.txt; printf 'I wrote it.\nPASS 1\nBLOCKED 3: too far\n'`,
		`{"chunk_id":"c1","goal":"write new.txt","scope_paths":["new.txt"],"out_of_scope":["old.txt"],`+
			`"acceptance_criteria":["it has two lines","it is green"],"tests":["cat new.txt"]}`)
	h := p.start("--permission-mode", "acceptEdits")
	r := h.report()
	if r.Chunk != "c1" || r.Goal != "write new.txt" || r.Agent != "scribe" || r.Status != "Done" ||
		!strings.HasPrefix(r.Summary, "I wrote it.") || r.Next != "omniagent runs diff "+r.Run {
		t.Errorf("%+v", r)
	}
	files := map[string]int{}
	for _, f := range r.Files {
		files[f.Status+" "+f.Path] = *f.Added
	}
	if len(files) != 2 || files["added new.txt"] != 2 {
		t.Errorf("%v", files)
	}
	if len(r.Acceptance) != 2 || r.Acceptance[0].Status != "pass" || r.Acceptance[1].Status != "not reported" {
		t.Errorf("%v", r.Acceptance)
	}
	task := p.read("task")
	for _, part := range []string{
		"write new.txt", "Change only:\n- new.txt", "Leave alone:\n- old.txt", "1. it has two lines\n2. it is green",
		"- cat new.txt", "PASS 1",
	} {
		if !strings.Contains(task, part) {
			t.Errorf("no %q in %q", part, task)
		}
	}
	shown := p.call("runs", "show", r.Run)
	if shown.Code != 0 || shown.Data.Status != "succeeded" || shown.Data.Agent != "scribe" {
		t.Errorf("%s", shown)
	}
	log, _ := os.ReadFile(filepath.Join(p.home, ".local/share/omniagent/audit.jsonl"))
	if !strings.Contains(string(log), "sub_agent=cli-runner") || !strings.Contains(string(log), "run_id="+r.Run) {
		t.Errorf("%s", log)
	}
	all, _ := json.Marshal(h.seen)
	for _, part := range []string{`"agents":["general-purpose","cli-runner"]`, `"agent":"scribe"`, `"name":"Delegate"`} {
		if !strings.Contains(string(all), part) {
			t.Errorf("no %s in %s", part, all)
		}
	}
}

// TestDelegateMode: the agent may do no more than the conversation may, and one that has no such mode does nothing.
func TestDelegateMode(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"plan": "", "default": "prompt", "acceptEdits": "auto-edit", "bypassPermissions": "yolo",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := delegating(t, `cat >/dev/null; echo "mode $1"`, plainGoal)
			r := p.start("--permission-mode", mode).report()
			_, got, _ := strings.Cut(strings.TrimSpace(r.Summary), "mode ")
			if got != want || strings.HasPrefix(r.Status, "Blocked(scribe has no mode plan") != (mode == "plan") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// asks is an agent that asks what nobody told it.
const asks = `grep -q blue >/dev/null && { echo blue >colour; echo "It is blue."; exit; }
printf 'Which colour? '; read answer </dev/tty 2>/dev/null || exit 0`

// TestDelegateQuestion: what the agent asks is asked in the conversation, and the answer carries the work on.
func TestDelegateQuestion(t *testing.T) {
	t.Parallel()
	p := delegating(t, asks, plainGoal)
	h := p.start("--permission-mode", "acceptEdits", "--permission-prompt-tool", "stdio")
	id, request := h.asked()
	words, _ := json.Marshal(request)
	if request["tool_name"] != "AskUserQuestion" || !strings.Contains(string(words), "scribe asks: Which colour?") {
		t.Fatalf("%s", words)
	}
	h.answer(id, `{"behavior":"allow","updatedInput":{"answers":{"scribe asks: Which colour?":"blue"}}}`)
	r := h.report()
	if r.Status != "Done" || strings.TrimSpace(p.read("colour")) != "blue" {
		t.Errorf("%+v", r)
	}
	shown := p.call("runs", "show", r.Run)
	if shown.Data.Clarifications != 1 {
		t.Errorf("%s", shown)
	}
}

// TestDelegateUnanswered: with nobody to ask, or nobody who answers, the report says how a person does later.
func TestDelegateUnanswered(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]bool{"nobody": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := delegating(t, asks, plainGoal)
			args := []string{"--permission-mode", "acceptEdits"}
			if asked {
				args = append(args, "--permission-prompt-tool", "stdio")
			}
			h := p.start(args...)
			if asked {
				id, _ := h.asked()
				h.answer(id, `{"behavior":"deny","message":"not now"}`)
			}
			r := h.report()
			if !strings.HasPrefix(r.Status, "Blocked(") || len(r.Questions) != 1 || r.Questions[0] != "Which colour?" ||
				!strings.Contains(r.Next, "omniagent answer "+r.Run) {
				t.Fatalf("%+v", r)
			}
			if a := p.call("answer", r.Run, "blue"); a.Code != 0 || strings.TrimSpace(p.read("colour")) != "blue" {
				t.Errorf("%s", a)
			}
		})
	}
}

// TestDelegateNotOffered: nothing changes for a conversation that has no agent to delegate to.
func TestDelegateNotOffered(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(p *place)
		input  string
		want   string
	}{
		"not allowed":   {func(p *place) { p.call("agents", "deny", "scribe") }, plainGoal, `There is no tool \"Delegate\"`},
		"not installed": {func(p *place) { _ = os.Remove(filepath.Join(p.bin, "scribe")) }, plainGoal, `There is no tool`},
		"too deep": {
			func(p *place) { p.env = append(p.env, "OMNIAGENT_DEPTH=2") }, plainGoal, `There is no tool`,
		},
		"another": {
			func(p *place) {
				p.moded("other", "touch started")
			}, `{"goal":"x","agent":"other"}`, `the agent \"other\" may not be asked: there are scribe`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := delegating(t, `echo no >started`, row.input)
			row.change(p)
			h := p.start("--permission-mode", "bypassPermissions")
			h.await("result")
			all, _ := json.Marshal(h.seen)
			if !strings.Contains(string(all), strings.ReplaceAll(row.want, `"`, `\\\"`)) && !strings.Contains(string(all), row.want) {
				t.Errorf("%s", all)
			}
			if p.read("started") != "" {
				t.Error("it was started")
			}
		})
	}
}

// TestDelegateDepth: the agent is told how many are above it, and one step further is not offered.
func TestDelegateDepth(t *testing.T) {
	t.Parallel()
	p := delegating(t, `cat >/dev/null; echo "depth $OMNIAGENT_DEPTH"`, plainGoal)
	p.env = append(p.env, "OMNIAGENT_DEPTH=1")
	if r := p.start().report(); strings.TrimSpace(r.Summary) != "depth 2" {
		t.Errorf("%+v", r)
	}
}

// TestDelegateDepthIsKnown: an agent that clears the variable does not begin to count again.
func TestDelegateDepthIsKnown(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what is above a process is looked up on Linux alone")
	}
	t.Parallel()
	for _, namespace := range []string{"auto", "off"} {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			p := delegating(t, `cat >/dev/null; unset OMNIAGENT_DEPTH OMNIAGENT_CHILD_MARK; . ./keys
				`+program+` start --dialect claude --provider openai --model gpt-test -p again --output-format json \
				--permission-mode bypassPermissions`, plainGoal)
			p.configured("[run]\nnamespace = \"" + namespace + "\"\n")
			for _, entry := range p.env {
				if strings.HasPrefix(entry, "OPENAI_") {
					p.put("keys", p.read("keys")+"export "+entry+"\n")
				}
			}
			p.env = append(p.env, "OMNIAGENT_DEPTH=1")
			if r := p.start().report(); !strings.Contains(r.Summary, `There is no tool`) ||
				!strings.Contains(r.Summary, "Delegate") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestDelegateFails: a run that fails is told as one.
func TestDelegateFails(t *testing.T) {
	t.Parallel()
	p := delegating(t, `cat >/dev/null; echo half >half.txt; exit 3`, plainGoal)
	r := p.start("--permission-mode", "acceptEdits").report()
	if !strings.HasPrefix(r.Status, "Blocked(") || len(r.Files) != 1 || r.Files[0].Path != "half.txt" {
		t.Errorf("%+v", r)
	}
}

// TestDelegateChat: a person sees to whom work goes, and why; is asked; and sees what has changed.
func TestDelegateChat(t *testing.T) {
	t.Parallel()
	p := delegating(t, asks, plainGoal)
	cmd := p.command("chat", "--plain", "--provider", "openai", "--model", "gpt-test", "--auto-edit")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	clock := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer clock.Stop()
	_, _ = in.Write([]byte("go\n"))
	seen := ""
	for r := bufio.NewReader(out); ; {
		piece, err := r.ReadString(':')
		if seen += piece; strings.HasSuffix(seen, "Return skips:") {
			_, _ = in.Write([]byte("blue\n"))
		}
		if strings.Contains(seen, "The user hears:") && in != nil {
			_ = in.Close()
		}
		if err != nil {
			break
		}
	}
	_ = cmd.Wait()
	for _, part := range []string{
		"⏺ Delegate to scribe: write new.txt", "? native asks\n  │ scribe asks: Which colour?\n", "  scribe: Done",
		"  added colour +1 -0", "  omniagent runs diff run-",
	} {
		if !strings.Contains(seen, part) {
			t.Errorf("no %q in:\n%s", part, seen)
		}
	}
}

// TestDelegateACP: an editor shows the same, and asks in a form.
func TestDelegateACP(t *testing.T) {
	t.Parallel()
	p := delegating(t, asks, plainGoal)
	cmd := p.command("acp", "--provider", "openai", "--model", "gpt-test", "--auto-edit")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	clock := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer clock.Stop()
	say := func(line string) { _, _ = in.Write([]byte(line + "\n")) }
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"elicitation":{"form":{}}}}}`)
	say(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"` + p.work + `","mcpServers":[]}}`)
	seen := ""
	for s := bufio.NewScanner(out); s.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Result struct {
				Session string `json:"sessionId"`
			}
		}
		seen += s.Text() + "\n"
		_ = json.Unmarshal(s.Bytes(), &m)
		switch {
		case m.Result.Session != "":
			say(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"` + m.Result.Session +
				`","prompt":[{"type":"text","text":"go"}]}}`)
		case m.Method == "elicitation/create":
			say(`{"jsonrpc":"2.0","id":` + string(m.ID) +
				`,"result":{"action":"accept","content":{"question_0":"blue"}}}`)
		case string(m.ID) == "3":
			_ = in.Close()
		}
	}
	_ = cmd.Wait()
	for _, part := range []string{"Delegate to scribe: write new.txt", "scribe asks: Which colour?", `\"status\": \"Done\"`} {
		if !strings.Contains(seen, part) {
			t.Errorf("no %q in:\n%s", part, seen)
		}
	}
	if strings.TrimSpace(p.read("colour")) != "blue" {
		t.Errorf("%s", seen)
	}
}
