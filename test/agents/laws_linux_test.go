package agents

import (
	"context"
	"slices"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/testkit/agenttest"
	"omniagent/internal/testkit/hermetic"
)

// overACP is a driver whose conversations are held over the Agent Client Protocol.
type overACP struct{ agent.Driver }

func (d overACP) Mind(ctx context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	s.Terms.Transport = agent.ByACP
	return d.Driver.Mind(ctx, s, sv)
}

// TestLaws tries the laws of a conversation on the real agents.
func TestLaws(t *testing.T) {
	needAgents(t)
	t.Parallel()
	var all []agenttest.Subject
	for _, s := range subjects() {
		b := newBench(t, s.driver.Name())
		all = append(all, agenttest.Installed(s.driver, benches, func(url, home string) agent.Rehearsal {
			return agent.Rehearsal{URL: url, Key: "sk-rehearsal-0123456789", Model: "gpt-5", Home: home}
		}, b.environ()))
	}
	for _, s := range subjects() {
		name := s.driver.Name()
		if !slices.Contains(spoken(), name) {
			continue
		}
		b := newBench(t, name)
		over := agenttest.Installed(overACP{s.driver}, benches, func(url, home string) agent.Rehearsal {
			return agent.Rehearsal{URL: url, Key: "sk-rehearsal-0123456789", Model: "gpt-5", Home: home}
		}, b.environ())
		over.Agent = name + " over ACP"
		all = append(all, over)
	}
	t.Logf("what cannot be tried:\n%s", agenttest.Unsaid(all))
	if !hermetic.Matrices() { // the laws take minutes with each, and the others are driven in the same ways
		all = slices.DeleteFunc(all, func(s agenttest.Subject) bool {
			return !slices.Contains([]string{"claude", "codex", "gemini over ACP"}, s.Agent)
		})
		all = agenttest.InTurn(all, "another agent is tried: OMNIAGENT_WHOLE=matrices tries all")
	}
	for _, s := range all {
		t.Run(s.Name(), func(t *testing.T) {
			t.Parallel()
			agenttest.Laws(t, s)
		})
	}
}
