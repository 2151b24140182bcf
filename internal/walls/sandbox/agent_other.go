//go:build !linux

package sandbox

import (
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

// AgentWalls are walls around the processes of one agent.
type AgentWalls struct{}

// OpenAgent fails: there are no namespaces here.
func OpenAgent(AgentPolicy, []string, Options) (*AgentWalls, error) {
	return nil, fault.New(fault.ServiceDown, "walls around agents are known for Linux alone").
		Hint("The sandbox of the agent itself stands, as far as it has one.")
}

// Enforced returns nothing.
func (*AgentWalls) Enforced() event.Walls { return event.Walls{} }

// Plan fails: there are no namespaces here.
func (*AgentWalls) Plan(p process.Plan, _ AgentNeeds) (process.Plan, error) {
	return p, fault.New(fault.ServiceDown, "walls around agents are known for Linux alone")
}

// SetWritable does nothing.
func (*AgentWalls) SetWritable(bool) error { return nil }

// Left returns nothing.
func (*AgentWalls) Left() []string { return nil }

// Close does nothing.
func (*AgentWalls) Close() error { return nil }
