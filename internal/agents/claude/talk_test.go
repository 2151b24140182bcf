package claude

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// captured are the lines of a conversation with the CLI, in both directions, one object each.
func captured(t testing.TB) (out, in []byte) {
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
			Msg json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Dir == "out" {
			out = append(append(out, l.Msg...), '\n')
		} else {
			in = append(append(in, l.Msg...), '\n')
		}
	}
	return out, in
}

// greeted is a wire whose greeting was answered and that was given a message.
func greeted(t testing.TB, o talkOptions) *talk {
	t.Helper()
	n := 0
	o.id = func() string { n++; return "m" + string(rune('0'+n)) }
	w := newTalk(o)
	step := w.Begin()
	if len(step.Lines) != 1 || !bytes.Contains(step.Lines[0], []byte(`"initialize"`)) {
		t.Fatalf("%s", step.Lines)
	}
	sent, err := w.Do(live.Command{Message: []event.Block{{Text: "go"}}})
	if waits := o.hooks || hookKeeps(o.mode); err != nil || (len(sent.Lines) == 0) != waits {
		t.Fatalf("a message that has to wait (%v): %s, %v", waits, sent.Lines, err)
	}
	step = w.Feed(
		[]byte(`{"type":"control_response","response":{"subtype":"success","request_id":"omniagent-1","response":{}}}` +
			"\n"))
	if said := append(sent.Lines, step.Lines...); len(said) != 1 || !bytes.Contains(said[0], []byte(`"uuid":"m1"`)) {
		t.Fatalf("%s", said)
	}
	return w
}

// brief is what happened, in short.
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
			word += "=" + e.Result.Output
		case e.End != nil:
			word += "=" + e.End.Reason
		case e.Denial != nil:
			word += "=" + e.Denial.Tool
		case e.Text != "":
			word += "=" + e.Text
		}
		if e.Unprompted {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}

// divided cuts pieces behind each line as well: the other side waits for answers.
func divided(pieces [][]byte) (all [][]byte) {
	for _, p := range pieces {
		all = append(all, bytes.SplitAfter(p, []byte("\n"))...)
	}
	return all
}

// TestTranslated: the capture is, in both dialects of hosts, a stream that keeps the rules.
func TestTranslated(t *testing.T) {
	out, _ := captured(t)
	w := greeted(t, talkOptions{mode: setting.Prompt})
	var events []event.Event
	for _, p := range divided([][]byte{out}) {
		for _, e := range w.Feed(p).Events {
			e.Raw = nil
			events = append(events, e)
		}
	}
	flat, nested, err := order.Told(append(events, w.End(agent.Exit{})...), event.Facts{Agent: "claude"})
	if err := errors.Join(err, order.Flat(flat), order.Nested(nested)); err != nil ||
		strings.Count(strings.Join(flat, "\n"), `"message_stop"`) != 2 {
		t.Errorf("%v\n%s\n%s", err, strings.Join(flat, "\n"), strings.Join(nested, "\n"))
	}
}

// TestReplay plays the capture to a wire, whole and cut at every byte.
func TestReplay(t *testing.T) {
	out, _ := captured(t)
	play := func(pieces ...[]byte) string {
		w := greeted(t, talkOptions{mode: setting.Prompt})
		var events []event.Event
		for _, p := range divided(pieces) {
			for _, e := range w.Feed(p).Events {
				if e.Kind == event.Question {
					step, err := w.Do(live.Command{Answer: &event.Reply{Question: e.Ask.ID, Option: event.Allow}})
					if err != nil ||
						!bytes.Contains(step.Lines[0],
							[]byte(`"updatedInput":{"command":"python3 -c 'open(\"made\",\"w\")'"}`)) {
						t.Fatalf("%s, %v", step.Lines, err)
					}
				}
				events = append(events, e)
			}
		}
		return brief(append(events, w.End(agent.Exit{})...))
	}
	const id = "f908602c-d524-41e5-b0c5-9f625836efc2"
	want := "started; turn; tool_call=Bash; question=" + id +
		"; tool_result=(Bash completed with no output); text=done; end=completed; turn; text=second turn; " +
		"end=completed!"
	if got := play(out); got != want {
		t.Fatalf("got %s\nwant %s", got, want)
	}
	for i := 1; i < len(out); i += 13 {
		if got := play(out[:i], out[i:]); got != want {
			t.Fatalf("cut at %d: %s", i, got)
		}
	}
	var bits [][]byte
	for i := range out {
		bits = append(bits, out[i:i+1])
	}
	if got := play(bits...); got != want {
		t.Fatalf("byte by byte: %s", got)
	}
}

