package claude_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	driver "omniagent/internal/agents/claude"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/testkit/order"
	"omniagent/internal/wire/claude"
)

func encoder() *claude.Encoder {
	n := 0
	e := &claude.Encoder{
		UUID:    func() string { n++; return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) },
		Version: "0.1.0", Limits: claude.Limits{Turns: 3, USD: 0.5},
	}
	e.Know("s1", event.Facts{
		Agent: "native", Model: "m1", Dir: "/w", Mode: setting.Prompt, Tools: []string{"Read", "Bash"}, Window: 1000,
	})
	return e
}

// brief returns a line in a few words. Everything that every line has is held against the promise.
func brief(t interface{ Errorf(string, ...any) }, line []byte, ids map[string]bool) string {
	var m struct {
		Type, Subtype, Session, UUID string
		SessionID                    *string `json:"session_id"`
		Parent                       *string `json:"parent_tool_use_id"`
		Aborted                      bool    `json:"aborted"`
		Error                        string  `json:"error"`
		Message                      json.RawMessage
		Event                        struct {
			Type  string
			Delta struct {
				Type, Text string
				Thinking   string `json:"thinking"`
				Partial    string `json:"partial_json"`
				Stop       string `json:"stop_reason"`
			}
			Block struct{ Type string } `json:"content_block"`
		}
		IsError bool `json:"is_error"`
		Result  *string
		Errors  []string
		Denials []json.RawMessage `json:"permission_denials"`
	}
	if err := json.Unmarshal(line, &m); err != nil || bytes.ContainsRune(line, '\n') {
		t.Errorf("%v: %s", err, line)
		return ""
	}
	if m.UUID == "" || ids[m.UUID] || m.SessionID == nil {
		t.Errorf("uuid %q, session %v: %s", m.UUID, m.SessionID, line)
	}
	ids[m.UUID] = true
	s := m.Type
	if m.Subtype != "" {
		s += "/" + m.Subtype
	}
	if m.Parent != nil {
		s += "@" + *m.Parent
	}
	switch m.Type {
	case "assistant", "user":
		var blocks []struct {
			Type, Text, Thinking, Name, Content string
			UseID                               string `json:"tool_use_id"`
		}
		var message struct {
			Role    string
			Content json.RawMessage
		}
		if json.Unmarshal(m.Message, &message) != nil || json.Unmarshal(message.Content, &blocks) != nil ||
			len(blocks) != 1 || message.Role != m.Type {
			t.Errorf("%s", line)
			return s
		}
		b := blocks[0]
		s += " " + b.Type + " " + b.Text + b.Thinking + b.Name + b.Content
		if m.Aborted {
			s += " aborted"
		}
		if m.Error != "" {
			s += " " + m.Error
		}
	case "stream_event":
		s = "~" + m.Event.Type + " " + m.Event.Block.Type + m.Event.Delta.Text + m.Event.Delta.Thinking +
			m.Event.Delta.Partial + m.Event.Delta.Stop
	case "result":
		if m.Denials == nil || (m.Result == nil) == (m.Errors == nil) || m.Subtype != "success" && !m.IsError {
			t.Errorf("%s", line)
		}
		if m.IsError {
			s += " error"
		}
		s += fmt.Sprintf(" %d", len(m.Denials))
		if m.Result != nil {
			s += " " + *m.Result
		}
		s += strings.Join(m.Errors, ";")
	}
	return strings.TrimSpace(s)
}

