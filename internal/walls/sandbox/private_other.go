//go:build !linux

package sandbox

import (
	"errors"
	"net"

	"omniagent/internal/sys/process"
)

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
