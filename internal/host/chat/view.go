package chat

import (
	"context"

	"omniagent/internal/core/event"
)

// View shows a chat and reads what a person types. All methods except Run, Broken and Err are called one at a time.
type View interface {
	// Run reads what the person types and sends it, until the input or ctx ends; then it closes the channel.
	Run(ctx context.Context, typed chan<- Input)
	// Broken returns a channel that is closed when nothing more can be shown; Err returns why.
	Broken() <-chan struct{}
	Err() error
	// Notice shows a line of ours.
	Notice(line string)
	// Message shows a message of the person that the view did not show when it was typed.
	Message(text string)
	// Event shows an event of the conversation. number is the number of a tool's result, for /show.
	Event(e event.Event, number int)
	// Ask shows the question that the next line answers; nil: remove it.
	Ask(q *Question)
	// State shows the state. If nothing runs and no question is open, the person is asked for a message.
	State(s State)
	// Draft gives a line back to the person, to edit it.
	Draft(text string)
	// Page shows a long text.
	Page(text string)
	// Close leaves the terminal as it was. Notices after it are printed as they are.
	Close()
}

// Input is a line or a key that a person typed.
type Input struct {
	Text  string
	Asked int64 // number of questions shown before it was typed
	Steer bool  // it is for the running turn
	Leave bool  // the person leaves
	Back  bool  // the person takes back the last waiting line
	Long  bool  // it was too long, and Text is empty
}

// State is the state of a chat that a view shows.
type State struct {
	Busy    bool     // a turn runs or is about to
	Again   bool     // a line was typed that began no turn
	Waiting []string // lines that wait for the end of the turn
	Spent   Spent
	Agent   string // whose turn runs; empty: none, or a command of the person
}
