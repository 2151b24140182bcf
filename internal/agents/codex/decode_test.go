package codex

import (
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
		if e.Retry != nil {
			fmt.Fprintf(&b, " %+v", *e.Retry)
		}
		if e.Fault != nil {
			fmt.Fprintf(&b, " %s %q %v", e.Fault.Code, e.Fault.Message, e.Fault.Detail)
		}
		if e.End != nil {
			fmt.Fprintf(&b, " ok=%v text=%q reason=%q", e.End.OK, e.End.Text, e.End.Reason)
			if e.End.Usage != nil {
				fmt.Fprintf(&b, " usage=%+v", *e.End.Usage)
			}
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
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant\n%s", path, got, want)
	}
}

func captured(t testing.TB) []string {
	files, err := filepath.Glob("testdata/output/*.jsonl")
	if err != nil || len(files) < 6 {
		t.Fatal("testdata is missing", err, files)
	}
	return files
}

func TestDecode(t *testing.T) {
	for _, file := range captured(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		whole := decode(data)
		golden(t, strings.TrimSuffix(file, ".jsonl")+".golden", whole)
		for i := range data {
			if cut := decode(append([]byte{}, data[:i]...), append([]byte{}, data[i:]...)); cut != whole {
				t.Fatalf("%s cut at byte %d:\n%s\nwant\n%s", file, i, cut, whole)
			}
		}
	}
}

func TestDecodeText(t *testing.T) {
	if New().Decode(setting.Text) != nil {
		t.Error("text has a decoder")
	}
	if New().Decode(setting.JSON) == nil {
		t.Error("json has none, but it is JSON lines")
	}
}

func TestDecodeTorn(t *testing.T) {
	got := decode([]byte(`{"type":"thread.started","thread_id":"x"}` + "\n[1,2]\n\nnoise\n" +
		`{"type":"item.completed","item":3}` + "\n" + `{"type":"turn.com`))
	want := `started session="x"
notice text="a line that cannot be read"
notice text="a line that cannot be read"
notice text="a line that cannot be read"
notice text="a line that cannot be read"
end delta=false synthetic=true terminal=false ok=false text="" reason="error_during_execution"
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A run does not fail because of an error that did not end the turn.
func TestClassifyOvercome(t *testing.T) {
	d := New().Decode(setting.StreamJSON)
	events := d.Feed([]byte(`{"type":"error","message":"unexpected status 500 Internal Server Error: x"}
{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"a"}}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}
`))
	if f := New().Classify(agent.Exit{}, events); f != nil {
		t.Error(f)
	}
}

func FuzzDecode(f *testing.F) {
	for _, file := range captured(f) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, len(data)/2)
	}
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		at = min(max(at, 0), len(data))
		whole := decode(append([]byte{}, data...))
		if cut := decode(append([]byte{}, data[:at]...), append([]byte{}, data[at:]...)); cut != whole {
			t.Errorf("cut at %d:\n%s\nwant\n%s", at, cut, whole)
		}
	})
}
