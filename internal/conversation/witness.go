package conversation

import (
	"context"
	"sync"
	"time"

	"omniagent/internal/event"
)

// Witness looks at the workspace before and after turns.
type Witness interface {
	// Begin looks at the workspace, without waiting for the result. It is called before each turn that a message
	// begins.
	Begin(turn int64) Look
}

// Look is what a Witness does in one turn.
type Look interface {
	// Start is called before the agent gets the message. It may hold that up for a moment, where an agent does not tell
	// what it does before it does it.
	Start(ctx context.Context)
	// Ready waits for the first look. It is called before an agent's call of a tool, or its question, is told; for one
	// that waits for that, it is so complete before anything changes.
	Ready()
	// End takes the second look. The turn ended at the given time: what changed later does not belong to it.
	End(at time.Time)
}

// watch is a Look whose end does not hold up the turn: only the next turn and the end of the conversation wait for it.
// A nil watch looks at nothing.
type watch struct {
	look Look
	once sync.Once
	done chan struct{} // closed after the second look
}

func watchOf(w Witness, turn int64) *watch {
	if w == nil {
		return nil
	}
	return &watch{look: w.Begin(turn), done: make(chan struct{})}
}

func (w *watch) start(ctx context.Context) {
	if w != nil {
		w.look.Start(ctx)
	}
}

func (w *watch) ready() {
	if w != nil {
		w.look.Ready()
	}
}

// end begins the second look, unless it has begun.
func (w *watch) end() {
	if w == nil {
		return
	}
	at := time.Now()
	w.once.Do(func() {
		go func() {
			defer close(w.done)
			w.look.End(at)
		}()
	})
}

// wait waits for the end of the second look.
func (w *watch) wait(ctx context.Context) {
	if w == nil {
		return
	}
	select {
	case <-w.done:
	case <-ctx.Done():
	}
}

// precedesChange reports whether an event tells of something that may change the workspace.
func precedesChange(k event.Kind) bool { return k == event.ToolCall || k == event.Question }
