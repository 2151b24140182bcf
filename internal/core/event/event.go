// Package event defines what can happen in a conversation, in one form for every agent and every host.
//
// An event reports only what was observed: a number that an agent does not report is absent, not zero, and what we
// concluded ourselves is marked Synthetic. Nothing is refused: what has no kind of its own is a Notice. Events have a
// JSON form that reads back as the same event, so that a journal of them is the conversation. Raw is not part of it:
// the journal keeps its hash.
package event

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
)

// Kind says what happened.
type Kind string

// The kinds. The comment names the members of Event that matter.
const (
	// a message was accepted: Blocks. It is queued; TurnBegan follows when the agent takes it up
	Prompted   Kind = "prompt"
	Started    Kind = "started"     // a session of the agent began or goes on: Session, Model
	Changed    Kind = "changed"     // facts of the conversation changed: Facts holds only those that did
	TurnBegan  Kind = "turn"        // the agent took up a message
	Text       Kind = "text"        // Text of the answer; Delta: a piece of it
	Thinking   Kind = "thinking"    // Text; Delta
	Answered   Kind = "answered"    // the model has finished one answer; its calls follow: Model, Answer
	ToolCall   Kind = "tool_call"   // Call
	ToolResult Kind = "tool_result" // Result
	Denied     Kind = "denied"      // a tool was refused by policy: Denial
	Question   Kind = "question"    // Ask
	Replied    Kind = "answer"      // a question was answered: Reply
	Withdrawn  Kind = "withdrawn"   // a question needs no answer any more: Ask, with its ID alone
	Steered    Kind = "steered"     // a message reached the turn that runs: Blocks
	Retry      Kind = "retry"       // the agent repeats a request: Retry
	Failed     Kind = "failed"      // Fault; Terminal: the turn is lost with it
	Ended      Kind = "end"         // the turn is over: End
	Compacted  Kind = "shortened"   // the conversation was shortened: Compaction
	Notice     Kind = "notice"      // everything else; Text where it has one
)

// Event is one thing that happened. Only the pointers that its Kind names are set.
type Event struct {
	Kind Kind `json:"kind,omitempty"`

	// Seq, Time and Turn are set by the conversation. Seq is the number of the journal's record. Turn is 0 outside of
	// turns.
	Seq  int64     `json:"-"`
	Time time.Time `json:"-"`
	Turn int64     `json:"turn,omitempty"`

	Session string `json:"agent_session,omitempty"` // the agent's own id, if the event has it
	// the Call whose sub-agent this happened to; empty: the agent itself
	Parent     string       `json:"parent,omitempty"`
	Model      string       `json:"model,omitempty"`
	Text       string       `json:"text,omitempty"`
	Delta      bool         `json:"delta,omitempty"`
	Blocks     []Block      `json:"blocks,omitempty"`
	Facts      *Facts       `json:"facts,omitempty"`
	Answer     *Answer      `json:"answer,omitempty"`
	Call       *Call        `json:"call,omitempty"`
	Result     *Result      `json:"result,omitempty"`
	Denial     *Denial      `json:"denial,omitempty"`
	Ask        *Ask         `json:"question,omitempty"`
	Reply      *Reply       `json:"reply,omitempty"`
	Retry      *Repetition  `json:"retry,omitempty"`
	Fault      *fault.Fault `json:"fault,omitempty"`
	Terminal   bool         `json:"terminal,omitempty"`
	End        *End         `json:"end,omitempty"`
	Compaction *Compaction  `json:"compaction,omitempty"`
	Synthetic  bool         `json:"synthetic,omitempty"` // we concluded it; the agent did not report it
	// with Ended: no message began this turn; something that the agent had left running woke it
	Unprompted bool `json:"unasked,omitempty"`
	// with Notice: the reason why we deny a call, or all that the agent would ask about from now on
	Denies bool `json:"denies,omitempty"`

	Hash string `json:"raw,omitempty"` // the first 32 hexadecimal digits of the SHA-256 of Raw

	Raw json.RawMessage `json:"-"` // what it was read from; valid until the next Feed of the decoder
}

// Block is a part of a message: text, or with Media an image or a document.
type Block struct {
	Text  string `json:"text,omitempty"`
	Media string `json:"media,omitempty"` // such as image/png
	Data  []byte `json:"data,omitempty"`
	Name  string `json:"name,omitempty"` // of a document, or of a text that a host added
}

