package start

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/order"
)

// What Yume's specification asks of the stream, where the tables of the other files do not say it.

// result is the result line of the last turn.
func result(t *testing.T, messages []map[string]any) map[string]any {
	t.Helper()
	for _, m := range slices.Backward(messages) {
		if m["type"] == "result" {
			return m
		}
	}
	t.Fatalf("no result in %v", messages)
	return nil
}

// find is the first line of that type and subtype; nil: there is none.
func find(messages []map[string]any, kind, subtype string) map[string]any {
	for _, m := range messages {
		if m["type"] == kind && (subtype == "" || m["subtype"] == subtype) {
			return m
		}
	}
	return nil
}

// TestWholeAnswer: an answer that arrived in two parts is whole in the result, in every output format.
func TestWholeAnswer(t *testing.T) {
	t.Parallel()
	chat := func(text string) string {
		return fmt.Sprintf(`{"choices":[{"delta":{"content":%q}}]}`, text)
	}
	paused := func(text, reason string) reply {
		return reply{Status: 200, SSE: []string{
			`{"type":"message_start","message":{"id":"m","model":"m","usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text),
			`{"type":"content_block_stop","index":0}`,
			fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":2}}`, reason),
			`{"type":"message_stop"}`,
		}}
	}
	for name, c := range map[string]struct {
		wire    wire
		replies []reply
	}{
		"cut": {wires()[0], []reply{
			{Status: 200, SSE: []string{chat("half an ")}, Then: "close"},
			{Status: 200, SSE: []string{
				chat("answer"), `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, "[DONE]",
			}},
		}},
		"paused": {wires()[2], []reply{paused("half an ", "pause_turn"), paused("answer", "end_turn")}},
	} {
		for _, form := range []string{"stream-json", "text"} {
			t.Run(name+"/"+form, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				server := serve(t, c.replies)
				r := p.launch(t, []string{c.wire.key + "=k"}, "--provider", c.wire.provider, "--model", "m",
					"--api-base", server.URL, "--output-format", form, "-p", "go")
				if form == "text" {
					<-r.ended
					if got := strings.Join(r.all(), "\n"); got != "half an answer" {
						t.Errorf("the answer is %q\n%s", got, r.stderr.String())
					}
					return
				}
				messages, exit := r.end()
				if got := result(t, messages)["result"]; exit != 0 || got != "half an answer" {
					t.Errorf("exit %d, the result is %q\n%s", exit, got, r.stderr.String())
				}
			})
		}
	}
}

// TestAnswersInOnePiece: a server that cannot stream sends whole objects.
func TestAnswersInOnePiece(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	server := serve(t, []reply{
		{Status: 200, Body: `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1",` +
			`"type":"function","function":{"name":"LS","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`},
		{Status: 200, Body: `{"choices":[{"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}]}`},
	})
	r := p.launch(t, []string{"OPENAI_API_KEY=k"}, "--provider", "openai", "--model", "m", "--api-base", server.URL,
		"--output-format", "stream-json", "-p", "go")
	messages, exit := r.end()
	if got := result(t, messages)["result"]; exit != 0 || got != "done" || find(messages, "tool_use", "") == nil {
		t.Errorf("exit %d, the result is %q\n%s", exit, got, r.stderr.String())
	}
}

// TestEachBreakIsMended: a connection that breaks off in a turn may break off in it again, after an answer.
func TestEachBreakIsMended(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const stop = `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	begins := func(text string) reply {
		said := fmt.Sprintf(`{"choices":[{"delta":{"content":%q}}]}`, text)
		return reply{Status: 200, SSE: []string{said}, Then: "close"}
	}
	server := serve(t, []reply{
		begins("I look "),
		{Status: 200, SSE: []string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"LS","arguments":"{}"}}]}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]",
		}},
		begins("half an "),
		{Status: 200, SSE: []string{`{"choices":[{"delta":{"content":"answer"}}]}`, stop, "[DONE]"}},
	})
	r := p.launch(t, []string{"OPENAI_API_KEY=k"}, "--provider", "openai", "--model", "m", "--api-base", server.URL,
		"--output-format", "stream-json", "-p", "go")
	messages, exit := r.end()
	if got := result(t, messages)["result"]; exit != 0 || got != "half an answer" {
		t.Errorf("exit %d, the result is %q\n%s", exit, got, r.stderr.String())
	}
}

// TestTooLongIsNotForEver: a message that is longer than the model can take fails, and the next one is answered.
func TestTooLongIsNotForEver(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]string{"first": {}, "later": {"hi"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				body, _ := io.ReadAll(q.Body)
				if len(body) > 40_000 {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, `{"error":{"message":"too long","code":"context_length_exceeded"}}`)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"answered"}}]}`+"\n\n"+
					`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
			}))
			t.Cleanup(server.Close)
			p := newPlace(t)
			r := p.launch(t, []string{"OPENAI_API_KEY=k"}, "--provider", "openai", "--model", "m",
				"--api-base", server.URL, "--input-format", "stream-json", "--output-format", "stream-json")
			for _, text := range append(before, strings.Repeat("x", 60_000), "hello") {
				r.say(fmt.Sprintf(`{"type":"user","content":%q}`, text))
			}
			messages, exit := r.end()
			var failed []any
			for _, m := range messages {
				if m["type"] == "result" {
					failed = append(failed, m["is_error"])
				}
			}
			n := len(before)
			if len(failed) != n+2 || failed[n] != true || failed[n+1] != false {
				t.Errorf("exit %d, errors: %v\n%s", exit, failed, r.stderr.String())
			}
		})
	}
}

// TestManyMessagesWait: what the conversation has no room for waits in front of it, and each message is answered.
func TestManyMessagesWait(t *testing.T) {
	t.Parallel()
	const many = 150
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[{"say":"You said ${input}"}]`)
	r := p.launch(t, env, append(args, "--input-format", "stream-json", "--output-format", "stream-json")...)
	for i := range many {
		r.say(fmt.Sprintf(`{"type":"user","content":"message %d."}`, i))
	}
	messages, exit := r.end()
	answered := 0
	for _, m := range messages {
		if m["type"] == "result" {
			if want := fmt.Sprintf("message %d.", answered); !strings.Contains(fmt.Sprint(m["result"]), want) {
				t.Fatalf("%v is not the answer to %q", m["result"], want)
			}
			answered++
		}
	}
	if exit != 0 || answered != many {
		t.Errorf("exit %d, %d of %d are answered\n%s", exit, answered, many, r.stderr.String())
	}
}

