package acp

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/wire/jsonrpc"
)

const talk = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}
 {"jsonrpc":"2.0","id":"a","method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"é😀"}]}}` + "\r\n" + `
{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"cancelled"}}}
{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"no"}}
garbage
[{"jsonrpc":"2.0","id":1,"method":"x"}]
17
{"jsonrpc":"1.0","id":2,"method":"x"}
{"jsonrpc":"2.0","id":1.5,"method":"x"}
{"jsonrpc":"2.0","id":3,"method":4}
{"jsonrpc":"2.0","id":4}
{}
{"jsonrpc":"2.0","id":null,"method":"x"}
{"jsonrpc":"2.0","id":5,"method":"half`

// TestLines: what each line is, wherever the bytes are cut.
func TestLines(t *testing.T) {
	t.Parallel()
	whole := read(talk)
	var got []string
	for _, m := range whole {
		word := m.Method
		if word == "" {
			word = "answer"
		}
		if m.Wrong != nil {
			word = fmt.Sprint(m.Wrong.Code)
			if m.Silent {
				word = "silent"
			}
		}
		got = append(got, string(m.ID)+" "+word)
	}
	want := `1 initialize|"a" session/prompt| session/cancel|7 answer|8 answer| -32700| -32600| -32600|2 -32600| -32600|3 -32600|4 silent| -32600|null x| -32700`
	if strings.Join(got, "|") != want {
		t.Errorf("%s\n%s", strings.Join(got, "|"), want)
	}
	for cut := range len(talk) {
		if parts := read(talk[:cut], talk[cut:]); !reflect.DeepEqual(parts, whole) {
			t.Fatalf("cut at %d: %v", cut, parts)
		}
	}
	var bytewise []string
	for i := range len(talk) {
		bytewise = append(bytewise, talk[i:i+1])
	}
	if !reflect.DeepEqual(read(bytewise...), whole) {
		t.Error("byte by byte it is something else")
	}
}

func read(parts ...string) []jsonrpc.Message {
	r := &Reader{}
	var all []jsonrpc.Message
	for _, p := range parts {
		all = append(all, r.Feed([]byte(p))...)
	}
	return append(all, r.End()...)
}

// TestLongLine: it is an error, costs no memory, and what follows is heard.
func TestLongLine(t *testing.T) {
	t.Parallel()
	r := &Reader{Most: 1 << 20}
	part := []byte(strings.Repeat("x", 64<<10))
	var got []jsonrpc.Message
	for range 200 {
		got = append(got, r.Feed(part)...)
	}
	got = append(got, r.Feed([]byte("\n"+`{"jsonrpc":"2.0","id":1,"method":"x"}`+"\n"))...)
	if len(got) != 2 || got[0].Wrong == nil || got[0].Wrong.Code != jsonrpc.ParseError || got[1].Method != "x" {
		t.Error(got)
	}
	// There is a limit if the caller says none.
	if got = (&Reader{}).Feed(make([]byte, 64<<20+1)); len(got) != 1 || got[0].Wrong == nil {
		t.Error(got)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(talk), uint16(7))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		at := int(cut) % (len(data) + 1)
		one, two := read(string(data)), read(string(data[:at]), string(data[at:]))
		if !reflect.DeepEqual(one, two) {
			t.Fatalf("%v\n%v", one, two)
		}
		for _, m := range one {
			line := jsonrpc.Failure(m.ID, jsonrpc.Errorf(jsonrpc.InternalError, "x"))
			if !json.Valid(line) || strings.Count(string(line), "\n") != 1 {
				t.Fatalf("%q", line)
			}
			if m.Wrong != nil {
				continue
			}
			for _, v := range []Version{V1, V2} {
				wanted, wrong := Decode(v, m.Method, m.Params)
				if (wanted == nil) == (wrong == nil) {
					t.Fatalf("%v, %v", wanted, wrong)
				}
			}
			_, _ = Greeting(m.Params)
		}
	})
}

