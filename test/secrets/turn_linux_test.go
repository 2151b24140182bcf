package secrets

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// forms are those in which a canary is looked for.
func forms(canary string) []string {
	return []string{
		canary, base64.StdEncoding.EncodeToString([]byte(canary))[:12], hex.EncodeToString([]byte(canary)),
		url.QueryEscape(canary),
		strings.ReplaceAll(canary, "/", `\/`),
	}
}

// serveMCP is a server that tells what it was given, and complains about it on standard error.
func serveMCP() {
	fmt.Fprintln(os.Stderr, "warning: my token is", os.Getenv("SERVER_TOKEN"))
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var q struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version string `json:"protocolVersion"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &q) != nil || q.ID == nil {
			continue
		}
		result := "{}"
		switch q.Method {
		case "initialize":
			result = fmt.Sprintf(
				`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"tell","version":"1"}}`,
				q.Params.Version)
		case "tools/list":
			result = `{"tools":[{"name":"all","description":"all that it knows","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			text, _ := json.Marshal(strings.Join(os.Environ(), "\n"))
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text)
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", q.ID, result)
	}
}

// ways are the calls by which a model comes by what it should not have.
func ways() []string {
	shell := func(line string) string {
		quoted, _ := json.Marshal(line)
		return `{"shell":` + string(quoted) + `}`
	}
	return []string{
		shell("env; export -p"),
		shell("tr '\\0' '\\n' </proc/self/environ; tr '\\0' '\\n' </proc/$PPID/environ; cat /proc/[0-9]*/environ " +
			"/proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -a canary; true"),
		shell("cat keys.txt; echo $(cat keys.txt) >&2; base64 -w0 keys.txt; base64 -w20 keys.txt; xxd -p keys.txt"),
		shell("cat ~/.config/omniagent/mcp.json ~/.config/omniagent/config.toml"),
		shell("printf canary; sleep 0.2; tail -c +14 keys.txt | head -c 10; sleep 0.2; tail -c +24 keys.txt"),
		// more than is shown: the rest is in a file
		shell(`keys=$(cat keys.txt); for i in $(seq 400); do echo "$keys"; done`),
		`{"read":"keys.txt"}`,
		`{"call":{"name":"Grep","input":{"pattern":"canary","output_mode":"content"}}}`,
		`{"call":{"name":"Edit","input":{"file_path":"keys.txt","old_string":"first","new_string":"1st"}}}`,
		`{"call":{"name":"mcp__tell__all","input":{}}}`,
		`{"call":{"name":"Bash","input":{"command":"cat keys.txt; sleep 600","run_in_background":true}}}`,
		`{"call":{"name":"BashOutput","input":{"bash_id":"bash_1"}}}`,
		`{"call":{"name":"Task","input":{"description":"look","prompt":"cat keys.txt"}}}`,
	}
}