// AgentWord begins the name of a text block with the prompt of an agent that a person has chosen for the conversation.
const AgentWord = "@agent:"

// Reminder is the name of a text that reminds the model of its list of tasks. A person does not see it.
const Reminder = "@reminder"

// Facts describe a conversation as far as it is known. In a Changed event the members that did not change are empty.
type Facts struct {
	Agent    string           `json:"agent,omitempty"`    // the driver's name
	Version  string           `json:"version,omitempty"`  // the agent's own
	Model    string           `json:"model,omitempty"`    //
	Provider string           `json:"provider,omitempty"` // of the model; empty: not known
	Vendor   string           `json:"vendor,omitempty"`   // in the words of the profile that was used; empty: none was
	Mode     setting.Approval `json:"mode,omitempty"`
	Dir      string           `json:"dir,omitempty"`
	Tools    []string         `json:"tools,omitzero"`
	Servers  []Server         `json:"servers,omitzero"`  // of MCP
	Helpers  []string         `json:"helpers,omitzero"`  // kinds of sub-agents
	Walls    *Walls           `json:"walls,omitempty"`   // nil: nothing is known
	Window   int64            `json:"window,omitempty"`  // tokens of the model's context; 0: not known
	Commands []string         `json:"commands,omitzero"` // the agent's own, without a slash
}

// Merge copies the members of change that are set.
func (f *Facts) Merge(change Facts) {
	f.Agent = cmp.Or(change.Agent, f.Agent)
	f.Version = cmp.Or(change.Version, f.Version)
	f.Model = cmp.Or(change.Model, f.Model)
	f.Provider = cmp.Or(change.Provider, f.Provider)
	f.Vendor = cmp.Or(change.Vendor, f.Vendor)
	f.Mode = cmp.Or(change.Mode, f.Mode)
	f.Dir = cmp.Or(change.Dir, f.Dir)
	f.Walls = cmp.Or(change.Walls, f.Walls)
	f.Window = cmp.Or(change.Window, f.Window)
	if change.Tools != nil {
		f.Tools = change.Tools
	}
	if change.Servers != nil {
		f.Servers = change.Servers
	}
	if change.Helpers != nil {
		f.Helpers = change.Helpers
	}
	if change.Commands != nil {
		f.Commands = change.Commands
	}
}

// Server is an MCP server of a conversation.
type Server struct {
	Name   string `json:"name"`
	Status string `json:"status"` // connected, failed, or the agent's own word
}

// Walls describe what stood between an agent's commands and the system: what was tried, not what was asked for.
type Walls struct {
	Name    string   `json:"name"`    // namespaces, landlock, seatbelt, none
	Network string   `json:"network"` // off, on, or the hosts that can be reached, separated by commas
	Holes   []string `json:"holes"`   // what they do not stop
	// they held before on this machine, and are built and tried again before the first command, which is not started
	// if they do not hold
	Planned bool `json:"planned,omitempty"`
}

// String returns the name and the network in one line, such as "namespaces (planned), network off".
func (w Walls) String() string {
	if w.Planned {
		return w.Name + " (planned), network " + w.Network
	}
	return w.Name + ", network " + w.Network
}

// Answer ends one answer of the model. Its text came before, in events of their own.
type Answer struct {
	ID     string `json:"id,omitempty"`     // of the model's API
	Reason string `json:"reason,omitempty"` // why it stopped: end_turn, tool_use, max_tokens, or the API's own word
	Usage  *Usage `json:"usage,omitempty"`  // of this answer alone
}

// ToolKind is what a tool does, whatever the agent calls it.
type ToolKind string

// The kinds of tools.
const (
	Shell  ToolKind = "shell"
	Read   ToolKind = "read"
	Write  ToolKind = "write" // it changes or makes files
	Web    ToolKind = "web"
	Search ToolKind = "search" // in files
	MCP    ToolKind = "mcp"
	Agent  ToolKind = "agent" // another agent does the work
	Other  ToolKind = "other"
)

// Call is a tool called by the model.
type Call struct {
	ID   string   `json:"id,omitempty"`
	Name string   `json:"name,omitempty"` // the agent's own name
	Kind ToolKind `json:"kind,omitempty"`
	// Input is as the model sent it; its JSON form is the string "arguments", which keeps every byte. Canonical is that
	// input with the member names that hosts know, such as file_path, if the tool also accepts others; nil: it is the
	// Input.
	Input     json.RawMessage `json:"-"`
	Canonical json.RawMessage `json:"-"`
	Command   string          `json:"command,omitempty"` // for Shell, if known
	Path      string          `json:"path,omitempty"`    // for Read and Write, if known
}