// TestInputsAsSent: a call is told with the members that its tool has.
func TestInputsAsSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ call, input string }{
		"LS":        {`{"name":"LS","input":{}}`, "map[]"},
		"LS a path": {`{"name":"LS","input":{"path":"."}}`, "map[path:.]"},
		"Task":      {`{"name":"Task","input":{"description":"say hello"}}`, "map[description:say hello]"},
		`Read a\b`:  {`{"name":"Read","input":{"file_path":"sub\\b.txt"}}`, `map[file_path:sub\b.txt]`},
		`Write a\b`: {
			`{"name":"Write","input":{"file_path":"sub\\new.txt","content":"x"}}`,
			`map[content:x file_path:sub\new.txt]`,
		},
		`LS a\b`: {`{"name":"LS","input":{"path":"sub\\in"}}`, `map[path:sub\in]`},
		`Glob`: {
			`{"name":"Glob","input":{"pattern":"*.txt","path":"sub\\in"}}`, `map[path:sub\in pattern:*.txt]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "sub/b.txt", "hi\n")
			p.write(t, "sub/in/c.txt", "hi\n")
			args, env, _ := wires()[0].scripted(t, `[{"call":`+c.call+`},{"say":"done"}]`)
			r := p.launch(t, env, append(args, "--permission-mode", "auto", "-p", "go")...)
			messages, exit := r.end()
			use, got := find(messages, "tool_use", ""), find(messages, "tool_result", "")
			if exit != 0 || use == nil || fmt.Sprint(use["input"]) != c.input {
				t.Errorf("exit %d, the call is told as %v", exit, use)
			}
			for _, m := range messages {
				if m["type"] == "tool_result" && m["tool_use_id"] == use["id"] {
					got = m
				}
			}
			if got == nil || got["is_error"] != false {
				t.Errorf("it failed: %v", got)
			}
			if strings.HasPrefix(name, "Write") {
				if _, err := os.Stat(filepath.Join(p.work, "sub", "new.txt")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestShapesOfFailures: a login that fails is a system error, and one that has expired is told from one that is wrong;
// all else that a model's API cannot do is an error.
func TestShapesOfFailures(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`{"error":400}`: "error  API_ERROR", `{"error":403}`: "error  PERMISSION_DENIED",
		`{"error":404}`: "error  NOT_FOUND", `{"error":500}`: "error  API_ERROR",
		`{"error":401}`:                         "system error AUTH_REQUIRED",
		`{"error":401,"message":"invalid key"}`: "system error AUTH_REQUIRED",
		`{"error":401,"message":"OAuth token has expired. Please obtain a new token."}`: "system error CREDENTIALS_EXPIRED",
	} {
		for _, w := range wires() {
			t.Run(w.provider+"/"+script, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				args, env, _ := w.scripted(t, "["+script+"]")
				messages, exit := p.launch(t, env, append(args, "-p", "go")...).end()
				if exit != 1 || len(messages) < 3 {
					t.Fatalf("exit %d, %v", exit, messages)
				}
				m, result := messages[len(messages)-3], messages[len(messages)-2]
				subtype, _ := m["subtype"].(string)
				if got := fmt.Sprint(m["type"], " ", subtype, " ", m["code"]); got != want {
					t.Errorf("%s, want %s: %v", got, want, m)
				}
				if result["is_error"] != true || !strings.HasPrefix(fmt.Sprint(result["result"]), "Error: ") {
					t.Errorf("%v", result)
				}
			})
		}
	}
}

// TestRefusedCalls: whatever keeps a conversation from beginning has one shape and one exit code.
func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"unknown session": {"--resume", "nobody"}, "two sessions": {"--resume", "a", "--session-id", "b"},
		"no such session id": {"--session-id", "../x"}, "mode": {"--permission-mode", "bogus"},
		"number": {"--max-turns", "q"}, "provider": {"--provider", "nobody"}, "version": {"--protocol-version", "2"},
		"no directory": {"--cwd", "/no/such/directory"}, "unknown flag": {"--no-such-flag"},
		"max-turns, output-format, permission-mode": {
			"--permission-mode", "bogus", "--output-format", "xml", "--max-turns", "q",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			base, env, _ := wires()[0].scripted(t, `[]`)
			if name == "provider" {
				base = base[2:]
			}
			messages, exit := p.launch(t, env, append(append(base, args...), "-p", "go")...).end()
			if exit != 2 || len(messages) != 3 || messages[0]["subtype"] != "error" {
				t.Errorf("exit %d, %v", exit, messages)
			}
			if several := strings.Split(name, ", "); len(several) > 1 {
				for _, flag := range several {
					if !strings.Contains(fmt.Sprint(messages[0]["message"]), flag) {
						t.Errorf("--%s is not named: %v", flag, messages[0])
					}
				}
			}
		})
	}
}

// TestGoogleLoginOfAFile: application default credentials are given for a token, with which Gemini is asked. One that
// has expired says so.
func TestGoogleLoginOfAFile(t *testing.T) {
	t.Parallel()
	for refresh, want := range map[string]string{"good": "hello", "old": "CREDENTIALS_EXPIRED"} {
		p := newPlace(t)
		tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.FormValue("refresh_token") != "good" {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":"invalid_grant","error_description":"Bad Request"}`)
				return
			}
			_, _ = io.WriteString(w, `{"access_token":"ya29.token","expires_in":3600}`)
		}))
		t.Cleanup(tokens.Close)
		file := filepath.Join(p.home, "adc.json")
		content := `{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"` + refresh +
			`","token_uri":"` + tokens.URL + `"}`
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		args, _, server := wires()[3].scripted(t, `[{"say":"hello"}]`)
		r := p.launch(t, []string{"GOOGLE_APPLICATION_CREDENTIALS=" + file, "PATH=/nonexistent"},
			append(args, "-p", "go")...)
		messages, _ := r.end()
		if said := strings.Join(r.all(), "\n"); !strings.Contains(said, want) {
			t.Errorf("%s: %v", refresh, messages)
		}
		for _, q := range server.Requests() {
			if got := q.Header.Get("Authorization"); got != "Bearer ya29.token" {
				t.Errorf("asked with %q", got)
			}
		}
	}
}