// TestCanaries: whatever the model does to see them, the keys of a user are in nothing that it is sent, that is
// printed, or that is kept.
func TestCanaries(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	key := canaries()["OPENAI_API_KEY"]
	for name, way := range map[string]string{
		"tools": "[" + strings.Join(ways(), ",") + `,{"say":"it said ${result}"}]`,
		"401":   `[{"error":401,"message":"Incorrect API key provided: ` + key + `. You can find your API key at …"}]`,
		"500":   `[{"error":500,"message":"request {Authorization: Bearer ` + key + `} failed"}]`,
		"model": `[{"say":"your key is ` + key + `, and again ` + key + `"}]`,
		"call":  `[{"shell":"echo ` + key + ` >said.txt; cat said.txt"},{"say":"${result}"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			server, flags := b.model(t, way)
			out := b.run(t,
				append(append([]string{
					"start", "--permission-mode", "auto", "--verbose", "--session-id", "canary",
					"-p", "go, with " + key,
				}, flags...), "--web", "on")...)
			if !strings.Contains(out, `"type":"result"`) {
				t.Errorf("there is no result: %s", out)
			}
			_, first, _ := strings.Cut(out, `"type":"tool_result"`)
			first, _, _ = strings.Cut(first, "\n")
			if name == "tools" && (strings.Count(out, "[REDACTED]") < 10 || !strings.Contains(first, "HOME=") ||
				strings.Contains(first, "PLAIN") || strings.Contains(first, "FOO_TOKEN")) {
				t.Errorf("the calls did not do what they are here for: %s", out)
			}
			clean(t, "what start printed", out)
			for i, q := range server.Requests() {
				clean(t, "request "+strconv.Itoa(i), string(q.Raw))
			}
			for _, args := range [][]string{
				{"start", "--resume", "canary", "-p", "again", "--verbose"},
				{"session", "show", "canary"},
				{"session", "export", "canary"},
				{"session", "search", "key"},
				{"session", "list"},
				{"audit", "log"},
				{"config", "list"},
				{"config", "show"},
				{"doctor"},
				{"status"},
			} {
				if args[0] == "start" {
					_, flags := b.model(t, `[{"say":"and on"}]`)
					args = append(args, flags...)
				}
				clean(t, strings.Join(args, " "), b.run(t, args...))
			}
			if n := b.search(t); n < 2 {
				t.Errorf("%d files were kept", n)
			}
		})
	}
}

// TestKeyInIdentifiers: an API that names its answers, models, calls, tools or failures after the key brings it into no
// output and no file, whichever wire it speaks, and wherever the user keeps the key.
func TestKeyInIdentifiers(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	const (
		identifiers = "id|model|call_id|item_id|tool_call_id|response_id|responseId|modelVersion"
		acts        = `[{"read":"plain.txt"},{"say":"done"}]`
	)
	for name, c := range map[string]struct{ provider, base, key, members, script string }{
		"chat":      {"openai", "/v1", "OPENAI_API_KEY", identifiers, acts},
		"responses": {"codex", "/v1", "OPENAI_API_KEY", identifiers, acts},
		"messages":  {"anthropic", "", "ANTHROPIC_API_KEY", identifiers, acts},
		"gemini":    {"gemini", "", "GEMINI_API_KEY", identifiers, acts},
		"tools":     {"openai", "/v1", "OPENAI_API_KEY", "name", acts},
		"failure":   {"openai", "/v1", "OPENAI_API_KEY", "message|type|code|param", `[{"error":400}]`},
		"file":      {"", "/v1", "profile", identifiers, `[{"say":"done"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			key := canaries()[c.key]
			if c.key == "GEMINI_API_KEY" {
				key = canaries()["OPENAI_API_KEY"]
				b.env = append(b.env, c.key+"="+key)
			}
			server, _ := b.model(t, c.script)
			base := reflecting(t, server.URL(), c.members, key) + c.base
			flags := []string{"--provider", c.provider, "--model", "test-model", "--api-base", base}
			if c.provider == "" {
				flags = nil
				b.write(t, filepath.Join(b.home, ".eidolon", "config.json"), fmt.Sprintf(`{"models":{"active":"one",
					"profiles":[{"name":"one","provider":"siliconflow","model":"m","apiKey":%q,"baseUrl":%q}]}}`, key, base))
			}
			start := func(args ...string) string {
				return b.run(t, append(append([]string{"start", "-p", "go", "--verbose"}, flags...), args...)...)
			}
			out := start("--session-id", "named")
			if !strings.Contains(out, "[REDACTED]") || !strings.Contains(out, `"type":"result"`) ||
				len(server.Requests()) == 0 {
				t.Errorf("the key does not come back: %s", out)
			}
			clean(t, "what start printed", out)
			clean(t, "what the next one printed", start("--resume", "named"))
			for _, command := range []string{"show", "export"} {
				clean(t, command, b.run(t, "session", command, "named"))
			}
			if n := b.search(t); n < 2 {
				t.Errorf("%d files were kept", n)
			}
		})
	}
}