const askLine = `{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash",` +
	`"input":{"command":"ls"},"tool_use_id":"t1",` +
	`"permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls"}],` +
	`"behavior":"allow","destination":"localSettings"}]}}` + "\n"

// TestAlwaysIsKept: a call that a person has always allowed is not asked about again, whatever words describe it;
// another one is.
func TestAlwaysIsKept(t *testing.T) {
	w := greeted(t, talkOptions{mode: setting.Prompt})
	w.Feed([]byte(askLine))
	if _, err := w.Do(live.Command{Answer: &event.Reply{Question: "r1", Option: event.Always}}); err != nil {
		t.Fatal(err)
	}
	again := strings.ReplaceAll(askLine, `"r1"`, `"r2"`)
	again = strings.Replace(again, `{"command":"ls"}`, `{"description":"look","command":"ls"}`, 1)
	step := w.Feed([]byte(again))
	if len(step.Events) > 0 || len(step.Lines) != 1 || !bytes.Contains(step.Lines[0], []byte(`"behavior":"allow"`)) {
		t.Errorf("%s, %s", brief(step.Events), step.Lines)
	}
	for i, input := range []string{`{"command":"ls -a"}`, `{"command":"ls","dangerouslyDisableSandbox":true}`} {
		id := fmt.Sprintf("r%d", 3+i)
		other := strings.Replace(strings.ReplaceAll(askLine, `"r1"`, `"`+id+`"`), `{"command":"ls"}`, input, 1)
		if got := brief(w.Feed([]byte(other)).Events); got != "question="+id {
			t.Errorf("%s: %s", input, got)
		}
	}
}

// TestAnswers: each thing that a host may say, in the CLI's words.
func TestAnswers(t *testing.T) {
	tests := []struct {
		name  string
		reply event.Reply
		want  []string
		code  fault.Code
	}{
		{"allow", event.Reply{Option: "allow"}, []string{`"behavior":"allow"`, `"updatedInput":{"command":"ls"}`}, ""},
		{
			"edited",
			event.Reply{Option: "allow", Input: json.RawMessage(`{"command":"pwd"}`)},
			[]string{`"updatedInput":{"command":"pwd"}`},
			"",
		},
		{"always", event.Reply{Option: "always"}, []string{
			`"updatedPermissions":[{`, `"destination":"session"`,
			`"ruleContent":"ls"`,
		}, ""},
		{
			"rules",
			event.Reply{Option: "allow", Rules: []string{"Bash(git:*)", "Read"}},
			[]string{`{"toolName":"Bash","ruleContent":"git:*"}`, `{"toolName":"Read"}`},
			"",
		},
		{"mode", event.Reply{Option: "allow", Mode: setting.AutoEdit}, []string{`"setMode"`, `"acceptEdits"`}, ""},
		{"unknown mode", event.Reply{Option: "allow", Mode: "odd"}, []string{`"behavior":"deny"`}, ""},
		{"broken input", event.Reply{Option: "allow", Input: json.RawMessage(`{`)}, []string{`"behavior":"deny"`}, ""},
		{"deny", event.Reply{Option: "deny", Text: "no"}, []string{`"behavior":"deny"`, `"message":"no"`}, ""},
		{"stop", event.Reply{Option: "allow", Stop: true}, []string{`"behavior":"deny"`, `"interrupt":true`}, ""},
		{"nobody", event.Reply{Automatic: true, Option: "allow"}, []string{`"behavior":"deny"`}, ""},
		{"no such option", event.Reply{Option: "perhaps"}, nil, fault.ArgError},
		{"no such question", event.Reply{Question: "r2", Option: "allow"}, nil, fault.NotFoundCode},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := greeted(t, talkOptions{mode: setting.Prompt})
			if got := brief(w.Feed([]byte(askLine)).Events); got != "question=r1" {
				t.Fatal(got)
			}
			if tt.reply.Question == "" {
				tt.reply.Question = "r1"
			}
			step, err := w.Do(live.Command{Answer: &tt.reply})
			if tt.code != "" {
				if fault.Of(err).Code != tt.code || len(step.Lines) != 0 {
					t.Errorf("%s, %v", step.Lines, err)
				}
				return
			}
			if err != nil || len(step.Lines) != 1 {
				t.Fatalf("%s, %v", step.Lines, err)
			}
			for _, part := range append(tt.want, `"request_id":"r1"`) {
				if !bytes.Contains(step.Lines[0], []byte(part)) {
					t.Errorf("%s is not in %s", part, step.Lines[0])
				}
			}
			denied, told := bytes.Contains(step.Lines[0], []byte(`"deny"`)), ""
			if denied {
				told = "denied=Bash"
			}
			if got := modeOf(w); !denied && tt.reply.Mode != "" && got != tt.reply.Mode {
				t.Errorf("the mode is %s", got)
			}
			if got := brief(step.Events); got != told {
				t.Errorf("%s: told %s", step.Lines[0], got)
			} else if denied && step.Events[0].Denial.ByUser == tt.reply.Automatic {
				t.Errorf("%+v", step.Events[0].Denial)
			}
			if _, err := w.Do(live.Command{Answer: &tt.reply}); err == nil {
				t.Error("it can be answered twice")
			}
		})
	}
}

