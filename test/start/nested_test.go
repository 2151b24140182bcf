package start

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/testkit/order"
)

// nested starts the program as a host of Claude Code's does.
func nested(t *testing.T, script string, more ...string) *running {
	t.Helper()
	p := newPlace(t)
	args, env, _ := wires()[3].scripted(t, script)
	args = append([]string{"--dialect", "claude"}, append(args, "--output-format", "stream-json", "--verbose",
		"--input-format", "stream-json")...)
	return p.launch(t, env, append(args, more...)...)
}

func userLine(text string) string {
	return fmt.Sprintf(
		`{"type":"user","message":{"role":"user","content":%q},"parent_tool_use_id":null,"session_id":""}`, text)
}

// found counts the messages that match.
func found(messages []map[string]any, match func(m map[string]any) bool) (n int) {
	for _, m := range messages {
		if match(m) {
			n++
		}
	}
	return n
}

func ofType(kind, subtype string) func(map[string]any) bool {
	return func(m map[string]any) bool { return m["type"] == kind && (subtype == "" || m["subtype"] == subtype) }
}

// answerTo finds the response to a request of the host's.
func answerTo(messages []map[string]any, id string) map[string]any {
	for _, m := range messages {
		if r, ok := m["response"].(map[string]any); ok && m["type"] == "control_response" && r["request_id"] == id {
			return r
		}
	}
	return nil
}

// TestNestedGarbage: whatever a host says that means nothing, the session lives on; where the protocol has an error for
// it, the host gets that.
func TestNestedGarbage(t *testing.T) {
	t.Parallel()
	r := nested(t, `[{"say":"You said ${input}"}]`)
	r.say(`garbage`)
	r.say(`{"type":"keep_alive"}`)
	r.say(`{"type":"control_request","request_id":"i1","request":{"subtype":"initialize","systemPrompt":[""]}}`)
	r.say(`[]`)
	r.say(`{"type":"dance"}`)
	r.say(`{"type":"control_request","request_id":"q1","request":{"subtype":"dance"}}`)
	r.say(`{"type":"control_request","request_id":"q2"}`)
	r.say(`{"type":"control_request","request_id":"q3","request":{"subtype":"set_permission_mode","mode":"auto"}}`)
	r.say(`{"type":"control_request","request_id":"q4","request":{"subtype":"set_permission_mode","mode":"bypassPermissions"}}`)
	r.say(`{"type":"control_request","request_id":"q5","request":{"subtype":"set_permission_mode","mode":7}}`)
	r.say(`{"type":"control_request","request_id":"q6","request":{"subtype":"set_permission_mode","mode":"default"}}`)
	r.say(`{"type":"control_request","request_id":"q7","request":{"subtype":"mcp_status"}}`)
	r.say(`{"type":"control_request","request_id":"q8","request":{"subtype":"interrupt"}}`)
	r.say(`{"type":"control_request","request_id":"q9","request":{"subtype":"initialize"}}`)
	r.say(`{"type":"control_response","response":{"subtype":"success","request_id":"nobody","response":{"behavior":"allow"}}}`)
	r.say(`{"type":"control_response","response":{"subtype":"odd"}}`)
	r.say(`{"type":"control_cancel_request","request_id":"nobody"}`)
	r.say(`{"type":"user","message":{"role":"user","content":""}}`)
	r.say(userLine("one"))
	r.say(strings.Repeat("x", 100<<20))
	r.say(userLine("two"))
	if _, err := io.WriteString(r.stdin, `{"type":"user","mess`); err != nil {
		t.Fatal(err)
	}
	messages, exit := r.end()
	var results []string
	for _, m := range messages {
		if m["type"] == "result" {
			results = append(results, fmt.Sprint(m["result"]))
		}
	}
	if strings.Join(results, "|") != "You said one|You said two" || exit != 0 {
		t.Errorf("exit %d, %q", exit, results)
	}
	for id, want := range map[string]string{
		"i1": "success", "q1": "Unsupported control request subtype: dance", "q2": "no request with a subtype",
		"q3": "a model of its vendor", "q4": "was not launched with", "q5": "not what it should be",
		"q6": "success", "q7": "success", "q8": "success", "q9": "initialize comes first",
	} {
		a := answerTo(messages, id)
		if got := fmt.Sprint(a["subtype"], a["error"]); !strings.Contains(got, want) {
			t.Errorf("%s: %v", id, a)
		}
	}
	if n := found(messages, ofType("system", "init")); n != 2 {
		t.Errorf("%d inits", n)
	}
	stderr := r.stderr.String()
	for _, word := range []string{
		"one JSON object", `"dance"`, "control_response", "content is empty",
		"longer than 64 MiB", "unexpected end",
	} {
		if !strings.Contains(stderr, word) {
			t.Errorf("nothing is said of %q: %s", word, stderr)
		}
	}
}