// recorded returns how a conversation tells that.
func recorded(t interface{ Fatal(...any) }, said []event.Event) []event.Event {
	events, err := order.Recorded(said)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func tell(t *testing.T, e *claude.Encoder, events ...event.Event) string {
	t.Helper()
	var all []string
	ids := map[string]bool{}
	for _, ev := range recorded(t, events) {
		for _, line := range e.Event(ev) {
			all = append(all, brief(t, line, ids))
		}
	}
	return strings.Join(all, "\n")
}

func text(s string) event.Event  { return event.Event{Kind: event.Text, Text: s, Delta: true} }
func whole(s string) event.Event { return event.Event{Kind: event.Text, Text: s} }
func think(s string) event.Event { return event.Event{Kind: event.Thinking, Text: s, Delta: true} }
func answered(reason string) event.Event {
	return event.Event{
		Kind: event.Answered, Model: "m2",
		Answer: &event.Answer{Reason: reason, Usage: &event.Usage{Input: 10, Cached: 4, Output: 2}},
	}
}

func call(id, name string) event.Event {
	return event.Event{Kind: event.ToolCall, Call: &event.Call{
		ID: id, Name: name, Kind: event.Shell, Input: json.RawMessage(`{"command":"ls"}`), Command: "ls",
	}}
}

func result(id, output string) event.Event {
	return event.Event{Kind: event.ToolResult, Result: &event.Result{ID: id, Output: output}}
}

func in(parent string, e event.Event) event.Event { e.Parent = parent; return e }

func ended(reason string) event.Event {
	cost, n := 0.25, 2
	return event.Event{Kind: event.Ended, End: &event.End{
		OK: reason == "success", Reason: reason,
		Text: map[bool]string{true: "hello"}[reason == "success"], Turns: &n, Took: time.Second,
		Usage: &event.Usage{Input: 20, Output: 4, CostUSD: &cost},
	}}
}

func lost(code fault.Code) event.Event {
	return event.Event{Kind: event.Failed, Fault: fault.New(code, "it broke"), Terminal: true}
}

var began = event.Event{Kind: event.TurnBegan, Session: "s1"}

func TestLines(t *testing.T) {
	denied := func(by bool) event.Event {
		return event.Event{Kind: event.Denied, Denial: &event.Denial{
			CallID: "c1", Tool: "Bash", Reason: "no", ByUser: by,
		}}
	}
	for name, c := range map[string]struct {
		partial bool
		events  []event.Event
		want    string
	}{
		"an answer": {false, []event.Event{
			began, text("hel"), text("lo"), answered("end_turn"),
			ended("success"),
		}, "system/init\nassistant text hello\nresult/success 0 hello"},
		"the whole behind its pieces": {
			false,
			[]event.Event{began, text("hel"), whole("hello"), ended("success")},
			"system/init\nassistant text hello\nresult/success 0 hello",
		},
		"the whole alone, twice": {
			false,
			[]event.Event{began, whole("a"), whole("a"), ended("success")},
			"system/init\nassistant text a\nassistant text a\nresult/success 0 hello",
		},
		"a call": {
			false,
			[]event.Event{
				began, think("hm"), text("I will"), answered("tool_use"), call("c1", "Bash"),
				result("c1", "out"), text("done"), answered("end_turn"), ended("success"),
			},
			"system/init\nassistant thinking hm\nassistant text I will\nassistant tool_use Bash\nuser tool_result " +
				"out\nassistant text done\nresult/success 0 hello",
		},
		"pieces": {
			true,
			[]event.Event{
				began, think("hm"), text("I "), text("will"), answered("tool_calls"), call("c1", "Bash"),
				result("c1", "out"), call("c2", "Bash"), result("c2", ""), text("done"), answered("stop"),
				ended("success"),
			},
			`system/init
~message_start
~content_block_start thinking
~content_block_delta hm
~content_block_delta
~content_block_stop
~content_block_start text
~content_block_delta I
~content_block_delta will
assistant thinking hm
assistant text I will
~content_block_stop
~content_block_start tool_use
~content_block_delta {"command":"ls"}
assistant tool_use Bash
~content_block_stop
~message_delta tool_use
~message_stop
user tool_result out
~message_start
~content_block_start tool_use
~content_block_delta {"command":"ls"}
assistant tool_use Bash
~content_block_stop
~message_delta
~message_stop
user tool_result
~message_start
~content_block_start text
~content_block_delta done
assistant text done
~content_block_stop
~message_delta end_turn
~message_stop
result/success 0 hello`,
		},
		"interrupted while it speaks": {
			true,
			[]event.Event{began, text("hel"), ended("cancelled")},
			"system/init\n~message_start\n~content_block_start text\n~content_block_delta hel\nassistant text hel " +
				"aborted\n~content_block_stop\n~message_delta\n~message_stop\n" +
				"user text [Request interrupted by user]\nresult/error_during_execution error 0Request interrupted " +
				"by user",
		},
		"interrupted at work": {
			false,
			[]event.Event{began, call("c1", "Bash"), ended("cancelled")},
			"system/init\nassistant tool_use Bash\nuser tool_result The turn ended, and the result of " +
				"this call is not known.\nuser text [Request interrupted by user for tool " +
				"use]\nresult/error_during_execution error 0Request interrupted by user",
		},
		"a denial by a rule": {
			false,
			[]event.Event{began, call("c1", "Bash"), denied(false), result("c1", "no"), ended("success")},
			"system/init\nassistant tool_use Bash\nsystem/permission_denied\nuser tool_result no\nresult/success " +
				"1 hello",
		},
		"a denial by a person": {
			false,
			[]event.Event{
				began, call("c1", "Bash"), denied(true), result("c1", "no"), ended("success"), began,
				whole("x"), ended("success"),
			},
			"system/init\nassistant tool_use Bash\nuser tool_result no\nresult/success 1 " +
				"hello\nsystem/init\nassistant text x\nresult/success 0 hello",
		},
		"a sub-agent": {
			true,
			[]event.Event{
				began, call("c1", "Task"), in("c1", text("sub")), in("c1", answered("tool_use")),
				in("c1", call("c2", "Read")), in("c1", result("c2", "x")), result("c1", "sub"), ended("success"),
			},
			"system/init\n~message_start\n~content_block_start tool_use\n~content_block_delta " +
				"{\"command\":\"ls\"}\nassistant tool_use Task\n~content_block_stop\n" +
				"assistant@c1 text sub\nassistant@c1 tool_use Read\nuser@c1 tool_result " +
				"x\n~message_delta\n~message_stop\nuser tool_result sub\nresult/success 0 hello",
		},
		"turns": {
			false,
			[]event.Event{began, ended("error_max_turns")},
			"system/init\nresult/error_max_turns error 0Reached maximum number of turns (3)",
		},
		"budget": {
			false,
			[]event.Event{began, ended("error_max_budget_usd")},
			"system/init\nresult/error_max_budget_usd error 0Reached maximum budget ($0.5)",
		},
		"never fits": {
			false,
			[]event.Event{began, ended("error_max_structured_output_retries")},
			"system/init\nresult/error_max_structured_output_retries error 0Failed to provide valid structured output",
		},
		"an odd word": {
			false,
			[]event.Event{began, ended("exploded")},
			"system/init\nresult/error_during_execution error 0the turn failed",
		},
		"the API": {
			false,
			[]event.Event{began, text("hel"), lost(fault.TooManyRequests), ended("error_during_execution")},
			"system/init\nassistant text hel aborted\nassistant text API Error: it broke rate_limit\nresult/success " +
				"error 0 API Error: it broke",
		},
		"inside": {
			false,
			[]event.Event{began, lost(fault.Internal), ended("error_during_execution")},
			"system/init\nresult/error_during_execution error 0it broke",
		},
		"compaction": {
			false,
			[]event.Event{
				began,
				{Kind: event.Compacted, Compaction: &event.Compaction{Trigger: "auto", Before: 9}},
				ended("success"),
			},
			"system/init\nsystem/compact_boundary\nresult/success 0 hello",
		},
		"a retry": {
			false,
			[]event.Event{
				began,
				{Kind: event.Retry, Retry: &event.Repetition{Attempt: 1, Of: 3, Status: 500}},
				ended("success"),
			},
			"system/init\nsystem/api_retry\nresult/success 0 hello",
		},
		"no beginning": {
			false,
			[]event.Event{whole("a"), ended("success")},
			"system/init\nassistant text a\nresult/success 0 hello",
		},
	} {
		e := encoder()
		e.Partial = c.partial
		if got := tell(t, e, c.events...); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", name, got, c.want)
		}
	}
}