// TestPlanDenies: in the mode plan a call that would change something is denied. A plan is still for a person to judge.
func TestPlanDenies(t *testing.T) {
	w := greeted(t, talkOptions{mode: setting.Plan})
	step := w.Feed([]byte(askLine))
	if got := brief(step.Events); !strings.Contains(got, "denied") || len(step.Lines) != 1 ||
		!strings.Contains(string(step.Lines[0]), `"behavior":"deny"`) {
		t.Errorf("%s: %s", got, step.Lines)
	}
	plan := strings.NewReplacer(`"Bash"`, `"ExitPlanMode"`, `"command":"ls"`, `"plan":"ls"`, "r1", "r2").Replace(askLine)
	if got := brief(w.Feed([]byte(plan)).Events); got != "question=r2" {
		t.Error(got)
	}
}

// TestModeOfItsOwn: the CLI changes the mode by itself when a plan is agreed to, and says so. It also confirms a mode
// that we set, which changes nothing.
func TestModeOfItsOwn(t *testing.T) {
	status := func(mode string) []byte {
		return fmt.Appendf(nil, `{"type":"system","subtype":"status","status":null,"permissionMode":%q}`+"\n", mode)
	}
	w := greeted(t, talkOptions{mode: setting.Plan})
	for _, s := range []struct {
		says string
		want setting.Approval
	}{
		{"plan", setting.Plan},
		{"default", setting.Prompt},
		{"default", setting.Prompt},
		{"acceptEdits", setting.AutoEdit},
		{"dontAsk", setting.AutoEdit},
		{"odd", setting.AutoEdit},
		{"plan", setting.Plan},
	} {
		if events := w.Feed(status(s.says)).Events; len(events) != 0 || modeOf(w) != s.want {
			t.Errorf("%s: %+v, %s", s.says, events, modeOf(w))
		}
	}
	step, err := w.Do(live.Command{Change: &agent.Change{Mode: setting.Default}, Token: 7})
	if err != nil || len(step.Lines) != 1 {
		t.Fatalf("%s, %v", step.Lines, err)
	}
	if got := w.Feed(status("default")); len(got.Results) != 0 || modeOf(w) != setting.Plan {
		t.Errorf("before its answer: %+v, %s", got, modeOf(w))
	}
	answer := `{"type":"control_response","response":{"subtype":"success","request_id":"omniagent-2","response":{}}}` +
		"\n"
	if got := w.Feed([]byte(answer)); len(got.Results) != 1 || got.Results[0].Token != 7 || got.Results[0].Err != nil {
		t.Errorf("%+v", got)
	}
	if w.Feed(status("default")); modeOf(w) != setting.Default {
		t.Errorf("behind its answer: %s", modeOf(w))
	}
	// A response of a subtype that is not known settles the change at once; its clock need not run out.
	if _, err := w.Do(live.Command{Change: &agent.Change{Mode: setting.Plan}, Token: 8}); err != nil {
		t.Fatal(err)
	}
	odd := `{"type":"control_response","response":{"subtype":"odd","request_id":"omniagent-3"}}` + "\n"
	if got := w.Feed([]byte(odd)); len(got.Events) != 0 || len(got.Results) != 1 || got.Results[0].Token != 8 ||
		got.Results[0].Err == nil || modeOf(w) != setting.Default {
		t.Errorf("%+v, %s", got, modeOf(w))
	}
	// A mode that our hook keeps stays, whatever the model makes the CLI change to.
	w = greeted(t, talkOptions{mode: setting.AskAll})
	for _, says := range []string{"plan", "default", "acceptEdits"} {
		if w.Feed(status(says)); modeOf(w) != setting.AskAll {
			t.Errorf("%s: %s", says, modeOf(w))
		}
	}
}

