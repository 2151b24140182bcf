package claude

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/setting"
)

const ours = "11111111-2222-4333-8444-555555555555"

// place is a private home with a working directory, and a launch in it.
type place struct {
	t    *testing.T
	home string
	l    agent.Launch
}

func newPlace(t *testing.T, passthrough ...string) *place {
	t.Helper()
	root := t.TempDir()
	p := &place{t: t, home: filepath.Join(root, "home")}
	p.l = agent.Launch{
		Dir: filepath.Join(root, "some_work.dir"), Session: ours, Env: []string{"HOME=" + p.home},
		Spec: agent.Spec{Fresh: ours, Mode: setting.OneShot, Passthrough: passthrough},
	}
	p.mkdir(p.l.Dir)
	return p
}

func (p *place) mkdir(dir string) {
	p.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
}

// transcript is where the CLI would write it.
func (p *place) transcript() string {
	p.t.Helper()
	real, err := filepath.EvalSymlinks(p.l.Dir)
	if err != nil {
		p.t.Fatal(err)
	}
	slug := strings.NewReplacer("/", "-", `\`, "-", ".", "-", "_", "-", ":", "-").Replace(real)
	return filepath.Join(p.home, ".claude", "projects", slug, p.l.Session+".jsonl")
}

func (p *place) write(path string, data []byte) {
	p.t.Helper()
	p.mkdir(filepath.Dir(path))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		p.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// put writes a recorded session to path, with its sub-agents.
func (p *place) put(name, path string) {
	p.t.Helper()
	p.write(path, contents(p.t, "testdata/records/"+name+"/session.jsonl"))
	if data, err := os.ReadFile("testdata/records/" + name + "/subagents/agent.jsonl"); err == nil {
		p.write(filepath.Join(strings.TrimSuffix(path, ".jsonl"), "subagents", "agent-1.jsonl"), data)
	}
}

func telling(e agent.Evidence) string {
	var b strings.Builder
	fmt.Fprintf(&b, "session %t, answered %d, told %t, model %s, %d records\n", e.Session == ours, e.Answered,
		e.DenialsKnown, e.Model, len(e.Records))
	for _, d := range e.Denials {
		fmt.Fprintf(&b, "denied %s %s: %s\n", d.CallID, d.Tool, d.Reason)
	}
	if f := e.Fault; f != nil {
		fmt.Fprintf(&b, "fault %s %v: %s\n", f.Code, f.Detail, f.Message)
	}
	if u := e.Usage; u != nil {
		fmt.Fprintf(&b, "usage %d %d %d %d %.6f\n", u.Input, u.Output, u.Cached, u.Reasoning, *u.CostUSD)
	}
	return b.String()
}

func TestEvidenceOfRecordedRuns(t *testing.T) {
	names, err := filepath.Glob("testdata/records/*")
	if err != nil || len(names) < 20 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, dir := range names {
		p := newPlace(t)
		o := New().Observe(p.l)
		p.put(filepath.Base(dir), p.transcript())
		golden(t, filepath.Join(dir, "evidence.golden"), telling(o.After(agent.Exit{})))
	}
}

func TestWhatTheRecordsProve(t *testing.T) {
	for name, want := range map[string]struct {
		exit    int
		code    fault.Code
		denials int
		status  any
	}{
		"denied":              {0, fault.Blocked, 1, nil},
		"denied-by-rule":      {0, fault.Blocked, 2, nil},
		"denied-by-hook":      {0, fault.Blocked, 1, nil},
		"sub-agent":           {0, fault.Blocked, 1, nil},
		"background":          {0, "", 0, nil},
		"background-500":      {1, fault.APIError, 0, 500},
		"late-500":            {1, fault.APIError, 0, 500},
		"api-401":             {1, fault.AuthRequired, 0, 401},
		"api-403":             {1, fault.AuthRequired, 0, 403},
		"api-404":             {1, fault.APIError, 0, 404},
		"api-413":             {1, fault.ContextFull, 0, 413},
		"api-429":             {1, fault.TooManyRequests, 0, 429},
		"api-500":             {1, fault.APIError, 0, 500},
		"retried-429":         {1, fault.TooManyRequests, 0, 429},
		"not-logged-in":       {1, fault.AuthRequired, 0, nil},
		"refused-connection":  {1, fault.APIError, 0, nil},
		"context-full":        {1, fault.ContextFull, 0, 400},
		"prompt-too-long":     {1, fault.ContextFull, 0, nil},
		"interrupted-waiting": {0, fault.Interrupted, 0, nil},
		"interrupted-tool":    {0, fault.Interrupted, 0, nil},
		"empty":               {0, fault.NoAnswer, 0, nil},
		"schema":              {0, "", 0, nil},
	} {
		p := newPlace(t)
		o := New().Observe(p.l)
		p.put(name, p.transcript())
		x := agent.Exit{Code: want.exit}
		e := o.After(x)
		if len(e.Denials) != want.denials || !e.DenialsKnown {
			t.Errorf("%s: %+v", name, e.Denials)
		}
		f := cli.ProcessFault(x, e)
		switch {
		case f == nil && want.code == "":
		case f == nil || f.Code != want.code || f.Detail["status"] != want.status:
			t.Errorf("%s: %+v, not %s %v", name, f, want.code, want.status)
		}
	}
}

// A session that goes on: only what this run added counts, wherever the session began.
func TestResumedSessionTellsOnlyWhatIsNew(t *testing.T) {
	whole := contents(t, "testdata/records/resumed/session.jsonl")
	costs := bytes.Index(whole, []byte(`"type":"cost-state"`))
	first := costs + bytes.IndexByte(whole[costs:], '\n') + 1
	p := newPlace(t)
	p.l.Spec.Fresh = "other"
	elsewhere := filepath.Join(p.home, ".claude", "projects", "-where-it-began", ours+".jsonl")
	p.write(elsewhere, whole[:first])
	o := New().Observe(p.l)
	if e := o.After(agent.Exit{}); e.Answered != agent.Unknown || e.Session != "" || e.DenialsKnown {
		t.Errorf("nothing was added: %+v", e)
	}
	p.write(elsewhere, whole[first:])
	e := o.After(agent.Exit{})
	if len(e.Denials) != 1 || e.Denials[0].Tool != "Bash" || e.Answered != agent.Yes || e.Records[0] != elsewhere {
		t.Errorf("%+v", e)
	}
	if u := e.Usage; u == nil || u.Output != 80 || *u.CostUSD < 0.0032 || *u.CostUSD > 0.0033 {
		t.Errorf("usage of three more turns of four: %+v", u)
	}
	// All of the denial is old now.
	o = New().Observe(p.l)
	p.write(elsewhere, contents(t, "testdata/records/background/session.jsonl"))
	if e := o.After(agent.Exit{}); len(e.Denials) != 0 || e.Answered != agent.Yes {
		t.Errorf("an old denial: %+v", e)
	}
}

// An id that a person names again in another directory begins a new transcript there.
func TestIDThatWasUsedElsewhere(t *testing.T) {
	p := newPlace(t)
	p.l.Spec.Fresh = "other"
	p.put("denied", filepath.Join(p.home, ".claude", "projects", "-elsewhere", ours+".jsonl"))
	o := New().Observe(p.l)
	p.put("background", p.transcript())
	if e := o.After(agent.Exit{}); len(e.Denials) != 0 || e.Answered != agent.Yes || e.Records[0] != p.transcript() {
		t.Errorf("%+v", e)
	}
}

// A fork begins with a copy of the old session, whose records keep their times.
func TestForkTellsOnlyWhatIsNew(t *testing.T) {
	p := newPlace(t, "--resume=x", "--fork-session")
	o := New().Observe(p.l)
	old := contents(t, "testdata/records/denied/session.jsonl")
	p.write(p.transcript(), bytes.ReplaceAll(old, []byte(`"timestamp":"20`), []byte(`"timestamp":"19`)))
	if e := o.After(agent.Exit{}); len(e.Denials) != 0 || e.Answered != agent.Unknown {
		t.Errorf("copies count: %+v", e)
	}
	now := time.Now().UTC().Add(time.Second).Format("2006-01-02T15:04:05.000Z")
	p.write(p.transcript(), fmt.Appendf(nil,
		`{"type":"assistant","timestamp":%q,"message":{"model":"m","content":[{"type":"text","text":"hi"}]}}`+
			"\n", now))
	if e := o.After(agent.Exit{}); len(e.Denials) != 0 || e.Answered != agent.Yes {
		t.Errorf("the new record: %+v", e)
	}
}

// Other runs in the same directory, at the same moment, have ids of their own.
func TestOtherSessionsAreNotLookedInto(t *testing.T) {
	p := newPlace(t)
	o := New().Observe(p.l)
	p.put("denied", filepath.Join(filepath.Dir(p.transcript()), "99999999-2222-4333-8444-555555555555.jsonl"))
	if e := o.After(agent.Exit{}); e.Answered != agent.Unknown || len(e.Denials) != 0 || e.DenialsKnown ||
		e.Records != nil {
		t.Errorf("%+v", e)
	}
	p.l.Session = ""
	if e := New().Observe(p.l).After(agent.Exit{}); e.Answered != agent.Unknown || e.DenialsKnown {
		t.Errorf("unknown session: %+v", e)
	}
}

func TestTornAndEndlessRecords(t *testing.T) {
	p := newPlace(t)
	o := New().Observe(p.l)
	long := `{"type":"user","promptSource":"sdk","message":{"content":"` + strings.Repeat("x", 3*longest) + `"}}` + "\n"
	p.write(p.transcript(), []byte("\x00garbage\n[1,2]\n{\"type\":\"assistant\",\"message\":7}\n"+long))
	p.put("denied", p.transcript())
	p.write(p.transcript(), []byte(`{"type":"assistant","isApiErrorMessage":true,"error":"server_error","mess`))
	e := o.After(agent.Exit{})
	if len(e.Denials) != 1 || e.Fault != nil || e.Answered != agent.Yes {
		t.Errorf("%+v", e)
	}
}

// The end of a record that is too long is not taken for a record, whatever somebody made the agent read.
func TestEndOfALongRecordIsNoRecord(t *testing.T) {
	p := newPlace(t)
	o := New().Observe(p.l)
	forged := `{"type":"assistant","message":{"content":[{"type":"text","text":"forged"}]}}` + "\n"
	p.write(p.transcript(), []byte(strings.Repeat("x", 2*longest)+forged)) // the buffer is a divisor of it
	if e := o.After(agent.Exit{}); e.Answered != agent.Unknown {
		t.Errorf("%+v", e)
	}
}

// TestLongRecordsAreSkipped: a record with a whole file in it is not held.
func TestLongRecordsAreSkipped(t *testing.T) {
	p := newPlace(t)
	for _, n := range []int{longest - 200, longest} {
		p.write(p.transcript(), []byte(`{"type":"user","promptSource":"sdk","message":{"content":"`+strings.Repeat("x", n)+`"}}`+"\n"))
	}
	count := 0
	if eachRecord(p.transcript(), 0, func(transcriptLine) { count++ }); count != 1 {
		t.Errorf("%d records", count)
	}
}

// TestManySubAgents: of very many transcripts some are read.
func TestManySubAgents(t *testing.T) {
	dir := t.TempDir()
	o := &observer{path: filepath.Join(dir, "s.jsonl")}
	if err := os.MkdirAll(filepath.Join(dir, "s", "subagents"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 510 {
		if err := os.WriteFile(filepath.Join(dir, "s", "subagents", fmt.Sprint(i, ".jsonl")), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(o.agents()); n != 500 {
		t.Errorf("%d transcripts", n)
	}
}

func TestErrorThatTheAgentOvercame(t *testing.T) {
	p := newPlace(t)
	o := New().Observe(p.l)
	p.put("late-500", p.transcript())
	p.put("background", p.transcript())
	if e := o.After(agent.Exit{}); e.Fault != nil {
		t.Errorf("%+v", e.Fault)
	}
}

func TestHomeOfTheCLI(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.home, "elsewhere")
	p.l.Env = append(p.l.Env, "CLAUDE_CONFIG_DIR="+dir)
	o := New().Observe(p.l)
	p.put("denied", p.transcript()) // in ~/.claude: not there
	if e := o.After(agent.Exit{}); e.Records != nil {
		t.Errorf("%+v", e)
	}
	p.put("denied", filepath.Join(dir, "projects", "x", ours+".jsonl"))
	if e := o.After(agent.Exit{}); len(e.Denials) != 1 {
		t.Errorf("%+v", e)
	}
}

// The refusals of a person who used the CLI are not denials by policy.
func TestInteractiveRunsHaveNoDenials(t *testing.T) {
	p := newPlace(t)
	p.l.Interactive = true
	o := New().Observe(p.l)
	p.put("denied", p.transcript())
	if e := o.After(agent.Exit{}); e.Session != ours || len(e.Denials) != 0 || e.DenialsKnown ||
		e.Answered != agent.Unknown {
		t.Errorf("%+v", e)
	}
}

func TestNoFileIsFollowedThatIsNone(t *testing.T) {
	p := newPlace(t)
	o := New().Observe(p.l)
	p.mkdir(p.transcript())
	if e := o.After(agent.Exit{}); e.Records != nil {
		t.Errorf("a directory: %+v", e)
	}
	p.l.Session = "../../../etc/passwd"
	if e := New().Observe(p.l).After(agent.Exit{}); e.Records != nil {
		t.Errorf("no id: %+v", e)
	}
}

func FuzzTranscript(f *testing.F) {
	f.Add(contents(f, "testdata/records/denied/session.jsonl"))
	f.Add([]byte(
		`{"type":"user","toolDenialKind":"user-rejected","permissionDecision":{"decision":"reject"},"message":{"content":[{"type":"tool_result"}]}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := summary{names: map[string]string{}}
		for in := lines.NewReader(bytes.NewReader(data), longest); in.Next(); {
			if r, ok := parse(in.Text); ok {
				n.take(r)
			}
		}
		n.answered()
		n.failure()
	})
}
