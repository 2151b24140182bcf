package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
)

func TestReadHistory(t *testing.T) {
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "history")
		check(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	const answered = "u one | a two call:c1 | u result:c1=three | a four"
	for name, row := range map[string]struct{ text, want string }{
		"array": {`[{"role":"system","content":"be good"},{"role":"user","content":"one"},{"role":"assistant","content":"two","tool_calls":[{"id":"c1","name":"Read","input":{"a":1}}]},
			{"role":"tool","content":"three","tool_call_id":"c1"},{"role":"assistant","content":"four"}]`, answered},
		"session": {`{"id":"x","provider":"p","history":[{"role":"user","content":"one"},{"role":"assistant","content":"two","tool_calls":[{"id":"c1","name":"Read","input":{}}]},
			{"role":"tool","content":"three","tool_call_id":"c1"},{"role":"assistant","content":"four"}],"usage":{}}`, answered},
		"lines": {"\xef\xbb\xbf" + `{"role":"user","content":"one"}
{"role":"assistant","content":"two","tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{\"a\":1}"}}]}

{"role":"tool","content":"three","tool_call_id":"c1"}
{"role":"assistant","content":[{"type":"text","text":"four"}]}`, answered},
		"transcript": {`{"type":"summary","summary":"s"}
{"type":"user","message":{"role":"user","content":"old"}}
{"type":"system","subtype":"compact_boundary"}
{"type":"user","isMeta":true,"message":{"role":"user","content":"caveat"}}
{"type":"user","message":{"role":"user","content":"one"},"uuid":"u"}
{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}}
{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"two"}]}}
{"type":"assistant","isSidechain":true,"message":{"role":"assistant","content":"elsewhere"}}
{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"file_path":"a"}}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"three"}]}]},"toolUseResult":{}}
{"type":"file-history-snapshot"}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"four"}]}}`, answered},
		"one message": {`{"role":"user","content":"one"}`, "u one"},
		"lost result": {
			`[{"role":"assistant","tool_calls":[{"id":"c1","name":"Read","input":null}]}]`,
			"a call:c1 | u result:c1=INTERRUPTED",
		},
		"result of nobody": {
			`[{"role":"user","content":"one"},{"role":"tool","tool_call_id":"c9","content":"x"}]`,
			"u one",
		},
		"empty session": {
			`{"history":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}]}`,
			"u [image: https://x/y.png]",
		},
	} {
		messages, err := ReadHistory(write(row.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := said(messages); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, row.want)
		}
	}
	for text, want := range map[string]string{
		"":                                    "no message",
		"[]":                                  "no message",
		"hello":                               "line 1: invalid character",
		"{\"role\":\"user\"}\n{\"role\":":     "line 2: unexpected EOF",
		"[{\"role\":\"user\"},\n{\"role\":":   "line 1: unexpected EOF",
		"{\"role\":\"user\"}\n\n{\"role\"\nx": "line 4: invalid character",
		"3":                                   "line 1: neither a message",
		`[{"role":"user"},3]`:                 "message 2: a number stands where an object belongs",
		`[{"content":"x"}]`:                   "message 1: role or type is missing",
		`[{"role":"robot"}]`:                  `message 1: the role "robot" is not user`,
		`[{"role":"user","content":3}]`:       "message 1: content is neither a text nor a list of blocks",
		`[{"role":7}]`:                        "message 1: role cannot be a number",
		`[{"role":"tool","content":"x"}]`:     "message 1: tool_call_id is missing",
		"{\"type\":\"user\"}":                 "line 1: message: unexpected end",
		`[{"role":"user","content":["x"]}]`:   "message 1: content is neither",
		`{"history":[{"role":"x"}]}`:          `line 1: message 1: the role "x"`,
		`[{"role":"user","content":[{"a":1}, {"type":"hologram"}]}]`: `content[1]: unknown type of block "hologram"`,
		`[{"role":"assistant","tool_calls":[{"id":"x"}]}]`: "tool_calls[0]: a " +
			"call needs an id and a name",
		`[{"role":"user","content":[{"type":"tool_result"}]}]`:                                 "no tool_use_id",
		`[{"role":"user","content":[{"type":"image","source":{"type":"url","data":"x"}}]}]`:    `the image has its data as "url"`,
		`[{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"?"}}]}]`: "illegal base64",
	} {
		file := write(text)
		_, err := ReadHistory(file)
		if f := wantCode(t, err, fault.InvalidJSON); !strings.Contains(f.Message, want) ||
			!strings.Contains(f.Message, file) {
			t.Errorf("%s:\n got %s\nwant %s", text, f.Message, want)
		}
	}
	if _, err := ReadHistory(filepath.Join(t.TempDir(), "none")); !strings.Contains(err.Error(), "none") {
		t.Error(err)
	}
}

func TestReadHistoryKeepsImagesAndArguments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "h")
	check(t, os.WriteFile(file, []byte(`[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQI="}},
		{"type":"document","title":"d.pdf","source":{"type":"base64","media_type":"application/pdf","data":"AQI="}},
		{"type":"image_url","image_url":"data:image/gif;base64,AQI="}]},
		{"role":"assistant","tool_calls":[{"id":"a","name":"R","input":{"x":1}},{"id":"b","name":"S","function":{"arguments":"half {"}},{"id":"c","name":"T"}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"no"},{"type":"image","source":{"type":"base64","data":"AQI="}}]}]}]`), 0o600))
	m, err := ReadHistory(file)
	check(t, err)
	if b := m[0].Blocks; len(b) != 3 || b[0].Kind != model.Image || b[0].Media != "image/png" || len(b[0].Data) != 2 ||
		b[1].Kind != model.File || b[1].Name != "d.pdf" || b[2].Media != "image/gif" {
		t.Errorf("%+v", b)
	}
	if b := m[1].Blocks; string(b[0].Input) != `{"x":1}` || string(b[1].Input) != "{}" || b[1].Broken != "half {" ||
		string(b[2].Input) != "{}" || b[2].Broken != "" {
		t.Errorf("%+v", b)
	}
	if b := m[2].Blocks; len(b) != 3 || b[0].Name != "R" || !b[0].Failed || b[0].Text != "no" || len(b[0].Parts) != 1 ||
		b[1].Name != "S" {
		t.Errorf("%+v", b)
	}
}

func TestReadHistoryOfAJournal(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	add(t, own, user("one"))
	check(t, own.Close())
	m, err := ReadHistory(s.file("x", journalEnding))
	if check(t, err); said(m) != "u one" {
		t.Error(said(m))
	}
}
