package agent

import (
	"context"
	"time"

	"omniagent/internal/event"
)

// Session is a conversation that outlives its turns. Its methods may be called from several goroutines.
type Session interface {
	// ID is the agent's own id, empty as long as it is not known.
	ID() string
	// Next returns the events in order. io.EOF: the session is closed and nothing more will come.
	Next(context.Context) (event.Event, error)
	// Send hands over a message and returns when it is accepted.
	Send(context.Context, []Block) error
	// Answer answers a question that an event asked.
	Answer(ctx context.Context, question string, a Answer) error
	// Interrupt ends the turn, not the session.
	Interrupt(context.Context) error
	// Close ends the session and says how it went. The error is ours; what the agent did wrong is in the Outcome.
	Close(context.Context) (Outcome, error)
}

// Block is a part of a message: text, or with Media an image or a document.
type Block struct {
	Text  string
	Media string // such as image/png
	Data  []byte
	Name  string // of a document
}

// Answer is what a person said to a question.
type Answer struct {
	Option string // one of Ask.Options
	Text   string
}

// Outcome is how a session went.
type Outcome struct {
	Exit     Exit
	Evidence Evidence
}

// Services is what a session needs of its host.
type Services struct {
	Grace time.Duration // from the request to end to the kill
}