func modeOf(w *talk) setting.Approval {
	var f event.Facts
	w.AddFacts(&f)
	return f.Mode
}

// TestSteering: what is said during a turn is part of it, also where the CLI makes a turn of its own of it, and it is
// taken back when the turn is interrupted.
func TestSteering(t *testing.T) {
	life := func(id, state string) string {
		return `{"type":"command_lifecycle","command_uuid":"` + id + `","state":"` + state + `"}` + "\n"
	}
	const init = `{"type":"system","subtype":"init","session_id":"s","model":"m"}` + "\n"
	result := func(text string) string {
		return `{"type":"result","subtype":"success","is_error":false,"result":"` + text + `",` +
			`"num_turns":1,"usage":{"input_tokens":3}}` + "\n"
	}
	steered := func(t *testing.T, after ...string) *talk {
		t.Helper()
		w := greeted(t, talkOptions{})
		steer := live.Command{Steer: []event.Block{{Text: "more"}}, Token: 6}
		if _, err := w.Do(steer); fault.Of(err).Code != fault.Unsupported {
			t.Errorf("before the turn has begun: %v", err)
		}
		w.Feed([]byte(life("m1", "queued") + life("m1", "started") + init))
		step, err := w.Do(steer)
		if err != nil || len(step.Lines) != 1 || !bytes.Contains(step.Lines[0], []byte(`"uuid":"m2"`)) {
			t.Fatalf("%s, %v", step.Lines, err)
		}
		got := w.Feed([]byte(life("m2", "queued")))
		if len(got.Results) != 1 || got.Results[0] != (live.CommandResult{Token: 6}) {
			t.Fatalf("%+v", got)
		}
		return w
	}
	told := func(w *talk, lines ...string) (string, event.Event) {
		var events []event.Event
		for _, l := range lines {
			events = append(events, w.Feed([]byte(l)).Events...)
		}
		if len(events) == 0 {
			return "", event.Event{}
		}
		return brief(events), events[len(events)-1]
	}
	w := steered(t)
	if got, _ := told(w, life("m2", "started"), result("both"),
		life("m2", "completed")); got != "text=both; end=success" {
		t.Errorf("with a result of a tool: %s", got)
	}
	w = steered(t)
	got, end := told(w, result("one"), life("m1", "completed"), life("m2", "started"), init, result("two"))
	if got != "text=one; text=two; end=success" || end.End.Text != "two" || *end.End.Turns != 2 ||
		end.End.Usage.Input != 6 {
		t.Errorf("in a turn of its own: %s, %+v", got, end.End)
	}
	w = steered(t)
	step, _ := w.Do(live.Command{Interrupt: true})
	if len(step.Lines) != 2 || !bytes.Contains(step.Lines[0], []byte(`"cancel_async_message"`)) {
		t.Errorf("%s", step.Lines)
	}
	if got, _ := told(w, life("m2", "cancelled"), result("")); got != "end=success" {
		t.Errorf("interrupted: %s", got)
	}
	w = steered(t)
	told(w, result("one"))
	if _, err := w.Do(live.Command{Interrupt: true}); err != nil {
		t.Error(err)
	}
	if got, end := told(w, life("m2", "cancelled")); got != "end=success" || end.End.Text != "one" {
		t.Errorf("interrupted between two turns of the CLI: %s", got)
	}
	w = steered(t)
	told(w, result("one"))
	if out := w.End(agent.Exit{}); brief(out) != "end=success" || out[0].Synthetic {
		t.Errorf("the CLI dies between two of its turns: %s", brief(out))
	}
	w = greeted(t, talkOptions{})
	w.Feed([]byte(life("m1", "started")))
	_, _ = w.Do(live.Command{Steer: []event.Block{{Text: "more"}}, Token: 6})
	if got := w.Feed([]byte(life("m2", "refused"))); len(got.Results) != 1 || got.Results[0].Err == nil {
		t.Errorf("refused: %+v", got)
	}
}

// TestWithdrawn: what the CLI does not want to know any more.
func TestWithdrawn(t *testing.T) {
	w := greeted(t, talkOptions{})
	w.Feed([]byte(askLine))
	if got := brief(w.Feed([]byte(`{"type":"control_cancel_request","request_id":"r1"}` +
		"\n")).Events); got != "withdrawn=r1" {
		t.Error(got)
	}
	w.Feed([]byte(askLine))
	if got := brief(w.Feed([]byte(`{"type":"result","subtype":"success","is_error":false,"result":"x"}` +
		"\n")).Events); !strings.HasPrefix(got, "withdrawn=r1") {
		t.Error(got)
	}
}

