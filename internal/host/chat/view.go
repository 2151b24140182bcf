package chat

import (
	"context"

	"omniagent/internal/core/event"
)

// View is what a person sees and types on. All methods but Run, Broken and Err are called one at a time.
type View interface {
	// Run reads what the person types and sends it, until the input or ctx ends; then it closes the channel.
	Run(ctx context.Context, typed chan<- Input)
	// Broken is closed when nothing can be shown any more; Err is why.
	Broken() <-chan struct{}
	Err() error
	// Notice shows a line of ours.
	Notice(line string)
	// Message shows a message of the person that the view did not show when it was typed.
	Message(text string)
	// Event shows what happens in the conversation. number is that of a tool's result, for /show.
	Event(e event.Event, number int)
	// Ask shows the question that the next line answers; nil: there is none any more.
	Ask(q *Question)
	// State shows what runs. If nothing does, and there is no question, the person is asked for a message.
	State(s State)
	// Draft gives the person a line back to type on.
	Draft(text string)
	// Page shows a long text.
	Page(text string)
	// Close leaves the terminal as it was. Notices after it are printed as they are.
	Close()
}

// Input is something that a person typed.
type Input struct {
	Text  string
	Asked int64 // how many questions had been shown before it was typed
	Steer bool  // it is for the turn that runs
	Leave bool  // the person leaves
	Back  bool  // the person takes back the last line that waits
	Long  bool  // it was too long, and is not here
}

// State is what a view shows of a chat beside what is said.
type State struct {
	Busy    bool     // a turn runs or is about to
	Again   bool     // a line was typed that began none
	Waiting []string // what was typed and waits for the end of the turn
	Spent   Spent
	Agent   string // whose turn runs; empty: it is a command of the person
}
