package session

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
)

// version is the version of the records. A journal of a newer version is not changed.
const version = 1

// Record is a Begin, Message, End, Compacted, Adopted, Changed, Todos, Denied or Logged. Readers also get Unknown and
// Damaged.
type Record interface{ kind() kind }

// kind is the kind of a record. It is a number, so that the garbage collector need not scan the index of a long
// journal.
type kind uint8

const (
	unknown kind = iota // to this version
	kindBegin
	kindMessage
	kindEnd
	kindCompacted
	kindAdopted
	kindChanged
	kindTodos
	kindDenied
	kindLogged // an event that does not change the conversation's state; it is not part of the tree
	// like kindLogged, but needed for a turn without an end: a prompt, the beginning of a turn, a question and its
	// outcome
	kindMark
)

// String returns the kind's name in journals, if the kind alone determines it.
func (k kind) String() string {
	return [...]string{"", "begin", "message", "end", "compacted", "adopted", "changed", "todos", "denied", "", ""}[k]
}

// inTree reports whether records of this kind can be parents.
func (k kind) inTree() bool { return k != kindLogged && k != kindMark }

// nameOf returns the name of a record's kind in journals.
func nameOf(r Record) string {
	switch r := r.(type) {
	case Logged:
		return string(r.Event.Kind)
	case Changed:
		if r.Event != nil && r.Event.Facts != nil && r.Event.Facts.Mode != "" {
			return "mode"
		} else if r.Event != nil {
			return "facts"
		}
	case Unknown:
		return r.Kind
	case Damaged:
		return "damaged"
	}
	return r.kind().String()
}

// known returns the kind with that name.
func known(name []byte) kind {
	for k := kindBegin; k <= kindDenied; k++ {
		if string(name) == k.String() {
			return k
		}
	}
	switch string(name) {
	case "mode", "facts":
		return kindChanged
	case string(event.Prompted), string(event.TurnBegan), string(event.Question), string(event.Replied),
		string(event.Withdrawn):
		return kindMark
	case string(event.Text), string(event.Thinking), string(event.ToolCall), string(event.ToolResult),
		string(event.Started),
		string(event.Answered), string(event.Steered), string(event.Retry), string(event.Failed),
		string(event.Compacted), string(event.Notice):
		return kindLogged
	}
	return unknown
}

// Begin is the first record.
type Begin struct {
	Version  int    `json:"v"` // set by Create
	ID       string `json:"id"`
	Agent    string `json:"agent,omitempty"` // the driver's name; empty for the native agent
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Mode     string `json:"mode,omitempty"`
	Address
	Confinement
	Cwd     string    `json:"cwd"`
	Created time.Time `json:"created"` // zero means now
	Title   string    `json:"title,omitempty"`
	Forked  *Origin   `json:"forked,omitempty"`
	InFork  string    `json:"in_fork,omitempty"` // the id of the fork of the workspace in which it began
	// a script answered in place of a model, so it cost nothing and cannot continue without that script
	Rehearsed bool `json:"rehearsed,omitempty"`
}

// AgentName returns the name of the session's agent.
func (b Begin) AgentName() string {
	return cmp.Or(b.Agent, "native")
}

// Origin is the session that a fork was made from.
type Origin struct {
	ID     string `json:"id"`
	Record int64  `json:"record"` // the last record that was copied
}

// Message is a message of one side. The fields about an answer are empty for the user's messages.
type Message struct {
	model.Message
	Answer string       `json:"answer,omitempty"` // the API's id of the answer
	Model  string       `json:"model,omitempty"`  // the API's name
	Usage  *model.Usage `json:"usage,omitempty"`
	Cost   float64      `json:"cost,omitempty"`
	Turn   int64        `json:"turn,omitempty"` // set by Append
}

// End closes a turn.
type End struct {
	Error string `json:"error,omitempty"` // why it failed
	// Set by Append: the state of the session, so that a reader needs only this record.
	Total Total `json:"total"`

	Event *event.Event `json:"event,omitempty"` // as sent to hosts
}

// Ended returns how the turn ended. Its usage includes the whole turn, with sub-agents and summaries.
func (e End) Ended() event.End {
	if e.Event == nil || e.Event.End == nil {
		return event.End{}
	}
	return *e.Event.End
}

// spent returns what the turn has cost.
func (e End) spent() (used model.Usage, cost float64) {
	u := e.Ended().Usage
	if u == nil {
		return used, 0
	}
	if u.CostUSD != nil {
		cost = finite(*u.CostUSD)
	}
	return model.Usage{
		Input: max(0, u.Input-u.Cached-u.Written), CacheRead: u.Cached, CacheWrite: u.Written, Output: u.Output,
		Reasoning: u.Reasoning, Estimated: u.Estimated,
	}, cost
}

// Total holds the running totals of a session. Usage, Cost, Turns, Calls and Denials never decrease, because they
// include abandoned branches.
type Total struct {
	Usage       model.Usage `json:"usage"`
	Cost        float64     `json:"cost,omitempty"`
	Turns       int         `json:"turns"`
	Calls       int         `json:"calls"` // tool calls
	Denials     int         `json:"denials,omitempty"`
	Messages    int         `json:"messages"` // of the branch, including those before a compaction
	Compactions int         `json:"compactions,omitempty"`
	Title       string      `json:"title,omitempty"`
	Provider    string      `json:"provider,omitempty"`
	Model       string      `json:"model,omitempty"`
	Mode        string      `json:"mode,omitempty"`
	Session     string      `json:"agent_session,omitempty"` // the agent's own id of the session
	Address
	Confinement
}

