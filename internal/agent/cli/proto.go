package cli

import (
	"omniagent/internal/agent"
	"omniagent/internal/event"
)

// Proto is both sides of the wire of an agent whose process stays for many turns, without I/O: bytes in, events and
// bytes out. A captured conversation can so be replayed and cut anywhere, without a process. A Proto belongs to one
// process; the next process begins with a new one. Its methods are called by one goroutine at a time.
//
// It promises exactly one Ended that is not Unasked for every message, as long as the agent keeps its own protocol.
// What is missing when the process is gone, End adds.
type Proto interface {
	// Begin is what a process that has just started is told.
	Begin() Step
	// Feed takes what the agent prints. The bytes may be cut anywhere. Events may refer to them until the next call.
	Feed([]byte) Step
	// Ready says whether the agent has answered the greeting.
	Ready() bool
	// Do puts a command into the words of the wire. The error is a fault, or agent.ErrRestart; then nothing was sent
	// and nothing is changed.
	Do(Command) (Step, error)
	// End returns what is still open, and an Ended of our own for a message that has none.
	End(agent.Exit) []event.Event
	// Know adds what the wire has learned about the conversation.
	Know(*event.Facts)
}

// Step is the outcome of a call.
type Step struct {
	Events  []event.Event
	Lines   [][]byte  // for the agent, whole, in order
	Needs   []Need    // each is answered with a Command of the kind Met
	Settled []Settled // commands with a Token that the agent has accepted, or not
}

// Command is what a conversation wants. One member is set, besides Token.
type Command struct {
	Message   []event.Block // begins a turn
	Steer     []event.Block // for the turn that runs
	Answer    *event.Reply
	Change    *agent.Change
	Interrupt bool
	Met       *Met

	Token int // of Steer and Change: Settled names it
}

// Settled is the agent's answer to a Steer or a Change. Each gets one at most.
type Settled struct {
	Token int
	Err   error // a fault; nil: the change holds, or the message is part of the turn and its end waits for it
}

// Need is what only the host of the conversation can say.
type Need struct {
	ID      string
	Moment  *agent.Moment // the host may step in here
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
