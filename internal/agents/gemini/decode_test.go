package gemini

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

var update = flag.Bool("update", false, "write the golden files")

// show writes events as text, one a line, with everything in them but Raw.
func show(events []event.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s", e.Kind)
		field := func(name string, value any) {
			if s := fmt.Sprintf("%q", fmt.Sprint(value)); s != `""` {
				fmt.Fprintf(&b, " %s=%s", name, s)
			}
		}
		field("session", e.Session)
		field("model", e.Model)
		field("text", e.Text)
		if e.Delta {
			b.WriteString(" delta")
		}
		if c := e.Call; c != nil {
			field("id", c.ID)
			field("name", c.Name)
			field("kind", c.Kind)
			field("input", string(c.Input))
			field("command", c.Command)
			field("path", c.Path)
		}
		if r := e.Result; r != nil {
			field("id", r.ID)
			field("name", r.Name)
			field("output", r.Output)
			fmt.Fprintf(&b, " failed=%v", r.Failed)
		}
		if d := e.Denial; d != nil {
			field("id", d.CallID)
			field("tool", d.Tool)
			field("reason", d.Reason)
		}
		if f := e.Fault; f != nil {
			fmt.Fprintf(&b, " fault=%s %q %v terminal=%v", f.Code, f.Message, f.Detail, e.Terminal)
		}
		if end := e.End; end != nil {
			fmt.Fprintf(&b, " ok=%v reason=%q text=%q synthetic=%v", end.OK, end.Reason, end.Text, e.Synthetic)
			if end.Usage != nil {
				fmt.Fprintf(&b, " usage=%+v", *end.Usage)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func form(name string) setting.Output {
	if strings.HasSuffix(name, ".jsonl") {
		return setting.StreamJSON
	}
	return setting.JSON
}

func decode(f setting.Output, x agent.Exit, parts ...[]byte) []event.Event {
	d := New().Decode(f)
	var out []event.Event
	for _, p := range parts {
		for _, e := range d.Feed(slices.Clone(p)) {
			e.Raw = nil // valid until the next Feed only
			out = append(out, e)
		}
	}
	return append(out, d.End(x)...)
}

// printed lists the outputs of real runs.
func printed(t testing.TB) []string {
	t.Helper()
	lines, _ := filepath.Glob("testdata/stream*.jsonl")
	objects, _ := filepath.Glob("testdata/json*.json")
	all := slices.Concat(lines, objects)
	if len(all) < 10 {
		t.Fatalf("only %q", all)
	}
	for i := range all {
		all[i] = filepath.Base(all[i])
	}
	return all
}

func TestGolden(t *testing.T) {
	for _, name := range printed(t) {
		data := read(t, name)
		got := show(decode(form(name), agent.Exit{}, data))
		golden(t, name, got)
		for i := range data {
			if cut := show(decode(form(name), agent.Exit{}, data[:i], data[i:])); cut != got {
				t.Fatalf("%s cut at %d:\n%s", name, i, cut)
			}
		}
	}
	for _, name := range []string{"json-401", "json-429"} { // there the object is at the end of standard error
		golden(t, name+".stderr",
			show(decode(setting.JSON, agent.Exit{Code: 145, Stderr: read(t, name+".stderr.txt")})))
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".events.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || got != string(want) {
		t.Errorf("%s:\n%s\nwant (%v):\n%s", name, got, err, want)
	}
}

func TestTorn(t *testing.T) {
	for _, c := range []struct{ form, in, want string }{
		{"stream-json", "", `end ok=false reason="error_during_execution" text="" synthetic=true` + "\n"},
		{"stream-json", "nonsense\n", `notice text="a line that cannot be read"` + "\n" +
			`end ok=false reason="error_during_execution" text="" synthetic=true` + "\n"},
		{"stream-json", `{"type":"result","status":"success"}`, `end ok=true reason="success" text="" synthetic=false` +
			"\n"},
		{
			"stream-json", `{"type":"new"}` + "\n" + `{"type":"result","status":"success"}`,
			"notice\n" + `end ok=true reason="success" text="" synthetic=false` + "\n",
		},
		{"stream-json", `{"type":5}`, `notice text="a line that cannot be read"` + "\n" +
			`end ok=false reason="error_during_execution" text="" synthetic=true` + "\n"},
		{"json", "", `end ok=false reason="error_during_execution" text="" synthetic=true` + "\n"},
		{"json", `{"session_id": "x", "resp`, `notice text="a line that cannot be read"` + "\n" +
			`end ok=false reason="error_during_execution" text="" synthetic=true` + "\n"},
		{"json", `[]`, `notice text="a line that cannot be read"` + "\n" +
			`end ok=false reason="error_during_execution" text="" synthetic=true` + "\n"},
	} {
		if got := show(decode(setting.Output(c.form), agent.Exit{}, []byte(c.in))); got != c.want {
			t.Errorf("%s %q:\n%swant\n%s", c.form, c.in, got, c.want)
		}
	}
	if New().Decode(setting.Text) != nil {
		t.Error("plain text got a decoder")
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range printed(f) {
		f.Add(read(f, name), form(name) == setting.JSON, 7)
	}
	f.Fuzz(func(t *testing.T, data []byte, object bool, at int) {
		as := setting.StreamJSON
		if object {
			as = setting.JSON
		}
		at = max(0, min(at, len(data)))
		whole, cut := decode(as, agent.Exit{}, data), decode(as, agent.Exit{}, data[:at], data[at:])
		if show(whole) != show(cut) {
			t.Fatalf("cut at %d:\n%swhole:\n%s", at, show(cut), show(whole))
		}
		n := 0
		for _, e := range whole {
			if e.Kind == event.Ended {
				n++
			}
		}
		if n == 0 || object && n > 1 {
			t.Fatalf("%d ends", n)
		}
	})
}

// TestClassify judges real runs by their output, exit code and standard error.
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		output, stderr string
		code           int
		want           fault.Code // empty: it succeeded
	}{
		{"stream.jsonl", "", 0, ""},
		{"stream-tools.jsonl", "", 0, ""},
		{"json-tools.json", "", 0, ""},
		{"stream-withheld.jsonl", "", 0, fault.Blocked},
		{"stream-policy.jsonl", "", 0, fault.Blocked},
		{"stream-empty.jsonl", "", 0, fault.APIError},
		{"stream-cut.jsonl", "", 0, fault.APIError},
		{"json-empty.json", "", 0, fault.APIError},
		{"stream-err401.jsonl", "", 145, fault.AuthRequired},
		{"stream-429.jsonl", "", 173, fault.TooManyRequests},
		{"", "json-401.stderr.txt", 145, fault.AuthRequired},
		{"", "json-429.stderr.txt", 173, fault.TooManyRequests},
		{"", "", 244, fault.APIError},
		{"", "", 0, fault.NoAnswer},
		{"", "", exitAuth, fault.AuthRequired},
		{"", "", exitInput, fault.AgentUsage},
		{"", "", exitTurns, fault.AgentFailed},
		{"", "", exitUntrusted, fault.AgentRefused},
		{"", "", 143, fault.AgentFailed},
		{"", "", 1, fault.AgentFailed},
	} {
		var out []byte
		as := setting.JSON
		if c.output != "" {
			out, as = read(t, c.output), form(c.output)
		}
		x := agent.Exit{Code: c.code}
		if c.stderr != "" {
			x.Stderr = read(t, c.stderr)
		}
		var got fault.Code
		if f := New().Classify(x, decode(as, x, bytes.Clone(out))); f != nil {
			got = f.Code
		}
		if got != c.want {
			t.Errorf("%s %s %d: %q, want %q", c.output, c.stderr, c.code, got, c.want)
		}
	}
}
