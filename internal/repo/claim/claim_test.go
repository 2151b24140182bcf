package claim

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/sys/touch"
)

// TestEdits: what the calls of the agents' tools for files make of a file with two lines.
func TestEdits(t *testing.T) {
	t.Parallel()
	const was, none = "one\ntwo\n", "?"
	patch := "*** Begin Patch\n*** Update File: f\n@@\n one\n-two\n+2\n+3\n*** End Patch"
	for name, c := range map[string]struct{ input, want string }{
		"claude Write": {`{"file_path":"f","content":"x"}`, "x"},
		"claude Edit":  {`{"file_path":"f","old_string":"two","new_string":"2"}`, "one\n2\n"},
		"not there":    {`{"file_path":"f","old_string":"three","new_string":"2"}`, none},
		"there twice":  {`{"file_path":"f","old_string":"o","new_string":"0"}`, none},
		"each":         {`{"file_path":"f","old_string":"o","new_string":"0","replace_all":true}`, "0ne\ntw0\n"},
		"claude MultiEdit": {
			`{"file_path":"f","edits":[{"old_string":"one","new_string":"1"},{"old_string":"1\n","new_string":""}]}`,
			"two\n",
		},
		"copilot":        {`{"path":"f","old_str":"two","new_str":"2"}`, "one\n2\n"},
		"copilot create": {`{"path":"f","file_text":"x"}`, "x"},
		"opencode":       {`{"filePath":"f","oldString":"two","newString":"2"}`, "one\n2\n"},
		"a patch":        {`{"input":` + quote(patch) + `}`, "one\n2\n3\n"},
		"codex's item": {
			`{"changes":[{"path":"f","kind":{"type":"update"},"diff":"@@ -1,2 +1,2 @@\n one\n-two\n+2\n"}]}`,
			"one\n2\n",
		},
		"codex's new file": {`{"changes":[{"path":"f","kind":{"type":"add"},"diff":"x\n"}]}`, "x\n"},
		"codex exec":       {`{"changes":[{"path":"f","kind":"update"}]}`, none},
		"no text":          {`{"path":"f","insert_line":1,"new_str":"x"}`, none},
	} {
		call := event.NewCall("1", name, event.Write, json.RawMessage(c.input), "file_path", "filePath", "path")
		all := Claims(event.FinishedCall{Call: *call}, "/w")
		if len(all) != 1 || all[0].Path != "/w/f" {
			t.Errorf("%s: %+v", name, all)
			continue
		}
		got := none
		if all[0].Edit != nil {
			if made, is, ok := all[0].Edit([]byte(was), true); is && ok {
				got = string(made)
			}
		}
		if got != c.want {
			t.Errorf("%s makes %q, not %q", name, got, c.want)
		}
	}
}