// TestWoken: a result belongs to the message only if the CLI has taken that up.
func TestWoken(t *testing.T) {
	life := func(state string) string {
		return `{"type":"command_lifecycle","command_uuid":"m1","state":"` + state + `"}` + "\n"
	}
	const plain, woken = `{"type":"result","subtype":"success","is_error":false,"result":"x"}` + "\n",
		`{"type":"result","subtype":"success","is_error":false,"result":"x","origin":{"kind":"task-notification"}}` +
			"\n"
	for said, want := range map[string]string{
		plain:                                    "end=success",
		life("queued") + woken + plain:           "end=success!; end=success",
		woken + plain:                            "end=success!; end=success",
		life("started") + woken:                  "end=success",
		life("started") + plain + woken:          "end=success; end=success!",
		life("queued") + life("started") + plain: "end=success",
	} {
		w := greeted(t, talkOptions{})
		var ends []event.Event
		for _, e := range w.Feed([]byte(said)).Events {
			if e.Kind == event.Ended {
				ends = append(ends, e)
			}
		}
		if got := brief(ends); got != want {
			t.Errorf("%s\n%s, want %s", said, got, want)
		}
	}
}

// TestShortened: the answer to /compact has no text, so that only this line tells that it did something.
func TestShortened(t *testing.T) {
	events := greeted(t, talkOptions{}).Feed([]byte(`{"type":"system","subtype":"compact_boundary",` +
		`"compact_metadata":{"trigger":"manual","pre_tokens":13650,"post_tokens":2547}}` + "\n")).Events
	if len(events) != 1 || events[0].Kind != event.Compacted ||
		*events[0].Compaction != (event.Compaction{Trigger: "manual", Before: 13650}) {
		t.Errorf("%+v", events)
	}
}

// TestInterruptedEarly: an interruption that comes before the CLI has begun is said again when it begins.
func TestInterruptedEarly(t *testing.T) {
	w := greeted(t, talkOptions{})
	if step, _ := w.Do(live.Command{Interrupt: true}); len(step.Lines) != 1 {
		t.Errorf("%s", step.Lines)
	}
	step := w.Feed([]byte(`{"type":"command_lifecycle","command_uuid":"m1","state":"started"}` + "\n"))
	if len(step.Lines) != 1 || !bytes.Contains(step.Lines[0], []byte(`"interrupt"`)) {
		t.Errorf("%s", step.Lines)
	}
}

// TestUnwilling: a CLI that does not take what a conversation is opened with gets no message.
func TestUnwilling(t *testing.T) {
	w := newTalk(talkOptions{hooks: true})
	w.Begin()
	if _, err := w.Do(live.Command{Message: []event.Block{{Text: "go"}}}); err != nil {
		t.Fatal(err)
	}
	step := w.Feed(
		[]byte(`{"type":"control_response","response":{"subtype":"error","request_id":"omniagent-1","error":"no"}}` +
			"\n"))
	if got := brief(step.Events); got != "failed; end=error_during_execution" || len(step.Lines) != 0 {
		t.Errorf("%s, %s", got, step.Lines)
	} else if said := step.Events[1].End.AgentReason; said != "no" {
		t.Errorf("it said %q", said)
	}
	if _, err := w.Do(live.Command{Message: []event.Block{{Text: "go"}}}); err == nil {
		t.Error("a further message is taken")
	}
}

// TestPieces: what was told by pieces alone is not told again, and calls come behind the answer that they belong to.
func TestPieces(t *testing.T) {
	w := greeted(t, talkOptions{})
	said := strings.Join([]string{
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"a1","model":"m"}}}`,
		`{"type":"stream_event","event":{"type":"content_block_start"}}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"hel"}}}`,
		`{"type":"assistant","message":{"id":"a1","content":[{"type":"text","text":"hello"}]}}`,
		`{"type":"assistant","message":{"id":"a1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}`,
		`{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":3,"output_tokens":2}}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}`, "",
	}, "\n")
	events := w.Feed([]byte(said)).Events
	if got := brief(events); got != "text=hel; text=hello; answered; tool_call=Bash; tool_result=x" {
		t.Fatal(got)
	}
	if a := events[2].Answer; a.ID != "a1" || a.Reason != "tool_use" || a.Usage.Output != 2 {
		t.Errorf("%+v", a)
	}
}