// TestTotals: a result tells the turn, and what the process has cost so far.
func TestTotals(t *testing.T) {
	e := encoder()
	var last []byte
	for range 2 {
		for _, ev := range recorded(t, []event.Event{began, answered("end_turn"), ended("success")}) {
			if lines := e.Event(ev); len(lines) > 0 {
				last = lines[len(lines)-1]
			}
		}
	}
	var r struct {
		Cost  float64 `json:"total_cost_usd"`
		Turns int     `json:"num_turns"`
		Took  int64   `json:"duration_ms"`
		Stop  string  `json:"stop_reason"`
		Usage struct {
			In int64 `json:"input_tokens"`
		}
		Models map[string]struct {
			In     int64 `json:"inputTokens"`
			Window int64 `json:"contextWindow"`
			Cost   float64
		} `json:"modelUsage"`
	}
	if err := json.Unmarshal(last, &r); err != nil {
		t.Fatal(err)
	}
	m := r.Models["m2"]
	if r.Cost != 0.5 || r.Turns != 2 || r.Took != 1000 || r.Stop != "end_turn" || r.Usage.In != 20 || m.In != 40 ||
		m.Window != 1000 || !bytes.Contains(last, []byte(`"costUSD":0.5`)) {
		t.Errorf("%s", last)
	}
}

