package codex

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/testkit/order"
)

// capturedLive is what app-server said in a conversation.
func capturedLive(t testing.TB) (out []byte) {
	t.Helper()
	data, err := os.ReadFile("testdata/live.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Dir string
			Msg map[string]json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Dir != "out" {
			continue
		}
		if id := l.Msg["id"]; l.Msg["method"] == nil { // the capture counts from 0
			l.Msg["id"] = json.RawMessage([]byte{id[0] + 1})
		}
		line, _ := json.Marshal(l.Msg)
		out = append(append(out, line...), '\n')
	}
	return out
}

func given(t testing.TB, o threadOptions) *talk {
	t.Helper()
	w := newTalk(o)
	if step := w.Begin(); len(step.Lines) != 3 || !bytes.Contains(step.Lines[0], []byte(`"initialize"`)) {
		t.Fatalf("%s", step.Lines)
	}
	if step, err := w.Do(live.Command{Message: []event.Block{{Text: "go"}}}); err != nil || len(step.Lines) != 0 {
		t.Fatalf("a message is sent before there is a thread: %s, %v", step.Lines, err)
	}
	return w
}

func brief(events []event.Event) string {
	var words []string
	for _, e := range events {
		word := string(e.Kind)
		switch {
		case e.Ask != nil:
			word += "=" + e.Ask.ID
		case e.Call != nil:
			word += "=" + e.Call.Name
		case e.Result != nil:
			word += "=" + strings.TrimSpace(e.Result.Output)
		case e.End != nil:
			word += "=" + e.End.Reason
		case e.Denial != nil:
			word += "=" + e.Denial.Tool
		case e.Text != "" && e.Kind != event.Notice:
			word += "=" + e.Text
		}
		if e.Unprompted {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}

// TestTranslated: the capture is, in both dialects of hosts, a stream that keeps the rules.
func TestTranslated(t *testing.T) {
	w := given(t, threadOptions{mode: setting.Prompt, dir: "/ws"})
	var events []event.Event
	for p := range bytes.Lines(capturedLive(t)) {
		for _, e := range w.Feed(p).Events {
			e.Raw = nil
			events = append(events, e)
		}
	}
	flat, nested, err := order.Told(append(events, w.End(agent.Exit{})...), event.Facts{Agent: "codex"})
	if err := errors.Join(err, order.Flat(flat), order.Nested(nested)); err != nil ||
		!strings.Contains(strings.Join(flat, "\n"), `"is_error":false,"result":"done"`) {
		t.Errorf("%v\n%s\n%s", err, strings.Join(flat, "\n"), strings.Join(nested, "\n"))
	}
}

// TestReplayLive plays the capture to a wire, whole and cut everywhere.
func TestReplayLive(t *testing.T) {
	out := capturedLive(t)
	play := func(pieces ...[]byte) (told, said string) {
		w := given(t, threadOptions{mode: setting.Prompt, dir: "/ws"})
		var events []event.Event
		var lines []byte
		take := func(step live.Step) {
			for _, line := range step.Lines {
				lines = append(lines, line...)
			}
			events = append(events, step.Events...)
		}
		for _, piece := range pieces {
			for _, p := range bytes.SplitAfter(piece, []byte("\n")) {
				step := w.Feed(p)
				take(step)
				for _, e := range step.Events {
					if e.Kind != event.Question {
						continue
					}
					answer, err := w.Do(live.Command{Answer: &event.Reply{Question: e.Ask.ID, Option: event.Allow}})
					if err != nil {
						t.Fatal(err)
					}
					take(answer)
				}
			}
		}
		return brief(append(events, w.End(agent.Exit{})...)), string(lines)
	}
	const want = "started; notice; turn; tool_call=command_execution; question=q1; tool_result=esc; text=done; " +
		"text=done; end=completed"
	told, said := play(out)
	if told != want {
		t.Fatalf("got %s\nwant %s", told, want)
	}
	for _, part := range []string{
		`{"id":1,"result":{"decision":"accept"}}`, `"approvalPolicy":"untrusted"`,
		`"type":"readOnly"`,
	} {
		if !strings.Contains(said, part) {
			t.Errorf("%s was not said: %s", part, said)
		}
	}
	for i := 1; i < len(out); i += 13 {
		if again, lines := play(out[:i], out[i:]); again != want || lines != said {
			t.Fatalf("cut at %d: %s", i, again)
		}
	}
	var bits [][]byte
	for i := range out {
		bits = append(bits, out[i:i+1])
	}
	if again, lines := play(bits...); again != want || lines != said {
		t.Fatalf("byte by byte: %s", again)
	}
}

func TestGreeting(t *testing.T) {
	w := newTalk(threadOptions{mode: setting.Yolo, dir: "/ws"})
	lines := string(bytes.Join(w.Begin().Lines, nil))
	for _, part := range []string{
		`"method":"initialize"`, `"method":"initialized"`, `"method":"thread/start"`,
		`"sandbox":"read-only"`, `"approvalsReviewer":"user"`,
	} {
		if !strings.Contains(lines, part) {
			t.Errorf("%s was not said: %s", part, lines)
		}
	}
}

// begun is a wire in the middle of a turn.
func begun(t testing.TB, o threadOptions) *talk {
	t.Helper()
	w := given(t, o)
	w.Feed([]byte(`{"id":1,"result":{}}` + "\n" + `{"id":2,"result":{"thread":{"id":"T"},"model":"m"}}` + "\n" +
		`{"id":3,"result":{"turn":{"id":"U"}}}` + "\n"))
	return w
}

func TestAnswersInItsWords(t *testing.T) {
	const command = `{"id":7,"method":"item/commandExecution/requestApproval","params":{"itemId":"i","command":"ls","threadId":"T"}}` + "\n"
	const file = `{"id":7,"method":"item/fileChange/requestApproval","params":{"itemId":"i","threadId":"T"}}` + "\n"
	const more = `{"id":7,"method":"item/permissions/requestApproval","params":{"itemId":"i","permissions":{"network":{"enabled":true}},"threadId":"T"}}` + "\n"
	const elicit = `{"id":7,"method":"mcpServer/elicitation/request","params":{"serverName":"s","message":"m","mode":"form","threadId":"T"}}` + "\n"
	yes := event.Reply{Option: event.Allow}
	tests := []struct {
		name, request string
		reply         event.Reply
		want          string
	}{
		{"allow", command, yes, `{"decision":"accept"}`},
		{"always", command, event.Reply{Option: event.Always}, `{"decision":"acceptForSession"}`},
		{"deny", command, event.Reply{Option: event.Deny}, `{"decision":"decline"}`},
		{"stop", command, event.Reply{Option: event.Deny, Stop: true}, `{"decision":"cancel"}`},
		{
			"the same input", command,
			event.Reply{Option: event.Allow, Input: json.RawMessage(`{ "command":"ls"}`)},
			`{"decision":"accept"}`,
		},
		{
			"another input", command,
			event.Reply{Option: event.Allow, Input: json.RawMessage(`{"command":"pwd"}`)},
			`{"decision":"decline"}`,
		},
		{"rules", command, event.Reply{Option: event.Allow, Rules: []string{"Bash"}}, `{"decision":"decline"}`},
		{"a stricter mode", command, event.Reply{Option: event.Allow, Mode: setting.Plan}, `{"decision":"decline"}`},
		{"a wider mode", command, event.Reply{Option: event.Allow, Mode: setting.AutoEdit}, `{"decision":"accept"}`},
		{"nobody", command, event.Reply{Automatic: true, Option: yes.Option}, `{"decision":"decline"}`},
		{"a file", file, yes, `{"decision":"accept"}`},
		{"more", more, yes, `{"permissions":{"network":{"enabled":true}},"scope":"turn"}`},
		{
			"more, for long", more,
			event.Reply{Option: event.Always},
			`{"permissions":{"network":{"enabled":true}},"scope":"session"}`,
		},
		{"no more", more, event.Reply{Option: event.Deny}, `{"permissions":{},"scope":"turn"}`},
		{
			"a form", elicit,
			event.Reply{Option: event.Allow, Input: json.RawMessage(`{"a":1}`)},
			`{"action":"accept","content":{"a":1}}`,
		},
		{"no form", elicit, event.Reply{Option: event.Deny}, `{"action":"decline","content":null}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := begun(t, threadOptions{mode: setting.Prompt})
			if got := brief(w.Feed([]byte(tt.request)).Events); got != "question=q7" {
				t.Fatal(got)
			}
			tt.reply.Question = "q7"
			step, err := w.Do(live.Command{Answer: &tt.reply})
			if err != nil || len(step.Lines) != 1 || string(step.Lines[0]) != `{"id":7,"result":`+tt.want+"}\n" {
				t.Fatalf("%s, %v", step.Lines, err)
			}
			if _, err := w.Do(live.Command{Answer: &tt.reply}); !errorsIs(err, fault.NotFoundCode) {
				t.Error("it can be answered twice")
			}
		})
	}
	w := begun(t, threadOptions{mode: setting.Prompt})
	q := w.Feed(
		[]byte(`{"id":"x","method":"item/tool/requestUserInput","params":{"itemId":"i","questions":[{"id":"a","question":"A?","options":[{"label":"one"}]},{"id":"b","question":"B?"}]}}` + "\n"))
	if got := brief(q.Events); got != `question=q"x"; question=q"x"/1` {
		t.Fatal(got)
	}
	if step, err := w.Do(live.Command{Answer: &event.Reply{Question: `q"x"/1`, Text: "two"}}); err != nil ||
		len(step.Lines) != 0 {
		t.Fatalf("%s, %v", step.Lines, err)
	}
	step, err := w.Do(live.Command{Answer: &event.Reply{Question: `q"x"`, Option: "one"}})
	if err != nil ||
		string(step.Lines[0]) != `{"id":"x","result":{"answers":{"a":{"answers":["one"]},"b":{"answers":["two"]}}}}`+
			"\n" {
		t.Errorf("%s, %v", step.Lines, err)
	}
	if step := w.Feed([]byte(`{"id":9,"method":"account/chatgptAuthTokens/refresh","params":{}}` +
		"\n")); !bytes.Contains(step.Lines[0], []byte(`"error"`)) {
		t.Errorf("%s", step.Lines)
	}
}

func errorsIs(err error, code fault.Code) bool { return err != nil && fault.Of(err).Code == code }

func TestTurnsOfOthers(t *testing.T) {
	w := begun(t, threadOptions{mode: setting.Prompt})
	said := func(text string) string { return brief(w.Feed([]byte(text + "\n")).Events) }
	if got := said(
		`{"method":"turn/completed","params":{"threadId":"T","turn":{"id":"V","status":"completed"}}}`); got != "end=completed!" {
		t.Error(got)
	}
	if got := said(
		`{"method":"turn/completed","params":{"threadId":"other","turn":{"id":"U","status":"completed"}}}`); got != "" {
		t.Error(got)
	}
	if got := said(
		`{"method":"turn/completed","params":{"threadId":"T","turn":{"id":"U","status":"failed","error":{"message":"no","codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":401}}}}}}`); got != "failed; end=no" {
		t.Error(got)
	}
	if out := w.End(agent.Exit{}); len(out) != 0 {
		t.Error(brief(out))
	}
	w = begun(t, threadOptions{mode: setting.Prompt})
	if step, _ := w.Do(live.Command{Interrupt: true}); !bytes.Contains(step.Lines[0], []byte(`"turnId":"U"`)) {
		t.Errorf("%s", step.Lines)
	}
	w = given(t, threadOptions{mode: setting.Prompt})
	if step, _ := w.Do(live.Command{Interrupt: true}); brief(step.Events) != "end=cancelled" || len(step.Lines) != 0 {
		t.Errorf("%s", step.Lines)
	}
}

// TestRetriesOfCodex: the reason is in the details.
func TestRetriesOfCodex(t *testing.T) {
	w := begun(t, threadOptions{mode: setting.Prompt})
	for message, want := range map[string]string{
		"Reconnecting... 2/5":                    "attempt 2 of 5 failed: no such name",
		"Reconnecting... waiting for network":    "waiting for network: no such name",
		"Reconnecting... 2/5 (no such name)":     "attempt 2 of 5 failed: no such name",
		"an error of another form: no such name": "an error of another form: no such name",
	} {
		step := w.Feed([]byte(`{"method":"error","params":{"threadId":"T","willRetry":true,"error":{"message":"` + message +
			`","additionalDetails":"no such name"}}}` + "\n"))
		if len(step.Events) != 1 || step.Events[0].Retry == nil || step.Events[0].Retry.Note() != want {
			t.Errorf("%s: %s", message, brief(step.Events))
		}
	}
}

// TestChangesOfCodex: a change is for a new process, but for the mode of an answer, which holds from the next turn on.
func TestChangesOfCodex(t *testing.T) {
	facts := func(w *talk) (f event.Facts) {
		w.AddFacts(&f)
		return f
	}
	w := begun(t, threadOptions{mode: setting.Yolo})
	change := agent.Change{Mode: setting.Prompt}
	if _, err := w.Do(live.Command{Change: &change}); !errors.Is(err, agent.ErrRestart) ||
		facts(w).Mode != setting.Yolo {
		t.Error(err)
	}
	w = begun(t, threadOptions{mode: setting.Prompt})
	w.Feed([]byte(`{"id":7,"method":"item/commandExecution/requestApproval",` +
		`"params":{"itemId":"i","command":"ls","threadId":"T"}}` + "\n"))
	reply := event.Reply{Question: "q7", Option: event.Allow, Mode: setting.AutoEdit}
	if _, err := w.Do(live.Command{Answer: &reply}); err != nil || facts(w).Mode != setting.Prompt {
		t.Error("a mode of an answer does not hold in the turn", err)
	}
	w.Feed([]byte(`{"method":"turn/completed","params":{"threadId":"T","turn":{"id":"U","status":"completed"}}}` +
		"\n"))
	if facts(w).Mode != setting.AutoEdit {
		t.Error("a mode of an answer holds from the next turn on")
	}
}

// TestSteeringOfCodex: what is said during a turn is part of it when Codex says so.
func TestSteeringOfCodex(t *testing.T) {
	steer := live.Command{Steer: []event.Block{{Text: "more"}}, Token: 6}
	if _, err := given(t, threadOptions{mode: setting.Prompt}).Do(steer); !errorsIs(err, fault.Unsupported) {
		t.Errorf("before there is a turn: %v", err)
	}
	for answer, code := range map[string]fault.Code{
		`{"id":4,"result":{"turnId":"U"}}`:                                     "",
		`{"id":4,"error":{"code":-32600,"message":"no active turn to steer"}}`: fault.Interrupted,
	} {
		w := begun(t, threadOptions{mode: setting.Prompt})
		step, err := w.Do(steer)
		if err != nil || len(step.Lines) != 1 || !bytes.Contains(step.Lines[0], []byte(`"turn/steer"`)) ||
			!bytes.Contains(step.Lines[0], []byte(`"expectedTurnId":"U"`)) {
			t.Fatalf("%s, %v", step.Lines, err)
		}
		got := w.Feed([]byte(answer + "\n"))
		if len(got.Results) != 1 || got.Results[0].Token != 6 || len(got.Events) != 0 {
			t.Fatalf("%s: %+v", answer, got)
		}
		if err := got.Results[0].Err; code == "" && err != nil || code != "" && !errorsIs(err, code) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// TestInterruptedCommand: Codex lets a command run on when its turn is interrupted, unless it is told to end it. One of
// an earlier turn is left alone, and a Codex that does not know the request only misses it.
func TestInterruptedCommand(t *testing.T) {
	w := begun(t, threadOptions{mode: setting.Yolo})
	began := func(item, process string) string {
		return `{"method":"item/started","params":{"threadId":"T","item":{"type":"commandExecution","id":"` + item +
			`","command":"sleep 9","processId":"` + process + `"}}}` + "\n"
	}
	ended := func(turn, how string) string {
		return `{"method":"turn/completed","params":{"threadId":"T","turn":{"id":"` + turn + `","status":"` + how +
			`"}}}` + "\n"
	}
	if step := w.Feed([]byte(began("a", "1") + ended("U", "completed"))); len(step.Lines) != 0 {
		t.Errorf("%s", step.Lines)
	}
	if _, err := w.Do(live.Command{Message: []event.Block{{Text: "on"}}}); err != nil {
		t.Fatal(err)
	}
	w.Feed([]byte(`{"id":4,"result":{"turn":{"id":"V"}}}` + "\n" + began("b", "2") + began("c", "3") +
		`{"method":"item/completed","params":{"threadId":"T","item":{"type":"commandExecution","id":"c"}}}` + "\n"))
	step := w.Feed([]byte(ended("V", "interrupted")))
	if len(step.Lines) != 1 || !bytes.Contains(step.Lines[0], []byte(`"params":{"processId":"2","threadId":"T"}`)) {
		t.Fatalf("%s", step.Lines)
	}
	step = w.Feed([]byte(`{"id":5,"error":{"code":-32600,"message":"unknown variant"}}` + "\n"))
	if len(step.Events) != 0 {
		t.Errorf("%s", brief(step.Events))
	}
	if _, err := w.Do(live.Command{Message: []event.Block{{Text: "on"}}}); err != nil {
		t.Error(err)
	}
}

// TestInputs of calls are on the wire of Codex byte for byte.
func TestInputs(t *testing.T) {
	const command = `"printf \"<é\\u00e9>\" \u0026\u0026 ls"`
	w := begun(t, threadOptions{mode: setting.Prompt})
	begins := func(item string) *event.Call {
		return w.Feed([]byte(`{"method":"item/started","params":{"threadId":"T","item":` + item + `}}` +
			"\n")).Events[0].Call
	}
	call := begins(`{"id":"i","type":"commandExecution","command":` + command + `}`)
	if want := `{"command":` + command + `}`; string(call.Input) != want {
		t.Errorf("%s, want %s", call.Input, want)
	}
	const changes = `[ {"path":"/ws/<a>", "kind":{"type":"add"},"diff":"é\u00e9"} ]`
	call = begins(`{"id":"j","type":"fileChange","changes":` + changes + `}`)
	if want := `{"changes":` + changes + `}`; string(call.Input) != want || call.Path != "/ws/<a>" {
		t.Errorf("%s, want %s", call.Input, want)
	}
	ask := w.Feed([]byte(`{"id":7,"method":"item/commandExecution/requestApproval","params":` +
		`{"itemId":"k","command":` + command + `,"threadId":"T"}}` + "\n")).Events[0].Ask
	if want := `{"command":` + command + `}`; string(ask.Tool.Input) != want {
		t.Errorf("%s, want %s", ask.Tool.Input, want)
	}
}

// FuzzTalk: whatever Codex says, nothing breaks, a message has at most one end, and what we say is lines of JSON.
func FuzzTalk(f *testing.F) {
	f.Add(capturedLive(f), 100)
	f.Add([]byte(`{"id":[],"method":"item/permissions/requestApproval","params":{"questions":[{}]}}`+"\n"), 3)
	f.Add([]byte(`{"id":"a","method":"item/tool/requestUserInput","params":{"questions":[{},{"id":"x"}]}}`+"\n"), 3)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		w := begun(t, threadOptions{mode: setting.Prompt, schema: []byte("{}")})
		if len(data) > 0 {
			cut = ((cut % len(data)) + len(data)) % len(data)
		} else {
			cut = 0
		}
		ends := 0
		var take func(step live.Step)
		take = func(step live.Step) {
			for _, line := range step.Lines {
				if !json.Valid(line) || bytes.IndexByte(line, '\n') != len(line)-1 {
					t.Fatalf("%q", line)
				}
			}
			for _, e := range step.Events {
				if e.Kind == event.Ended && !e.Unprompted {
					ends++
				}
				if e.Kind == event.Question {
					answer, _ := w.Do(live.Command{Answer: &event.Reply{Question: e.Ask.ID, Option: event.Allow}})
					take(answer)
				}
			}
		}
		take(w.Feed(data[:cut]))
		take(w.Feed(data[cut:]))
		take(live.Step{Events: w.End(agent.Exit{})})
		if ends > 1 {
			t.Fatalf("%d ends for one message", ends)
		}
	})
}

// TestReconnecting: what codex exec prints while it tries again does not fail the turn.
func TestReconnecting(t *testing.T) {
	for message, want := range map[string]string{
		"Reconnecting... 2/5 (no such name)":                 "attempt 2 of 5 failed: no such name",
		"Reconnecting... waiting for network (no such name)": "waiting for network (no such name)",
	} {
		if again := reconnecting(message); again == nil || again.Note() != want {
			t.Errorf("%s: %+v", message, again)
		}
	}
	if again := reconnecting("stream error"); again != nil {
		t.Errorf("%+v", again)
	}
}
