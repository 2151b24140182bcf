package agents

import (
	"strings"
	"testing"
	"time"

	"omniagent/internal/agents/copilot"
	"omniagent/internal/agents/gemini"
	"omniagent/internal/agents/opencode"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
)

// TestTurnsOfTheirOwn: an agent that is started for each message resumes its session and can be interrupted. One that
// prints nothing before the model has answered is not ended for that.
func TestTurnsOfTheirOwn(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, d := range []agent.Driver{copilot.New(), gemini.New(), opencode.New()} {
		t.Run(d.Name(), func(t *testing.T) {
			t.Parallel()
			spare(t, d.Name())
			b := newBench(t, d.Name())
			c := b.talk(d, `[{"say":"told ${input.length}"}]`, nil)
			for _, text := range []string{"REMEMBER-ZEBRA", "and now"} {
				if end := c.answered(text, event.Reply{}); !end.End.OK || end.End.Reason != event.Success {
					t.Fatalf("%s: %s", text, story(c.heard))
				}
			}
			last := c.model.Requests()
			if c.AgentSessionID() == "" || !strings.Contains(string(last[len(last)-1].Raw), "ZEBRA") {
				t.Errorf("%q does not know what was said before", c.AgentSessionID())
			}
			slow := b.talk(d, `[{"stall":"headers"}]`, func(_ *agent.Spec, sv *agent.Services) {
				if d.Name() == "opencode" {
					sv.Connect = 100 * time.Millisecond
				}
			})
			slow.say("go")
			for len(slow.model.Requests()) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			slow.Interrupt(true)
			if end := slow.until(event.Ended); end.End.OK || end.End.Reason != event.Cancelled {
				t.Errorf("interrupted: %s", story(slow.heard))
			}
		})
	}
}
