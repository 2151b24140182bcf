package start

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// call runs a command of the program and returns what it wrote, and its exit code.
func (p place) call(t *testing.T, env []string, args ...string) (out, log string, exit int) {
	t.Helper()
	cmd := exec.Command(program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = append(p.env, env...), p.work, &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// nowhere checks that no file below the home but that one has the key, and that those of the audit are there.
func (p place) nowhere(t *testing.T, key, but string) {
	t.Helper()
	seen := 0
	_ = filepath.WalkDir(p.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == but {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		if seen++; strings.Contains(string(data), key) {
			t.Errorf("the key is in %s", path)
		}
		return nil
	})
	if seen == 0 {
		t.Error("there is no file at all")
	}
}

const typedKey = "sk-typed-9f8e7d6c5b4a3210"

// TestLogin: a key comes from a variable, a file or the terminal, and is used as the last one; none of it is told.
func TestLogin(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	p := newPlace(t)
	keys := filepath.Join(p.home, ".config", "omniagent", "keys.json")
	base := "OPENAI_BASE_URL=" + a.URL + "/v1"

	out, log, exit := p.call(t, nil, "login", "openai")
	var envelope struct {
		Error struct {
			Code    string
			Methods []struct{ Type, Name, Hint string } `json:"auth_methods"`
		}
	}
	if err := json.Unmarshal([]byte(out), &envelope); err != nil || exit != 4 ||
		envelope.Error.Code != "AUTH_REQUIRED" || len(envelope.Error.Methods) < 2 ||
		envelope.Error.Methods[0].Name != "OPENAI_API_KEY" {
		t.Errorf("without a key: exit %d, %v\n%s\n%s", exit, err, out, log)
	}
	file := filepath.Join(t.TempDir(), "key") // not in the workspace, whose files snapshots keep
	if err := os.WriteFile(file, []byte(typedKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, way := range [][]string{
		{"--token-env-var", "MINE"},
		{"--key-from-env", "MINE"},
		{"--key-from-file", file},
	} {
		out, log, exit := p.call(t, []string{"MINE=" + typedKey}, append([]string{"login", "openai"}, way...)...)
		if exit != 0 || strings.Contains(out+log, typedKey) || !strings.Contains(out, `"place":"file"`) {
			t.Errorf("%v: exit %d\n%s\n%s", way, exit, out, log)
		}
		p.nowhere(t, typedKey, keys)
		p.asks(t, a, []string{base}, "/v1/chat/completions Bearer "+typedKey+" m", "--model", "m")
		p.asks(t, a, []string{base, "OPENAI_API_KEY=k"}, "/v1/chat/completions Bearer k m", "--model", "m")
		p.nowhere(t, typedKey, keys)
		if _, _, exit = p.call(t, nil, "logout", "openai"); exit != 0 {
			t.Errorf("logout: exit %d", exit)
		}
		if data, _ := os.ReadFile(keys); strings.Contains(string(data), typedKey) {
			t.Errorf("the key is still there: %s", data)
		}
	}
	for _, bad := range [][]string{
		{"login", "opnai", "--token-env-var", "MINE"},
		{"login", "openai", "--token-env-var", "NOTHING"},
		{"login", "openai", "--token-env-var", "TWO"},
		{"login", "copilot", "--token-env-var", "MINE"},
		{"login", "--token-env-var", "MINE"},
	} {
		out, log, exit := p.call(t, []string{"MINE=" + typedKey, "TWO=a b"}, bad...)
		if exit == 0 || strings.Contains(out+log, typedKey) {
			t.Errorf("%v: exit %d\n%s\n%s", bad, exit, out, log)
		}
	}
}

// TestLoginWithoutAKey: Ctrl-C ends the line of the question, and nothing was done.
func TestLoginWithoutAKey(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no pseudo terminals here")
	}
	p := newPlace(t)
	cmd := exec.Command(program, "login", "anthropic")
	cmd.Env, cmd.Dir = append(p.env, "TERM=xterm"), p.work
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var shown bytes.Buffer
	for data := make([]byte, 4096); !strings.Contains(shown.String(), "not shown"); {
		n, err := terminal.Read(data)
		if err != nil {
			t.Fatalf("%v\n%s", err, shown.String())
		}
		shown.Write(data[:n])
	}
	if _, err := io.WriteString(terminal, "\x03"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(&shown, terminal) // ends with an error of the terminal
	if err := cmd.Wait(); err == nil || !strings.Contains(shown.String(), "\nomniagent: nothing was typed") ||
		!strings.Contains(shown.String(), "Nothing was stored") {
		t.Errorf("%v\n%s", err, shown.String())
	}
}

// TestLoginOnATerminal: the key is typed and not shown.
func TestLoginOnATerminal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no pseudo terminals here")
	}
	p := newPlace(t)
	cmd := exec.Command(program, "login", "anthropic")
	cmd.Env, cmd.Dir = append(p.env, "TERM=xterm"), p.work
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var shown bytes.Buffer
	for data := make([]byte, 4096); !strings.Contains(shown.String(), "not shown"); {
		n, err := terminal.Read(data)
		if err != nil {
			t.Fatalf("%v\n%s", err, shown.String())
		}
		shown.Write(data[:n])
	}
	if _, err := io.WriteString(terminal, typedKey+"\n"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(&shown, terminal) // ends with an error of the terminal
	if err := cmd.Wait(); err != nil || strings.Contains(shown.String(), typedKey) {
		t.Errorf("%v\n%s", err, shown.String())
	}
	data, err := os.ReadFile(filepath.Join(p.home, ".config", "omniagent", "keys.json"))
	if err != nil || !strings.Contains(string(data), typedKey) {
		t.Errorf("it is not stored: %s, %v", data, err)
	}
	out, _, exit := p.call(t, nil, "status")
	if exit != 0 || !strings.Contains(out, `"logged_in":true`) || !strings.Contains(out, `"account":"anthropic"`) ||
		strings.Contains(out, typedKey) {
		t.Errorf("status: exit %d\n%s", exit, out)
	}
	if out, _, _ = p.call(t, []string{"GEMINI_API_KEY=g"}, "doctor"); strings.Contains(out, typedKey) ||
		!strings.Contains(out, "gemini in GEMINI_API_KEY, anthropic in ") {
		t.Errorf("doctor:\n%s", out)
	}
}

// TestModelsUse: one member changes, and every other byte stays.
func TestModelsUse(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	p := newPlace(t)
	const before = "{\n  // mine\n  \"other\": [1, 2.50],\n  \"models\": { \"active\" : \"one\", \"profiles\": [\n" +
		"    {\"name\":\"one\",\"model\":\"m-1\",\"apiKey\":\"k-1\",\"baseUrl\":\"URL/v1\"},\n" +
		"    {\"name\":\"two\",\"model\":\"m-2\",\"apiKey\":\"k-2\",\"baseUrl\":\"URL/v1\", " +
		"\"toolProtocol\":\"native\"}]}}\n"
	text := strings.ReplaceAll(before, "URL", a.URL)
	p.atHome(t, ".eidolon/config.json", text)
	read := func() string {
		data, err := os.ReadFile(filepath.Join(p.home, ".eidolon", "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	listed := func() string {
		out, log, exit := p.call(t, []string{"OPENAI_API_KEY=k"}, "models", "list", "--output", "tsv", "--fields",
			"name,model,key,tool_protocol,active")
		if exit != 0 {
			t.Errorf("exit %d\n%s", exit, log)
		}
		return out
	}
	if got := listed(); !strings.Contains(got, "one\tm-1\ttrue\txnl\ttrue\n") ||
		!strings.Contains(got, "two\tm-2\ttrue\tnative\tfalse\n") {
		t.Errorf("listed:\n%s", got)
	}
	p.run(t, "config", "set", "native.provider", "gemini", "--global")
	p.run(t, "models", "use", "two", "--dry-run")
	if read() != text {
		t.Errorf("a dry run wrote:\n%s", read())
	}
	p.run(t, "models", "use", "two")
	if want := strings.Replace(text, `"active" : "one"`, `"active" : "two"`, 1); read() != want {
		t.Errorf("got\n%s\nwant\n%s", read(), want)
	}
	p.asks(t, a, nil, "/v1/chat/completions Bearer k-2 m-2")
	p.run(t, "models", "use", "openai/gpt-x")
	p.asks(t, a, []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=" + a.URL + "/v1"},
		"/v1/chat/completions Bearer k gpt-x")
	if got := listed(); !strings.Contains(got, "configured\tgpt-x\ttrue\t\ttrue\n") {
		t.Errorf("listed:\n%s", got)
	}
	p.run(t, "models", "use", "one")
	p.asks(t, a, nil, "/v1/chat/completions Bearer k-1 m-1")
	if read() != text {
		t.Errorf("got\n%s", read())
	}
	if out, _, exit := p.call(t, nil, "models", "use", "tvo"); exit != 2 ||
		!strings.Contains(out, "Did you mean two?") || !strings.Contains(out, `"ARG_ERROR"`) {
		t.Errorf("exit %d\n%s", exit, out)
	}
	for _, name := range []string{"openai/", "openai/a b"} {
		out, log, exit := p.call(t, nil, "models", "use", name)
		if exit != 2 || !strings.Contains(out+log, "names no model") {
			t.Errorf("%s: exit %d\n%s", name, exit, out)
		}
	}
	p.atHome(t, ".eidolon/config.json", `{"models":{"profiles":[{"name":"openai/of mine"}]}}`)
	p.run(t, "models", "use", "openai/of mine")
	// A file that names none yet.
	plain := fmt.Sprintf("{\"models\": {\n  \"profiles\": [{\"name\":\"a\"},{\"name\":\"b\",\"baseUrl\":\"%s\"}]\n}}\n",
		a.URL)
	p.atHome(t, ".eidolon/config.json", plain)
	p.run(t, "models", "use", "b")
	if want := strings.Replace(plain, "}]\n", "}],\n  \"active\": \"b\"\n", 1); read() != want {
		t.Errorf("got\n%s\nwant\n%s", read(), want)
	}
}

// TestFirstStart: without any key a person gets the ways to one in ten lines, and can try it on a script.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.env = append(p.env, "PATH=/usr/bin:/bin")
	for _, args := range [][]string{{"chat", "--plain"}, {"start", "-p", "hello"}} {
		_, log, exit := p.call(t, nil, args...)
		if exit == 0 || strings.Count(log, "\n") > 10 || !strings.Contains(log, "  omniagent login") ||
			!strings.Contains(log, "--rehearse") || !strings.HasPrefix(log, "omniagent: no model was chosen") {
			t.Errorf("%v: exit %d\n%s", args, exit, log)
		}
	}
	p.write(t, "here.txt", "")
	out, exit := p.chat(t, "hello\n", nil, "--plain", "--rehearse")
	if exit != 0 || !strings.Contains(out, "here.txt") || !strings.Contains(out, "you said: hello") {
		t.Errorf("exit %d\n%s", exit, out)
	}
	// Another agent would ask its own model.
	out, exit = p.chat(t, "hello\n/agent codex\nstill there?\n", nil, "--plain", "--rehearse")
	if !strings.Contains(out, "a rehearsal stays with its agent, native") ||
		!strings.Contains(out, "you said: still there?") || exit != 0 {
		t.Errorf("exit %d\n%s", exit, out)
	}
	p.write(t, "script.json", `[{"say":"So it goes."}]`)
	out, log, exit := p.call(t, nil, "start", "--rehearse", "--script", "script.json", "-p", "x", "--output-format",
		"text")
	if exit != 0 || out != "So it goes.\n" {
		t.Errorf("exit %d, %q\n%s", exit, out, log)
	}
	if _, err := os.Stat(filepath.Join(p.home, ".yume")); err == nil {
		t.Error("a rehearsal is kept")
	}
	if _, _, exit = p.call(t, nil, "start", "--rehearse", "--model", "m", "-p", "x"); exit != 2 {
		t.Errorf("a model on a script: exit %d", exit)
	}
}
