package agent

import (
	"context"
	"errors"

	"omniagent/internal/core/event"
)

// Mind answers one message at a time. The engine, a lasting process, and a process for each turn are Minds.
//
//	       Turn              Ended                     Close
//	idle ────────► a turn ─────────► idle (any number) ──────► closed
//	                │  ▲
//	                └──┘ Steer, Set, Answer; Kill and the end of ctx lead to Ended
//
// A Mind has no queue, no time limit for questions and no record: those belong to its conversation. It reports events
// through Services.Tell, from any goroutine, and even between turns, when a background task wakes the agent. Its
// methods may be called from several goroutines, but there is never more than one Turn.
type Mind interface {
	// Abilities are constant. The conversation never asks for anything the Mind cannot do.
	Abilities() Abilities
	// Facts returns what is known before the first message. Later ones are reported as Started and Changed events.
	Facts() event.Facts
	// Turn answers a message, and returns when the turn is over. Its last event is the only Ended event that is not
	// Unprompted; if it returns an error, there is no such event. Cancelling ctx asks the turn to end in order.
	Turn(ctx context.Context, message []event.Block) error
	// Steer adds a message to the current turn. If it returns an error, the message did not reach the turn.
	Steer(ctx context.Context, message []event.Block) error
	// Set changes the settings from the next tool call on. If it returns nil, the change applies, and a Changed event
	// has been reported; otherwise nothing has changed. ErrRestart means that the agent accepts this change only at its
	// start.
	Set(ctx context.Context, c Change) error
	// Answer answers an open question. It returns an error if the question is not open.
	Answer(r event.Reply) error
	// Kill ends the current turn even if the agent does not cooperate. It does not wait for the end.
	Kill()
	// Close ends everything that the Mind started. Nothing is alive when it returns; ctx only bounds how long the agent
	// may take to end by itself.
	Close(ctx context.Context) (Outcome, error)
}

// Instructed is a Mind that knows the instructions that the model reads before the conversation.
type Instructed interface {
	// Instructions returns the texts in their order, without secrets.
	Instructions() []string
}

// Abilities are what a Mind can do.
type Abilities struct {
	Steer  bool // a message can reach the current turn
	Mode   bool // its mode can change at any time
	Model  bool // its model can change at any time
	Images bool // a message may have images
	Resume bool // it can be restarted and resume the conversation
}

// ErrRestart is returned by Set if the agent accepts the change only at its start.
var ErrRestart = errors.New("the agent accepts this change only at its start")

// NewMind creates the Mind of a conversation. It is called again, with the current terms, whenever the agent has to be
// restarted.
type NewMind func(ctx context.Context, s Spec, sv Services) (Mind, error)