// TestInitWaits for the model and the tools of an agent that tells them later, and no longer than for the first word.
func TestInitWaits(t *testing.T) {
	started := event.Event{
		Kind: event.Started, Session: "own", Facts: &event.Facts{Model: "mm", Tools: []string{"Read"}},
	}
	for name, c := range map[string]struct {
		events []event.Event
		want   string
	}{
		"told behind the turn": {
			[]event.Event{{Kind: event.TurnBegan}, started, whole("a")},
			`system/init\nassistant text a|"mm"`,
		},
		"told before the turn": {
			[]event.Event{started, {Kind: event.TurnBegan}, whole("a")},
			`system/init\nassistant text a|"mm"`,
		},
		"the first word": {
			[]event.Event{{Kind: event.TurnBegan}, {Kind: event.Notice, Text: "x"}, whole("a")},
			`system/init\nassistant text a|""`,
		},
		"the next turn at once": {[]event.Event{
			{Kind: event.TurnBegan},
			started, ended("success"),
			{Kind: event.TurnBegan},
		}, `system/init\nresult/success 0 hello\nsystem/init|"mm"`},
	} {
		e := &claude.Encoder{UUID: encoder().UUID}
		e.Know("s1", event.Facts{Dir: "/w"})
		var all []string
		var first []byte
		for _, ev := range c.events {
			for _, line := range e.Event(ev) {
				if first == nil {
					first = line
				}
				all = append(all, brief(t, line, map[string]bool{}))
			}
		}
		want, model, _ := strings.Cut(strings.ReplaceAll(c.want, `\n`, "\n"), "|")
		if got := strings.Join(all, "\n"); got != want || model != "" &&
			!bytes.Contains(first, []byte(`"session_id":"s1"`)) || !bytes.Contains(first, []byte(model)) {
			t.Errorf("%s: %s\n%s", name, got, first)
		}
	}
	if got := encoder().Event(began); len(got) != 1 { // all is known
		t.Errorf("%q", got)
	}
}

