package opencode

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/sqlite"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
)

const (
	// mostEarlier is the number of sessions from before the start after which the search for the session of a run ends.
	// Sessions are in the order of their creation, but an imported one keeps its time.
	mostEarlier = 512
	clockSlack  = 2 * time.Second
)

// Observe records the time, and the messages of a session that will be resumed.
func (d driver) Observe(l agent.Launch) agent.Observer {
	o := observer{launch: l, began: time.Now()}
	for _, a := range l.Args[:min(l.Translated, len(l.Args))] {
		if title, ok := strings.CutPrefix(a, titleFlag); ok {
			o.title = title
		}
	}
	if l.Session != "" && !l.Interactive {
		o.before = o.messages()
	}
	return o
}

type observer struct {
	launch agent.Launch
	began  time.Time
	title  string
	before map[string]bool // ids of the session's earlier messages; nil if unknown
}

// After reads the CLI's database. The session is the one that a person named, the one created with our title, or with
// --continue the only one of the directory that was used meanwhile. Otherwise there is no evidence. Stderr is not
// evidence, because any program can write to it.
func (o observer) After(x agent.Exit) agent.Evidence {
	o.launch.Session = cmp.Or(o.launch.Session, x.Session)
	e := agent.Evidence{Session: o.launch.Session}
	if o.launch.Interactive {
		return e
	}
	if o.title != "" || e.Session != "" || o.launch.Spec.Newest {
		var found agent.Evidence
		if o.visit(func(r *reading) (err error) { found, err = o.read(r); return err }) {
			e = found
		}
	}
	if e.Fault == nil && x.Code > 0 && slices.Contains(e.Records, compacted) {
		e.Fault = contextFull()
	}
	e.Records = slices.DeleteFunc(e.Records, func(r string) bool { return r == compacted })
	return e
}

// compacted is an entry in Records that marks a session that was shortened during the run.
const compacted = "\x00compacted"

// keeps returns the places of the CLI's own data.
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

// visit calls see to read the database. It tries three times, because the write-ahead log may restart while we read. It
// reports false if each attempt failed, or the database changed meanwhile.
func (o observer) visit(see func(*reading) error) bool {
	path := database(o.launch.Env)
	if path == "" {
		return false
	}
	once := func() bool {
		s, err := sqlite.Open(path)
		if err != nil {
			return false
		}
		defer s.Close()
		all, err := s.Tables()
		return err == nil && see(&reading{store: s, all: all, path: path, observer: o}) == nil && s.Valid()
	}
	for range 3 {
		if once() {
			return true
		}
	}
	return false
}

// messages returns the ids of all messages of the session and of its sub-agents, or nil.
func (o observer) messages() map[string]bool {
	var ids map[string]bool
	known := o.visit(func(g *reading) error {
		ids = map[string]bool{}
		return g.tree(o.launch.Session, func(session string) error {
			return g.each("message", messagesIndex, session, func(r []any) error {
				ids[g.all["message"].Text(r, "id")] = true
				return nil
			})
		})
	})
	if !known {
		return nil
	}
	return ids
}

// spent returns the usage of a session so far, or nil. Over ACP the CLI reports only that of a turn's last request.
func spent(env []string, session string) *event.Usage {
	e := agent.Evidence{Session: session, Usage: &event.Usage{}}
	o := observer{launch: agent.Launch{Env: env}, before: map[string]bool{}}
	known := o.visit(func(g *reading) error {
		e.Usage = &event.Usage{}
		g.evidence, g.ours, g.answers = &e, map[string]bool{}, map[string]bool{}
		return g.messages(session)
	})
	if !known {
		return nil
	}
	return e.Usage
}

// read collects the evidence.
func (o observer) read(g *reading) (e agent.Evidence, err error) {
	e = agent.Evidence{Session: o.launch.Session, Records: []string{g.path}}
	if e.Session == "" {
		if e.Session, err = o.find(g.store, g.all); err != nil || e.Session == "" {
			return agent.Evidence{}, err
		}
	}
	g.evidence, g.ours, g.answers = &e, map[string]bool{}, map[string]bool{}
	return e, g.tree(e.Session, g.session)
}

// find returns the session that was created with our title. The title may have changed, but the event that created the
// session has the first one. If there are two such sessions, find returns neither.
func (o observer) find(s *sqlite.File, all map[string]sqlite.Table) (string, error) {
	if o.title == "" {
		return o.newest(s, all["session"])
	}
	sessions, events, index := all["session"], all["event"], all["event_aggregate_seq_idx"]
	var mine []string
	left := mostEarlier
	err := s.Newest(sessions, func(r []any) bool {
		id, at := sessions.Text(r, "id"), sessions.Number(r, "time_created")
		switch {
		case at < o.began.Add(-clockSlack).UnixMilli():
			left--
		case sessions.Text(r, "parent_id") != "": // a run may have any number of sub-agents
		case sessions.Text(r, "title") == o.title || o.created(s, events, index, id):
			mine = append(mine, id)
		}
		return left > 0
	})
	if err != nil || len(mine) != 1 {
		return "", err
	}
	return mine[0], nil
}

