package cli

import (
	"io"

	"omniagent/internal/agent"
	"omniagent/internal/process"
)

// outputs returns the writers for the output of a process, with the tap first.
func outputs(t *agent.Tap, stdout, stderr io.Writer) (io.Writer, io.Writer) {
	if t == nil {
		return stdout, stderr
	}
	return io.MultiWriter(t.Stdout, stdout), io.MultiWriter(t.Stderr, stderr)
}

// depthOf returns the depth in an agent's environment, for the register: the agent may clear its environment later.
func depthOf(env []string) string {
	depth, _ := process.Value(env, agent.DepthVariable)
	return depth
}

// reportStart tells a tap that a process has started.
func reportStart(sv agent.Services, c *process.Child, l agent.Launch, protocol bool) {
	if t := sv.Tap; t != nil {
		apart := c.Apart() || sv.Around != nil // walls have a PID namespace too
		t.Began(agent.Beginning{PID: c.PID(), Launch: l, Protocol: protocol, Apart: apart})
	}
}
