//go:build unix && !linux

package process

import (
	"os"
	"runtime"
	"syscall"

	"omniagent/internal/kit/fault"
)

// namespace is for Linux.
type namespace struct{}

func newNamespace() (*namespace, error) { return nil, CheckPIDNamespace() }

func (n *namespace) start(string, []string, *syscall.ProcAttr) (pid, tracked int, err error) {
	return 0, -1, CheckPIDNamespace()
}

func (n *namespace) kill()    {}
func (n *namespace) dismiss() {}

// CheckPIDNamespace returns why there are no PID namespaces.
func CheckPIDNamespace() error {
	return fault.New(fault.Unsupported, "%s has no PID namespaces", runtime.GOOS)
}

// keepWrites does nothing: only Linux has pipes that keep writes apart.
func keepWrites(*os.File) {}