// newest returns the only session of the directory that was used since the start, or "". It checks all sessions,
// because any number may have been created after that one.
func (o observer) newest(s *sqlite.File, sessions sqlite.Table) (string, error) {
	var used []string
	err := s.Newest(sessions, func(r []any) bool {
		if sessions.Number(r, "time_updated") >= o.began.UnixMilli() && sessions.Text(r, "parent_id") == "" &&
			pathname.Real(sessions.Text(r, "directory")) == pathname.Real(o.launch.Dir) {
			used = append(used, sessions.Text(r, "id"))
		}
		return true
	})
	if err != nil || len(used) != 1 {
		return "", err
	}
	return used[0], nil
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
	observer
	store    *sqlite.File
	all      map[string]sqlite.Table
	path     string
	evidence *agent.Evidence
	ours     map[string]bool // ids of the messages of this run
	answers  map[string]bool // those of them that are whole answers of the model
}

const messagesIndex = "message_session_time_created_id_idx"

// tree calls f with a session and with those of its sub-agents, at any depth. It calls f once for each, because a
// damaged database may have a cycle.
func (g *reading) tree(id string, f func(id string) error) error {
	ids, seen := []string{id}, map[string]bool{id: true}
	for i := 0; i < len(ids); i++ {
		if err := f(ids[i]); err != nil {
			return err
		}
		err := g.each("session", "session_parent_idx", ids[i], func(r []any) error {
			if child := g.all["session"].Text(r, "id"); child != "" && !seen[child] {
				ids, seen[child] = append(ids, child), true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// session collects the evidence of one session. For a sub-agent that is only the denials.
func (g *reading) session(id string) error {
	if id == g.evidence.Session {
		g.evidence.DenialsKnown, g.evidence.Answered = true, agent.No
	}
	if err := g.messages(id); err != nil {
		return err
	}
	return g.parts(id)
}

// each calls f with the rows of a table that an index lists for an id.
func (g *reading) each(table, index, id string, f func(row []any) error) error {
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

// messages collects the evidence in the messages of this run. It distinguishes them from those of earlier turns by
// their ids, because the last turn may have ended a moment before. If those ids are not known, as for a fork, it
// compares times, which copied messages keep.
func (g *reading) messages(session string) error {
	table := g.all["message"]
	return g.each("message", messagesIndex, session, func(r []any) error {
		id := table.Text(r, "id")
		earlier := g.before[id]
		if g.before == nil {
			earlier = table.Number(r, "time_created") < g.began.UnixMilli()
		}
		if earlier {
			return nil
		}
		g.ours[id] = true
		var m message
		if session == g.evidence.Session && text.Lenient([]byte(table.Text(r, "data")), &m) && m.Role == "assistant" {
			take(g.evidence, m)
			g.answers[id] = m.Finish != "" && m.Agent != compaction
		}
		return nil
	})
}

// take adds the evidence of one answer of the model. Messages come in order.
func take(e *agent.Evidence, m message) {
	e.Model = m.ProviderID + "/" + m.ModelID
	e.Fault = nil // the agent overcame an earlier error
	if m.Error != nil {
		e.Fault = m.Error.fault()
	}
	if m.Tokens != nil && m.Finish != "" {
		e.Usage = m.Tokens.add(e.Usage, m.Cost)
	}
	if m.Agent == compaction {
		e.Records = append(e.Records, compacted)
	}
}

// compaction is the agent of the messages that shorten a conversation.
const compaction = "compaction"

// parts looks for an answer and for denied tools in this run's messages. It looks at the time of the message, because a
// fork copies parts with new times. A part that is too large to read may hide a denial.
func (g *reading) parts(id string) error {
	e, table := g.evidence, g.all["part"]
	return g.each("part", "part_session_idx", id, func(r []any) error {
		var p part
		data, message := table.Text(r, "data"), table.Text(r, "message_id")
		cut := len(data) >= sqlite.MaxPayload/2 && !json.Valid([]byte(data))
		if cut && strings.HasPrefix(data, `{"type":"tool"`) {
			e.DenialsKnown = false
		}
		if cut && g.answers[message] {
			e.Answered = agent.Yes
		}
		if cut || !g.ours[message] || !text.Lenient([]byte(data), &p) {
			return nil
		}
		said := p.Type == "text" && !p.Synthetic && strings.TrimSpace(p.Text) != ""
		if g.answers[message] && (said || p.Type == "tool") {
			e.Answered = agent.Yes
		}
		if p.Type != "tool" {
			return nil
		}
		d := p.denial()
		if s := p.State; d == nil && (s.Status == "completed" || s.Status == "error") {
			e.Calls = append(e.Calls, event.FinishedCall{
				Call: *p.call(), Began: time.UnixMilli(s.Time.Start), Ended: time.UnixMilli(s.Time.End),
				Failed: s.Status == "error",
			})
		}
		if d != nil {
			e.Denials = append(e.Denials, *d)
		}
		return nil
	})
}

func contextFull() *fault.Fault {
	return fault.New(fault.ContextFull, "the conversation is longer than the model can read").
		Hint("begin a new session")
}