// TestRefusals are a whole stream.
func TestRefusals(t *testing.T) {
	e := encoder()
	ids := map[string]bool{}
	for got, want := range map[string]string{
		brief(t, e.Refuse(fault.New(fault.Unsupported, "no %s", "such thing").Hint("leave it out"))[0],
			ids): "result/error_during_execution error 0no such thing (leave it out)",
		brief(t, e.NoConversation("x")[0],
			ids): "result/error_during_execution error 0No conversation found with session ID: x",
	} {
		if got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// messageLine returns the parts of events that every dialect must transmit.
func messageLine(events []event.Event) (all []string) {
	text := ""
	flush := func() {
		if text != "" {
			all = append(all, "text "+text)
		}
		text = ""
	}
	for _, e := range events {
		switch e.Kind {
		case event.Text:
			if e.Delta || text == "" {
				text += e.Text
			} else if !strings.HasSuffix(text, e.Text) {
				text += e.Text
			}
			continue
		case event.ToolCall:
			flush()
			all = append(all, fmt.Sprintf("call %s %s@%s", e.Call.Name, e.Call.ID, e.Parent))
		case event.ToolResult:
			flush()
			all = append(all, fmt.Sprintf("result %s %v %s@%s", e.Result.ID, e.Result.Failed, e.Result.Output,
				e.Parent))
		case event.Ended:
			flush()
			all = append(all, fmt.Sprintf("ended %v %s", e.End.OK, e.End.Text))
		}
	}
	return all
}

// TestReplay: Claude Code's output, decoded and encoded in its own dialect, decodes to the same events, wherever the
// bytes are cut.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("../../agents/claude/testdata/output/*.jsonl")
	if err != nil || len(files) < 20 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first := driver.New().Decode(setting.StreamJSON)
		events := recorded(t, append(first.Feed(data), first.End(agent.Exit{})...))
		e := encoder()
		ids := map[string]bool{}
		var again []byte
		for _, ev := range events {
			for _, line := range e.Event(ev) {
				brief(t, line, ids)
				again = append(append(again, line...), '\n')
			}
		}
		want := messageLine(events)
		second := driver.New().Decode(setting.StreamJSON)
		got := messageLine(append(second.Feed(again), second.End(agent.Exit{})...))
		// A result of Claude Code's that was an error tells no text; ours tells why.
		if fmt.Sprint(got) != fmt.Sprint(want) && !strings.Contains(fmt.Sprint(want), "ended false") {
			t.Errorf("%s:\n%q\nnot\n%q", filepath.Base(file), got, want)
		}
		step := max(1, len(again)/200)
		for i := 0; i < len(again); i += step {
			cut := driver.New().Decode(setting.StreamJSON)
			parts := append(cut.Feed(again[:i]), cut.Feed(again[i:])...)
			if other := messageLine(append(parts, cut.End(agent.Exit{})...)); fmt.Sprint(other) != fmt.Sprint(got) {
				t.Fatalf("%s, cut at %d: %q", file, i, other)
			}
		}
	}
}

// TestWhateverHappens: every message that begins in pieces ends, its blocks too, in order, and every end of a turn is
// one result.
func TestWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := encoder()
		e.Partial = true
		kinds := []event.Event{
			began, text("a"), whole("a"), think("b"), answered("tool_use"), call("c1", "Bash"), call("c2",
				"Task"), result("c1", "x"), result("c9", "x"), lost(fault.APIError), lost(fault.Internal),
			in("c2", text("s")), in("c2", call("c3", "Read")), in("c2", result("c3", "")), ended("success"),
			ended("cancelled"), ended("error_max_turns"),
			{Kind: event.Notice},
			{Kind: event.Started, Session: "s2"},
			{Kind: event.Question, Ask: &event.Ask{ID: "c1"}},
			text(""),
			{Kind: event.Denied, Denial: &event.Denial{CallID: "c1", Tool: "Bash"}},
		}
		ids := map[string]bool{}
		message, block, ends, results := false, false, 0, 0
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			ev := kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "event")]
			if ev.Kind == event.Ended {
				ends++
			}
			for _, line := range e.Event(ev) {
				switch word, _, _ := strings.Cut(brief(t, line, ids), " "); word {
				case "~message_start":
					if message {
						t.Fatalf("a message in a message")
					}
					message = true
				case "~message_stop":
					if !message || block {
						t.Fatalf("a message ends: %v, %v", message, block)
					}
					message = false
				case "~content_block_start":
					if !message || block {
						t.Fatalf("a block begins: %v, %v", message, block)
					}
					block = true
				case "~content_block_stop":
					if !block {
						t.Fatal("a block ends that did not begin")
					}
					block = false
				default:
					if strings.HasPrefix(word, "result/") {
						if results++; message || block {
							t.Fatal("the turn ends in the middle of a message")
						}
					}
				}
			}
		}
		if ends != results {
			t.Fatalf("%d ends, %d results", ends, results)
		}
	})
}
