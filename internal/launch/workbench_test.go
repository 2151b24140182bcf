package launch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// open returns a bench without walls, which package sandbox tests, in a directory with a file of three lines.
func open(t *testing.T) (*Bench, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lines.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := OpenBench(BenchOptions{Root: dir, Private: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b, dir
}

// serve carries out a request, and returns the answer as the agent gets it.
func serve(t *testing.T, b *Bench, method, params string) string {
	t.Helper()
	result, err := b.Serve(t.Context(), method, []byte(params))
	var told *jsonrpc.Error
	switch {
	case errors.As(err, &told):
		return told.Message
	case err != nil:
		return err.Error()
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFiles(t *testing.T) {
	b, dir := open(t)
	for _, c := range []struct{ method, params, want string }{
		{acp.ReadFile, `{"path":"` + dir + `/lines.txt"}`, `{"content":"one\ntwo\nthree\n"}`},
		{acp.ReadFile, `{"path":"` + dir + `/lines.txt","line":2}`, `{"content":"two\nthree\n"}`},
		{acp.ReadFile, `{"path":"` + dir + `/lines.txt","line":2,"limit":1}`, `{"content":"two"}`},
		{acp.ReadFile, `{"path":"` + dir + `/lines.txt","limit":2}`, `{"content":"one\ntwo"}`},
		{acp.ReadFile, `{"path":"` + dir + `/nothing"}`, "nothing"},
		{acp.ReadFile, `{"path":"/etc/passwd"}`, "escapes"},
		{acp.WriteFile, `{"path":"` + dir + `/new/file","content":"x"}`, `{}`},
		{acp.WriteFile, `{"path":"` + dir + `/../file","content":"x"}`, "escapes"},
		{acp.WriteFile, `7`, "it cannot be read"},
	} {
		if got := serve(t, b, c.method, c.params); !strings.Contains(strings.ToLower(got), strings.ToLower(c.want)) {
			t.Errorf("%s %s: %s", c.method, c.params, got)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "new", "file")); string(data) != "x" {
		t.Errorf("%q %v", data, err)
	}
}

// TestTerminals: a command runs until it ends or is killed, its output is there from its beginning at any time, and a
// word stays one word.
func TestTerminals(t *testing.T) {
	b, dir := open(t)
	begin := func(params string) string {
		t.Helper()
		var begun struct{ TerminalID string }
		text := serve(t, b, acp.CreateTerminal, params)
		if err := json.Unmarshal([]byte(text), &begun); err != nil || begun.TerminalID == "" {
			t.Fatalf("%s: %s", params, text)
		}
		return `{"terminalId":"` + begun.TerminalID + `"}`
	}
	short := begin(`{"command":"printf","args":["%s|","a b","$HOME","'"],"cwd":"` + dir + `"}`)
	if got := serve(t, b, acp.WaitForTerminal, short); got != `{"exitCode":0,"signal":null}` {
		t.Error(got)
	}
	for range 2 {
		if got := serve(t, b, acp.ReadTerminal, short); !strings.Contains(got, `"output":"a b|$HOME|'|"`) ||
			!strings.Contains(got, `"truncated":false`) {
			t.Error(got)
		}
	}
	serve(t, b, acp.ReleaseTerminal, short)
	if got := serve(t, b, acp.ReadTerminal, short); !strings.Contains(got, "there is no terminal") {
		t.Error(got)
	}
	cut := begin(`{"command":"echo äöü; false","outputByteLimit":4}`)
	serve(t, b, acp.WaitForTerminal, cut)
	if got := serve(t, b, acp.ReadTerminal, cut); !strings.Contains(got, `"output":"ü\n"`) ||
		!strings.Contains(got, `"truncated":true`) || !strings.Contains(got, `"exitCode":1`) {
		t.Error(got)
	}
	long := begin(`{"command":"sleep","args":["1000"],"env":[{"name":"A","value":"b"}]}`)
	if got := serve(t, b, acp.ReadTerminal, long); strings.Contains(got, "exitStatus") {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Serve(ctx, acp.WaitForTerminal, []byte(long)); err == nil {
		t.Error("the wait did not end with its context")
	}
	serve(t, b, acp.KillTerminal, long)
	if got := serve(t, b, acp.WaitForTerminal, long); !strings.HasPrefix(got, `{"exitCode":null,"signal":"SIG`) {
		t.Error(got)
	}
	for _, params := range []string{`{"command":"ls","cwd":"/"}`, `{"command":"sudo ls"}`, `{"command":""}`} {
		if _, err := b.Serve(t.Context(), acp.CreateTerminal, []byte(params)); err == nil {
			t.Errorf("%s was started", params)
		}
	}
}
