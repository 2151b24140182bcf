package launch

import (
	"context"
	"errors"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
)

// changing is a Mind that does something while it is asked for a change.
type changing struct {
	agent.Mind
	set func() error
}

// Set implements agent.Mind.
func (c changing) Set(context.Context, agent.Change) error { return c.set() }

// TestWallsFollowTheAgent: after a change that the agent refuses, the walls are those of the mode that it is in, even
// if it reports that mode while it is asked.
func TestWallsFollowTheAgent(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, c := range []struct {
		name     string
		reported setting.Approval // meanwhile; empty: none
		answer   error
		want     setting.Approval
	}{
		{"accepted", "", nil, setting.Yolo},
		{"accepted and reported", setting.Yolo, nil, setting.Yolo},
		{"refused", "", refused, setting.Default},
		{"refused, and the agent has begun to plan", setting.Plan, refused, setting.Plan},
		{"refused, but reported", setting.Yolo, refused, setting.Yolo},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			around := &AgentWalls{mode: setting.Default}
			w := walled{Mind: changing{set: func() error {
				told := make(chan struct{})
				go func() { // an agent's events come from a goroutine of their own
					defer close(told)
					around.Follow(event.Event{Kind: event.Changed, Facts: &event.Facts{Mode: c.reported}})
				}()
				<-told
				return c.answer
			}}, around: around}
			if err := w.Set(t.Context(), agent.Change{Mode: setting.Yolo}); !errors.Is(err, c.answer) {
				t.Errorf("%v", err)
			}
			if around.mode != c.want {
				t.Errorf("the walls are those of %q, not of %q", around.mode, c.want)
			}
		})
	}
}
