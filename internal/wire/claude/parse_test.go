package claude_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"omniagent/internal/wire/claude"
)

func hostLines(t testing.TB) [][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/host.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte("\n"))
}

func framed(f claude.Frame) string {
	switch {
	case f.User != nil:
		var parts []string
		for _, b := range f.User.Blocks {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", b.Text, b.Media, len(b.Data), b.Name)))
		}
		return "user " + strings.Join(parts, "; ")
	case f.Request != nil:
		return "request " + f.Request.ID + " " + f.Request.Subtype
	case f.Reply != nil:
		return "reply " + f.Reply.ID + " " + f.Reply.Error
	}
	return "nothing"
}

// TestWhatAHostSaid in a recorded conversation, whole and cut at every byte: half a line is an error or, of JSON,
// nothing at all.
func TestWhatAHostSaid(t *testing.T) {
	var got []string
	for _, line := range hostLines(t) {
		f, err := claude.Parse(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		got = append(got, framed(f))
		for i := range line {
			if f, err := claude.Parse(line[:i]); err == nil {
				t.Errorf("%s is read as %s", line[:i], framed(f))
			}
		}
	}
	want := `user RUN:python3 -c 'open("made","w")'
SAY:done  0
reply f908602c-d524-41e5-b0c5-9f625836efc2 
user SAY:second turn  0
request 6gg76crzwgp initialize
user what is this  0; image/png 8; application/pdf 5 a.pdf
reply r1 
reply r2 the callback threw
request 1azkzgfgwe1 interrupt
request ep8jybg83hw set_permission_mode
nothing
nothing`
	if strings.Join(got, "\n") != want {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

func TestWrongLines(t *testing.T) {
	for line, want := range map[string]string{
		`garbage`:             "a line must be one JSON object",
		`[]`:                  "a line must be one JSON object",
		`{}`:                  "the line has no type",
		`{"type":"nonsense"}`: `unknown type of line "nonsense"`,
		`{"type":"user"}`:     "message is missing",
		`{"type":"user","message":{"role":"assistant","content":"x"}}`:                                                                          `role is "assistant"`,
		`{"type":"user","message":{"role":"user","content":" "}}`:                                                                               "content is empty",
		`{"type":"user","message":{"role":"user","content":[]}}`:                                                                                "a text or a list",
		`{"type":"user","message":{"role":"user","content":[{"type":"tool_result"}]}}`:                                                          `a block of the type "tool_result"`,
		`{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"url","url":"http://x"}}]}}`:                       `type "url" cannot be sent`,
		`{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%"}}]}}`: "no data in base64",
		`{"type":"control_request","request":{"subtype":"interrupt"}}`:                                                                          "request_id is missing",
		`{"type":"control_request","request_id":"a"}`:                                                                                           "no request with a subtype",
		`{"type":"control_response","response":{"subtype":"success"}}`:                                                                          "request_id is missing",
	} {
		if f, err := claude.Parse([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", line, framed(f), err)
		}
	}
}

// TestReplyOfAnUnknownSubtype: the side that sent the request waits, so the request fails.
func TestReplyOfAnUnknownSubtype(t *testing.T) {
	for response, want := range map[string]string{
		`{"subtype":"odd","request_id":"a","response":{}}`:                `a response of the unknown subtype "odd"`,
		`{"request_id":"a","response":{"behavior":"allow"}}`:              `a response of the unknown subtype ""`,
		`{"subtype":"odd","request_id":"a","error":"the callback threw"}`: `the callback threw`,
	} {
		f, err := claude.Parse([]byte(`{"type":"control_response","response":` + response + `}`))
		if err != nil || f.Reply == nil || f.Reply.ID != "a" || f.Reply.Body != nil || f.Reply.Error != want {
			t.Errorf("%s: %s, %v", response, framed(f), err)
		}
	}
}

// FuzzParse: no line makes it panic, and what it takes for a message has something in it.
func FuzzParse(f *testing.F) {
	for _, line := range hostLines(f) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		frame, err := claude.Parse(line)
		if err == nil && frame.User != nil && len(frame.User.Blocks) == 0 {
			t.Error("a message without anything")
		}
		if err == nil && frame.Request != nil {
			_, _ = claude.ReadInitialize(frame.Request.Body)
			if answer := claude.No(frame.Request.ID, frame.Request.Subtype); !json.Valid(answer) {
				t.Errorf("%s", answer)
			}
		}
		if err == nil && frame.Reply != nil {
			_, _ = claude.ReadWord("PreToolUse", frame.Reply.Body)
			_, _, _ = question().Verdict(*frame.Reply)
		}
	})
}
