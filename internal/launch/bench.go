package launch

import (
	"cmp"
	"context"
	"os"
	"sync"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/config"
	"omniagent/internal/walls/shell"
)

// sandboxFor returns the sandbox of the native agent: the requested one, or else the configured one.
func (e Env) sandboxFor(s agent.Spec) string {
	if s.Shared.Sandbox.Origin == setting.Unchosen {
		return e.Native.Sandbox
	}
	return string(s.Shared.Sandbox.Value)
}

// Bench opens a Bench for a workspace, with the sandbox of the native agent. close closes it and removes its temporary
// files.
func (e Env) Bench(s agent.Spec) (b *Bench, close func(), err error) {
	private, err := os.MkdirTemp(e.Temp, "omniagent-bench-")
	if err != nil {
		return nil, nil, fault.New(fault.PermissionDenied, "no temporary directory can be made").Because(err)
	}
	dir := cmp.Or(s.Dir, e.Dir)
	root, _ := config.ProjectRoot(dir)
	o := BenchOptions{
		Root: dir, Private: private,
		Env: shell.Inheritance{Roots: []string{dir, root}, More: e.Native.HandOn}.Commands(e.Environ),
	}
	if e.sandboxFor(s) != string(setting.Off) {
		w := e.Native.Walls
		w.Network = cmp.Or(s.Terms.Network, w.Network)
		o.Walls = &w
	}
	if b, err = OpenBench(o); err != nil {
		_ = os.RemoveAll(private)
		return nil, nil, err
	}
	return b, func() { b.Close(); _ = os.RemoveAll(private) }, nil
}

// lent is a Mind whose agent may use a Bench. The Bench is opened at the agent's first request.
type lent struct {
	agent.Mind
	open func() (*Bench, func(), error)

	mu     sync.Mutex
	bench  *Bench // nil before the first request
	close  func()
	closed bool // the conversation is over
}

// lend returns a NewMind that gives the agent a Bench.
func (e Env) lend(mind agent.NewMind) agent.NewMind {
	return func(ctx context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
		l := &lent{open: func() (*Bench, func(), error) { return e.Bench(s) }}
		sv.Chore = l.chore
		m, err := mind(ctx, s, sv)
		if err != nil {
			return nil, err
		}
		l.Mind = m
		return l, nil
	}
}

func (l *lent) chore(ctx context.Context, method string, params []byte) (any, error) {
	bench, err := l.opened()
	if err != nil {
		return nil, err
	}
	return bench.Serve(ctx, method, params)
}

func (l *lent) opened() (b *Bench, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, fault.New(fault.Interrupted, "the conversation is over")
	case l.bench != nil:
		return l.bench, nil
	}
	b, leave, err := l.open()
	if err == nil {
		l.bench, l.close = b, leave
	}
	return b, err
}

// Close closes the agent, and then the Bench.
func (l *lent) Close(ctx context.Context) (agent.Outcome, error) {
	out, err := l.Mind.Close(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.bench != nil {
		l.close()
		l.bench = nil
	}
	return out, err
}
