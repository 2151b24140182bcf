package conversation

import (
	"context"
	"sync"
	"time"

	"omniagent/internal/core/event"
)

// Witness takes snapshots of the workspace before and after turns.
type Witness interface {
	// Begin begins the first snapshot and returns at once. It is called before each turn that a message begins.
	Begin(turn int64) Snapshots
}

// Snapshots are the snapshots of one turn.
type Snapshots interface {
	// Start is called before the agent gets the message. It may delay the message for an agent that does not announce
	// its calls.
	Start(ctx context.Context)
	// Ready waits for the first snapshot. It is called before an agent's tool call, or its question, is published. If
	// the agent waits for that, the snapshot is complete before anything changes.
	Ready()
	// Cover waits for the first snapshot and returns what it covers, which is nothing if it failed.
	Cover() event.Cover
	// End takes the second snapshot. The turn ended at the given time: what changed later does not belong to it.
	End(at time.Time)
}

// watch takes the Snapshots of a turn. Only the next turn and the end of the conversation wait for the second one. A
// nil watch takes none.
type watch struct {
	snapshots Snapshots
	once      sync.Once
	done      chan struct{} // closed after the second snapshot
}

func watchOf(w Witness, turn int64) *watch {
	if w == nil {
		return nil
	}
	return &watch{snapshots: w.Begin(turn), done: make(chan struct{})}
}

func (w *watch) start(ctx context.Context) {
	if w != nil {
		w.snapshots.Start(ctx)
	}
}

func (w *watch) ready() {
	if w != nil {
		w.snapshots.Ready()
	}
}

// cover returns what the first snapshot of a turn covers.
func (w *watch) cover() event.Cover {
	if w == nil {
		return event.Cover{}
	}
	return w.snapshots.Cover()
}

// end begins the second snapshot, unless it has begun.
func (w *watch) end() {
	if w == nil {
		return
	}
	at := time.Now()
	w.once.Do(func() {
		go func() {
			defer close(w.done)
			w.snapshots.End(at)
		}()
	})
}

// wait waits for the end of the second snapshot.
func (w *watch) wait(ctx context.Context) {
	if w == nil {
		return
	}
	select {
	case <-w.done:
	case <-ctx.Done():
	}
}

// precedesChange reports whether an event announces something that may change the workspace.
func precedesChange(k event.Kind) bool { return k == event.ToolCall || k == event.Question }
