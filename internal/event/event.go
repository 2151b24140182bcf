// Package event is what can happen in a conversation with an agent, in one form for all of them, and the queue in which it waits to be heard.
//
// It promises that an event says no more than was observed: a number that an agent does not give is absent, not zero, and what we
// concluded ourselves is marked as Synthetic. It refuses nothing: what has no kind of its own is a Notice, and Raw keeps what came.
package event

import (
	"encoding/json"
	"time"

	"omniagent/internal/fault"
)

// Kind says what happened.
type Kind string

// The kinds. The comment names the members of Event that matter.
const (
	Started    Kind = "started"     // a session began or went on: Session, Model
	TurnBegan  Kind = "turn-began"  // the agent took up a message
	Text       Kind = "text"        // Text of the answer; Delta: a piece of it
	Thinking   Kind = "thinking"    // Text; Delta
	Answered   Kind = "answered"    // the model has said all of one answer, of which the calls follow: Model, Answer
	ToolCall   Kind = "tool-call"   // Call
	ToolResult Kind = "tool-result" // Result
	Denied     Kind = "denied"      // a tool was refused by policy: Denial
	Question   Kind = "question"    // Ask
	Withdrawn  Kind = "withdrawn"   // a question needs no answer any more: Ask, with its ID alone
	Retry      Kind = "retry"       // the agent repeats a request: Retry
	Failed     Kind = "failed"      // Fault; Terminal: the turn is lost with it
	Ended      Kind = "ended"       // the turn is over: End
	Compacted  Kind = "compacted"   // the conversation was shortened: Compaction
	Changed    Kind = "changed"     // other facts hold from here on: Mode, Model; what is empty is as it was
	Notice     Kind = "notice"      // all else; Text where it has one
)

// Event is one thing that happened. Of the pointers only those that its Kind names are set.
type Event struct {
	Kind       Kind
	Session    string // the agent's own id, where the event tells it
	Parent     string // the id of the Call whose sub-agent this happened to; empty: the agent itself
	Model      string
	Mode       string // an agent.Mode
	Text       string
	Delta      bool // Text goes on where the last delta of this kind ended; the whole follows or not, as the agent does
	Answer     *Answer
	Call       *Call
	Result     *Result
	Denial     *Denial
	Ask        *Ask
	Retry      *Again
	Fault      *fault.Fault
	Terminal   bool
	End        *End
	Compaction *Compaction
	Synthetic  bool            // concluded by us, not said by the agent
	Unasked    bool            // with Ended: no message began this turn, something that the agent had left running woke it
	Raw        json.RawMessage // what it was read from; valid until the next Feed of the decoder
}

// Answer is one answer of the model, whose text was told before.
type Answer struct {
	ID     string // of the model's API
	Reason string // why it stopped: end_turn, tool_use, max_tokens, or the API's own word
	Usage  *Usage // of this answer alone
}

// ToolKind is what a tool does, whatever an agent calls it.
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
	ID      string
	Name    string // the agent's own name
	Kind    ToolKind
	Input   json.RawMessage
	Command string // with the kind Shell, where it can be told
	Path    string // with Read and Write, where it can be told
}

// Result is what a tool gave back.
type Result struct {
	ID       string // of the Call
	Name     string // empty where the agent does not repeat it
	Failed   bool
	Output   string
	ExitCode *int            // of a command, where the agent tells it
	Change   *Change         // of a file, where the agent tells it
	Input    json.RawMessage // what it ran with, where that is not what the Call says: a host has changed it
}

// Change is what a tool made of a file.
type Change struct {
	Path string  // absolute
	Old  *string // nil: there was no such file
	New  string
}

// Denial is a tool that was not run because policy forbade it, or because nobody could be asked.
type Denial struct {
	CallID string
	Tool   string // the agent's own name
	Reason string // the agent's own words or code
	ByUser bool   // a person was asked and said no; else nobody was, or a rule decided
}

// Ask is a question to a person.
type Ask struct {
	ID      string
	Text    string
	Options []string
	Tool    *Call // the question is whether this may run
	Form    bool  // the Tool is itself a question: what is wanted is its input filled in, or a text
}

// Again is a request that an agent repeats.
type Again struct {
	Attempt, Of int // 0: not told
	After       time.Duration
	Status      int // of HTTP
	Reason      string
}

// End is how a turn ended.
type End struct {
	OK         bool
	Text       string          // the final answer, where the event carries it
	Structured json.RawMessage // the answer that fits the schema, where one was asked for and the agent tells it apart
	Reason     string          // the agent's own word
	Usage      *Usage
	Turns      *int          // model turns, where told
	Took       time.Duration // the whole turn; 0: not told
	Asking     time.Duration // the part of it in which a model answered
	Notes      []string      // what went wrong and was mended, such as a repeated request
}

// Compaction is how a conversation was shortened.
type Compaction struct {
	Trigger string // auto or manual
	Before  int64  // tokens until then
}

// Usage is what a turn cost. Cached tokens, read or written, are part of Input.
type Usage struct {
	Input, Output, Cached, Written, Reasoning int64
	CostUSD                                   *float64
	Estimated                                 bool // counted by us, since nobody told
}
