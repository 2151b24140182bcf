package run

import (
	"fmt"
	"testing"

	"omniagent/internal/core/event"
)

// TestNotByACP: that an agent is read as a stream, so that nobody is asked, is said where the run is started.
func TestNotByACP(t *testing.T) {
	t.Parallel()
	var said []string
	o := Owner{Run: &Run{}, Log: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	const words = "the Agent Client Protocol is not used; what the agent would ask about is denied"
	o.see(t.Context(), &Attempt{}, event.Event{Kind: event.Notice, Synthetic: true, Text: "another"}, nil)
	o.see(t.Context(), &Attempt{}, event.Event{Kind: event.Notice, Synthetic: true, Denies: true, Text: words}, nil)
	if len(said) != 1 || said[0] != words {
		t.Errorf("%q", said)
	}
}
