package copilot

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/lines"
)

// Observe notes how long the session's log is before the start: what is in it happened earlier.
func (d driver) Observe(l agent.Launch) agent.Observer {
	home := configHome(l)
	if l.Interactive || home == "" {
		return d.Program.Observe(l) // a person saw it
	}
	o := &observer{home: home, session: l.Session, from: -1}
	if l.Session != "" {
		o.from = 0
		if info, err := os.Stat(o.log()); err == nil {
			o.from = info.Size()
		}
	}
	return o
}

// longest is how much of one line is kept. A prompt of 60 MB makes a line of 120.
const longest = 4 << 20

type observer struct {
	home    string // where the CLI keeps its records
	session string
	from    int64 // length of the log before the start; -1: not known
}

func (o *observer) log() string {
	return filepath.Join(o.home, "session-state", o.session, "events.jsonl")
}

// configHome is where the CLI keeps its records.
func configHome(l agent.Launch) string {
	// No longer documented, and still there.
	if dir, ok := cli.PassedValue(l.Spec.Passthrough, "--config-dir"); ok {
		if dir != "" && !filepath.IsAbs(dir) {
			dir = filepath.Join(l.Dir, dir)
		}
		return dir
	}
	if dir, _ := cli.Lookup(l.Env, "COPILOT_HOME"); dir != "" {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(l.Dir, dir)
		}
		return dir
	}
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	if dir, _ := cli.Lookup(l.Env, name); dir != "" {
		return filepath.Join(dir, ".copilot")
	}
	return ""
}

// After reads what the run added to the log.
func (o *observer) After(x agent.Exit) agent.Evidence {
	if x.Failed != nil {
		return agent.Evidence{}
	}
	if o.session == "" {
		o.session = resumable(x.Stderr)
	}
	var t tale
	if o.session == "" || !t.read(o.log(), o.from) {
		return agent.Evidence{Session: o.started(), Fault: refused(x)}
	}
	e := agent.Evidence{
		Session: o.session, Denials: t.denials, DenialsTold: true, Answered: agent.No, Fault: t.lost, Usage: t.usage,
		Model:   t.model,
		Records: []string{o.log()},
	}
	if t.answered {
		e.Answered = agent.Yes
	}
	return e
}

// started is the session, if the CLI came so far as to make it.
func (o *observer) started() string {
	if o.session != "" {
		if _, err := os.Stat(filepath.Dir(o.log())); err == nil {
			return o.session
		}
	}
	return ""
}

// resumable finds the session in the last lines that the CLI writes to stderr after a run with the output text.
func resumable(stderr []byte) string {
	for line := range bytes.Lines(stderr) {
		rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("Resume"))
		if !ok {
			continue
		}
		if id, ok := strings.CutPrefix(strings.TrimSpace(string(rest)), "copilot --resume="); ok && isID(id) {
			return id
		}
	}
	return ""
}

// refused reads why the CLI gave up before the session had a log: only standard error says it.
func refused(x agent.Exit) *fault.Fault {
	if x.Code <= 0 || x.ByUs != "" {
		return nil
	}
	first := ""
	for line := range bytes.Lines(x.Stderr) {
		if first = strings.TrimSpace(string(line)); first != "" {
			break
		}
	}
	begins := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(t string) bool { return strings.HasPrefix(first, t) })
	}
	switch {
	case begins("error: ") && bytes.Contains(x.Stderr, []byte("'--help'")),
		begins("error: Invalid command format") && bytes.Contains(x.Stderr, []byte("copilot --help")):
		return fault.New(fault.AgentUsage, "copilot rejected its arguments: %s",
			strings.TrimPrefix(first, "error: ")).With("agent_exit_code", x.Code)
	case begins("Error: No session, task, or name matched", "Error: No session or task matched"):
		return fault.New(fault.NotFoundCode, "copilot does not know the session: %s",
			strings.TrimPrefix(first, "Error: ")).
			Hint("copilot --resume shows the sessions there are")
	case begins("Error: No authentication information found", "Error: Classic Personal Access Tokens"):
		return fault.New(fault.AuthRequired, "copilot is not logged in: %s", strings.TrimPrefix(first, "Error: ")).
			FixBy("Log in to GitHub Copilot.", "copilot login")
	case begins("Error: Authentication token found but could not be validated"):
		return fault.New(fault.AuthRequired, "copilot could not check its login: %s",
			strings.TrimPrefix(first, "Error: ")).
			Hint("look at the network connection, else log in anew with copilot login")
	}
	return nil
}