// Result is what a tool returned.
type Result struct {
	ID       string  `json:"id,omitempty"`   // of the Call
	Name     string  `json:"name,omitempty"` // empty if the agent does not repeat it
	Failed   bool    `json:"failed,omitempty"`
	Output   string  `json:"output,omitempty"`
	ExitCode *int    `json:"exit_code,omitempty"` // of a command, if the agent reports it
	Change   *Change `json:"change,omitempty"`    // of a file, if the agent reports it
	// what it ran with, if a host changed the Call's input; "arguments" in JSON
	Input json.RawMessage `json:"-"`
}

// Change is what a tool did to a file.
type Change struct {
	Path string  `json:"path"`          // absolute
	Old  *string `json:"old,omitempty"` // nil: there was no such file
	New  string  `json:"new"`
}

// Differs reports whether the content of the file has changed, or the file is new.
func (c Change) Differs() bool { return c.Old == nil || *c.Old != c.New }

// FinishedCall is a Call that is over, according to the agent's records.
type FinishedCall struct {
	Call
	Began, Ended time.Time
	Failed       bool
}

// Denial is a tool that was not run because policy forbade it, or because nobody could be asked.
type Denial struct {
	CallID string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`    // the agent's own name
	Reason string `json:"reason,omitempty"`  // the agent's own words or code
	ByUser bool   `json:"by_user,omitempty"` // a person was asked and said no; else nobody was asked, or a rule decided
	Firm   bool   `json:"firm,omitempty"`    // a rule or a hook decided: no mode and no answer lets it run
}

// Ask is a question to a person.
type Ask struct {
	ID      string   `json:"id"`
	Text    string   `json:"text,omitempty"`
	Options []string `json:"options,omitempty"`
	Tool    *Call    `json:"tool,omitempty"` // the question is whether this may run
	// the reason in our own words, and the part of a command that it is about; Text may have the agent's words
	Reason string `json:"reason,omitempty"`
	Part   string `json:"part,omitempty"`
	Opens  string `json:"opens,omitempty"` // a directory outside the walls that the call needs
	// the Tool is itself a question: its answer is its input filled in, a text, or one of the Options
	Form bool `json:"form,omitempty"`
}

// The options of a question whether a tool may run.
const (
	Allow  = "allow"
	Always = "always" // and similar calls, to the end of the conversation
	Deny   = "deny"
)

// Reply is the answer to a question.
type Reply struct {
	Question string `json:"question,omitempty"` // its id
	Option   string `json:"option,omitempty"`   // one of Ask.Options
	Text     string `json:"text,omitempty"`
	// Further members, if the question is whether a tool may run. An agent that cannot follow one of them takes the
	// answer as a no. Input is what the tool is called with instead; for a form, the filled one; "arguments" in JSON.
	Input json.RawMessage `json:"-"`
	// calls like these need no question from now on, as in docs/rules.md
	Rules  []string         `json:"rules,omitempty"`
	Mode   setting.Approval `json:"mode,omitempty"`   // the mode from now on
	Stop   bool             `json:"stop,omitempty"`   // the turn ends with it
	Secret bool             `json:"secret,omitempty"` // only the agent gets the text, and no record has it
	// it is our denial: nobody could be asked, nobody answered in time, or what the call changes is not as it was asked
	Automatic bool `json:"by_us,omitempty"`
}

// Repetition is a request that an agent repeats.
type Repetition struct {
	Attempt int           `json:"attempt,omitempty"` // 0: not reported
	Of      int           `json:"of,omitempty"`      // 0: not reported
	After   time.Duration `json:"after_ns,omitempty"`
	Status  int           `json:"status,omitempty"` // of HTTP
	Reason  string        `json:"reason,omitempty"`
}

// Sentence says that the model is asked again, when, and why, as far as that is known.
func (a Repetition) Sentence() string {
	s := "the model is asked again"
	if after := a.After.Round(time.Second); after > 0 {
		s += " in " + after.String()
	}
	if note := text.OneLine(a.Note(), longestReason); note != "" {
		s += ": " + note
	}
	return s
}

const longestReason = 1000 // bytes of what an agent says about an attempt

// Note says which attempt failed, and why, as far as that is known.
func (a Repetition) Note() string {
	why, attempt := a.Reason, ""
	if a.Status != 0 {
		why = strings.TrimSpace(fmt.Sprintf("%s (HTTP %d)", why, a.Status))
	}
	switch {
	case a.Of != 0:
		attempt = fmt.Sprintf("attempt %d of %d failed", a.Attempt, a.Of)
	case a.Attempt != 0:
		attempt = fmt.Sprintf("attempt %d failed", a.Attempt)
	}
	if attempt == "" || why == "" {
		return attempt + why
	}
	return attempt + ": " + why
}

// Reason says why a turn ended. After the conversation has handled it, it is one of the constants; before, it may be
// the agent's own word.
type Reason = string

// The reasons.
const (
	Success       Reason = "success"
	FailedTurn    Reason = "error_during_execution"
	Cancelled     Reason = "cancelled" // somebody interrupted it, or it never began
	MaxTurns      Reason = "error_max_turns"
	MaxBudget     Reason = "error_max_budget_usd"
	MaxFormErrors Reason = "error_max_structured_output_retries"
)

// End is how a turn ended.
type End struct {
	OK   bool   `json:"ok"`
	Text string `json:"text,omitempty"` // the final answer, if the event has it
	// the answer that fits the schema; "structured" in JSON, as a string
	Structured  json.RawMessage `json:"-"`
	Reason      Reason          `json:"reason,omitempty"`
	AgentReason string          `json:"said,omitempty"` // the agent's own word, if it differs from Reason
	Usage       *Usage          `json:"usage,omitempty"`
	Turns       *int            `json:"model_turns,omitempty"` // answers of the model, if reported
	Took        time.Duration   `json:"took_ns,omitempty"`     // the whole turn; 0: not reported
	Asking      time.Duration   `json:"asking_ns,omitempty"`   // the part of it in which a model answered
	// what went wrong and was repaired, such as a repeated request
	Notes []string `json:"notes,omitempty"`
	// paths that were written in the turn and are deleted with the walls; a directory ends in a slash
	NotKept []string `json:"not_kept,omitempty"`
	KeptBy  string   `json:"kept_by,omitempty"` // the flag that gives the agent a directory, if it has one
}

// mostLost is how many paths a line names.
const mostLost = 5

// Lost returns a line that names the paths that are not kept, or "" for no paths.
func (e *End) Lost() string {
	if len(e.NotKept) == 0 {
		return ""
	}
	var names []string
	for _, path := range e.NotKept[:min(len(e.NotKept), mostLost)] {
		names = append(names, text.Name(path))
	}
	if more := len(e.NotKept) - mostLost; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	kept := "the workspace"
	if e.KeptBy != "" {
		kept += " and what " + e.KeptBy + " opens"
	}
	return "not kept: " + strings.Join(names, ", ") + ". Behind the walls only " + kept + " can be kept"
}

// Compaction is how a conversation was shortened.
type Compaction struct {
	Trigger string `json:"trigger,omitempty"` // auto or manual
	Before  int64  `json:"before,omitempty"`  // tokens until then
}

// Usage is what a turn used. Cached tokens, read or written, are part of Input.
type Usage struct {
	Input     int64    `json:"input"`
	Output    int64    `json:"output"`
	Cached    int64    `json:"cached,omitempty"`
	Written   int64    `json:"written,omitempty"`
	Reasoning int64    `json:"reasoning,omitempty"`
	CostUSD   *float64 `json:"cost_usd,omitempty"`
	Estimated bool     `json:"estimated,omitempty"` // counted by us, since nobody reported it
}

// Add adds the tokens of another usage, and its cost if that is known.
func (u *Usage) Add(o Usage) {
	u.Input += o.Input
	u.Output += o.Output
	u.Cached += o.Cached
	u.Written += o.Written
	u.Reasoning += o.Reasoning
	u.Estimated = u.Estimated || o.Estimated
	if o.CostUSD != nil {
		sum := *o.CostUSD
		if u.CostUSD != nil {
			sum += *u.CostUSD
		}
		u.CostUSD = &sum
	}
}

// Since returns what was used since an earlier total.
func (u Usage) Since(before Usage) Usage {
	u.Input -= before.Input
	u.Output -= before.Output
	u.Cached -= before.Cached
	u.Written -= before.Written
	u.Reasoning -= before.Reasoning
	if u.CostUSD != nil && before.CostUSD != nil {
		cost := *u.CostUSD - *before.CostUSD
		u.CostUSD = &cost
	}
	return u
}