// TestUnwritableHome: a home that cannot be written ends nothing. The conversation is not kept, and one line says so;
// commands have their walls all the same, with a record in the temporary directory.
func TestUnwritableHome(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	file := filepath.Join(p.home, "file") // nobody makes a directory in it, not even the superuser
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{file, filepath.Join(file, "below")} {
		args, env, _ := wires()[0].scripted(t, `[{"shell":"echo ran > ran.txt"},{"say":"done"}]`)
		env = append(env, "HOME="+home)
		r := p.launch(t, env, append(args, "--session-id", "s", "-p", "go", "--permission-mode", "auto")...)
		messages, exit := r.end()
		if exit != 0 || result(t, messages)["result"] != "done" || messages[0]["session_id"] != "s" {
			t.Errorf("exit %d, %v", exit, messages)
		}
		if whole(t) && wallsOf(messages) == "none" {
			t.Errorf("there are no walls: %v", messages[0])
		}
		if said := r.stderr.String(); strings.Count(said, "nothing of the conversation is kept") != 1 {
			t.Errorf("it is told as %q", said)
		}
		if err := os.Remove(filepath.Join(p.work, "ran.txt")); err != nil {
			t.Error(err)
		}
	}
	args, env, _ := wires()[0].scripted(t, `[]`)
	messages, exit := p.launch(t, append(env, "HOME="+file), append(args, "--resume", "s", "-p", "go")...).end()
	if exit != 2 || messages[0]["code"] != "NOT_FOUND" {
		t.Errorf("exit %d, %v", exit, messages)
	}
}

