package conversation

import "omniagent/internal/event"

// Witness looks at the workspace before and after turns.
type Witness interface {
	// Begin looks at the workspace, without waiting for the result. It is called before each turn that a message
	// begins.
	Begin(turn int64) Look
}

// Look is what a Witness does in one turn.
type Look interface {
	// Ready waits for the first look. It is called before an agent's call of a tool, or its question, is told; for one
	// that waits for that, it is so complete before anything changes.
	Ready()
	// End takes the second look.
	End()
}

// blind is the Look where nobody looks.
type blind struct{}

func (blind) Ready() {}
func (blind) End()   {}

func lookOf(w Witness, turn int64) Look {
	if w == nil {
		return blind{}
	}
	return w.Begin(turn)
}

// precedesChange reports whether an event tells of something that may change the workspace.
func precedesChange(k event.Kind) bool { return k == event.ToolCall || k == event.Question }