// Address is the address of the native agent's model, so that a resumed session uses it again.
type Address struct {
	Base     string `json:"api_base,omitempty"`
	Declared string `json:"api_base_from,omitempty"` // a layer, as in provider.Layer
	Profile  string `json:"profile,omitempty"`       // the user's profile that named the model
}

// Confinement describes how the session's commands were confined. It is empty if that is unknown.
type Confinement struct {
	Sandbox string `json:"sandbox,omitempty"` // workspace-write, or off
	Network string `json:"network,omitempty"` // off, on, or the reachable hosts, separated by commas
	Walls   string `json:"walls,omitempty"`   // the measured walls: namespaces, landlock, seatbelt, none
	Holes   string `json:"holes,omitempty"`   // what the walls did not stop, one per line
	Planned bool   `json:"planned,omitempty"` // no command ran in them, see event.Walls
	// the requested network, whether or not the walls could enforce it
	Wanted string `json:"wanted,omitempty"`
}

// Measured returns the walls as they were measured, or nil if they were not.
func (c Confinement) Measured() *event.Walls {
	if c.Walls == "" {
		return nil
	}
	return &event.Walls{
		Name: c.Walls, Network: c.Network, Planned: c.Planned,
		Holes: strings.FieldsFunc(c.Holes, func(r rune) bool { return r == '\n' }),
	}
}

// Compacted says that the model sees a summary instead of the messages before.
type Compacted struct {
	Summary model.Message `json:"summary"`
	Keep    int64         `json:"keep,omitempty"` // record of the first message that it still sees, or 0
	Trigger string        `json:"trigger"`        // auto, manual
	Before  int64         `json:"before"`         // tokens
}

// Adopted says that the messages after it come from elsewhere, and replace those before it. If some of them are
// missing, the writer was killed, and this record and its messages are ignored.
type Adopted struct {
	From     string `json:"from,omitempty"` // the file
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Messages int    `json:"messages,omitempty"` // number of messages that follow; set by Adopt
}

// Changed is a change of settings. Empty fields are unchanged.
type Changed struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	Mode     string `json:"mode,omitempty"`
	Session  string `json:"agent_session,omitempty"`
	Address
	Confinement
	Title string `json:"title,omitempty"`

	Event *event.Event `json:"event,omitempty"` // as sent to hosts
}

// Todos is the complete list of tasks.
type Todos struct {
	Items []Todo `json:"items"`
}

// Todo is an entry of the list.
type Todo struct {
	Content string `json:"content"`
	Status  string `json:"status"` // pending, in_progress, completed
	Active  string `json:"active,omitempty"`
}

// Denied is a call that was not allowed.
type Denied struct {
	Tool   string `json:"tool"`
	Call   string `json:"call,omitempty"` // id of the call
	Reason string `json:"reason,omitempty"`

	Event *event.Event `json:"event,omitempty"` // as sent to hosts
}

// Logged is an event as sent to hosts. Its effect on the conversation is in other records.
type Logged struct{ Event *event.Event }

// Unknown is a record of a kind that this version does not know.
type Unknown struct {
	Kind string
	Data json.RawMessage
}

// Damaged is a place in the file without a valid record.
type Damaged struct {
	At     int64  `json:"at"`   // offset in the file
	Size   int    `json:"size"` // in bytes; 0 if something is missing there
	Reason string `json:"reason"`
}

// MarshalJSON returns the event's own form.
func (l Logged) MarshalJSON() ([]byte, error) {
	body := *l.Event
	body.Kind = "" // the record has the kind
	return text.Line(body)
}

// MarshalJSON returns the original data.
func (u Unknown) MarshalJSON() ([]byte, error) { return u.Data, nil }

// eventOf returns the event in a record, or nil.
func eventOf(r Record) *event.Event {
	switch r := r.(type) {
	case Logged:
		return r.Event
	case End:
		return r.Event
	case Denied:
		return r.Event
	case Changed:
		return r.Event
	}
	return nil
}

func (Begin) kind() kind     { return kindBegin }
func (Message) kind() kind   { return kindMessage }
func (End) kind() kind       { return kindEnd }
func (Compacted) kind() kind { return kindCompacted }
func (Adopted) kind() kind   { return kindAdopted }
func (Changed) kind() kind   { return kindChanged }
func (Todos) kind() kind     { return kindTodos }
func (Denied) kind() kind    { return kindDenied }
func (Unknown) kind() kind   { return unknown }
func (Damaged) kind() kind   { return unknown }
func (l Logged) kind() kind  { return known([]byte(l.Event.Kind)) }

func logged(h head, data []byte) (Record, error) {
	ev := &event.Event{}
	if err := json.Unmarshal(data, ev); err != nil {
		return nil, err
	}
	ev.Kind = event.Kind(h.name)
	return Logged{ev}, nil
}
