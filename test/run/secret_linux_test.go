package run

import (
	"bytes"
	"compress/flate"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretsAreKeptNowhere: an answer that is a secret is in no file of ours, whatever its variable is called, and
// whatever the agent does with it: it repeats it as a whole, in pieces and in a call, and writes it into a file.
func TestSecretsAreKeptNowhere(t *testing.T) {
	t.Parallel()
	const secret = `pw-canary "554433"`
	for name, agent := range map[string]func(p *place){
		"custom": func(p *place) {
			p.agent("custom", `task=$(cat); printf '%s\n' "$task" | tee secret.txt; printf '%s' "$task" >&2`)
		},
		"native": func(p *place) {
			p.model(`[{"ask":"Which password?"},{"shell":"echo 'pw-canary \"554433\"' | tee secret.txt"},` +
				`{"say":"It is ${result}"}]`).configured("")
		},
		"claude": func(p *place) { p.askingClaude() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			agent(p)
			p.env = append(p.env, "MYPW="+secret)
			args := []string{"--yolo"}
			switch name {
			case "native":
				args = []string{"-m", "m", "--provider", "openai", "--detach"}
			case "custom":
				args = append(args, "--require", "password=Which password?")
			}
			a := p.run(name, args...)
			p.reaches(a.Data.ID, "needs_input")
			b := p.call("answer", a.Data.ID, "--secret-from-env", "MYPW")
			wrote := p.read("secret.txt")
			if !strings.Contains(wrote, "pw-canary") || !strings.Contains(b.Data.Text.Value, "[REDACTED]") {
				t.Fatalf("the agent did not get it: %q %s", wrote, b)
			}
			if named := strings.Contains(b.Stdout, "SECRET_WITH_AGENT"); named != (name != "native") {
				t.Errorf("the agent's own record is named: %v\n%s", named, b)
			}
			p.hasNo("pw-canary", "554433")
			for _, out := range []string{
				b.Stdout, b.Stderr, p.printed("runs", "logs", a.Data.ID), p.printed("runs", "watch", a.Data.ID),
				p.printed("session", "show", b.Data.Session), p.printed("runs", "diff", a.Data.ID),
			} {
				if strings.Contains(out, "pw-canary") {
					at := strings.Index(out, "pw-canary")
					t.Errorf("it is printed: %s", out[max(0, at-300):min(len(out), at+50)])
				}
			}
		})
	}
}

// TestShortSecretsAreRefused: a secret that is part of too many words cannot be kept out of the records.
func TestShortSecretsAreRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("custom", `cat >/dev/null; echo done`)
	p.env = append(p.env, "PIN=1234")
	a := p.run("custom", "--yolo", "--require", "pin=Which?")
	b := p.call("answer", a.Data.ID, "--secret-from-env", "PIN")
	if b.Code != 2 || b.Error == nil || !strings.Contains(b.Error.Suggestion, "omniagent answer "+a.Data.ID) {
		t.Fatalf("%s", b)
	}
	p.call("answer", a.Data.ID, "1234").is(t, 0, "succeeded", "done_unchanged")
}

// hasNo looks for words in every byte outside of the workspace, also in what is compressed.
func (p *place) hasNo(words ...string) {
	p.t.Helper()
	files := 0
	err := filepath.WalkDir(filepath.Dir(p.home), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == p.work || path == p.bin || !d.Type().IsRegular() {
			if path == p.work || path == p.bin {
				return fs.SkipDir
			}
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, word := range words {
			if bytes.Contains(data, []byte(word)) || bytes.Contains(inflated(data), []byte(word)) {
				p.t.Errorf("%s has %q", path, word)
			}
		}
		return nil
	})
	if err != nil || files == 0 {
		p.t.Fatalf("%d files: %v", files, err)
	}
}

// inflated is everything in data that may be compressed, from wherever it begins.
func inflated(data []byte) (all []byte) {
	for i := range data[:min(len(data), 64<<10)] {
		text, _ := io.ReadAll(flate.NewReader(bytes.NewReader(data[i:])))
		if len(text) > 8 {
			all = append(all, text...)
		}
	}
	return all
}

// askingClaude is an agent with the protocol of Claude Code, which asks for a password and repeats what it is told.
func (p *place) askingClaude() {
	p.t.Helper()
	p.put(filepath.Join(p.bin, "claude"), `#!/usr/bin/env python3
import json, sys
if "--version" in sys.argv:
    print("2.1.329 (Claude Code)"); sys.exit()
def say(**line): print(json.dumps(line), flush=True)
def event(e): say(type="stream_event", session_id="x", event=e)
for line in sys.stdin:
    m = json.loads(line)
    if m["type"] == "control_request" and m["request"]["subtype"] == "initialize":
        say(type="control_response", response={"subtype": "success", "request_id": m["request_id"], "response": {}})
    if m["type"] != "user": continue
    task = m["message"]["content"]
    if not isinstance(task, str): task = "".join(b.get("text", "") for b in task)
    say(type="system", subtype="init", session_id="x", tools=[], model="m")
    answer = "Which password do you want?"
    if "pw-canary" in task:
        open("secret.txt", "w").write(task)
        answer = "I was told: " + task
        print(task, file=sys.stderr, flush=True)
        event({"type": "message_start", "message": {"id": "m1", "role": "assistant", "content": []}})
        event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        for c in answer: event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": c}})
        event({"type": "content_block_stop", "index": 0})
        say(type="assistant", session_id="x", message={"id": "m2", "role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "echo " + task}}]})
        say(type="user", session_id="x", message={"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": task}]})
    say(type="assistant", session_id="x", message={"id": "m1", "role": "assistant", "content": [
        {"type": "text", "text": answer}]})
    say(type="result", subtype="success", is_error=False, result=answer, session_id="x", num_turns=1)
`)
	p.allowed = append(p.allowed, "claude")
	p.configured("").trusting("claude")
}
