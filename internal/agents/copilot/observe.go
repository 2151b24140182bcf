package copilot

import (
	"bytes"
	"cmp"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
)

// Observe records the size of the session's log before the start. What it contains then belongs to earlier runs.
func (d driver) Observe(l agent.Launch) agent.Observer {
	home := configHome(l)
	if l.Interactive || home == "" {
		return d.Program.Observe(l) // a person saw it
	}
	o := &observer{home: home, session: l.Session, from: -1}
	if l.Session != "" {
		o.from = cli.Size(o.log())
	}
	return o
}

// longest limits the bytes read of a line. A prompt of 60 MB makes a line of 120 MB.
const longest = 4 << 20

type observer struct {
	home    string // where the CLI keeps its records
	session string
	from    int64 // length of the log before the start; -1 if unknown
}

func (o *observer) log() string {
	return filepath.Join(o.home, "session-state", o.session, "events.jsonl")
}

// configHome returns the directory in which the CLI keeps its records, or "".
func configHome(l agent.Launch) string {
	dir, passed := cli.PassedValue(l.Spec.Passthrough, "--config-dir") // no longer documented, but it still works
	if !passed {
		dir = cli.First(l.Env, "COPILOT_HOME")
	}
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	home := cli.First(l.Env, name)
	switch {
	case dir == "" && !passed && home != "":
		return filepath.Join(home, ".copilot")
	case dir != "" && !filepath.IsAbs(dir):
		return filepath.Join(l.Dir, dir)
	}
	return dir
}

// keeps returns the places of the CLI's own data.
func keeps(env []string) agent.Keeps {
	return agent.Keeps{Dirs: []string{configHome(agent.Launch{Env: env}), packages(env)}}
}

// After reads the records that the run added to the log.
func (o *observer) After(x agent.Exit) agent.Evidence {
	if x.Failed != nil {
		return agent.Evidence{}
	}
	if o.session == "" {
		o.session = cmp.Or(x.Session, resumable(x.Stderr))
	}
	var t summary
	if o.session == "" || !t.read(o.log(), o.from) {
		e := agent.Evidence{Fault: refused(x)}
		if o.session != "" && cli.Exists(filepath.Dir(o.log())) { // the CLI created the session
			e.Session = o.session
		}
		return e
	}
	e := agent.Evidence{
		Session: o.session, Denials: t.denials, DenialsKnown: true, Answered: agent.No, Fault: t.lost, Usage: t.usage,
		Model:   t.model,
		Records: []string{o.log()}, Calls: t.calls.Done(),
	}
	if t.answered {
		e.Answered = agent.Yes
	}
	return e
}

// resumable returns the session that the CLI names on stderr after a run with text output, or "".
func resumable(stderr []byte) string {
	for line := range bytes.Lines(stderr) {
		rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("Resume"))
		if !ok {
			continue
		}
		if id, ok := strings.CutPrefix(strings.TrimSpace(string(rest)), "copilot --resume="); ok && cli.IsUUID(id) {
			return id
		}
	}
	return ""
}

// refused returns why the CLI gave up before the session had a log, judging by stderr.
func refused(x agent.Exit) *fault.Fault {
	if x.Code <= 0 || x.EndedBy != "" {
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
		return fault.New(fault.AgentUsage, "copilot rejected its arguments: %s", strings.TrimPrefix(first, "error: ")).
			With("agent_exit_code", x.Code)
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

// most limits the number of denials.
const most = 1000

// summary collects what a log says about one run.
type summary struct {
	records  int
	answered bool
	denials  []event.Denial
	lost     *fault.Fault
	usage    *event.Usage
	model    string
	names    map[string]string // tools, by the ids of calls
	byPerson map[string]bool   // calls that a person denied
	calls    cli.Calls
}

// read reads the log from an offset on, and reports whether it found any records. If the offset is -1, it starts at the
// last beginning of a run.
func (t *summary) read(path string, from int64) bool {
	cli.EachLine(path, max(from, 0), longest, func(l lines.Line) bool {
		kind := typeOf(l.Text)
		if from < 0 && (kind == "session.start" || kind == "session.resume") {
			*t = summary{}
		}
		if len(l.Text) > 0 {
			t.line(kind, l.Text, !l.Long)
		}
		return true
	})
	return t.records > 0
}

// line reads a record, or the beginning of one that is too long.
func (t *summary) line(kind string, line []byte, whole bool) {
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
			t.answered = true // even a sub-agent's; only an answer is that long
		}
		if !whole {
			t.records++
		}
		return
	}
	t.records++
	t.take(r)
}

func (t *summary) take(r logEvent) {
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
		t.calls.Begin(v.call(), cli.Time(r.Time))
	case "tool.execution_complete":
		var v toolEnd
		r.into(&v)
		if v.denied() {
			t.deny(v.ID, v.Error.Message)
		}
		delete(t.names, v.ID)
		t.calls.End(v.ID, cli.Time(r.Time), !v.Success)
		if v.denied() {
			t.calls.Drop(v.ID)
		}
	case "permission.completed":
		var v permission
		r.into(&v)
		t.decided(v)
	case "session.error":
		if r.Agent == "" {
			var e sessionError
			r.into(&e)
			t.lost = sessionFault(e, failure{})
		}
	}
}

// decided records the outcome of a request for permission. A refusal by a person is not policy.
func (t *summary) decided(v permission) {
	if strings.HasPrefix(v.Result.Kind, "denied") {
		t.calls.Drop(v.ID)
	}
	switch {
	case v.Result.Kind == "denied-interactively-by-user" || v.By == "human_response":
		if t.byPerson == nil {
			t.byPerson = map[string]bool{}
		}
		t.byPerson[v.ID] = true
	case strings.HasPrefix(v.Result.Kind, "denied"):
		t.deny(v.ID, v.Result.Kind)
	}
}

func (t *summary) deny(id, reason string) {
	known := func(d event.Denial) bool { return d.CallID == id }
	if t.byPerson[id] || len(t.denials) >= most || id != "" && slices.ContainsFunc(t.denials, known) {
		return
	}
	t.denials = append(t.denials, event.Denial{CallID: id, Tool: t.names[id], Reason: reason})
}

func (t *summary) spend(r logEvent) {
	var v struct {
		Usage usage `json:"usage"`
	}
	r.into(&v)
	if t.usage == nil {
		t.usage = &event.Usage{}
	}
	u := v.Usage
	t.usage.Add(event.Usage{Input: u.Input, Output: u.Output, Cached: u.Cached, Reasoning: u.Reasoning})
	if r.Agent == "" && u.Model != "" {
		t.model = u.Model
	}
}