// most is how many denials are kept.
const most = 1000

// tale is what a log tells of one run.
type tale struct {
	records  int
	answered bool
	denials  []event.Denial
	lost     *fault.Fault
	usage    *event.Usage
	model    string
	names    map[string]string // of tools, by the ids of calls
	persons  map[string]bool   // calls that a person denied
}

// read reads the log from there, and says whether it tells anything. From -1 it looks for the last beginning: the run's
// own.
func (t *tale) read(path string, from int64) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || from > info.Size() {
		return false
	}
	if from > 0 {
		if _, err := f.Seek(from, 0); err != nil {
			return false
		}
	}
	for in := lines.NewReader(f, longest); in.Next(); {
		if len(in.Text) == 0 {
			continue
		}
		kind := typeOf(in.Text)
		if from < 0 && (kind == "session.start" || kind == "session.resume") {
			*t = tale{}
		}
		t.line(kind, in.Text, !in.Long)
	}
	return t.records > 0
}

// line takes one in. Of a line that is not whole only the beginning is there.
func (t *tale) line(kind string, line []byte, whole bool) {
	if kind == "" && !whole {
		return
	}
	switch kind {
	case "session.start", "session.resume", "session.usage_record", "assistant.message", "tool.execution_start",
		"tool.execution_complete",
		"permission.completed", "session.error", "":
	default:
		t.records++
		return
	}
	r, ok := parse(line)
	if !ok {
		if !whole && kind == "assistant.message" {
			t.answered = true // of whichever agent: what is so long is an answer
		}
		if !whole {
			t.records++
		}
		return
	}
	t.records++
	t.take(r)
}

func (t *tale) take(r record) {
	switch r.Type {
	case "session.start", "session.resume":
		var v struct {
			Model string `json:"selectedModel"`
		}
		r.into(&v)
		t.model = v.Model
	case "session.usage_record":
		t.spend(r)
	case "assistant.message":
		var m message
		r.into(&m)
		if r.Agent == "" && (m.Content != "" || len(m.ToolRequests) > 0) {
			t.answered, t.lost = true, nil
		}
	case "tool.execution_start":
		var v toolStart
		r.into(&v)
		if t.names == nil {
			t.names = map[string]string{}
		}
		t.names[v.ID] = v.Name
	case "tool.execution_complete":
		var v toolEnd
		r.into(&v)
		if v.denied() {
			t.deny(v.ID, v.Error.Message)
		}
		delete(t.names, v.ID)
	case "permission.completed":
		var v permission
		r.into(&v)
		t.decided(v)
	case "session.error":
		if r.Agent == "" {
			var e sessionError
			r.into(&e)
			t.lost = lost(e, failure{})
		}
	}
}

// decided records the outcome of a request for permission. A refusal by a person is not policy.
func (t *tale) decided(v permission) {
	switch {
	case v.Result.Kind == "denied-interactively-by-user" || v.By == "human_response":
		if t.persons == nil {
			t.persons = map[string]bool{}
		}
		t.persons[v.ID] = true
	case strings.HasPrefix(v.Result.Kind, "denied"):
		t.deny(v.ID, v.Result.Kind)
	}
}

func (t *tale) deny(id, reason string) {
	known := func(d event.Denial) bool { return d.CallID == id }
	if t.persons[id] || len(t.denials) >= most || id != "" && slices.ContainsFunc(t.denials, known) {
		return
	}
	t.denials = append(t.denials, event.Denial{CallID: id, Tool: t.names[id], Reason: reason})
}

func (t *tale) spend(r record) {
	var v struct {
		Usage usage `json:"usage"`
	}
	r.into(&v)
	if t.usage == nil {
		t.usage = &event.Usage{}
	}
	t.usage.Input += v.Usage.Input
	t.usage.Output += v.Usage.Output
	t.usage.Cached += v.Usage.Cached
	t.usage.Reasoning += v.Usage.Reasoning
	if r.Agent == "" && v.Usage.Model != "" {
		t.model = v.Usage.Model
	}
}