// TestSameSessionEachTurn: a host that passes the same --session-id with every turn continues one session, with a
// process for each turn and over frames.
func TestSameSessionEachTurn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, server := wires()[0].scripted(t, `[{"say":"You said ${input}"}]`)
	args = append(args, "--session-id", "mine")
	for _, said := range []string{"first words", "second words"} {
		messages, exit := p.launch(t, env, append(args, "-p", said)...).end()
		if exit != 0 || messages[0]["session_id"] != "mine" {
			t.Fatalf("exit %d, %v", exit, messages)
		}
	}
	r := p.launch(t, env, args...)
	r.say(`{"type":"user","content":"third words"}`)
	messages, exit := r.end()
	if exit != 0 || messages[0]["session_id"] != "mine" {
		t.Fatalf("exit %d, %v", exit, messages)
	}
	requests := server.Requests()
	for _, said := range []string{"first words", "You said first words", "second words", "third words"} {
		if last := string(requests[len(requests)-1].Raw); !strings.Contains(last, said) {
			t.Errorf("%q is not in the request: %s", said, last)
		}
	}
	// It is what it was: nothing opens, nothing is replaced, nobody else takes it.
	for want, more := range map[string][]string{
		"belongs to openai": {"--provider", "gemini", "--api-base", server.URL()},
		"exists already":    {"--history-file", filepath.Join(p.home, ".yume", "sessions", "mine.json")},
	} {
		messages, exit := p.launch(t, append(env, "GEMINI_API_KEY=k"), append(append(slices.Clone(args), "-p", "x"),
			more...)...).end()
		if exit == 0 || !strings.Contains(fmt.Sprint(messages[0]["message"]), want) {
			t.Errorf("exit %d, %v, want %q", exit, messages[0], want)
		}
	}
	messages, exit = p.launch(t, env, append(args, "-p", "x", "--no-session-persistence")...).end()
	if before := len(requests); exit != 0 || strings.Contains(string(server.Requests()[before].Raw), "first words") {
		t.Errorf("exit %d: a conversation that is not kept continues a kept one: %v", exit, messages)
	}
}

