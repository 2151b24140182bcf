package copilot

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
)

var update = flag.Bool("update", false, "write the golden files")

// show writes events as lines, with all that a reader of them could use.
func show(events []event.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s", e.Kind)
		for _, p := range []struct{ name, value string }{{"session", e.Session}, {"model", e.Model}, {"text", e.Text}} {
			if p.value != "" {
				fmt.Fprintf(&b, " %s=%q", p.name, p.value)
			}
		}
		if e.Delta || e.Synthetic || e.Terminal {
			fmt.Fprintf(&b, " delta=%v synthetic=%v terminal=%v", e.Delta, e.Synthetic, e.Terminal)
		}
		if e.Call != nil {
			fmt.Fprintf(&b, " id=%s %s %q command=%q path=%q input=%s", e.Call.ID, e.Call.Kind, e.Call.Name,
				e.Call.Command, e.Call.Path, e.Call.Input)
		}
		if e.Result != nil {
			fmt.Fprintf(&b, " id=%s %q failed=%v output=%q", e.Result.ID, e.Result.Name, e.Result.Failed,
				e.Result.Output)
			if e.Result.ExitCode != nil {
				fmt.Fprintf(&b, " exit=%d", *e.Result.ExitCode)
			}
		}
		if e.Denial != nil {
			fmt.Fprintf(&b, " %+v", *e.Denial)
		}
		if e.Ask != nil {
			ask, _ := json.Marshal(e.Ask)
			fmt.Fprintf(&b, " %s", ask)
		}
		if e.Retry != nil {
			fmt.Fprintf(&b, " %+v", *e.Retry)
		}
		if e.Fault != nil {
			fmt.Fprintf(&b, " %s %q %v", e.Fault.Code, e.Fault.Message, e.Fault.Detail)
		}
		if e.End != nil {
			fmt.Fprintf(&b, " ok=%v text=%q reason=%q", e.End.OK, e.End.Text, e.End.Reason)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func decode(parts ...[]byte) string {
	d := New().Decode(setting.StreamJSON)
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(show(d.Feed(p)))
	}
	return b.String() + show(d.End(agent.Exit{}))
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs:\n%s", path, got)
	}
}

func captures(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/json/*.jsonl")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	return files
}

func TestDecode(t *testing.T) {
	seen := map[string]bool{} // long lines of a kind that is only named
	for _, file := range captures(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := decode(data)
			golden(t, strings.TrimSuffix(file, "jsonl")+"golden", want)
			// Each line by itself, for the sake of time: what lies before a line and behind it knows no cut.
			for line := range bytes.Lines(data) {
				if r, _ := parse(line); len(line) > 1000 && strings.HasPrefix(decode(line), "notice") {
					if seen[r.Type] {
						continue
					}
					seen[r.Type] = true
				}
				want := decode(line)
				for cut := range line {
					if got := decode(line[:cut], line[cut:]); got != want {
						t.Fatalf("%s\ncut at %d:\n%s", line, cut, got)
					}
				}
			}
			var single [][]byte
			for i := range data {
				single = append(single, data[i:i+1])
			}
			if got := decode(single...); got != want {
				t.Errorf("byte for byte:\n%s", got)
			}
		})
	}
}

func TestDecodeOddLines(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{``, "end"},
		{`null`, "notice"},
		{`[1]`, "notice"},
		{`{"type":1}`, "notice"},
		{`{"type":""}`, "notice"},
		{`{"type":"new.kind"}`, `notice text="new.kind"`},
		{`{"type":"session.info","data":{"message":"hello"}}`, `notice text="hello"`},
		{`{"type":"tool.execution_complete","data":null}`, "tool_result"},
		{`{"type":"tool.execution_complete","data":[]}`, "tool_result"},
		{
			`{"type":"session.error"}`,
			`failed delta=false synthetic=false terminal=true API_ERROR "the model did not answer: an error without a message" map[]`,
		},
		{`{"type":"result"}`, `end ok=false text="" reason=""`},
		{`{"type":"result","exitCode":0}`, `end ok=true`},
		{
			`{"type":"user_input.requested","data":{"requestId":"r","question":"which?","choices":["a","b"]}}`,
			`question {"id":"r","text":"which?","options":["a","b"]}`,
		},
		{
			`{"type":"assistant.message","agentId":"x","data":{"content":"of a sub-agent"}}`,
			`notice text="assistant.message"`,
		},
	} {
		if got := decode([]byte(tt.line)); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s:\n got %swant %s", tt.line, got, tt.want)
		}
	}
	if New().Decode(setting.Text) != nil {
		t.Error("plain text got a decoder")
	}
	if New().Decode(setting.JSON) == nil {
		t.Error("json has the lines of stream-json")
	}
}

func FuzzDecode(f *testing.F) {
	for _, file := range captures(f) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, 7)
	}
	f.Add([]byte(`{"type":"tool.execution_start","data":{"arguments":"x"}}`+"\n"+`{"type":"result","exitCode":1}`), 3)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		cut = min(max(cut, 0), len(data))
		if whole, parts := decode(data), decode(data[:cut], data[cut:]); whole != parts {
			t.Errorf("cut at %d:\n%s\nwhole:\n%s", cut, parts, whole)
		}
	})
}

// TestAborted: a turn that a signal ended has failed, although the CLI's exit code is 0.
func TestAborted(t *testing.T) {
	const said = `{"type":"abort","data":{"reason":"user_initiated"}}` + "\n" +
		`{"type":"result","sessionId":"s","exitCode":0}` + "\n"
	events := New().Decode(setting.StreamJSON).Feed([]byte(said))
	end := events[len(events)-1].End
	if end == nil || end.OK || end.Reason != event.Cancelled || end.AgentReason != "exit code 0" {
		t.Errorf("%+v", events)
	}
}
