package opencode

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/testkit/hermetic"
)

func TestMain(m *testing.M) {
	hermetic.Signals()
	flag.Bool("update", false, "write the golden files anew")
	flag.Parse()
	os.Exit(m.Run())
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func captures(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) != 5 {
		t.Fatalf("captures: %v, %v", files, err)
	}
	return files
}

func decode(x agent.Exit, chunks ...[]byte) []event.Event {
	d := New().Decode(setting.StreamJSON)
	var out []event.Event
	for _, c := range chunks {
		out = append(out, d.Feed(c)...)
	}
	return append(out, d.End(x)...)
}

// show writes events as text, without what they were read from.
func show(events []event.Event) string {
	var b strings.Builder
	for _, e := range events {
		e.Raw = nil
		f := e.Fault
		e.Fault = nil
		data, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			panic(err)
		}
		for name, v := range m {
			if v == nil || v == "" || v == false {
				delete(m, name)
			}
		}
		data, _ = json.Marshal(m)
		fmt.Fprintf(&b, "%s\n", data)
		if f != nil {
			fmt.Fprintf(&b, "  %s %s %v\n", f.Code, f.Message, f.Detail)
		}
	}
	return b.String()
}

// exitOf is how the run of that capture ended.
func exitOf(path string) agent.Exit {
	if strings.Contains(path, "err") {
		return agent.Exit{Code: 1}
	}
	return agent.Exit{}
}

func TestCaptures(t *testing.T) {
	for _, path := range captures(t) {
		got := show(decode(exitOf(path), contents(t, path)))
		wanted := strings.TrimSuffix(path, ".jsonl") + ".golden"
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.WriteFile(wanted, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want := string(contents(t, wanted)); got != want {
			t.Errorf("%s\n--- want\n%s--- got\n%s", path, want, got)
		}
	}
}

// bare is events without what they were read from, which a cut moves to another place.
func bare(events []event.Event) []event.Event {
	for i := range events {
		events[i].Raw = nil
	}
	return events
}

func TestCutAnywhere(t *testing.T) {
	for _, path := range captures(t) {
		data := contents(t, path)
		want := bare(decode(exitOf(path), data))
		for i := range data {
			if got := bare(decode(exitOf(path), data[:i:i], data[i:])); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s cut at %d:\n%s", path, i, show(got))
			}
		}
	}
}

func TestEnds(t *testing.T) {
	stopped := string(contents(t, "testdata/json.jsonl"))
	for _, c := range []struct {
		name, in string
		exit     agent.Exit
		ok       bool
		code     fault.Code // of Classify
	}{
		{"answered", stopped, agent.Exit{}, true, ""},
		{"answered, exit 1", stopped, agent.Exit{Code: 1}, false, fault.AgentFailed},
		{
			"ended by us", stopped,
			agent.Exit{Code: -1, Signal: "terminated", EndedBy: "SIGTERM"},
			false,
			fault.Interrupted,
		},
		{"nothing", "", agent.Exit{}, false, fault.NoAnswer},
		{"rejected", string(contents(t, "testdata/agentreject-json.jsonl")), agent.Exit{}, false, fault.Blocked},
		{"error", string(contents(t, "testdata/json-err401.jsonl")), agent.Exit{Code: 1}, false, fault.AuthRequired},
		{"shortened", string(contents(t, "testdata/err-context.jsonl")), agent.Exit{Code: 1}, false, fault.ContextFull},
		{"torn", stopped[:len(stopped)-40], agent.Exit{}, false, ""},
	} {
		events := decode(c.exit, []byte(c.in))
		last := events[len(events)-1]
		if last.Kind != event.Ended || !last.Synthetic || last.End.OK != c.ok {
			t.Errorf("%s: %s", c.name, show(events))
		}
		f := New().Classify(c.exit, events)
		if c.code == "" && f != nil || c.code != "" && (f == nil || f.Code != c.code) {
			t.Errorf("%s: %v", c.name, f)
		}
	}
}

func TestOddLines(t *testing.T) {
	for in, want := range map[string]event.Kind{
		"no json":                event.Notice,
		"[]":                     event.Notice,
		`{"type":7}`:             event.Notice,
		`{"type":"news"}`:        event.Notice,
		`{"type":"text"}`:        event.Text,
		`{"type":"error"}`:       event.Failed,
		`{"type":"tool_use"}`:    event.ToolCall,
		`{"type":"step_finish"}`: event.Notice,
		`{"type":"error","error":{"name":"APIError","data":{"statusCode":"odd","message":"m"}}}`: event.Failed,
		`{"type":"text","part":{"synthetic":true,"text":"go on"}}`:                               event.Notice,
	} {
		events := decode(agent.Exit{}, []byte(in+"\n"))
		if len(events) < 2 || events[0].Kind != want {
			t.Errorf("%s: %s", in, show(events))
		}
	}
	if New().Decode(setting.Text) != nil {
		t.Error("text is decoded")
	}
}

func TestFaults(t *testing.T) {
	for in, want := range map[string]fault.Code{
		`{"name":"APIError","data":{"statusCode":500,"message":"m"}}`:       fault.APIError,
		`{"name":"APIError","data":{"statusCode":403,"message":"m"}}`:       fault.APIError,
		`{"name":"APIError","data":{"statusCode":401,"message":"m"}}`:       fault.AuthRequired,
		`{"name":"ProviderAuthError","data":{"message":"m"}}`:               fault.AuthRequired,
		`{"name":"ProviderAuthError","data":{"message":"Token expired"}}`:   fault.CredentialsExpired,
		`{"name":"ContextOverflowError","data":{"message":"m"}}`:            fault.ContextFull,
		`{"name":"ProviderModelNotFoundError","data":{"message":"m"}}`:      fault.AgentRefused,
		`{"name":"UnknownError","data":{"message":"m","ref":"err_1"}}`:      fault.AgentFailed,
		`{"name":"APIError","data":{"statusCode":429,"responseHeaders":1}}`: fault.TooManyRequests,
	} {
		var p problem
		if text.Lenient([]byte(in), &p); p.fault().Code != want {
			t.Errorf("%s: %v", in, p.fault())
		}
	}
	var p problem
	text.Lenient([]byte(
		`{"name":"APIError","data":{"statusCode":429,"responseHeaders":{"retry-after":"1.5","retry-after-ms":"20"}}}`),
		&p)
	if f := p.fault(); f.RetryAfter.Milliseconds() != 20 || f.Detail["status"] != 429 {
		t.Errorf("%v %v", f.RetryAfter, f.Detail)
	}
}

func FuzzDecode(f *testing.F) {
	for _, path := range captures(f) {
		f.Add(contents(f, path), 7)
	}
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		if at < 0 || at > len(data) {
			at = 0
		}
		whole, cut := decode(agent.Exit{}, data), decode(agent.Exit{}, data[:at:at], data[at:])
		if !reflect.DeepEqual(bare(whole), bare(cut)) || whole[len(whole)-1].Kind != event.Ended {
			t.Errorf("%s\n%s", show(whole), show(cut))
		}
	})
}
