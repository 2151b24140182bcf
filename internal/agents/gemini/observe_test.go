package gemini

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/setting"
)

// run is a launch whose home has the given transcripts of real runs after it.
func run(t *testing.T, id string, before, after map[string][]byte, x agent.Exit,
	change ...func(*agent.Spec),
) agent.Evidence {
	t.Helper()
	s := spec(t, append(change, func(s *agent.Spec) { s.Fresh = id })...)
	l, _, err := New().Command(s)
	if err != nil {
		t.Fatal(err)
	}
	chats := configPath(s.Env, "tmp", "ws", "chats")
	put := func(files map[string][]byte) {
		for name, data := range files {
			write(t, filepath.Join(chats, name), string(data))
		}
	}
	put(before)
	o := New().Observe(l)
	put(after)
	return o.After(x)
}

// idOf is the session of a transcript.
func idOf(data []byte) string {
	_, rest, _ := bytes.Cut(data, []byte(`"sessionId":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}

func fileOf(id string) string { return "session-2026-11-21T14-59-" + id[:8] + ".jsonl" }

func yolo(s *agent.Spec) { approval(setting.Yolo, setting.Typed)(s) }

func TestEvidence(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(*agent.Spec)
		answered agent.Tri
		denied   string
		told     bool
		usage    int64 // tokens of input
	}{
		{"answered", func(*agent.Spec) {}, agent.Yes, "", false, 100},
		{"answered", yolo, agent.Yes, "", true, 100},
		{
			"answered", func(s *agent.Spec) { yolo(s); s.Passthrough = []string{"--approval-mode=plan"} }, agent.Yes,
			"",
			false, 100,
		},
		{"failed", yolo, agent.No, "", true, 0},
		{"overflow", yolo, agent.No, "", true, 0},
		{"policy", yolo, agent.Yes, "run_shell_command", true, 400},
		{"withheld", func(*agent.Spec) {}, agent.Yes, "run_shell_command", false, 200},
	} {
		data := read(t, c.name+".session.jsonl")
		e := run(t, idOf(data), nil, map[string][]byte{fileOf(idOf(data)): data}, agent.Exit{}, c.change)
		var tools []string
		for _, d := range e.Denials {
			tools = append(tools, d.Tool)
		}
		usage := int64(0)
		if e.Usage != nil {
			usage = e.Usage.Input
		}
		if e.Answered != c.answered || strings.Join(tools, " ") != c.denied || e.DenialsKnown != c.told ||
			usage != c.usage || len(e.Records) != 1 || e.Session != idOf(data) {
			t.Errorf("%s: %+v %v", c.name, e, usage)
		}
	}
}

// TestSubagent: a subagent's usage counts; its text is not the answer of the session.
func TestSubagent(t *testing.T) {
	data, sub := read(t, "agent.session.jsonl"), read(t, "agent.subagent.jsonl")
	id := idOf(data)
	files := map[string][]byte{fileOf(id): data, filepath.Join(id, "sub.jsonl"): sub}
	e := run(t, id, nil, files, agent.Exit{}, yolo)
	alone := run(t, id, nil, map[string][]byte{fileOf(id): data}, agent.Exit{}, yolo)
	if len(e.Records) != 2 || e.Usage.Input != alone.Usage.Input+300 || e.Answered != agent.Yes || e.Model != "fake" {
		t.Errorf("%+v %+v, alone %+v", e, e.Usage, alone.Usage)
	}
	unanswered := data[:bytes.LastIndex(data, []byte(`{"id"`))]
	files[fileOf(id)] = unanswered
	if e := run(t, id, nil, files, agent.Exit{}, yolo); e.Answered != agent.No {
		t.Errorf("the subagent answered for the session: %+v", e)
	}
}

// TestResumed: only what came after the start counts.
func TestResumed(t *testing.T) {
	all := read(t, "resumed.session.jsonl")
	id, second := idOf(all), bytes.LastIndex(all, []byte("\n{\"sessionId\""))+1
	resume := func(s *agent.Spec) { s.Resume = id }
	file := fileOf(id)
	e := run(t, id, map[string][]byte{file: all[:second]}, map[string][]byte{file: all}, agent.Exit{}, resume)
	if e.Answered != agent.No || len(e.Denials) != 1 || e.Usage.Input != 200 || e.Model != "fake" {
		t.Errorf("%+v %+v", e, e.Usage) // its answer was empty
	}
	if e := run(t, id, map[string][]byte{file: all[:second]}, nil, agent.Exit{}, resume); e.Answered != agent.Unknown ||
		len(e.Records) != 0 {
		t.Errorf("nothing was added: %+v", e)
	}
	twice := append(bytes.Clone(all), []byte(`{"$set":{"sessionId":"`+id+`"}}`+"\n")...)
	e = run(t, id, map[string][]byte{file: all[:second]}, map[string][]byte{file: twice}, agent.Exit{}, resume, yolo)
	if len(e.Denials) != 0 || e.DenialsKnown || e.Usage != nil || e.Answered == agent.Yes {
		t.Errorf("two went on at once: %+v", e)
	}
}

// TestOthers: runs beside ours do not count, even where their files have the same name.
func TestOthers(t *testing.T) {
	data := read(t, "policy.session.jsonl")
	id := idOf(data)
	other := id[:8] + "-1111-4111-8111-111111111111"
	e := run(t, other, nil, map[string][]byte{fileOf(id): data, "session-2026-11-21T14-59-11111111.jsonl": data},
		agent.Exit{}, yolo)
	if len(e.Records) != 0 || e.Answered != agent.Unknown || e.Denials != nil || e.DenialsKnown {
		t.Errorf("%+v", e)
	}
	if e := run(t, id, nil, map[string][]byte{fileOf(id): data}, agent.Exit{}, interactive); e.Session != "" ||
		e.Answered != agent.Unknown {
		t.Errorf("interactive: %+v", e)
	}
	lost := read(t, "failed.session.jsonl")
	named := func(s *agent.Spec) { s.Mode, s.Passthrough = setting.Interactive, []string{"--session-id", idOf(lost)} }
	if e := run(t, "", nil, map[string][]byte{fileOf(idOf(lost)): lost}, agent.Exit{},
		named); e.Session != idOf(lost) || e.Answered != agent.Unknown {
		t.Errorf("a person left before the answer came: %+v", e)
	}
	if e := run(t, "*", nil, map[string][]byte{fileOf(id): data}, agent.Exit{}); len(e.Records) != 0 {
		t.Errorf("a pattern for an id: %+v", e)
	}
}

// TestBeheaded: another run that starts beside ours removes a transcript without messages. What follows is a file
// without its first line.
func TestBeheaded(t *testing.T) {
	data := read(t, "policy.session.jsonl")
	id := idOf(data)
	_, rest, _ := bytes.Cut(data, []byte("\n"))
	e := run(t, id, nil, map[string][]byte{fileOf(id): rest}, agent.Exit{}, yolo)
	if e.Answered != agent.Yes || len(e.Denials) != 1 || len(e.Records) != 1 || e.DenialsKnown || e.Usage != nil {
		t.Errorf("%+v", e) // what is there counts, and nothing is said of the rest
	}
	if e := run(t, id, map[string][]byte{fileOf(id): rest[:9]}, map[string][]byte{fileOf(id): rest}, agent.Exit{},
		yolo); len(e.Records) != 0 {
		t.Errorf("it was there before: %+v", e)
	}
	resume := func(s *agent.Spec) { yolo(s); s.Resume = id }
	if e := run(t, "11111111-2222-4333-8444-555555555555", nil, map[string][]byte{fileOf(id): rest}, agent.Exit{},
		resume); len(e.Records) != 0 {
		t.Errorf("an id that others may use as well: %+v", e)
	}
}

// TestAdvice: the CLI adds advice behind the message of the API.
func TestAdvice(t *testing.T) {
	f := failure(
		"[API Error: {\"error\":{\"code\":429,\"message\":\"Quota [daily] exceeded.\"}}]\nPlease wait and try "+
			"again later.", 0)
	if f.Code != fault.TooManyRequests || f.Detail["agent_message"] != "Quota [daily] exceeded." {
		t.Errorf("%+v", f)
	}
}

func TestTornTranscript(t *testing.T) {
	data := read(t, "policy.session.jsonl")
	id := idOf(data)
	for i := 0; i < len(data); i += 97 { // a prime, to meet every part of a line
		e := run(t, id, nil, map[string][]byte{fileOf(id): data[:i]}, agent.Exit{}, yolo)
		if len(e.Denials) > 1 || e.Answered == agent.Yes && i < len(data)-100 {
			t.Fatalf("cut at %d: %+v", i, e)
		}
	}
}

// TestLongLines: what does not fit in memory is ignored, and what it could have told is not claimed.
func TestLongLines(t *testing.T) {
	head := `{"sessionId":"c0ffee99-0000-4000-8000-000000000000","projectHash":"x","kind":"main"}` + "\n"
	id := idOf([]byte(head))
	long := strings.Repeat("x", 3*maxLine)
	prompt := `{"id":"1","timestamp":"t","type":"user","content":[{"text":"` + long + `"}]}` + "\n"
	answer := `{"id":"2","timestamp":"t","type":"gemini","content":"yes","tokens":{"input":1},"model":"m"}` + "\n"
	huge := `{"id":"2","timestamp":"t","type":"gemini","content":"` + long + `"}` + "\n"
	for name, c := range map[string]struct {
		text string
		want agent.Tri
		told bool
	}{
		"a long prompt":     {head + prompt, agent.No, true},
		"answered":          {head + prompt + answer, agent.Yes, true},
		"a long answer":     {head + prompt + huge, agent.Yes, false},
		"the history again": {head + prompt + answer + `{"$set":{"messages":"` + long + `"}}` + "\n", agent.Yes, true},
		"without an end":    {head + prompt + strings.TrimSuffix(answer, "\n"), agent.Yes, true},
	} {
		e := run(t, id, nil, map[string][]byte{fileOf(id): []byte(c.text)}, agent.Exit{}, yolo)
		if e.Answered != c.want || e.DenialsKnown != c.told {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestTextFaults: in text mode a failed request is only on standard error.
func TestTextFaults(t *testing.T) {
	session := read(t, "failed.session.jsonl")
	id := idOf(session)
	for name, c := range map[string]struct {
		code   fault.Code
		status int
		wait   time.Duration
	}{
		"401":     {fault.AuthRequired, 401, 0},
		"404":     {fault.APIError, 404, 0},
		"429":     {fault.TooManyRequests, 429, 34 * time.Second},
		"quota":   {fault.TooManyRequests, 429, 0},
		"500":     {fault.APIError, 500, 0},
		"context": {fault.ContextFull, 400, 0},
		"sandbox": {fault.AgentRefused, 0, 0},
	} {
		x := agent.Exit{Code: 1, Stderr: read(t, "text-"+name+".stderr.txt")}
		e := run(t, id, nil, map[string][]byte{fileOf(id): session}, x)
		f := cli.ProcessFault(x, e, exitInput)
		status, _ := f.Detail["status"].(int)
		if f.Code != c.code || status != c.status || f.RetryAfter != c.wait || e.Answered != agent.No {
			t.Errorf("%s: %+v", name, f)
		}
	}
	// What follows the dump of the error is not part of it.
	x := agent.Exit{Code: 1, Stderr: append(read(t, "text-401.stderr.txt"), "  status: 500\n"...)}
	if f := cli.ProcessFault(x, run(t, id, nil, nil, x), exitInput); f.Detail["status"] != 401 {
		t.Errorf("%+v", f)
	}
	// Other text, such as an answer or a prompt, is not evidence.
	for _, text := range []string{
		"", "it said: Error when talking to Gemini API x: {\"error\":{\"code\":401}}\n}\n",
		"Error when talking",
	} {
		x := agent.Exit{Code: 1, Stderr: []byte(text)}
		if f := cli.ProcessFault(x, run(t, id, nil, nil, x), exitInput); f.Code != fault.AgentFailed {
			t.Errorf("%q: %+v", text, f)
		}
	}
}

func TestCodes(t *testing.T) {
	for _, c := range []struct {
		code   int
		change func(*agent.Spec)
		want   fault.Code
	}{
		{exitAuth, func(*agent.Spec) {}, fault.AuthRequired},
		{exitInput, func(*agent.Spec) {}, fault.AgentUsage},
		{exitSandbox, func(*agent.Spec) {}, fault.AgentRefused},
		{exitConfig, func(*agent.Spec) {}, fault.AgentRefused},
		{exitTurns, func(*agent.Spec) {}, fault.AgentFailed},
		{exitUntrusted, func(*agent.Spec) {}, fault.AgentRefused},
		{145, output(setting.JSON, setting.Typed), fault.AuthRequired},
		{173, pass("-o", "stream-json"), fault.TooManyRequests},
		{147, output(setting.StreamJSON, setting.Typed), fault.APIError},
		// in text there is no status in it
		{145, func(*agent.Spec) {}, fault.AgentFailed},
		// told twice it prints text
		{
			145, func(s *agent.Spec) { output(setting.JSON, setting.Typed)(s); s.Passthrough = []string{"-o", "json"} },
			fault.AgentFailed,
		},
		// SIGTERM
		{143, output(setting.JSON, setting.Typed), fault.AgentFailed},
		{1, func(*agent.Spec) {}, fault.AgentFailed},
	} {
		x := agent.Exit{Code: c.code}
		if f := cli.ProcessFault(x, run(t, "c0ffee00-0000-4000-8000-000000000000", nil, nil, x, c.change),
			exitInput); f == nil || f.Code != c.want {
			t.Errorf("%d: %+v, want %s", c.code, f, c.want)
		}
	}
}

// TestCost: reading a transcript of 8 MiB takes little memory.
func TestCost(t *testing.T) {
	id := "c0ffee98-0000-4000-8000-000000000000"
	var b bytes.Buffer
	b.WriteString(`{"sessionId":"` + id + `","projectHash":"x","kind":"main"}` + "\n")
	for i := range 16 {
		b.WriteString(`{"id":"` + strconv.Itoa(i) + `","type":"user","content":"` + strings.Repeat("x", 512<<10) +
			`"}` + "\n")
	}
	path := filepath.Join(t.TempDir(), "session.jsonl")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	longest := 0
	cli.EachLine(path, 0, maxLine, func(l lines.Line) bool {
		longest = max(longest, cap(l.Text))
		return !l.Long
	})
	if longest == 0 || longest > 2*maxLine {
		t.Errorf("a buffer of %d bytes", longest)
	}
}

func TestKinds(t *testing.T) {
	for tool, want := range map[string]event.ToolKind{
		"run_shell_command": event.Shell, "read_file": event.Read, "replace": event.Write, "glob": event.Search,
		"web_fetch": event.Web,
		"mcp_s_t":   event.MCP, "invoke_agent": event.Agent, "update_topic": event.Other,
	} {
		if got := kind(tool); got != want {
			t.Errorf("%s: %s", tool, got)
		}
	}
	for _, c := range []struct {
		tool, errorType, message string
		want                     bool
	}{
		{"run_shell_command", typeMissing, "", true},
		{"made_up", typeMissing, "", false}, // the model's invention
		{"mcp_s_t", typePolicy, "", true},
		{"write_file", "path_not_in_workspace", wordsPolicy, false},
		{"read_file", "", wordsPolicy + " because", true},
		{"read_file", "", wordsHook + "because", true},
		{"read_file", "", "cat says: " + wordsPolicy, false},
		{"made_up", "", `Tool "made_up" not found.`, false},
		{"write_file", "", `Tool "write_file" not found. Did you mean`, true},
	} {
		if got := denied(c.tool, c.errorType, c.message); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if c := call("1", "run_shell_command", []byte(`{"command":["ls"]}`)); c.Command != "" {
		t.Errorf("%+v", c)
	}
}
