package cli

import (
	"omniagent/internal/agent"
	"omniagent/internal/event"
)

// Proto is both sides of the wire of an agent that stays for many turns, without I/O: bytes in, events and bytes out. What was captured of
// one can so be replayed and cut anywhere, without a process. It belongs to one process; the next one begins with a new Proto. Its methods are
// called by one goroutine at a time.
//
// It promises exactly one Ended that is not Unasked for every message, as long as the other side keeps its own word; what is missing when the
// process is gone, End adds.
type Proto interface {
	// Begin is what a process that has just started is told.
	Begin() Step
	// Feed takes what the agent prints. The bytes may be cut anywhere. Events may refer to them until the next call.
	Feed([]byte) Step
	// Do puts what a host wants into the words of the wire. The error is a fault; then nothing was said and nothing is changed.
	Do(Command) (Step, error)
	// End returns what is still open, and an Ended of our own for a message that has none.
	End(agent.Exit) []event.Event
	// Know adds what the wire has told of the conversation.
	Know(*event.Facts)
}

// Step is what comes of a call.
type Step struct {
	Events  []event.Event
	Lines   [][]byte  // for the agent, whole, in order
	Needs   []Need    // each is answered with a Command of the kind Met
	Settled []Settled // changes that the agent has taken, or not
}

// Command is what a host wants. One member is set.
type Command struct {
	Message   []event.Block
	Answer    *event.Reply
	Change    *agent.Change
	Token     int // of the Change: Settled names it
	Interrupt bool
	Met       *Met
}

// Settled is the agent's word about a change.
type Settled struct {
	Token int
	Err   error // a fault; nil: it holds
}

// Need is what only the host of the conversation can say.
type Need struct {
	ID      string
	Moment  *agent.Moment // it may have a word
	Server  string        // without a Moment: a message for its MCP server of that name
	Message []byte
}

// Met answers a Need.
type Met struct {
	Need    string
	Word    agent.Word
	Message []byte
	Err     error
}

// Anew is the error of a change that the agent takes only when it is started: between two turns that is what happens to it.
type Anew struct{}

func (Anew) Error() string { return "the agent takes that only when it is started" }
