package stream_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"omniagent/internal/agents/claude"
	"omniagent/internal/core/event"
	"omniagent/internal/host/stream"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
)

// record puts on record what both sides say: lines of the host begin with >. It returns what is on record, in words.
func record(t *testing.T, said string, cut int) []string {
	t.Helper()
	store := session.Open(t.TempDir())
	journal, err := store.Create(t.Context(), session.Begin{ID: "s", Agent: "claude"})
	if err != nil {
		t.Fatal(err)
	}
	g := stream.Record(conversation.Record(journal, t.Errorf), claude.New().Decode(setting.StreamJSON))
	for line := range strings.SplitAfterSeq(said, "\n") {
		if host, is := strings.CutPrefix(line, ">"); is {
			g.Host([]byte(host))
			continue
		}
		for len(line) > cut {
			g.Agent([]byte(line[:cut]))
			line = line[cut:]
		}
		g.Agent([]byte(line))
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := store.Reader("s", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all []string
	for {
		entry, err := r.Next(context.Background())
		if err != nil {
			return all
		}
		if e := entry.Event(); e != nil && e.Kind != event.Notice && !e.Delta {
			all = append(all, word(e))
		}
	}
}

func word(e *event.Event) string {
	w := fmt.Sprintf("%d %s", e.Turn, e.Kind)
	switch {
	case e.Blocks != nil:
		w += " " + e.Blocks[0].Text
	case e.Ask != nil:
		w += " " + e.Ask.ID
	case e.Reply != nil:
		w += " " + e.Reply.Question + " " + e.Reply.Option
	case e.Call != nil:
		w += " " + e.Call.Name
	case e.End != nil:
		w += " " + e.End.Reason
	case e.Text != "":
		w += " " + e.Text
	}
	return w
}

const (
	init1    = `{"type":"system","subtype":"init","session_id":"own","model":"m","tools":["Bash"],"permissionMode":"default"}` + "\n"
	call     = `{"type":"assistant","message":{"id":"a","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}]},"session_id":"own"}` + "\n"
	question = `{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"c1"}}` + "\n"
	result   = `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"}]},"session_id":"own"}` + "\n"
	spoken   = `{"type":"assistant","message":{"id":"b","role":"assistant","content":[{"type":"text","text":"done"}]},"session_id":"own"}` + "\n"
	end      = `{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"own","usage":{"input_tokens":1,"output_tokens":1}}` + "\n"
)

func user(text string) string {
	return `>{"type":"user","message":{"role":"user","content":"` + text + `"}}` + "\n"
}

// TestRecorded: messages, what the agent does, questions and their answers, and an end of every message, wherever the
// bytes are cut.
func TestRecorded(t *testing.T) {
	said := user("one") + `>{"type":"keep_alive"}` + "\n" + init1 + call + question +
		`>{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":"allow"}}}` + "\n" + result + user("two") + spoken + end +
		init1 + "garbage\n" + spoken + end + user("three") + init1 + call
	want := "1 prompt one; 0 started; 1 turn; 1 tool_call Bash; 1 question q1.1; 1 answer q1.1 allow; 1 tool_result; " +
		"2 prompt two; 1 text done; 1 end success; " +
		"2 turn; 2 text done; 2 end success; 3 prompt three; 3 turn; 3 tool_call Bash; 3 tool_result; 3 failed; 3 " +
		"end error_during_execution"
	for _, cut := range []int{1 << 20, 7, 1} {
		if got := strings.Join(record(t, said, cut), "; "); got != want {
			t.Errorf("cut at %d:\n%s\nnot\n%s", cut, got, want)
		}
	}
}

// TestCaptures: a conversation that was captured is on record with an end for its message.
func TestCaptures(t *testing.T) {
	data, err := os.ReadFile("../../agents/claude/testdata/output/streamjson-tools.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	all := record(t, user("go")+string(data), 64<<10)
	if got := strings.Join(all, "; "); !strings.HasPrefix(got, "1 prompt go; ") ||
		!strings.HasSuffix(got, "1 end success") ||
		strings.Count(got, "tool_call") != strings.Count(got, "tool_result") {
		t.Error(got)
	}
}