// TestKeyInWhatNobodyAskedFor: a server that sends more than its answer has, and in it the key, brings it nowhere.
func TestKeyInWhatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		body := "bad " + r.Header.Get("Authorization")
		fmt.Fprintf(conn, "HTTP/1.1 204 No Content\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}))
	t.Cleanup(server.Close)
	cmd, out := b.command("start", "-p", "go", "--provider", "openai", "--model", "m", "--api-base", server.URL+"/v1")
	if err := cmd.Run(); err == nil {
		t.Error("it succeeds")
	}
	clean(t, "what start printed", out.String())
}

// reflecting is an API in front of another one, which puts the key in front of the values of those members.
func reflecting(t *testing.T, address, members, key string) string {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	values := regexp.MustCompile(`("(?:` + members + `)":\s*")`)
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = values.ReplaceAll(body, []byte("${1}"+key+"-"))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			r.Header.Set("X-Request-Id", key)
			return nil
		},
	})
	t.Cleanup(front.Close)
	return front.URL
}

// TestNobodyCanLookThemUp: while a turn runs, no process of it has a key in its arguments or in its environment, but
// the server that the user gave one to; not even the program itself, whose environment it came in.
func TestNobodyCanLookThemUp(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	b := newBox(t)
	_, flags := b.model(t,
		`[{"call":{"name":"Bash","input":{"command":"sleep 600","run_in_background":true}}},{"shell":"touch here; while ! test -e go; do sleep 0.05; done"},{"say":"ok"}]`)
	cmd, out := b.command(append([]string{"start", "--permission-mode", "auto", "-p", "go"}, flags...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.awaitFile(t, cmd, "here")
	seen := map[string]bool{}
	for _, pid := range family(cmd.Process.Pid) {
		place := "/proc/" + strconv.Itoa(pid)
		args, _ := os.ReadFile(place + "/cmdline")
		env, err := os.ReadFile(place + "/environ")
		if err != nil {
			continue // it has ended
		}
		text := string(args)
		if strings.Contains(text, "serve-mcp") {
			text += strings.ReplaceAll(string(env), "SERVER_TOKEN="+canaries()["mcp"], "")
			seen["server"] = true
		} else {
			text += string(env)
		}
		for _, word := range []string{"sleep", "start"} {
			seen[word] = seen[word] || strings.Contains(string(args), word)
		}
		clean(t, fmt.Sprintf("process %d, %.80q", pid, args), text)
	}
	if !seen["server"] || !seen["sleep"] || !seen["start"] {
		t.Errorf("not all were there: %v", seen)
	}
	b.write(t, filepath.Join(b.work, "go"), "")
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestCrash: what the runtime prints when it is told to die has no key in it, and what is left behind has none either.
func TestCrash(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGKILL, syscall.SIGSEGV} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.env = append(b.env, "GOTRACEBACK=system")
			_, flags := b.model(t,
				`[{"read":"keys.txt"},{"shell":"cat keys.txt; keys=$(cat keys.txt);`+
					` for i in $(seq 2000); do echo \"$keys\"; done; touch here; sleep 600"},{"say":"ok"}]`)
			cmd, out := b.command(append([]string{"start", "--permission-mode", "auto", "-p", "go", "--verbose"},
				flags...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			b.awaitFile(t, cmd, "here")
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if signal != syscall.SIGKILL && signal != syscall.SIGQUIT && !strings.Contains(out.String(), "goroutine") {
				t.Logf("nothing was dumped: %.200s", out)
			}
			clean(t, "the output", out.String())
			b.search(t)
		})
	}
}

// awaitFile waits until a file of the workspace is there, or the program has ended.
func (b *box) awaitFile(t *testing.T, cmd *exec.Cmd, name string) {
	t.Helper()
	for end := time.Now().Add(hermetic.Patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(b.work, name)); err == nil {
			return
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("it never came so far: %s", cmd.Stdout)
		}
	}
}

// family is a process and all that descend from it.
func family(root int) []int {
	parents := map[int]int{}
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	all := []int{root}
	for i := 0; i < len(all); i++ {
		for pid, parent := range parents {
			if parent == all[i] {
				all = append(all, pid)
			}
		}
	}
	return all
}