// TestNestedQuestion: the host is asked; one that goes away has not agreed.
func TestNestedQuestion(t *testing.T) {
	t.Parallel()
	const script = `[{"shell":"touch made"},{"say":"done"}]`
	ask := func(line string) bool { return strings.Contains(line, `"can_use_tool"`) }
	for _, c := range []struct {
		name  string
		flags []string
		then  func(r *running, id string)
		made  bool
		asked bool
	}{
		{"allow", []string{"--permission-prompt-tool", "stdio"}, func(r *running, id string) {
			r.say(`{"type":"control_response","response":{"subtype":"success","request_id":"` + id +
				`","response":{"behavior":"allow"}}}`)
		}, true, true},
		{"error", []string{"--permission-prompt-tool", "stdio"}, func(r *running, id string) {
			r.say(`{"type":"control_response","response":{"subtype":"error","request_id":"` + id +
				`","error":"it threw"}}`)
		}, false, true},
		{"gone", []string{"--permission-prompt-tool", "stdio"}, func(*running, string) {}, false, true},
		{"nobody", nil, nil, false, false},
		{"dontAsk", []string{"--permission-prompt-tool", "stdio", "--permission-mode", "dontAsk"}, nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := nested(t, script, c.flags...)
			r.say(userLine("go"))
			if c.then != nil {
				r.await(ask)
				id := ""
				for _, line := range r.all() {
					if ask(line) {
						_, rest, _ := strings.Cut(line, `"request_id":"`)
						id, _, _ = strings.Cut(rest, `"`)
					}
				}
				c.then(r, id)
			}
			messages, exit := r.end()
			_, err := os.Stat(filepath.Join(r.cmd.Args[3], "made"))
			if (err == nil) != c.made || exit != 0 || found(messages, ofType("result", "success")) != 1 {
				t.Errorf("made %v, exit %d: %v", err == nil, exit, messages)
			}
			if n := found(messages,
				func(m map[string]any) bool { return m["type"] == "control_request" }); (n == 1) != c.asked {
				t.Errorf("asked %d times", n)
			}
			for _, m := range messages {
				if m["type"] == "result" && (len(m["permission_denials"].([]any)) == 1) == c.made {
					t.Errorf("%v", m)
				}
			}
		})
	}
}

