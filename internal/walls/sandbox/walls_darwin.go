package sandbox

import (
	"context"
	"os"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

type wallsOf struct{}

func private(info os.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

func (w *Walls) open(r Report, _ Options) error {
	if w.policy.Network.Serve != nil {
		return fault.New(fault.ServiceDown, "a list of hosts cannot be held here").
			Hint("Leave the network off, or open it.")
	}
	w.holes = r.Holes
	return nil
}

// plan starts the program through sandbox-exec, which executes it.
func (w *Walls) plan(p process.Plan, network Network) (process.Plan, error) {
	if p.Name == "" && len(p.Argv) > 0 {
		p.Name = p.Argv[0]
	}
	env := p.Env
	if env == nil {
		env = os.Environ()
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, "TMPDIR=") })
	p.Env = append(env, "TMPDIR="+w.policy.Temp)
	policy := w.policy
	policy.Network = network
	p.Argv = append([]string{sandboxExec, "-p", Profile(policy), p.Path}, p.Argv[1:]...)
	p.Path = sandboxExec
	return p, nil
}

func (w *Walls) release() error { return nil }

// stand does nothing: here walls are built by Open.
func (w *Walls) stand(context.Context) error { return nil }