func quote(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

// TestPatchOfSeveral has a patch with several files, in a tool's input and in a command.
func TestPatchOfSeveral(t *testing.T) {
	t.Parallel()
	patch := "*** Begin Patch\n*** Add File: a\n+x\n+y\n*** Delete File: b\n" +
		"*** Update File: c\n*** Move to: d\n@@\n-x\n+y\n" +
		"*** End Patch\n"
	write := event.NewCall("1", "apply_patch", event.Write, json.RawMessage(`{"input":`+quote(patch)+`}`))
	shell := &event.Call{Kind: event.Shell, Command: "apply_patch <<'EOF'\n" + patch + "EOF"}
	for _, call := range []*event.Call{write, shell} {
		all := Claims(event.FinishedCall{Call: *call}, "/w")
		if len(all) != 4 || all[0].Path != "/w/a" || !all[1].Removes || all[2].Path != "/w/c" || !all[2].Removes ||
			all[3].Path != "/w/d" {
			t.Fatalf("%+v", all)
		}
		if made, is, ok := all[0].Edit(nil, false); string(made) != "x\ny\n" || !is || !ok {
			t.Errorf("%q", made)
		}
		if _, is, ok := all[1].Edit([]byte("x"), true); is || !ok {
			t.Error("b is there")
		}
	}
}

// TestWhatIsNoClaim: reading, failed edits and other kinds of tools claim nothing; a failed command does.
func TestWhatIsNoClaim(t *testing.T) {
	t.Parallel()
	input := json.RawMessage(`{"file_path":"f","content":"x","command":"echo x > f"}`)
	for _, c := range []struct {
		kind   event.ToolKind
		failed bool
		want   int
	}{
		{event.Read, false, 0},
		{event.Write, true, 0},
		{event.Write, false, 1},
		{event.MCP, false, 0},
		{event.Agent, false, 0},
		{event.Shell, false, 1},
		{event.Shell, true, 1},
	} {
		call := event.NewCall("1", "t", c.kind, input, "file_path")
		if all := Claims(event.FinishedCall{Call: *call, Failed: c.failed}, "/w"); len(all) != c.want {
			t.Errorf("%s, failed %v: %+v", c.kind, c.failed, all)
		}
	}
}

// TestHearerLooks: what a conversation hears has the status of the file when the call began and when it was over.
func TestHearerLooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := touch.New()
	log.Unseen(touch.ReasonUnwatched)
	w := log.Open()
	h := NewReporter(log, dir)
	call := event.NewCall("1", "Bash", event.Shell, json.RawMessage(`{"command":"sed -i s/a/b/ f"}`))
	put := func(text string) { write(t, filepath.Join(dir, "f"), text) }
	put("a")
	before := moment{filepath.Join(dir, "f"): *status(filepath.Join(dir, "f"))}
	h.Tell(&event.Event{Kind: event.ToolCall, Call: call})
	put("b")
	h.Tell(&event.Event{Kind: event.ToolResult, Result: &event.Result{ID: "1"}})
	is := moment{filepath.Join(dir, "f"): *status(filepath.Join(dir, "f"))}
	if v := w.Judge(filepath.Join(dir, "f"), before, is); v.By != touch.Agent {
		t.Errorf("%+v", v)
	}
	NewReporter(nil, dir).Tell(&event.Event{Kind: event.ToolCall, Call: call})
}

// TestWhatWaitsForAnAnswerChangesNothing: while a person is asked whether a command may run, they change the file that
// it names. After a no the file is theirs. After a yes it is also theirs unless the command changes it.
func TestWhatWaitsForAnAnswerChangesNothing(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{event.Allow, event.Deny, "withdrawn by a denial", "interrupted", "none"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "f")
		log := touch.New()
		log.Unseen(touch.ReasonUnwatched)
		w, h := log.Open(), NewReporter(log, dir)
		call := event.NewCall("1", "Bash", event.Shell, json.RawMessage(`{"command":"test -f f || echo x > f"}`))
		h.Tell(&event.Event{Kind: event.ToolCall, Call: call})
		h.Tell(&event.Event{Kind: event.Question, Ask: &event.Ask{ID: "q", Tool: call}})
		write(t, file, "theirs")
		is := moment{file: *status(file)}
		for write(t, filepath.Join(dir, "clock"), ""); status(filepath.Join(dir, "clock")).Changed <
			is[file].Changed+int64(time.Second); {
			time.Sleep(10 * time.Millisecond) // the clock of the files goes on
			write(t, filepath.Join(dir, "clock"), "")
		}
		switch answer {
		case event.Allow, event.Deny:
			h.Tell(&event.Event{Kind: event.Replied, Reply: &event.Reply{Question: "q", Option: answer}})
		case "interrupted":
			h.Tell(&event.Event{Kind: event.Ended})
		case "withdrawn by a denial":
			h.Tell(&event.Event{Kind: event.Denied, Denial: &event.Denial{CallID: "1"}})
		}
		h.Tell(&event.Event{Kind: event.ToolResult, Result: &event.Result{ID: "1", Failed: true}})
		if v := w.Judge(file, moment{}, is); v.By != touch.Unknown {
			t.Errorf("%s: %+v", answer, v)
		}
	}
}
