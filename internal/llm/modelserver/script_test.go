package modelserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

// notes is a Writer that writes down what it is told, one line each.
type notes struct {
	lines []string
	broke Break
}

func (n *notes) Decline(words string) error { return n.Text("DECLINES " + words) }
func (n *notes) note(format string, args ...any) error {
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
	return nil
}
func (n *notes) Text(s string) error   { return n.note("say %s", s) }
func (n *notes) Think(s string) error  { return n.note("think %s", s) }
func (n *notes) Search(s string) error { return n.note("search %s", s) }
func (n *notes) Call(c Call) error {
	return n.note("%s %s %s", c.Kind, strings.TrimPrefix(c.Namespace+"."+c.Name, "."), c.Input)
}
func (n *notes) Fail(f Failure) error { return n.note("fail %d", f.Status) }
func (n *notes) Usage(u Usage)        { _ = n.note("usage %v", u) }
func (n *notes) Slow(Pace)            {}
func (n *notes) Break(b Break)        { n.broke = b }

func play(t *testing.T, s *Script, r *Request) string {
	t.Helper()
	n := &notes{}
	if err := s.Answer(t.Context(), r, n); err != nil {
		t.Fatal(err)
	}
	return strings.Join(n.lines, "\n")
}

// recorded reads requests of a real agent.
func recorded(t testing.TB, name string) []*Request {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "requests", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*Request
	for line := range bytes.Lines(data) {
		var row struct {
			Path string
			Body json.RawMessage
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		where := target{wire: Responses}
		switch {
		case strings.HasSuffix(row.Path, "/messages"):
			where.wire = Messages
		case strings.HasSuffix(row.Path, "/completions"):
			where.wire = Chat
		case strings.Contains(row.Path, "/models/"):
			where.wire = Gemini
		}
		r, err := where.wire.parse(row.Body, where)
		if err != nil {
			t.Fatal(err)
		}
		r.Wire, r.Raw = where.wire, row.Body
		out = append(out, r)
	}
	return out
}

const rehearsal = `[
	{"think": "I think about it."},
	{"say": "Look: "},
	{"shell": "echo hi"},
	{"write": {"path": "note.txt", "content": "hello\nworld\n"}},
	{"read": "note.txt"},
	{"say": "input=${input} ${input.length}"},
]`

// The requests are those that the agents sent when they played this script.
func TestRealAgents(t *testing.T) {
	const first, last = "think I think about it.\nsay Look: \n", "say input=say hello 9"
	const asked = `"description":"a step of a script"`
	program := func(call string) string {
		return "custom functions.exec " +
			string(encode("const r = await tools."+call+
				";\ntext(typeof r === \"object\" && r !== null && \"output\" in r ? r.output : r);\n"))
	}
	for name, want := range map[string][]string{
		"claude": {
			first + `function Bash {"command":"echo hi"}`,
			`function Write {"content":"hello\nworld\n","file_path":"/ws/note.txt"}`,
			`function Read {"file_path":"/ws/note.txt"}`, last,
		},
		"codex": {
			first + program(`exec_command({"cmd":"echo hi"})`),
			program(`apply_patch("*** Begin Patch\n*** Add File: note.txt\n+hello\n+world\n*** End Patch\n")`),
			program(`exec_command({"cmd":"cat -- 'note.txt'"})`), last,
		},
		"codex-m": {
			first + `function exec_command {"cmd":"echo hi"}`,
			`function exec_command {"cmd":"printf %s 'hello\nworld\n' > 'note.txt'"}`,
			`function exec_command {"cmd":"cat -- 'note.txt'"}`, last,
		},
		"gemini": {
			`say {"complexity_reasoning":"ok","complexity_score":1}`,
			first + `function run_shell_command {"command":"echo hi"}`,
			`function write_file {"content":"hello\nworld\n","file_path":"/ws/note.txt"}`,
			`function read_file {"file_path":"/ws/note.txt"}`, last,
		},
		"copilot": {
			first + `function bash {"command":"echo hi",` + asked + `}`,
			`function create {"file_text":"hello\nworld\n","path":"/ws/note.txt"}`,
			`function view {"path":"/ws/note.txt"}`, last,
		},
		"opencode": {
			"say ok", // the title
			first + `function bash {"command":"echo hi"}`,
			`function write {"content":"hello\nworld\n","filePath":"/ws/note.txt"}`,
			`function read {"filePath":"/ws/note.txt"}`, last,
		},
	} {
		same := map[string][]string{"copilot": {"copilot", "copilot-messages", "copilot-responses"}}[name]
		if same == nil {
			same = []string{name}
		}
		for _, file := range same {
			s := script(t, rehearsal)
			requests := recorded(t, file)
			if len(requests) != len(want) {
				t.Fatalf("%s: %d requests, not %d", file, len(requests), len(want))
			}
			// Backwards and twice: what came before must not matter.
			for i := len(want) - 1; i >= 0; i-- {
				for range 2 {
					if got := play(t, s, requests[i]); got != want[i] {
						t.Errorf("%s, request %d:\n got %s\nwant %s", file, i+1, got, want[i])
					}
				}
			}
		}
	}
}

func TestToolsThatAreKeptBack(t *testing.T) {
	s := script(t,
		`[{"search":"golang"},{"web":"https://example.com/"},{"ask":"Which?"},{"calls":[{"shell":"echo A"},{"shell":"echo B"}]},{"say":"end"}]`)
	want := []string{
		`function ToolSearch {"query":"select:WebSearch","max_results":1}`,
		`function WebSearch {"query":"golang"}`,
		`say ok`, // the search itself, beside the conversation
		`function ToolSearch {"query":"select:WebFetch","max_results":1}`,
		`function WebFetch {"prompt":"ok","url":"https://example.com/"}`,
		"say no ask tool is offered\nfunction Bash {\"command\":\"echo A\"}\nfunction Bash {\"command\":\"echo B\"}",
		"say end",
	}
	for i, r := range recorded(t, "claude-web") {
		if got := play(t, s, r); got != want[i] {
			t.Errorf("request %d:\n got %s\nwant %s", i+1, got, want[i])
		}
	}
}

func TestCodexAsksAndSearches(t *testing.T) {
	s := script(t, `[{"search":"golang"},{"ask":"Which?"},{"call":{"name":"apply_patch","input":"*** x"}}]`)
	if got := play(t, s, recorded(t, "codex-m")[0]); got != "search golang\nfunction request_user_input "+
		`{"questions":[{"header":"ok","id":"ok","options":[{"description":"yes","label":"yes"},{"description":"no","label":"no"}],"question":"Which?"}]}` {
		t.Error(got)
	}
	if got := play(t, script(t, `[{"call":{"name":"apply_patch","input":"*** x"}}]`),
		recorded(t, "codex")[0]); !strings.Contains(got, `tools.apply_patch(\"*** x\")`) {
		t.Error(got)
	}
}

// talk is a conversation: u user, a answer, c answer with a call, r result, i what an agent puts in.
func talk(turns string) *Request {
	r := &Request{
		Wire:  Chat,
		Tools: []Tool{{Name: "bash", Kind: "function", Schema: JSON(`{"properties":{"command":{"type":"string"}}}`)}},
	}
	for i, c := range turns {
		switch c {
		case 'u':
			r.add(User, Block{Kind: Text, Text: fmt.Sprint("prompt ", i)})
		case 'a':
			r.add(Assistant, Block{Kind: Text, Text: "x"})
		case 'c':
			r.add(Assistant, Block{Kind: Calling, Name: "bash"})
		case 'r':
			r.add(User, Block{Kind: Result, Text: fmt.Sprint("result ", i)})
		case 'i':
			r.add(User, Block{Kind: Text, Text: "<system-reminder>do not forget</system-reminder>"})
		case 's':
			r.add(System, Block{Kind: Text, Text: "rules"})
		}
	}
	return r
}

func TestPositions(t *testing.T) {
	s := script(t,
		`[{"shell":"1"},{"calls":[{"shell":"2"},{"shell":"2b"}]},{"shell":"3"},{"say":"${input}, ${result}"}]`)
	for turns, want := range map[string]string{
		"u": `"1"`, "su": `"1"`, "ui": `"1"`, "iu": `"1"`, "ucr": `"2b"`, "ucri": `"2b"`, "usicr": `"2b"`,
		"ucrccrr":     `"3"`, // two calls at once are one answer
		"ucracrcr":    "say prompt 0, result 7",
		"ucrcrcra":    "say Done.",
		"ucrcrcrau":   `"1"`, // the next message begins anew
		"ucrcrcraucr": `"2b"`,
		"ucru":        `"1"`, // interrupted
	} {
		if got := play(t, s, talk(turns)); !strings.Contains(got, want) {
			t.Errorf("%s: %s, not %s", turns, got, want)
		}
	}
}

func TestWhatTheUserSaid(t *testing.T) {
	for text, want := range map[string]string{
		" hello ": "hello",
		"<current_datetime>2026</current_datetime>\n\nsay hello":                                "say hello",
		"say hello\n<system-reminder>a</system-reminder>\n<system-reminder>b</system-reminder>": "say hello",
		"<system-reminder>never closed":                                                         "",
		"<task>mine</task>":                                                                     "<task>mine</task>",
		"# AGENTS.md instructions for /ws\n\n<INSTRUCTIONS>x</INSTRUCTIONS>":                    "",
		"[Request interrupted by user for tool use]":                                            "",
		"<session_context>x</session_context>":                                                  "",
	} {
		if got := ownWords(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

func TestForms(t *testing.T) {
	form := JSON(`{"type":"object","properties":{"n":{"type":"integer","minimum":3},"kind":{"enum":["a","b"]},"list":{"type":"array","minItems":1,
		"items":{"$ref":"#/$defs/x"}},"free":{"type":"string"}},"required":["n","kind","list"],"$defs":{"x":{"anyOf":[{"type":"boolean"}]}}}`)
	const fits = `{"kind":"a","list":[false],"n":3}`
	r := talk("u")
	r.Schema = form
	if got := play(t, script(t, `[]`), r); got != "say "+fits {
		t.Error(got)
	}
	if got := play(t, script(t, `[{"json":{"n":7}}]`), r); got != `say {"n":7}` {
		t.Error(got)
	}
	r.Schema, r.Tools = nil, append(r.Tools, Tool{Name: "StructuredOutput", Kind: "function", Schema: form})
	if got := play(t, script(t, `[{"json":{"n":7}}]`), r); got != `function StructuredOutput {"n":7}` {
		t.Error(got)
	}
	if got := play(t, script(t, `[]`), r); got != "function StructuredOutput "+fits {
		t.Error(got)
	}
	r.add(Assistant, Block{Kind: Calling, Name: "StructuredOutput"})
	r.add(User, Block{Kind: Result, Text: "taken"})
	if got := play(t, script(t, `[{"json":{"n":7}}]`), r); got != "say Done." {
		t.Error(got)
	}
	again := []string{}
	for i := range 20 {
		again = append(again, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/x"}`, i))
	}
	endless := JSON(`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{` + strings.Join(again, ",") +
		`}}}}`)
	if n := len(sample(endless)); n > 100_000 {
		t.Errorf("a schema that refers to itself gives %d bytes", n)
	}
}

func TestRequestsBesideTheConversation(t *testing.T) {
	r := talk("u")
	r.Tools = nil
	if got := play(t, script(t, `[{"say":"mine"}]`), r); got != "say ok" {
		t.Error(got)
	}
	if got := play(t, script(t, `{"toolless":true,"steps":[{"say":"mine"}]}`), r); got != "say mine" {
		t.Error(got)
	}
	r.System = "You are a title generator."
	if got := play(t, script(t, `{"toolless":true,"steps":[{"say":"mine"}]}`), r); got != "say ok" {
		t.Error(got)
	}
}

func TestUsageAndTheLastWord(t *testing.T) {
	if got := play(t, script(t, `[{"say":"a","usage":{"input":1,"output":2,"cached":3}},{"web":"u"},{"say":"b"}]`),
		talk("u")); got !=
		"usage {1 2 3}\nsay a\nsay \nno web tool is offered\nsay \nb" {
		t.Errorf("%q", got)
	}
	if got := play(t, &Script{}, talk("u")); got != "say ok" {
		t.Error(got)
	}
	n := &notes{}
	if err := script(t, `[{"stall":"middle"}]`).Answer(context.Background(), talk("u"), n); err != nil ||
		n.broke != (Break{At: Middle, Hold: true}) || len(n.lines) != 1 {
		t.Error(err, n)
	}
}

func TestAbsolutePaths(t *testing.T) {
	r := talk("u")
	r.Tools = []Tool{{Name: "view", Kind: "function", Schema: JSON(`{"properties":{"path":{}}}`)}}
	s := script(t, `[{"read":"a/b"}]`)
	if got := play(t, s, r); got != `function view {"path":"a/b"}` {
		t.Error(got)
	}
	r.System = "* Current working directory: /here\n* more"
	if got := play(t, s, r); got != `function view {"path":"/here/a/b"}` {
		t.Error(got)
	}
	if got := play(t, script(t, `[{"read":"/x"}]`), r); got != `function view {"path":"/x"}` {
		t.Error(got)
	}
}

func TestScriptsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		``:                                    `1:1: expected a value`,
		`{}`:                                  `1:1: the script has no member steps`,
		`3`:                                   `1:1: the script must be an array of steps, not number`,
		`{"steps":[],"toolles":true}`:         `1:13: script has no member "toolles"`,
		`[3]`:                                 `1:2: a step must be an object`,
		`[{}]`:                                `1:2: the step does nothing`,
		"[\n {\"sya\":\"x\"}]":                `2:3: a step has no member "sya"`,
		`[{"say":3}]`:                         `1:9: say must be a string, not number`,
		`[{"say":"a","shell":"b"}]`:           `1:13: a step does one thing, not both shell and say`,
		`[{"write":"a"}]`:                     `1:11: write must be an object with content and path, not string`,
		`[{"write":{"path":"a"}}]`:            `1:11: write has no member content`,
		`[{"write":{"path":1,"content":""}}]`: `1:19: path must be a string`,
		`[{"call":{"input":{}}}]`:             `1:10: call has no member name`,
		`[{"call":{"name":"a","input":3}}]`:   `1:30: input must be an object`,
		`[{"calls":[]}]`:                      `1:11: calls must be an array`,
		`[{"calls":[{"say":"x"}]}]`:           `1:12: calls holds only steps that call a tool`,
		`[{"calls":[{"shell":"x","cut":"start"}]}]`: `1:12: one of several calls cannot break`,
		`[{"error":200}]`:                    `1:11: error must be a status from 400 to 599`,
		`[{"error":"full"}]`:                 `1:11: error must be a status`,
		`[{"error":500,"cut":"start"}]`:      `1:15: only one of error, stall and cut`,
		`[{"cut":"end"}]`:                    `1:9: cut must be headers, start, middle`,
		`[{"cut":{"event":1}}]`:              `1:10: cut has no member "event"`,
		`[{"cut":{"events":-1}}]`:            `1:19: events must be a number from 0`,
		`[{"say":"x","times":2}]`:            `1:13: times needs error, stall or cut`,
		`[{"error":500,"times":0}]`:          `1:23: times must be a whole number from 1`,
		`[{"say":"x","retry_after":2}]`:      `1:13: retry_after needs error`,
		`[{"error":500,"retry_after":"x"}]`:  `1:29: retry_after must be a number of seconds`,
		`[{"say":"x","slow":50}]`:            `1:20: slow must be a duration`,
		`[{"say":"x","slow":{"last":"1s"}}]`: `1:21: slow has no member "last"`,
		`[{"say":"x","slow":{"byte":1}}]`:    `1:28: byte must be a duration`,
		`{"slow":1,"steps":[]}`:              `1:9: slow must be a duration`,
		`[{"read":"x","repeat":2}]`:          `1:14: repeat needs say or think`,
		`[{"say":"x","repeat":0}]`:           `1:22: repeat must be a whole number`,
		`[{"say":"x","usage":{"in":1}}]`:     `1:22: usage has no member "in"`,
		`[{"say":"x","usage":{"input":-1}}]`: `1:30: input must be a whole number from 0`,
		`[{"say":"x"`:                        `1:12: `,
	} {
		_, err := ParseScript([]byte(text))
		var f *fault.Fault
		if !errors.As(err, &f) || !strings.HasPrefix(f.Message, "script:"+want) || f.Suggestion == "" ||
			f.Code != fault.Invalid {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
	_, err := ParseScript([]byte(`[{"shel":"x"}]`))
	if f := fault.Of(err); f.Suggestion != "did you mean shell?" {
		t.Error(f.Suggestion)
	}
}

// The binary of the tests serves by hand.
func TestServingByHand(t *testing.T) {
	dir := t.TempDir()
	name, log := filepath.Join(dir, "script.json"), filepath.Join(dir, "log")
	if err := os.WriteFile(name, []byte(`[{"say":"by hand"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "OMNIAGENT_MODELSERVER_SCRIPT="+name, "OMNIAGENT_MODELSERVER_LOG="+log)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	path, text := body(Chat, false)
	if _, got, err := post(t, strings.TrimSpace(url)+path, text); err != nil ||
		!bytes.Contains(got, []byte("by hand")) {
		t.Errorf("%v %s", err, got)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(log); err != nil || bytes.Count(data, []byte("\n")) != 1 {
		t.Errorf("%v %s", err, data)
	}
}

// What an agent offers is known of each wire, also where the tools are kept back or called from a program.
func TestOffers(t *testing.T) {
	for file, want := range map[string]string{
		"claude-web": "shell write web search", "codex": "shell write", "codex-m": "shell search",
		"gemini": "shell write web search", "copilot": "shell write", "opencode": "shell write web",
	} {
		var last *Request
		for _, r := range recorded(t, file) {
			if len(r.Tools) > 0 && (last == nil || len(r.Tools) >= len(last.Tools)) {
				last = r
			}
		}
		got := []string{}
		for _, step := range []string{"shell", "write", "web", "search"} {
			if last.Offers(step) {
				got = append(got, step)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s offers %q, want %q", file, got, want)
		}
	}
}
