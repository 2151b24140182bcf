package agent

import (
	"context"
	"errors"

	"omniagent/internal/event"
)

// Mind answers one message at a time. The engine, a process that stays, and a process for each turn are Minds.
//
// A Mind has no queue, no clock for questions and no record: its conversation has. It tells what happens through
// Services.Tell and may do so from any goroutine, also between turns, when something that the agent left running wakes
// it. Its methods may be called from several goroutines, but there is never more than one Turn.
type Mind interface {
	// Abilities are constant. What is false is never asked for.
	Abilities() Abilities
	// Facts are what is known before anything is said. Later ones are told as Started and Changed events.
	Facts() event.Facts
	// Turn answers a message. It returns when the turn is over. The last event that it tells is an Ended that is not
	// Unasked, and it tells exactly one; or it returns an error and tells none. Cancelling ctx asks the turn to end in
	// order.
	Turn(ctx context.Context, message []event.Block) error
	// Steer says something to the turn that runs. The error says that it did not reach it.
	Steer(ctx context.Context, message []event.Block) error
	// Set changes what holds from the next tool call on. It holds when Set returns nil, and a Changed event was told
	// before; else nothing has changed. ErrRestart says that the agent takes this change only when it is started.
	Set(ctx context.Context, c Change) error
	// Answer answers an open question. The error says that the question is not open.
	Answer(r event.Reply) error
	// Kill ends the turn that runs without waiting for the agent to agree. It does not wait for the end.
	Kill()
	// Close ends whatever runs and takes back all that the Mind started. Nothing is alive when it returns, whatever ctx
	// does: ctx only bounds how long the agent may take to end by itself.
	Close(ctx context.Context) (Outcome, error)
}

// Abilities say what a Mind can do.
type Abilities struct {
	Steer     bool // what is said while a turn runs can reach that turn
	Mode      bool // its mode can change at any time
	Model     bool // its model can change at any time
	Images    bool // a message may have images
	Questions bool // it asks before a tool runs, and waits for the answer
	Resume    bool // it can be started anew and go on with the same conversation
}

// ErrRestart is the error of a Set whose change an agent takes only when it is started.
var ErrRestart = errors.New("the agent takes this change only when it is started")

// NewMind makes the Mind of a conversation. It is called again whenever the agent has to be started anew, with what
// holds then.
type NewMind func(ctx context.Context, s Spec, sv Services) (Mind, error)