// TestVersions: the one that is agreed on.
func TestVersions(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"protocolVersion":1}`: "1", `{"protocolVersion":2,"info":{"name":"x","version":"1"}}`: "2",
		`{"protocolVersion":7,"capabilities":17}`: "2",
		`{"protocolVersion":0}`:                   "-32022", `{}`: "-32602", `{"protocolVersion":"one"}`: "-32602",
		`{"protocolVersion":1.5}`: "-32602",
		`{"protocolVersion":-1}`:  "-32602", `[]`: "-32602", `{"protocolVersion":1,"clientCapabilities":17}`: "-32602",
		``: "-32602",
	} {
		said, wrong := Greeting(json.RawMessage(params))
		var v Version
		if wrong == nil {
			v, wrong = Agree(said.Wanted)
		}
		got := fmt.Sprint(int(v))
		if wrong != nil {
			got = fmt.Sprint(wrong.Code)
		}
		if got != want {
			t.Errorf("%s: %s instead of %s", params, got, want)
		}
	}
	said, _ := Greeting(
		json.RawMessage(
			`{"protocolVersion":1,"clientCapabilities":{"elicitation":{"form":{}},"session":{"notices":{}},"_meta":{"terminal_output":true}},"clientInfo":{"name":"zed"}}`))
	if said.Client != (Client{Forms: true, Terminals: true, Notices: true}) {
		t.Errorf("%+v", said.Client)
	}
}

// TestDecode: what is wanted, and what is wrong with it.
func TestDecode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v            Version
		method, in   string
		want, except string
	}{
		{
			V1, "session/new",
			`{"cwd":"/w","mcpServers":[{"name":"a","command":"/a","args":["x"],"env":[{"name":"N","value":"v"}]},{"type":"http","name":"b","url":"http://b","headers":[]}]}`, `acp.New{Place:{/w [] {"mcpServers":{"a":{"type":"stdio","command":"/a","args":["x"],"env":{"N":"v"}},"b":{"type":"http","url":"http://b"}}}}}`, "",
		},
		{V1, "session/new", `{"cwd":"w"}`, "", "cwd is not absolute"},
		{V1, "session/new", `{}`, "", "cwd is missing"},
		{
			V1, "session/new", `{"cwd":"/w","mcpServers":[{"type":"sse","name":"b","url":"http://b"}]}`, "",
			"of the kind sse",
		},
		{V1, "session/new", `{"cwd":17}`, "", "cwd cannot be a number"},
		{V1, "session/load", `{"cwd":"/w","sessionId":"s"}`, "acp.Load{s true {/w [] }}", ""},
		{V2, "session/load", `{"cwd":"/w","sessionId":"s"}`, "", "there is no method"},
		{V1, "session/resume", `{"cwd":"/w","sessionId":"s"}`, "acp.Load{s false {/w [] }}", ""},
		{
			V2, "session/resume", `{"cwd":"/w","sessionId":"s","replayFrom":{"type":"start"}}`,
			"acp.Load{s true {/w [] }}", "",
		},
		{V2, "session/resume", `{"cwd":"/w","sessionId":"s","replayFrom":{"type":"end"}}`, "", "replayFrom"},
		{V1, "session/set_mode", `{"sessionId":"s","modeId":"plan"}`, "acp.Set{s mode plan}", ""},
		{V2, "session/set_mode", `{"sessionId":"s","modeId":"plan"}`, "", "there is no method"},
		{
			V2, "session/set_config_option", `{"sessionId":"s","configId":"model","type":"id","value":"x"}`,
			"acp.Set{s model x}", "",
		},
		{
			V1, "session/set_config_option", `{"sessionId":"s","configId":"model","type":"boolean","value":true}`, "",
			"value",
		},
		{V1, "session/prompt", `{"sessionId":"s","prompt":[]}`, "", "prompt is empty"},
		{
			V1, "session/prompt", `{"sessionId":"s","prompt":[{"type":"audio","data":"","mimeType":"audio/wav"}]}`, "",
			"sounds",
		},
		{
			V1, "session/prompt", `{"sessionId":"s","prompt":[{"type":"image","data":"!","mimeType":"image/png"}]}`, "",
			"base64",
		},
		{
			V1, "session/prompt", `{"sessionId":"s","prompt":[{"type":"resource_link","name":"a","uri":"file:///a"}]}`,
			"acp.Prompt{s [{[a](file:///a)  [] }]}", "",
		},
		{
			V1, "session/prompt", `{"sessionId":"s","prompt":[{"type":"image","data":"YQ==","mimeType":"image/png"}]}`,
			"acp.Prompt{s [{ image/png [97] }]}", "",
		},
		{V1, "session/prompt", `{"prompt":[{"type":"text","text":"x"}]}`, "", "sessionId is missing"},
		{V1, "session/prompt", `[]`, "", "not an object"},
		{V1, "fly", `{}`, "", "there is no method"},
	} {
		got, wrong := Decode(c.v, c.method, json.RawMessage(c.in))
		if c.except != "" {
			if wrong == nil || !strings.Contains(wrong.Message, c.except) {
				t.Errorf("%s %s: %v, %v", c.method, c.in, got, wrong)
			}
			continue
		}
		text := fmt.Sprintf("%T%v", got, got)
		if n, ok := got.(New); ok {
			text = fmt.Sprintf("%T{Place:{%s %v %s}}", got, n.Dir, n.Dirs, n.Servers)
		}
		if l, ok := got.(Load); ok {
			text = fmt.Sprintf("%T{%s %v {%s %v %s}}", got, l.Session, l.Replay, l.Dir, l.Dirs, l.Servers)
		}
		if wrong != nil || text != c.want {
			t.Errorf("%s %s: %s, %v", c.method, c.in, text, wrong)
		}
	}
}

// TestTerminals: what a command printed, as each client is shown it.
func TestTerminals(t *testing.T) {
	t.Parallel()
	out, code := "a\n```\n", 3
	begun := Update{Kind: ToolCall, Tool: &Tool{
		ID: "c", New: true, Title: "x", Kind: "execute", Status: Pending, Terminal: &Terminal{Command: "x", Dir: "/w"},
	}}
	ended := Update{
		Kind: ToolCall,
		Tool: &Tool{ID: "c", Status: FailedCall, Terminal: &Terminal{Output: &out, Exit: &code, Ended: true}},
	}
	for name, c := range map[string]struct {
		e    Encoder
		want []string
	}{
		"version 1": {Encoder{Version: V1}, []string{
			`{"kind":"execute","sessionUpdate":"tool_call","status":"pending","title":"x","toolCallId":"c"}`,
			`{"content":[{"content":{"text":"` + "````console\\na\\n```\\n````" +
				`","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"failed","toolCallId":"c"}`,
		}},
		"version 1 with terminals": {Encoder{V1, Client{Terminals: true}}, []string{
			`{"_meta":{"terminal_info":{"cwd":"/w","terminal_id":"c"}},"content":[{"terminalId":"c","type":"terminal"}],"kind":"execute","sessionUpdate":"tool_call","status":"pending","title":"x","toolCallId":"c"}`,
			`{"_meta":{"terminal_exit":{"exit_code":3,"signal":null,"terminal_id":"c"},"terminal_output":{"data":"a\r\n` + "```" + `\r\n","terminal_id":"c"}},"sessionUpdate":"tool_call_update","status":"failed","toolCallId":"c"}`,
		}},
		"version 2": {Encoder{Version: V2}, []string{
			`{"command":"x","cwd":"/w","sessionUpdate":"terminal_update","terminalId":"c"}`,
			`{"content":[{"terminalId":"c","type":"terminal"}],"kind":"execute","sessionUpdate":"tool_call_update","status":"pending","title":"x","toolCallId":"c"}`,
			`{"exitStatus":{"exitCode":3},"output":{"data":"YQpgYGAK"},"sessionUpdate":"terminal_update","terminalId":"c"}`,
			`{"sessionUpdate":"tool_call_update","status":"failed","toolCallId":"c"}`,
		}},
	} {
		var got []string
		for _, u := range []Update{begun, ended} {
			for _, line := range c.e.Update("s", u) {
				var m struct {
					Params struct {
						Update map[string]any `json:"update"`
					} `json:"params"`
				}
				if err := json.Unmarshal(line, &m); err != nil {
					t.Fatal(err)
				}
				data, _ := json.Marshal(m.Params.Update)
				got = append(got, string(data))
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%s\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestPatch: git takes the patches, and makes of the old text the new one.
func TestPatch(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git to try the patches with")
	}
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(30) {
			b.WriteString(string(rune('a'+random.IntN(4))) + "\n")
		}
		if random.IntN(3) == 0 {
			b.WriteString("no end")
		}
		return b.String()
	}
	for range 60 {
		old, new := text(), text()
		dir := t.TempDir()
		d := Diff{Path: "/sub/a file", New: new}
		if random.IntN(4) > 0 {
			d.Old = &old
			if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "sub", "a file"), []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p := patch(d)
		if d.Old != nil && old == new || d.Old == nil && new == "" {
			continue
		}
		cmd := exec.Command(git, "apply", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(p)
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, p)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "sub", "a file")); string(got) != new {
			t.Fatalf("%q instead of %q\n%s", got, new, p)
		}
	}
}

// TestAnswers: only what was chosen counts.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"outcome":{"outcome":"selected","optionId":"allow"}}`: "allow true",
		`{"outcome":{"outcome":"cancelled"}}`:                   " false",
		`{"outcome":{"optionId":"allow"}}`:                      " false", `{}`: " false", `null`: " false",
		`17`: " false",
	} {
		option, ok := Chosen(json.RawMessage(in))
		if got := fmt.Sprint(option, " ", ok); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
	for in, want := range map[string]string{
		`{"action":"accept","content":{"a":"x","b":["y","z"],"c":1}}`: "map[a:[x] b:[y z]] true",
		`{"action":"decline"}`:                    "map[] false",
		`{"action":"cancel","content":{"a":"x"}}`: "map[] false", `{}`: "map[] false",
	} {
		fields, ok := Filled(json.RawMessage(in))
		if got := fmt.Sprint(fields, ok); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func BenchmarkText(b *testing.B) {
	e := Encoder{Version: V1}
	for b.Loop() {
		e.Update("s", Update{Kind: Answer, Message: "m", Text: "a piece of a text"})
	}
}