// TestNestedPlan: a plan that the host agrees to ends the mode plan, and the host is told so in front of the result;
// then it sets the mode again.
func TestNestedPlan(t *testing.T) {
	t.Parallel()
	r := nested(t, `[{"call":{"name":"ExitPlanMode","input":{"plan":"x"}}},{"say":"done"}]`, "--permission-prompt-tool",
		"stdio", "--permission-mode", "plan")
	r.say(userLine("go"))
	r.await(func(line string) bool { return strings.Contains(line, `"can_use_tool"`) })
	_, rest, _ := strings.Cut(r.all()[len(r.all())-1], `"request_id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	r.say(`{"type":"control_response","response":{"subtype":"success","request_id":"` + id +
		`","response":{"behavior":"allow"}}}`)
	r.await(func(line string) bool { return strings.HasPrefix(line, `{"type":"result"`) })
	r.say(`{"type":"control_request","request_id":"m","request":{"subtype":"set_permission_mode","mode":"plan"}}`)
	messages, exit := r.end()
	var course []string
	for _, m := range messages {
		switch {
		case m["subtype"] == "status" || m["subtype"] == "init":
			course = append(course, fmt.Sprint(m["subtype"], " ", m["permissionMode"]))
		case m["type"] == "user" || m["type"] == "result" || m["type"] == "control_response":
			course = append(course, fmt.Sprint(m["type"]))
		}
	}
	slices.Sort(course[min(4, len(course)):]) // the answer to a request and what it changes come in any order
	if got := strings.Join(course, ", "); got !=
		"init plan, status default, user, result, control_response, status plan" || exit != 0 {
		t.Errorf("exit %d: %s", exit, got)
	}
}

// TestNestedBeginnings: what cannot be meant ends the call before there is a conversation, by name and with a result.
func TestNestedBeginnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		flags []string
		first string // what the host says
		exit  int
		words []string // of the result
	}{
		{"a limit", []string{"--task-budget", "7"}, "", 2, []string{"--task-budget is refused"}},
		{"a mode", []string{"--permission-mode", "auto"}, "", 2, []string{"--permission-mode auto is refused"}},
		{"unknown", []string{"--restrict-all"}, "", 2, []string{"--restrict-all"}},
		{
			"no session",
			[]string{"--resume", "0b0b0b0b-1111-4222-8333-444444444444"},
			userLine("x"), 1,
			[]string{"No conversation found with session ID: 0b0b0b0b-1111-4222-8333-444444444444"},
		},
		{
			"settings",
			[]string{"--settings", `{"forbidEverything":true}`},
			userLine("x"), 2,
			[]string{"forbidEverything is unknown here"},
		},
		{"no agent", []string{"--agent", "nobody"}, userLine("x"), 2, []string{"there is no agent nobody"}},
		{
			"a hook", nil,
			`{"type":"control_request","request_id":"i1","request":{"subtype":"initialize","hooks":{"PermissionRequest":[{"hookCallbackIds":["a"]}]}}}`, 2,
			[]string{"PermissionRequest would never be called"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := nested(t, `[{"say":"no"}]`, c.flags...)
			if c.first != "" {
				r.say(c.first)
			}
			messages, exit := r.end()
			n := len(messages)
			if n == 0 || messages[n-1]["type"] != "result" || messages[n-1]["subtype"] != "error_during_execution" ||
				messages[n-1]["is_error"] != true || exit != c.exit {
				t.Fatalf("exit %d: %v\n%s", exit, messages, r.stderr.String())
			}
			for _, w := range c.words {
				if !strings.Contains(fmt.Sprint(messages[n-1]["errors"]), w) ||
					!strings.Contains(r.stderr.String(), w) {
					t.Errorf("%s is not said: %v\n%s", w, messages[n-1], r.stderr.String())
				}
			}
			if a := answerTo(messages, "i1"); c.name == "a hook" && (a == nil || a["subtype"] != "error") {
				t.Errorf("%v", messages)
			}
		})
	}
}

// TestNestedSources: of the files of a workspace what they forbid counts, and not what they allow.
func TestNestedSources(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, ".claude/settings.json",
		`{"permissions":{"defaultMode":"bypassPermissions","allow":["Bash"],"disableBypassPermissionsMode":"disable"}}`)
	args, env, _ := wires()[3].scripted(t, `[{"shell":"touch made"},{"say":"done"}]`)
	args = append([]string{"--dialect", "claude"},
		append(args, "--output-format=stream-json", "--input-format=stream-json", "--setting-sources=project")...)
	r := p.launch(t, env, args...)
	r.say(userLine("go"))
	messages, _ := r.end()
	if _, err := os.Stat(filepath.Join(p.work, "made")); err == nil ||
		found(messages, ofType("result", "success")) != 1 {
		t.Errorf("%v: %v", err, messages)
	}
	refused := p.launch(t, env, append(args, "--permission-mode=bypassPermissions")...)
	refused.say(userLine("go"))
	if messages, exit := refused.end(); exit != 2 ||
		!strings.Contains(fmt.Sprint(messages), "forbids the permission mode") {
		t.Errorf("exit %d: %v", exit, messages)
	}
}

