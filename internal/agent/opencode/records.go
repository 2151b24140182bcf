package opencode

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/fault"
	"omniagent/internal/sqlite"
)

const (
	maxSessions = 512 // how many of the newest sessions are searched for ours
	clockSlack  = 2 * time.Second
)

// Observe remembers when the run began.
func (d driver) Observe(l agent.Launch) agent.Observer {
	o := observer{launch: l, began: time.Now()}
	for _, a := range l.Args[:min(l.Translated, len(l.Args))] {
		if title, ok := strings.CutPrefix(a, titleFlag); ok {
			o.title = title
		}
	}
	return o
}

type observer struct {
	launch agent.Launch
	began  time.Time
	title  string
}

// After reads what the CLI wrote about this run into its database. The session is the one that a person named, or the
// one that was created with our title; without either nothing is known about it. Stderr is not evidence: any program
// can write to it.
func (o observer) After(x agent.Exit) agent.Evidence {
	o.launch.Session = cmp.Or(o.launch.Session, x.Session)
	e := agent.Evidence{Session: o.launch.Session}
	if o.launch.Interactive {
		return e
	}
	if path := database(o.launch.Env); path != "" && (o.title != "" || e.Session != "") {
		for range 3 { // the write-ahead log may restart while we read
			found, ok := o.read(path)
			if ok {
				e = found
				break
			}
		}
	}
	if e.Fault == nil && x.Code > 0 && slices.Contains(e.Records, compacted) {
		e.Fault = contextFull()
	}
	e.Records = slices.DeleteFunc(e.Records, func(r string) bool { return r == compacted })
	return e
}

// compacted marks, among the records, a session that was too long and was shortened during the run.
const compacted = "\x00compacted"

// keeps returns what belongs to the CLI.
func keeps(env []string) agent.Keeps {
	return agent.Keeps{Dirs: []string{
		cli.InHome(env, "XDG_DATA_HOME", ".local/share", "opencode"),
		cli.InHome(env, "XDG_CONFIG_HOME", ".config", "opencode"),
		cli.InHome(env, "XDG_STATE_HOME", ".local/state", "opencode"),
		cli.InHome(env, "XDG_CACHE_HOME", ".cache", "opencode"),
	}}
}

// database returns the path of the CLI's database, or "".
func database(env []string) string {
	home, data := cli.Home(env), cli.First(env, "XDG_DATA_HOME")
	name := cmp.Or(cli.First(env, "OPENCODE_DB"), "opencode.db")
	switch {
	case name == ":memory:", home == "" && data == "":
		return ""
	case filepath.IsAbs(name):
		return name
	}
	return filepath.Join(cmp.Or(data, filepath.Join(home, ".local", "share")), "opencode", name)
}

// read makes one attempt. It fails if the database changed meanwhile or cannot be read.
func (o observer) read(path string) (agent.Evidence, bool) {
	s, err := sqlite.Open(path)
	if err != nil {
		return agent.Evidence{}, false
	}
	defer s.Close()
	all, err := s.Tables()
	if err != nil {
		return agent.Evidence{}, false
	}
	e := agent.Evidence{Session: o.launch.Session, Records: []string{path}}
	if e.Session == "" {
		if e.Session, err = o.find(s, all); err != nil {
			return e, false
		}
	}
	if e.Session == "" {
		return agent.Evidence{}, s.Valid()
	}
	r := reading{store: s, all: all, since: o.began.Add(-clockSlack).UnixMilli(), evidence: &e}
	if err := r.session(e.Session, 4); err != nil {
		return agent.Evidence{Session: e.Session}, false
	}
	return e, s.Valid()
}

// find looks for the session that was created with our title. Its title has changed since, but the event that created
// it has the first one. If there are two such sessions, it returns neither.
func (o observer) find(s *sqlite.File, all map[string]sqlite.Table) (string, error) {
	sessions, events, index := all["session"], all["event"], all["event_aggregate_seq_idx"]
	var mine []string
	left := maxSessions
	err := s.Newest(sessions, func(r []any) bool {
		left--
		id, at := sessions.Text(r, "id"), sessions.Number(r, "time_created")
		if at < o.began.Add(-clockSlack).UnixMilli() || sessions.Text(r, "parent_id") != "" {
			return left > 0
		}
		if sessions.Text(r, "title") == o.title || o.created(s, events, index, id) {
			mine = append(mine, id)
		}
		return left > 0
	})
	if err != nil || len(mine) != 1 {
		return "", err
	}
	return mine[0], nil
}