// TestChangedID: a conversation that has another id than the one that the host named says so behind init.
func TestChangedID(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[{"say":"ok"}]`)
	if messages, _ := p.launch(t, env, append(args, "--session-id", "a", "-p", "x")...).end(); find(messages, "system",
		"session_id") != nil {
		t.Errorf("nothing changed: %v", messages)
	}
	for _, more := range [][]string{{"--fork-session"}, {"--fork-session", "--session-id", "b"}} {
		messages, exit := p.launch(t, env, append(append(args, "--resume", "a", "-p", "x"), more...)...).end()
		init, changed := messages[0], messages[1]
		if exit != 0 || changed["subtype"] != "session_id" || changed["session_id"] != init["session_id"] ||
			changed["previous_session_id"] != "a" || init["session_id"] == "a" {
			t.Errorf("exit %d, %v", exit, messages[:2])
		}
	}
	if messages, _ := p.launch(t, env, append(args, "--resume", "a", "-p", "x")...).end(); find(messages, "system",
		"session_id") != nil {
		t.Errorf("nothing changed: %v", messages)
	}
}

// TestProviderCopilot drives the installed program, or says how it is installed.
func TestProviderCopilot(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	bin := t.TempDir()
	path := "PATH=" + bin
	r := p.launch(t, []string{path}, "--provider", "copilot", "-p", "go")
	messages, exit := r.end()
	if exit != 2 || messages[0]["code"] != "NOT_INSTALLED" || !strings.Contains(r.stderr.String(),
		"npm install -g @github/copilot") {
		t.Errorf("exit %d, %v: %s", exit, messages, r.stderr.String())
	}
	stub := "#!/bin/sh\nread -r line\necho \"$@ $line\" >> " + filepath.Join(p.home, ".copilot/told") + "\nexit 1\n"
	if err := hermetic.WriteProgram(filepath.Join(bin, "copilot"), []byte(stub), 0o755); err != nil {
		t.Fatal(err)
	}
	_, exit = p.launch(t, []string{path}, "--provider", "copilot", "-p", "say what you are").end()
	told, err := os.ReadFile(filepath.Join(p.home, ".copilot/told"))
	if err != nil || !strings.Contains(string(told), "say what you are") || exit != 1 {
		t.Errorf("exit %d: it was told %q, %v", exit, told, err)
	}
}

// TestVerbose: --verbose says on standard error what is chosen, asked and called, and how the turn ended; without it
// there is nothing to say.
func TestVerbose(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, server := wires()[0].scripted(t, `[{"read":"missing.txt"},{"say":"done"}]`)
	args = append(args, "--permission-mode", "auto", "-p", "go", "--session-id", "s")
	r := p.launch(t, env, append(args, "--verbose")...)
	plain, exit := r.end()
	for _, want := range []string{
		"test-model of openai at " + server.URL(), "--provider", "the key in OPENAI_API_KEY", "session s in " + p.work,
		"mode yolo", "test-model answered: ", "Read missing.txt", "failed", "turn 1 ended after ", ": success",
	} {
		if !strings.Contains(r.stderr.String(), want) {
			t.Errorf("exit %d: %q is not said: %s", exit, want, r.stderr.String())
		}
	}
	if strings.Contains(r.stderr.String(), "secret-of-a-test") {
		t.Errorf("the key is told: %s", r.stderr.String())
	}
	r = newPlace(t).launch(t, env, args...)
	if messages, _ := r.end(); r.stderr.Len() > 0 || len(messages) != len(plain) {
		t.Errorf("without --verbose: %s", r.stderr.String())
	}
}

// TestGrammarOfYume: the whole command line of the specification, under its program's name.
func TestGrammarOfYume(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	link := filepath.Join(p.home, "yume-cli")
	if err := os.Symlink(program, link); err != nil {
		t.Skip("no links here: ", err)
	}
	args, env, _ := wires()[0].scripted(t, `[{"say":"You said ${input}"}]`)
	all := append([]string{"start", "--cwd", p.work}, args...)
	all = append(all, "--session-id", "s", "--prompt", "hello", "--output-format", "stream-json", "--permission-mode",
		"default", "--protocol-version", "1", "--verbose")
	for _, more := range [][]string{nil, {"--resume", "s"}} {
		cmd := exec.Command(link, append(all, more...)...)
		cmd.Env, cmd.Dir = append(p.env, env...), p.home
		out, err := cmd.Output()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if wrong := order.Flat(lines); err != nil || wrong != nil || !strings.Contains(string(out), "You said hello") {
			t.Errorf("%v, %v: %s", err, wrong, out)
		}
	}
}

// TestModeThatHolds: init reports the mode in which a session continues, and not the wider one that was requested.
func TestModeThatHolds(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[{"shell":"touch ran.txt"},{"say":"ok"}]`)
	for _, c := range []struct{ asked, holds string }{
		{"interactive", "interactive"}, {"auto", "interactive"}, {"deny", "deny"}, {"auto", "deny"},
	} {
		messages, _ := p.launch(t, env, append(args, "--session-id", "s", "-p", "x", "--permission-mode",
			c.asked)...).end()
		if messages[0]["permissionMode"] != c.holds {
			t.Errorf("asked for %s: %v, want %s", c.asked, messages[0]["permissionMode"], c.holds)
		}
	}
	if _, err := os.Stat(filepath.Join(p.work, "ran.txt")); err == nil {
		t.Error("the command ran")
	}
}

