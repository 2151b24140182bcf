package claude

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/testkit/hermetic"
)

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

func TestMain(m *testing.M) {
	hermetic.Signals()
	flag.Bool("update", false, "write the golden files anew")
	flag.Parse()
	os.Exit(m.Run())
}

func captures(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/output/*.jsonl")
	if err != nil || len(files) < 20 {
		t.Fatalf("captures: %v, %v", files, err)
	}
	return files
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if updating() {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := string(contents(t, path)); got != want {
		t.Errorf("%s\n--- want\n%s--- got\n%s", path, want, got)
	}
}

// decode feeds the chunks and ends well.
func decode(chunks ...[]byte) []event.Event {
	d := New().Decode(setting.StreamJSON)
	var out []event.Event
	for _, c := range chunks {
		for _, e := range d.Feed(c) {
			e.Raw = append(json.RawMessage(nil), e.Raw...)
			out = append(out, e)
		}
	}
	return append(out, d.End(agent.Exit{})...)
}

// story is a line for each event.
func story(events []event.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s%s", e.Kind, details(e))
		b.WriteByte('\n')
	}
	return b.String()
}

func details(e event.Event) string {
	var s []string
	add := func(name string, v any) {
		if text := fmt.Sprint(v); text != "" && text != "0" && text != "false" {
			s = append(s, fmt.Sprintf("%s=%q", name, text))
		}
	}
	add("session", short(e.Session))
	add("model", e.Model)
	add("text", short(e.Text))
	add("delta", e.Delta)
	add("synthetic", e.Synthetic)
	add("terminal", e.Terminal)
	switch {
	case e.Call != nil:
		add("call", fmt.Sprintf("%s %s %s %s%s %s", e.Call.ID, e.Call.Name, e.Call.Kind, e.Call.Command, e.Call.Path,
			short(string(e.Call.Input))))
	case e.Result != nil:
		add("result", fmt.Sprintf("%s %s failed=%t", e.Result.ID, e.Result.Name, e.Result.Failed))
		add("output", short(e.Result.Output))
		if e.Result.ExitCode != nil {
			add("exit", *e.Result.ExitCode)
		}
	case e.Denial != nil:
		add("denial", *e.Denial)
	case e.Ask != nil:
		add("ask", fmt.Sprintf("%s %s", e.Ask.Text, e.Ask.Tool.Command))
	case e.Retry != nil:
		add("retry", *e.Retry)
	case e.Fault != nil:
		add("fault", e.Fault.Code)
		add("message", e.Fault.Message)
		add("detail", fmt.Sprint(e.Fault.Detail))
	case e.End != nil:
		add("ok", e.End.OK)
		add("answer", short(e.End.Text))
		add("structured", string(e.End.Structured))
		add("reason", e.End.Reason)
		if u := e.End.Usage; u != nil {
			add("usage", fmt.Sprintf("%d %d %d %d", u.Input, u.Output, u.Cached, u.Reasoning))
			if u.CostUSD != nil {
				add("usd", fmt.Sprintf("%.6f", *u.CostUSD))
			}
		}
		if e.End.Turns != nil {
			add("turns", *e.End.Turns)
		}
	}
	if s == nil {
		return ""
	}
	return " " + strings.Join(s, " ")
}

func short(s string) string {
	if len(s) > 120 {
		return strings.ToValidUTF8(s[:120], "") + "…"
	}
	return s
}

func TestCapturesGiveTheseEvents(t *testing.T) {
	for _, path := range captures(t) {
		golden(t, strings.TrimSuffix(path, ".jsonl")+".golden", story(decode(contents(t, path))))
	}
}

// Single bytes are cuts at every place at once; the small captures are cut at each place by itself, too.
func TestCutAnywhereGivesTheSameEvents(t *testing.T) {
	for _, path := range captures(t) {
		data := contents(t, path)
		want := story(decode(data))
		var bytes [][]byte
		for i := range data {
			bytes = append(bytes, data[i:i+1])
		}
		if got := story(decode(bytes...)); got != want {
			t.Errorf("%s byte by byte\n--- want\n%s--- got\n%s", path, want, got)
		}
		for at := 1; at < len(data) && len(data) < 2500; at++ {
			// The decoder must not keep what it was given.
			first := append([]byte(nil), data[:at]...)
			d := New().Decode(setting.JSON)
			events := d.Feed(first)
			clear(first)
			events = append(events, d.Feed(data[at:])...)
			if got := story(append(events, d.End(agent.Exit{})...)); got != want {
				t.Fatalf("%s cut at %d\n--- want\n%s--- got\n%s", path, at, want, got)
			}
		}
	}
}

func TestWhatTheCapturesProve(t *testing.T) {
	for name, want := range map[string]struct {
		code    fault.Code // "" is success
		denials string
		status  any
	}{
		"json":                {},
		"run-json-denied":     {code: fault.Blocked, denials: "Bash"},
		"streamjson-tools":    {code: fault.Blocked, denials: "Bash"},
		"sub-agent":           {code: fault.Blocked, denials: "Bash"},
		"denied-by-rule":      {code: fault.Blocked, denials: "Bash Read"},
		"json-err401":         {code: fault.AuthRequired, status: 401},
		"stream-401":          {code: fault.AuthRequired, status: 401},
		"maxretry0-429":       {code: fault.TooManyRequests, status: 429},
		"retry-429":           {code: fault.TooManyRequests, status: 429},
		"context-full":        {code: fault.ContextFull, status: 400},
		"json-full":           {code: fault.ContextFull, status: 400},
		"schema":              {},
		"schema-unmet":        {code: fault.SchemaUnmet},
		"background":          {},
		"background-json":     {},
		"json-verbose":        {},
		"interrupted-tool":    {code: fault.Interrupted},
		"interrupted-waiting": {code: fault.NoAnswer},
		"streamjson-err500":   {code: fault.NoAnswer}, // cut off while it retried
	} {
		events := decode(contents(t, "testdata/output/"+name+".jsonl"))
		e := cli.EvidenceOf(events)
		var tools []string
		for _, d := range e.Denials {
			tools = append(tools, d.Tool)
		}
		if got := strings.Join(tools, " "); got != want.denials {
			t.Errorf("%s: denials %q, not %q", name, got, want.denials)
		}
		f := New().Classify(agent.Exit{}, events)
		switch {
		case f == nil && want.code == "":
		case f == nil || f.Code != want.code || f.Detail["status"] != want.status:
			t.Errorf("%s: %+v, not %s %v", name, f, want.code, want.status)
		}
	}
}

func TestWithoutAResultItIsNoSuccess(t *testing.T) {
	data := contents(t, "testdata/output/streamjson-verbose.jsonl")
	cut := data[:strings.LastIndex(strings.TrimSpace(string(data)), "\n")+1]
	events := decode(cut)
	if f := New().Classify(agent.Exit{}, events); f == nil || f.Code != fault.AgentFailed {
		t.Errorf("exit 0 without a result: %v", f)
	}
	if f := New().Classify(agent.Exit{EndedBy: "SIGINT"}, events); f == nil || f.Code != fault.Interrupted {
		t.Errorf("ended by us: %v", f)
	}
	if f := New().Classify(agent.Exit{}, nil); f == nil || f.Code != fault.NoAnswer {
		t.Errorf("nothing at all: %v", f)
	}
}

// An error that was shown as a message counts, even where the result is missing.
func TestErrorWithoutAResult(t *testing.T) {
	data := contents(t, "testdata/output/stream-401.jsonl")
	cut := data[:strings.LastIndex(strings.TrimSpace(string(data)), "\n")+1]
	got := cli.EvidenceOf(decode(cut))
	if got.Fault == nil || got.Fault.Code != fault.AuthRequired || got.Answered != agent.No {
		t.Errorf("%+v", got)
	}
}

// A run does not fail because a sub-agent failed.
func TestErrorOfASubAgent(t *testing.T) {
	events := decode(
		[]byte(`{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"text","text":"API Error"}]},` +
			`"is_api_error_message":true,"error":"server_error","api_error_status":500}` + "\n" +
			`{"type":"result","subtype":"success","is_error":false,"result":"well"}` + "\n"))
	if events[0].Kind != event.Failed || events[0].Terminal || New().Classify(agent.Exit{}, events) != nil {
		t.Errorf("%s", story(events))
	}
	cut := decode(
		[]byte(`{"type":"assistant","parent_tool_use_id":"t","message":{"content":[]},"is_api_error_message":true}` +
			"\n"))
	if e := cli.EvidenceOf(cut); e.Fault != nil {
		t.Errorf("%s", story(cut))
	}
}

func TestTextIsNoProtocol(t *testing.T) {
	if d := New().Decode(setting.Text); d != nil {
		t.Errorf("%v", d)
	}
}

func FuzzDecode(f *testing.F) {
	for _, path := range captures(f) {
		data := contents(f, path)
		f.Add(data[:min(len(data), 4000)], 100)
	}
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"tool_result","content":[1,{"type":"text"}]}]}}`), 3)
	f.Add([]byte(`[{"type":"result","is_error":true},[],3]`), 1)
	f.Add([]byte(`{"type":"result","usage":null,"modelUsage":{"a":1},"permission_denials":[{}]}`), 1)
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		whole := decode(data)
		ends := 0
		for _, e := range whole {
			if e.Kind == event.Ended {
				ends++
			}
		}
		if ends == 0 {
			t.Error("no end")
		}
		cli.EvidenceOf(whole)
		if at < 0 || at > len(data) {
			return
		}
		if got, want := story(decode(data[:at], data[at:])), story(whole); got != want {
			t.Errorf("cut at %d:\n%s\nwhole:\n%s", at, got, want)
		}
	})
}

func TestToolKinds(t *testing.T) {
	kinds := map[event.ToolKind][]string{}
	for _, name := range []string{
		"Bash", "Read", "Write", "Edit", "NotebookEdit", "WebFetch", "WebSearch", "Grep",
		"Glob", "Agent", "Task", "mcp__s__t", "Skill",
	} {
		kinds[kind(name)] = append(kinds[kind(name)], name)
	}
	var lines []string
	for k, names := range kinds {
		lines = append(lines, string(k)+": "+strings.Join(names, " "))
	}
	sort.Strings(lines)
	want := "agent: Agent Task\nmcp: mcp__s__t\nother: Skill\nread: Read\nsearch: Grep Glob\nshell: Bash\nweb: " +
		"WebFetch WebSearch\nwrite: Write Edit NotebookEdit"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("%s", got)
	}
}

// TestCostOfATurn: of a session that goes on in another process a result tells what it cost in all.
func TestCostOfATurn(t *testing.T) {
	const usage = `"type":"result","subtype":"success","is_error":false,"result":"x","session_id":"s","usage":{"input_tokens":1,"output_tokens":1}`
	events := decode([]byte(`{` + usage +
		`,"total_cost_usd":0.5,"model_usage_since_last_result":{"a":{"costUSD":0.125},"b":{"costUSD":0.125}}}` + "\n" +
		`{` + usage + `,"total_cost_usd":0.625}` + "\n"))
	var costs []float64
	for _, e := range events {
		if e.Kind == event.Ended {
			costs = append(costs, *e.End.Usage.CostUSD)
		}
	}
	if fmt.Sprint(costs) != "[0.25 0.125]" {
		t.Error(costs)
	}
}