func (o observer) created(s *sqlite.File, events, index sqlite.Table, id string) bool {
	numbers, err := s.Under(index, id, int64(0))
	if err != nil || len(numbers) != 1 {
		return false
	}
	r, err := s.Row(events, numbers[0])
	if err != nil {
		return false
	}
	var data struct{ Info struct{ Title string } }
	return json.Unmarshal([]byte(events.Text(r, "data")), &data) == nil && data.Info.Title == o.title
}

// reading collects the evidence of a session and of its sub-agents' sessions.
type reading struct {
	store    *sqlite.File
	all      map[string]sqlite.Table
	since    int64
	evidence *agent.Evidence
}

func (g reading) session(id string, depth int) error {
	own := id == g.evidence.Session
	if own {
		g.evidence.DenialsKnown = true
		if err := g.messages(id); err != nil {
			return err
		}
	}
	if err := g.parts(id); err != nil || depth == 0 {
		return err
	}
	sessions := g.all["session"]
	return g.each("session", "session_parent_idx", id, func(r []any) error {
		if child := sessions.Text(r, "id"); child != "" {
			return g.session(child, depth-1)
		}
		return nil
	})
}

// each calls f with the rows of a table that an index has under an id.
func (g reading) each(table, index, id string, f func(row []any) error) error {
	numbers, err := g.store.Under(g.all[index], id)
	if err != nil {
		return err
	}
	for _, number := range numbers {
		r, err := g.store.Row(g.all[table], number)
		if err == nil {
			err = f(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// message is a message as the CLI stores it.
type message struct {
	Role       string   `json:"role"`
	Agent      string   `json:"agent"`
	ProviderID string   `json:"providerID"`
	ModelID    string   `json:"modelID"`
	Finish     string   `json:"finish"`
	Cost       float64  `json:"cost"`
	Tokens     *tokens  `json:"tokens"`
	Error      *problem `json:"error"`
}

func (g reading) messages(id string) error {
	e, table := g.evidence, g.all["message"]
	e.Answered = agent.No
	return g.each("message", "message_session_time_created_id_idx", id, func(r []any) error {
		var m message
		if table.Number(r, "time_created") >= g.since && read([]byte(table.Text(r, "data")), &m) &&
			m.Role == "assistant" {
			take(e, m)
		}
		return nil
	})
}

// take adds the evidence of one answer of the model. Messages come in order.
func take(e *agent.Evidence, m message) {
	e.Model = m.ProviderID + "/" + m.ModelID
	e.Fault = nil // an earlier error was overcome
	if m.Error != nil {
		e.Fault = m.Error.fault()
	}
	if m.Tokens != nil && m.Finish != "" {
		e.Usage = m.Tokens.add(e.Usage, m.Cost)
	}
	switch {
	case m.Agent == "compaction":
		e.Records = append(e.Records, compacted)
	case m.Finish != "":
		e.Answered = agent.Yes
	}
}

// parts collects refused tools. A part that is too large to read may hide another.
func (g reading) parts(id string) error {
	e, table := g.evidence, g.all["part"]
	return g.each("part", "part_session_idx", id, func(r []any) error {
		var p part
		data := table.Text(r, "data")
		if len(data) >= sqlite.MaxPayload/2 && strings.HasPrefix(data, `{"type":"tool"`) && !json.Valid([]byte(data)) {
			e.DenialsKnown = false
		}
		if table.Number(r, "time_created") < g.since || !strings.Contains(data, `"error"`) || !read([]byte(data), &p) ||
			p.Type != "tool" {
			return nil
		}
		if d := p.denial(); d != nil {
			e.Denials = append(e.Denials, *d)
		}
		return nil
	})
}

func contextFull() *fault.Fault {
	return fault.New(fault.ContextFull,
		"the conversation is longer than the model can read").Hint("begin a new session")
}
