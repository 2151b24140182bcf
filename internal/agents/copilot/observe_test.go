package copilot

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// place makes a home and returns it with the path of the log of the session.
func place(t *testing.T, session string) (home, log string) {
	t.Helper()
	home = t.TempDir()
	log = filepath.Join(home, "session-state", session, "events.jsonl")
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		t.Fatal(err)
	}
	return home, log
}

func sample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "log", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func put(t *testing.T, path string, data ...[]byte) {
	t.Helper()
	if err := os.WriteFile(path, bytes.Join(data, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// after is what is known when the log grew from before to before and grown.
func after(t *testing.T, before, grown []byte, x agent.Exit) agent.Evidence {
	t.Helper()
	home, log := place(t, fresh)
	if before != nil {
		put(t, log, before)
	}
	l, _ := launch(t, wish(env("COPILOT_HOME="+home)))
	o := New().Observe(l)
	if grown != nil {
		put(t, log, before, grown)
	}
	e := o.After(x)
	for _, r := range e.Records {
		if r != log {
			t.Errorf("read %s", r)
		}
	}
	return e
}

func tools(denials []event.Denial) string {
	var list []string
	for _, d := range denials {
		list = append(list, d.Tool)
	}
	return strings.Join(list, " ")
}

func TestEvidence(t *testing.T) {
	for _, tt := range []struct {
		log      string
		answered agent.Tri
		denied   string
		code     fault.Code
		status   any
		usage    event.Usage
	}{
		{log: "hello", answered: agent.Yes, usage: event.Usage{Input: 100, Output: 20, Cached: 40}},
		{
			log: "denied", answered: agent.Yes, denied: "view create bash",
			usage: event.Usage{Input: 200, Output: 40, Cached: 80},
		},
		{log: "rules", answered: agent.Yes, denied: "bash", usage: event.Usage{Input: 200, Output: 40, Cached: 80}},
		{
			log: "sandbox", answered: agent.Yes, denied: "view create",
			usage: event.Usage{Input: 200, Output: 40, Cached: 80},
		},
		{log: "subagent", answered: agent.Yes, usage: event.Usage{Input: 300, Output: 60, Cached: 120}},
		{log: "recovered", answered: agent.Yes, usage: event.Usage{Input: 100, Output: 20, Cached: 40}},
		{log: "400", answered: agent.No, code: fault.APIError, status: 400},
		{log: "401", answered: agent.No, code: fault.AuthRequired, status: 401},
		{log: "403", answered: agent.No, code: fault.AuthRequired, status: 403},
		{log: "429", answered: agent.No, code: fault.TooManyRequests, status: 429},
		{log: "500", answered: agent.No, code: fault.APIError, status: 500},
		{log: "context", answered: agent.No, code: fault.ContextFull, status: 400},
		{log: "budget", answered: agent.No, code: fault.ContextFull},
	} {
		t.Run(tt.log, func(t *testing.T) {
			e := after(t, nil, sample(t, tt.log), agent.Exit{})
			if e.Session != fresh || e.Answered != tt.answered || !e.DenialsKnown || e.Model != "fake-model" ||
				len(e.Records) != 1 {
				t.Errorf("%+v", e)
			}
			if got := tools(e.Denials); got != tt.denied {
				t.Errorf("denied %q, want %q", got, tt.denied)
			}
			if (e.Usage == nil) != (tt.usage == event.Usage{}) || e.Usage != nil && *e.Usage != tt.usage {
				t.Errorf("usage %+v", e.Usage)
			}
			switch {
			case tt.code == "" && e.Fault != nil, tt.code != "" && (e.Fault == nil || !errors.Is(e.Fault, tt.code)):
				t.Errorf("fault %v, want %s", e.Fault, tt.code)
			case tt.status != nil && e.Fault.Detail["status"] != tt.status:
				t.Errorf("status %v", e.Fault.Detail)
			}
		})
	}
}

// What happened before this run is not told of it.
func TestEvidenceBegins(t *testing.T) {
	e := after(t, sample(t, "denied"), sample(t, "hello"), agent.Exit{})
	if len(e.Denials) != 0 || e.Usage.Input != 100 {
		t.Errorf("%+v", e)
	}
	e = after(t, sample(t, "401"), sample(t, "hello"), agent.Exit{})
	if e.Fault != nil {
		t.Errorf("%v", e.Fault)
	}
	if e = after(t, sample(t, "hello"), nil, agent.Exit{Code: 1}); e.Answered != agent.Unknown || e.DenialsKnown {
		t.Errorf("nothing was added: %+v", e)
	}
	if e = after(t, nil, nil, agent.Exit{}); e.Answered != agent.Unknown || e.DenialsKnown || e.Fault != nil {
		t.Errorf("no log: %+v", e)
	}
}

// The session is not known before, but the CLI names it. The log holds five runs; the last of them counts.
func TestEvidenceOfANamedSession(t *testing.T) {
	home, log := place(t, earlier)
	put(t, log, sample(t, "denied"), sample(t, "hello"))
	for _, tt := range []struct {
		stderr string
		want   string
	}{
		{"\n\nChanges    +0 -0\nResume     copilot --resume=" + earlier + "\n", earlier},
		{"\n\nChanges    +0 -0\n", ""},
		{"Resume     copilot --resume=../../etc\n", ""},
	} {
		l, _ := launch(t, wish(env("COPILOT_HOME="+home), pass("--continue")))
		e := New().Observe(l).After(agent.Exit{Stderr: []byte(tt.stderr)})
		if e.Session != tt.want || (tt.want != "") != (e.Answered == agent.Yes) || len(e.Denials) > 0 {
			t.Errorf("%q: %+v", tt.stderr, e)
		}
	}
	put(t, log, sample(t, "resumed"))
	l, _ := launch(t, wish(env("COPILOT_HOME="+home), pass("--continue")))
	if e := New().Observe(l).After(agent.Exit{Stderr: []byte("Resume copilot --resume=" + earlier)}); e.Usage == nil ||
		e.Usage.Input != 200 {
		t.Errorf("%+v", e)
	}
}

func TestEvidenceOfTheMainAgent(t *testing.T) {
	const (
		start  = `{"type":"session.start","data":{}}` + "\n"
		failed = `{"type":"session.error","data":{"errorType":"rate_limit","message":"m","statusCode":429}}` + "\n"
		answer = `{"type":"assistant.message","data":{"content":"hello","toolRequests":[]}}` + "\n"
		empty  = `{"type":"assistant.message","data":{"content":"","toolRequests":[]}}` + "\n"
	)
	below := func(line string) string { return strings.Replace(line, `"data"`, `"agentId":"x","data"`, 1) }
	for _, tt := range []struct {
		log      string
		answered agent.Tri
		failed   bool
	}{
		{start + failed, agent.No, true},
		{start + failed + answer, agent.Yes, false}, // overcome
		{start + answer + failed, agent.Yes, true},
		{start + failed + below(answer), agent.No, true},
		{start + answer + below(failed), agent.Yes, false},
		{start + below(answer), agent.No, false},
		{start + empty, agent.No, false},
	} {
		e := after(t, nil, []byte(tt.log), agent.Exit{})
		if e.Answered != tt.answered || (e.Fault != nil) != tt.failed {
			t.Errorf("%s%+v", tt.log, e)
		}
	}
}

// A torn line, one without an end, and lines of any length take nothing away from the others.
func TestEvidenceOfBrokenLogs(t *testing.T) {
	whole := sample(t, "denied")
	huge := []byte(`{"type":"user.message","data":{"content":"` + strings.Repeat("word ", 2<<20) + `"}}` + "\n")
	odd := []byte("\x00\xff\n{\"type\":\n\n[]\nnull\n" + `{"type":"tool.execution_complete","data":7}` + "\n")
	e := after(t, nil, bytes.Join([][]byte{huge, odd, whole, huge[:100]}, nil), agent.Exit{})
	if tools(e.Denials) != "view create bash" || e.Answered != agent.Yes {
		t.Errorf("%+v", e)
	}
	answer := []byte(`{"type":"assistant.message","data":{"content":"` + strings.Repeat("word ", 2<<20) +
		`","toolRequests":[]}}` + "\n")
	if e = after(t, nil, answer, agent.Exit{}); e.Answered != agent.Yes {
		t.Errorf("a long answer: %+v", e)
	}
	for cut := range whole {
		if cut%97 == 0 {
			after(t, nil, whole[:cut], agent.Exit{})
		}
	}
}

func TestAPersonsNoIsNoPolicy(t *testing.T) {
	const log = `{"type":"session.start","data":{}}
{"type":"tool.execution_start","data":{"toolCallId":"c","toolName":"bash"}}
{"type":"permission.completed","data":{"toolCallId":"c","result":{"kind":"denied-interactively-by-user"},"decisionSource":"human_response"}}
{"type":"tool.execution_complete","data":{"toolCallId":"c","success":false,"error":{"code":"denied","message":"no"}}}
`
	if e := after(t, nil, []byte(log), agent.Exit{}); len(e.Denials) != 0 {
		t.Errorf("%+v", e.Denials)
	}
	if e := after(t, nil, []byte(strings.Replace(log, "permission", "x", 1)),
		agent.Exit{}); tools(e.Denials) != "bash" {
		t.Errorf("without the person: %+v", e.Denials)
	}
}

// Where the CLI gives up at once, only standard error says why.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		stderr string
		code   fault.Code
	}{
		{"error: unexpected argument '--nonsense' found\n\nUsage: copilot [OPTIONS] [COMMAND]\n\nFor more " +
			"information, try '--help'.\n", fault.AgentUsage},
		{"error: Invalid command format.\n\nDid you mean: copilot -i \"x\"?\nTry 'copilot --help' for more " +
			"information.\n", fault.AgentUsage},
		{"Error: No authentication information found.\n\nCopilot can be authenticated\n", fault.AuthRequired},
		{"Error: Classic Personal Access Tokens (ghp_) are not supported by Copilot.\n", fault.AuthRequired},
		{"Error: Authentication token found but could not be validated.\n", fault.AuthRequired},
		{"\nError: No session, task, or name matched 'x'.\n", fault.NotFoundCode},
		{"the model said: Error: No authentication information found.\n", ""},
		{"", ""},
	} {
		e := after(t, nil, nil, agent.Exit{Code: 1, Stderr: []byte(tt.stderr)})
		if (tt.code == "") != (e.Fault == nil) || tt.code != "" && !errors.Is(e.Fault, tt.code) {
			t.Errorf("%q: %v", tt.stderr, e.Fault)
		}
		// A log outweighs it: there the CLI came as far as the model.
		if e := after(t, nil, sample(t, "hello"), agent.Exit{Code: 1, Stderr: []byte(tt.stderr)}); e.Fault != nil {
			t.Errorf("with a log: %v", e.Fault)
		}
	}
	if e := after(t, nil, nil, agent.Exit{
		Code: 1, EndedBy: "SIGINT", Stderr: []byte("Error: No authentication information found.\n"),
	}); e.Fault != nil {
		t.Errorf("ended by us: %v", e.Fault)
	}
}

func TestInteractiveRunsAreNotRead(t *testing.T) {
	home, log := place(t, earlier)
	l, _ := launch(t, wish(env("COPILOT_HOME="+home), interactive, resume(earlier)))
	o := New().Observe(l)
	put(t, log, sample(t, "denied"))
	if e := o.After(agent.Exit{}); len(e.Denials) != 0 || e.DenialsKnown {
		t.Errorf("%+v", e)
	}
}

func TestConfigHome(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec agent.Spec
		want string
	}{
		{"of the user", wish(env("USERPROFILE=/home/ann")), "/home/ann/.copilot"},
		{"of a variable", wish(env("COPILOT_HOME=/c")), "/c"},
		{"relative", wish(env("COPILOT_HOME=c")), "/ws/c"},
		{"of the passthrough", wish(env("COPILOT_HOME=/c"), pass("--config-dir=/d")), "/d"},
	} {
		l, _ := launch(t, tt.spec)
		if got := filepath.ToSlash(configHome(l)); got != tt.want {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
}

// TestLimitsOfALog: of a long line only the beginning is read, and very many denials are not all held.
func TestLimitsOfALog(t *testing.T) {
	for n, model := range map[int]string{0: "m", 4 << 20: ""} {
		line := `{"type":"session.start","data":{"selectedModel":"m","x":"` + strings.Repeat("x", n) + `"}}` + "\n"
		if e := after(t, nil, []byte(line), agent.Exit{}); e.Model != model {
			t.Errorf("%d bytes: model %q", n, e.Model)
		}
	}
	var s summary
	for range most + 1 {
		s.deny("", "no")
	}
	if len(s.denials) != most {
		t.Errorf("%d denials", len(s.denials))
	}
}
