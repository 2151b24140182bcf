package start

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