// TestNestedOneShot: the command line of people and scripts.
func TestNestedOneShot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags []string
		stdin string
		want  string
		exit  int
	}{
		{[]string{"-p", "the prompt"}, "", "You said the prompt\n", 0},
		{[]string{"-p", "the prompt"}, "and more", "You said the prompt\nand more\n", 0},
		{[]string{"-p"}, "from standard input", "You said from standard input\n", 0},
		{[]string{"the prompt", "-p", "--effort", "low"}, "", "You said the prompt\n", 0},
		{[]string{"-p", "--output-format", "json", "x"}, "", `"result":"You said x"`, 0},
		{[]string{"-p", "x", "y"}, "", "", 2},
	} {
		p := newPlace(t)
		args, env, _ := wires()[3].scripted(t, `[{"say":"You said ${input}"}]`)
		cmd := exec.Command(program, append(append([]string{"start", "--dialect=claude", "--cwd", p.work}, args...),
			c.flags...)...)
		cmd.Env, cmd.Stdin = append(p.env, env...), strings.NewReader(c.stdin)
		out, _ := cmd.Output()
		if got := string(out); !strings.Contains(got, c.want) || c.want == "" && got != "" ||
			cmd.ProcessState.ExitCode() != c.exit {
			t.Errorf("%q: exit %d, %q", c.flags, cmd.ProcessState.ExitCode(), got)
		}
	}
}

