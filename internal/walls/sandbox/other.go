//go:build !linux

package sandbox

import (
	"errors"
	"net"

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

// InContainer is for Linux.
const InContainer = ""

// NamespaceSettings is for Linux.
func NamespaceSettings(string) (reason, fix string) { return "", "" }

// Stage is never needed here, but main calls it on every system.
func Stage() int { return 2 }

// Entry is a program on its way into namespaces.
type Entry struct{ Plan process.Plan }

// Enter fails: there are no namespaces here.
func (Private) Enter(process.Plan) (*Entry, error) { return nil, errors.ErrUnsupported }

// Join fails: there are no namespaces here.
func Join(process.Plan, Spaces) (*Entry, error) { return nil, errors.ErrUnsupported }

// Spaces fails: there are no namespaces here.
func (*Entry) Spaces(*process.Child) (Spaces, error) { return Spaces{}, errors.ErrUnsupported }

// Try fails: there are no namespaces here.
func (*Entry) Try(*process.Child) error { return errors.ErrUnsupported }

// Dialer connects to what listens in namespaces.
type Dialer struct{}

// Dial fails: there are no namespaces here.
func (Spaces) Dial(string) (*Dialer, error) { return nil, errors.ErrUnsupported }

// Connect fails: there are no namespaces here.
func (*Dialer) Connect() (net.Conn, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Dialer) Close() {}

// LayersAt returns nothing: there are no layers here.
func LayersAt(string) string { return "" }

// MountsBeneath returns nothing: mount points are not looked at here.
func MountsBeneath(string) (at []string, in string) { return nil, "" }
