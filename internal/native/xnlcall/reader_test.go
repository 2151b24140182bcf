package xnlcall

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
)

// ours are the tools of a conversation.
func ours() []event.ToolSpec {
	return []event.ToolSpec{
		{Name: "SysBuiltIn.bash"},
		{Name: "SysBuiltIn.read_file"},
		{Name: "SysBuiltIn.write_file"},
		{Name: "SysBuiltIn.edit_text"},
		{Name: "SysBuiltIn.todo_write"},
		{Name: "Glob", Description: "Finds files.", Input: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"A pattern */ such as **/*.go"},"path":{"type":["string","null"]},` +
			`"kind":{"enum":["file","dir"]},"in":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"integer"}]}},` +
			`"o-k":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}},"required":["pattern","kind","o-k"]}`)},
		{
			Name: "mcp__my-server__do", Description: "Says </#> and \"more\".",
			Input: json.RawMessage(`{"type":"object"}`),
		},
		{Name: tool.RejectedName},
	}
}

// calls returns the calls of a reader.
func (r *reader) found() (calls []*writtenCall) {
	for _, s := range r.segments {
		if s.call != nil {
			calls = append(calls, s.call)
		}
	}
	return calls
}

// whole returns all that was read, as it was written.
func (r *reader) whole() string {
	var b strings.Builder
	for _, s := range r.segments {
		b.WriteString(s.text)
		if s.call != nil {
			b.WriteString(s.call.raw)
		}
	}
	return b.String()
}

// inPieces reads a text in pieces of a size, and returns what a person was shown.
func inPieces(text string, size int) (r *reader, shown string) {
	r = newReader(namesOf(ours()))
	var b strings.Builder
	for rest := text; rest != ""; {
		n := min(size, len(rest))
		b.WriteString(r.feed(rest[:n]))
		rest = rest[n:]
	}
	b.WriteString(r.end(model.Done))
	return r, b.String()
}

// TestVectors: the calls that seed 2's own implementation found, however the text comes. Where that was too lax, or
// gave up, the model gets an answer instead, and nothing runs.
func TestVectors(t *testing.T) {
	t.Parallel()
	var vectors struct {
		Calls []struct {
			ID, Text string
			Calls    []struct{ ID, Lang, Code, FuncID any }
			Error    *struct{ Message string }
		} `json:"toolcall_parse"`
		Responses []struct {
			Results []struct{ ID, Name, Output string }
			Output  *string
		} `json:"tool_resp"`
	}
	data, err := os.ReadFile("testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(data, &vectors)
	}
	if err != nil {
		t.Fatal(err)
	}
	hints := map[string]string{
		"missing-unquote-end": "!unquote_end is missing", "missing-text-close": "</#>", "no-id": "no id",
		"nonstring-id": "no id", "other-tag-also-accepted": "<anything>", "prose-in-block": "Expected '<'",
		"close-marker-inside-code": "Expected '<'", "data-element-ignored": "no text",
	}
	for _, c := range vectors.Calls {
		for _, size := range []int{1, 7, len(c.Text) + 1} {
			r, shown := inPieces(c.Text, size)
			found := r.found()
			if r.whole() != c.Text || strings.Contains(shown, "SysBuiltIn") != (c.ID == "quoted-block") {
				t.Errorf("%s: shown %q, whole %q", c.ID, shown, r.whole())
			}
			switch want := hints[c.ID]; {
			case c.ID == "quoted-block":
				if len(found) != 0 {
					t.Errorf("%s: %+v", c.ID, found[0])
				}
			case c.ID == "marker-in-string-breaks-block":
				if len(found) != 1 || found[0].problem != "" ||
					!strings.Contains(string(found[0].input), "!unquote_end") {
					t.Errorf("%s: %+v", c.ID, found[0])
				}
			case want != "":
				if len(found) != 1 || !strings.Contains(found[0].problem, want) {
					t.Errorf("%s: %+v", c.ID, found)
				}
			default:
				if len(found) != len(c.Calls) || c.Error != nil {
					t.Fatalf("%s: %d calls, want %d", c.ID, len(found), len(c.Calls))
				}
				for i, w := range c.Calls {
					if f := found[i]; f.id != w.ID || f.lang != w.Lang || f.code != w.Code || f.name != w.FuncID ||
						f.problem != "" {
						t.Errorf("%s: %+v, want %+v", c.ID, *f, w)
					}
				}
			}
		}
	}
	for _, c := range vectors.Responses {
		var blocks []model.Block
		for _, one := range c.Results {
			blocks = append(blocks, model.Block{Kind: model.Result, ID: one.ID, Name: one.Name, Text: one.Output})
		}
		if got := Results(blocks); c.Output != nil && got != *c.Output || c.Output == nil && got != "" {
			t.Errorf("%q", got)
		}
	}
}

const twoCalls = "Before.\n!unquote_start\n<tool_call id=\"a\" lang=\"javascript\" #>\nSysBuiltIn.bash({ command: " +
	"\"ls\" })\n</#>\n" +
	"<tool_call id=\"b\" lang=\"javascript\" #b>\nTools.Glob({ pattern: `*.go` })\n</#b>\n!unquote_end\nAfter.\n"

// TestQueuedWhileItStreams: a call is known as soon as its node is whole, before the block and the answer end.
func TestQueuedWhileItStreams(t *testing.T) {
	t.Parallel()
	r := newReader(namesOf(ours()))
	end := strings.Index(twoCalls, "</#>\n") + len("</#>\n")
	for _, c := range twoCalls[:end] {
		r.feed(string(c))
	}
	if len(r.calls) != 1 || r.calls[0].name != "SysBuiltIn.bash" || string(r.calls[0].input) != `{"command":"ls"}` ||
		len(r.found()) != 0 {
		t.Errorf("%+v, %+v", r.calls, r.found())
	}
	r.feed(twoCalls[end:])
	r.end(model.Done)
	if found := r.found(); len(found) != 2 || found[1].name != "Glob" || found[1].id != "b" {
		t.Errorf("%+v", found)
	}
}

// TestShown: what a person reads is all but the blocks, as soon as it cannot be the beginning of one.
func TestShown(t *testing.T) {
	t.Parallel()
	const call = "<tool_call id=\"a\" lang=\"javascript\" #>SysBuiltIn.bash({ command: \"ls\" })</#>\n"
	for text, want := range map[string]struct {
		shown string
		calls int
	}{
		twoCalls: {"Before.\nAfter.\n", 2},
		"Wow! Not !un, nor !unquote_started, nor `!unquote_start` or !unquote_start here.": {
			"Wow! Not !un, nor !unquote_started, nor `!unquote_start` or !unquote_start here.", 0,
		},
		"I look: !unquote_start\n" + call + "!unquote_end":                 {"I look: ", 1},
		"!unquote_start" + call + "  !unquote_end and on":                  {" and on", 1},
		"!unquote_start\r\n" + call + "!unquote_end\n":                     {"", 1},
		"Say !quote_start, and:\n!unquote_start\n" + call + "!unquote_end": {"Say !quote_start, and:\n", 1},
		"So: !quote_start\n!unquote_start\n" + call + "!unquote_end": {
			"So: !quote_start\n!unquote_start\n" + call + "!unquote_end", 0,
		},
		"!quote_start\n!unquote_start\n" + call + "!unquote_end\n!quote_end\n!unquote_start\n" + call +
			"!unquote_end": {
			"!quote_start\n!unquote_start\n" + call + "!unquote_end\n!quote_end\n", 1,
		},
		"!quote_start\n!unquote_start\n" + call + "!unquote_end\n": {
			"!quote_start\n!unquote_start\n" + call + "!unquote_end\n", 0,
		},
		call: {call, 0}, "!unquote_end\n": {"!unquote_end\n", 0}, "!unquote_star": {"!unquote_star", 0}, "!": {"!", 0},
		"é!unquote_start\n" + call + "!unquote_end\n": {"é", 1},
	} {
		for _, size := range []int{1, 2, 5, len(text)} {
			r, shown := inPieces(text, size)
			if shown != want.shown || len(r.found()) != want.calls || r.whole() != text {
				t.Errorf("%q in pieces of %d: %q and %d calls; whole %q", text, size, shown, len(r.found()), r.whole())
			}
		}
	}
	r := newReader(namesOf(ours()))
	if got := r.feed("Hello, world. !") + r.feed("unq") + r.feed("uote."); got != "Hello, world. !unquote." {
		t.Errorf("%q", got)
	}
}

// TestRejected: what cannot become a call is answered with the reason; a block that is damaged anywhere runs nothing.
func TestRejected(t *testing.T) {
	t.Parallel()
	node := func(id, code string) string {
		return `<tool_call id="` + id + `" lang="javascript" #>` + code + "</#>\n"
	}
	good := node("g", `SysBuiltIn.bash({ command: "ls" })`)
	for inside, want := range map[string][]string{
		node("a", `SysBuiltIn.nope({})`): {
			"SysBuiltIn.nope is not a function",
			"There are",
		},
		node("a",
			`SysBuiltin.read_file({})`): {"SysBuiltin is not defined; did you mean"},
		node("a", `Other.bash({})`):               {"Other is not defined"},
		node("a", `SysBuiltIn.bash("ls")`):        {"Empty command rejected", resend},
		node("a", `SysBuiltIn.read_file(["x"])`):  {"takes one object"},
		node("a", `SysBuiltIn.bash({ command: `):  {"found end of input", resend},
		node("a", `1+1`):                          {"expected a call", resend},
		node("a", `({a:1})`):                      {"expected", resend},
		`<tool_call id="a" lang="python" #>x</#>`: {"Unsupported lang python"},
		`<tool_call id="a" #>x</#>`:               {`no lang="javascript"`},
		`<tool_call id="a" lang="javascript">`:    {"no text"},
		good + "<)tool_call>\n": {
			"Expected node name",
			"nothing of the block was run",
		},
		good + `<tool_call id="b" lang="javascript" #m>x</#n>`: {
			"Mismatched text marker",
			"nothing of the block",
		},
		good + `<tool_call id="r" lang="javascript #>` + "\nx({ y: \"z\" })": {"Expected '='", "nothing of the block"},
		"": {"has no call"},
	} {
		r, _ := inPieces("!unquote_start\n"+inside+"\n!unquote_end\n", 3)
		found := r.found()
		if len(found) != 1 {
			t.Errorf("%s: %d calls", inside, len(found))
			continue
		}
		b := found[0].block()
		for _, part := range want {
			if !strings.Contains(found[0].problem, part) || b.Name != tool.RejectedName {
				t.Errorf("%s: %+v, want %q", inside, found[0], part)
			}
		}
	}
	r, shown := inPieces("Go.\n!unquote_start\n"+good, 4)
	if found := r.found(); shown != "Go.\n" || len(found) != 1 ||
		!strings.Contains(found[0].problem, "!unquote_end is missing") {
		t.Errorf("%q, %+v", shown, found)
	}
	r = newReader(namesOf(ours()))
	r.feed("!unquote_start\n" + good)
	if r.end(model.Length); !strings.Contains(r.found()[0].problem, "cut off") {
		t.Errorf("%+v", r.found()[0])
	}
}