// requestID is that of the last line with the word.
func (r *running) requestID(word string) (id string) {
	r.t.Helper()
	r.await(func(line string) bool { return strings.Contains(line, word) })
	for _, line := range r.all() {
		if strings.Contains(line, word) {
			_, rest, _ := strings.Cut(line, `"request_id":"`)
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	return id
}

func controlReply(id, body string) string {
	return `{"type":"control_response","response":{"subtype":"success","request_id":"` + id + `","response":` + body +
		`}}`
}

func controlRequest(id, body string) string {
	return `{"type":"control_request","request_id":"` + id + `","request":` + body + `}`
}

// TestNestedAnswers: an answer may change the mode, but not to one that the process must not have; a question that
// needs no answer any more is taken back, and an answer to it is ignored.
func TestNestedAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		flags  []string
		answer string // empty: the turn is interrupted
		made   bool
		told   string
	}{
		{
			"a mode", nil, `{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"acceptEdits"}]}`, true,
			`"status":null,"permissionMode":"acceptEdits"`,
		},
		{
			"bypass", nil, `{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"bypassPermissions"}]}`,
			false, "not launched with --dangerously-skip-permissions",
		},
		{
			"bypass that may be",
			[]string{"--allow-dangerously-skip-permissions"},
			`{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"bypassPermissions"}]}`, true,
			`"permissionMode":"bypassPermissions"`,
		},
		{"none", nil, "", false, `{"type":"control_cancel_request","request_id":"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := nested(t, `[{"shell":"touch made"},{"say":"done"}]`,
				append(c.flags, "--permission-prompt-tool", "stdio")...)
			r.say(userLine("go"))
			id := r.requestID(`"can_use_tool"`)
			if c.answer != "" {
				r.say(controlReply(id, c.answer))
			} else {
				r.say(controlRequest("i", `{"subtype":"interrupt"}`))
			}
			r.await(func(line string) bool { return strings.HasPrefix(line, `{"type":"result"`) })
			r.say(controlReply(id, `{"behavior":"allow"}`)) // to a question that is closed
			messages, exit := r.end()
			_, err := os.Stat(filepath.Join(r.cmd.Args[3], "made"))
			if all := strings.Join(r.lines, "\n") + r.stderr.String(); (err == nil) != c.made ||
				!strings.Contains(all, c.told) || strings.Contains(all, "control_cancel_request") != (c.answer == "") {
				t.Errorf("made %v: %s", err == nil, all)
			}
			if err := order.Nested(r.lines); err != nil {
				t.Error(err)
			}
			// the code is that of the last turn
			if want := map[bool]int{true: 1}[c.answer == ""]; exit != want ||
				found(messages, ofType("result", "")) != 1 {
				t.Errorf("exit %d, %v", exit, messages)
			}
		})
	}
}

// TestNestedChanges: the mode and the model change or the host is told why not, and of each mode that is news it is
// told once.
func TestNestedChanges(t *testing.T) {
	t.Parallel()
	r := nested(t, `[{"say":"done"}]`, "--permission-prompt-tool", "stdio")
	r.say(controlRequest("i", `{"subtype":"initialize"}`))
	for i, word := range []string{"dontAsk", "default", "plan", "dontAsk", "acceptEdits", "acceptEdits"} {
		r.say(controlRequest(fmt.Sprint("m", i), `{"subtype":"set_permission_mode","mode":"`+word+`"}`))
		r.await(func(line string) bool { return strings.Contains(line, fmt.Sprintf(`"request_id":"m%d"`, i)) })
	}
	for id, model := range map[string]string{"a": `"other-model"`, "b": "null", "c": `"default"`, "d": "7"} {
		r.say(controlRequest(id, `{"subtype":"set_model","model":`+model+`}`))
		r.await(func(line string) bool { return strings.Contains(line, `"request_id":"`+id+`"`) })
	}
	r.say(userLine("go"))
	messages, exit := r.end()
	var modes []string
	for _, m := range messages {
		if m["subtype"] == "status" || m["subtype"] == "init" {
			modes = append(modes, fmt.Sprint(m["permissionMode"]))
		}
	}
	// the last is that of init
	if got := strings.Join(modes, " "); got != "dontAsk default plan dontAsk acceptEdits acceptEdits" || exit != 0 {
		t.Errorf("exit %d: %s\n%s", exit, got, strings.Join(r.lines, "\n"))
	}
	for id, want := range map[string]string{
		"a": `map[model:other-model]`, "b": "map[model:test-model]",
		"c": "map[model:test-model]", "d": "the request is not what it should be",
	} {
		if a := fmt.Sprint(answerTo(messages, id)); !strings.Contains(a, want) {
			t.Errorf("%s: %s", id, a)
		}
	}
	if err := order.Nested(r.lines); err != nil {
		t.Error(err)
	}
}

// TestNestedSteer: a message that is for the turn that runs reaches it, or waits for its own, and a host that named it
// learns which.
func TestNestedSteer(t *testing.T) {
	t.Parallel()
	r := nested(t,
		`[{"shell":"echo begun > begun; while ! test -e go; do sleep 0.02; done"},{"say":"You said ${input}"}]`,
		"--dangerously-skip-permissions")
	p := place{work: r.cmd.Args[3]}
	steer := func(id, words string) string {
		return strings.Replace(userLine(words), `{"type":"user"`, `{"type":"user","priority":"next","uuid":"`+id+`"`, 1)
	}
	r.say(userLine("dig"))
	p.await(t, "begun")
	r.say(steer("u1", "and mind the cat"))
	p.write(t, "go", "")
	r.await(func(line string) bool { return strings.HasPrefix(line, `{"type":"result"`) })
	r.say(steer("u2", "now?"))
	r.say(strings.Replace(userLine("later"), `{"type":"user"`, `{"type":"user","priority":"later","uuid":"u3"`, 1))
	messages, exit := r.end()
	var course []string
	for _, m := range messages {
		switch m["type"] {
		case "result":
			course = append(course, "result")
		case "command_lifecycle":
			course = append(course, fmt.Sprint(m["command_uuid"], " ", m["state"]))
		}
	}
	if got := strings.Join(course, ", "); got != "u1 started, result, u2 queued, result, result" || exit != 0 {
		t.Errorf("exit %d: %s\n%s", exit, got, strings.Join(r.lines, "\n"))
	}
	if err := order.Nested(r.lines); err != nil {
		t.Error(err)
	}
}

// TestNestedCodes are Claude Code's: of the last turn, and none for a denial.
func TestNestedCodes(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		`[{"say":"done"}]`: 0, `[{"shell":"touch made"},{"say":"done"}]`: 0,
		`[{"read":"a"},{"read":"b"},{"say":"done"}]`: 1,
	} {
		r := nested(t, script, "--max-turns", "2")
		r.say(userLine("go"))
		if messages, exit := r.end(); exit != want {
			t.Errorf("%s: exit %d, %v", script, exit, messages)
		}
	}
}