// TestBypassOfYume: a frame changes the mode to one that asks about nothing only if the process began so.
func TestBypassOfYume(t *testing.T) {
	t.Parallel()
	for flag, may := range map[string]bool{"--verbose": false, "--allow-bypass": true} {
		p := newPlace(t)
		args, env, _ := wires()[0].scripted(t, `[{"shell":"touch ran.txt"},{"say":"ok"}]`)
		r := p.launch(t, env, append(args, "--input-format", "stream-json", "--approval", "prompt", "--questions",
			"none", flag)...)
		r.say(`{"type":"set_permission_mode","mode":"yolo"}`)
		r.say(`{"type":"user","content":"go"}`)
		_, exit := r.end()
		_, err := os.Stat(filepath.Join(p.work, "ran.txt"))
		code := map[bool]int{true: 0, false: 3}[may] // 3: it was denied
		told := strings.Contains(r.stderr.String(), "begin the conversation with --yolo, or with --allow-bypass")
		if exit != code || (err == nil) != may || told == may {
			t.Errorf("%s: exit %d, it ran: %v\n%s", flag, exit, err == nil, r.stderr.String())
		}
	}
}

// TestRulesAndBackslashes: a rule about a directory, and what is never written unasked, hold however a path is written.
func TestRulesAndBackslashes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "secret/key.txt", "canary\n")
	args, env, _ := wires()[0].scripted(t, `[{"calls":[
		{"call":{"name":"Read","input":{"file_path":"secret\\key.txt"}}},
		{"call":{"name":"Write","input":{"file_path":".vscode\\tasks.json","content":"{}"}}},
		{"call":{"name":"Read","input":{"file_path":"secret\\..\\..\\up.txt"}}}]},{"say":"ok"}]`)
	args = append(args, "--permission-mode", "auto", "--disallowed-tools", "Read(secret/**)", "-p", "x")
	messages, exit := p.launch(t, env, args...).end()
	for _, m := range messages {
		if m["type"] == "tool_result" && m["is_error"] != true || strings.Contains(fmt.Sprint(m), "canary") {
			t.Errorf("exit %d: %v", exit, m)
		}
	}
	if _, err := os.Stat(filepath.Join(p.work, ".vscode")); err == nil {
		t.Error(".vscode was written")
	}
}