// TestSameID: the later call takes the place of the earlier one.
func TestSameID(t *testing.T) {
	t.Parallel()
	node := func(id, command string) string {
		return `<tool_call id="` + id + `" lang="javascript" #>SysBuiltIn.bash({ command: "` + command + `" })</#>` +
			"\n"
	}
	text := "!unquote_start\n" + node("a", "1") + node("b", "2") + node("a", "3") + "!unquote_end\n"
	r, _ := inPieces(text, 5)
	var got []string
	for _, c := range r.found() {
		got = append(got, c.id+string(c.input))
	}
	if want := []string{`a{"command":"3"}`, `b{"command":"2"}`}; !slices.Equal(got, want) || r.whole() != text {
		t.Errorf("%v; %q", got, r.whole())
	}
	text += "x\n!unquote_start\n" + node("b", "4") + "!unquote_end\n"
	r, _ = inPieces(text, 5)
	if found := r.found(); len(found) != 3 || found[2].problem == "" || string(found[1].input) != `{"command":"4"}` ||
		r.whole() != text {
		t.Errorf("%+v; %q", found, r.whole())
	}
}

func FuzzReader(f *testing.F) {
	f.Add(twoCalls, 3)
	f.Add("!quote_start\n"+twoCalls+"!quote_end\n!unquote_start", 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		whole, shown := inPieces(text, len(text)+1)
		pieces, told := inPieces(text, max(1, size%17))
		if whole.whole() != text || pieces.whole() != text || shown != told ||
			!reflect.DeepEqual(whole.segments, pieces.segments) {
			t.Errorf("%q: %q and %q", text, shown, told)
		}
	})
}
