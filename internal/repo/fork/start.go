package fork

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/sandbox"
)

// baseDelay gives the program time to start before the base is taken.
const baseDelay = 300 * time.Millisecond

// Start starts a program in the fork. The plan's Dir is a directory of the workspace. If other programs are running in
// the fork, it joins them. If the fork has no base yet, it is taken meanwhile.
func (f *Fork) Start(ctx context.Context, p process.Plan, n Net) (*Work, error) {
	held, err := f.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = held.Unlock() }()
	if info, err := os.Stat(f.Workspace); err != nil || !info.IsDir() {
		return nil, fault.New(fault.FileMissing, "the workspace %s of the fork %s no longer exists", f.Workspace,
			f.Name).Hint("omniagent fork delete %s --confirm-destructive", f.Name)
	}
	if err := workspace.MkdirAll(filepath.Join(f.dir, openDir)); err != nil {
		return nil, err
	}
	w := &Work{fork: f, over: make(chan struct{}), based: make(chan error, 1)}
	p.Dir = f.Place(p.Dir)
	if f.Tier != Overlay {
		if !pathname.Within(f.tree(), p.Dir) {
			return nil, fault.New(fault.Conflicting, "%s does not lie in the fork %s", p.Dir, f.Name).
				Hint("run it in %s", f.Workspace)
		}
		p.Env = append(slices.DeleteFunc(slices.Clone(p.Env), func(entry string) bool {
			return strings.HasPrefix(entry, "PWD=")
		}), "PWD="+p.Dir)
	}
	if err := w.register(ctx, n); err != nil { // before the program can ask what runs in its fork
		return nil, err
	}
	if f.Tier == Overlay {
		err = w.enter(p, n)
	} else {
		w.Child, err = process.Start(p)
	}
	if err == nil && f.Tier == Overlay {
		if err = w.describe(n); err != nil {
			w.End(os.Kill)
			w.Child.Wait()
		}
	}
	if err != nil {
		w.leave()
		return nil, err
	}
	go func() { // without delaying the start
		select {
		case <-time.After(baseDelay):
		case <-w.over:
		}
		w.based <- f.remember(ctx)
	}()
	return w, nil
}

// enter starts the program in the fork's namespaces, which it creates if no program is running.
func (w *Work) enter(p process.Plan, n Net) error {
	f := w.fork
	for _, m := range f.members() {
		s, err := m.spaces()
		if err != nil {
			continue // it is just ending
		}
		if n.Word != "" && n.Word != m.Net {
			s.Close()
			return fault.New(fault.Conflicting, "programs in the fork %s share one network, which is now %s",
				f.Name, m.Net).Hint("leave --network out, or end them first")
		}
		entry, err := sandbox.Join(p, s)
		if err == nil {
			err = w.begin(entry)
		}
		if err != nil {
			s.Close()
			return fault.New(fault.Internal, "the fork %s cannot be entered: %v", f.Name, err).Because(err)
		}
		return nil
	}
	entry, err := f.fresh(p, n.Network)
	if err == nil {
		err = w.begin(entry)
	}
	if err != nil {
		return fault.New(fault.ServiceDown, "the fork %s cannot be entered: %v", f.Name, err).Because(err).
			Hint("omniagent fork apply %s brings home what is in it", f.Name)
	}
	return nil
}

// fresh prepares a program in new namespaces with the layers. A layer can only be in one overlay at a time.
func (f *Fork) fresh(p process.Plan, n sandbox.Network) (*sandbox.Entry, error) {
	for _, l := range f.Layers {
		if err := workspace.Purge(l.Work); err != nil {
			return nil, err
		}
		for _, dir := range []string{l.Work, l.Upper} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, err
			}
		}
	}
	return sandbox.Private{Layers: f.Layers, Network: n}.Enter(p)
}

func (w *Work) begin(entry *sandbox.Entry) (err error) {
	if w.Child, err = process.Start(entry.Plan); err != nil {
		return err
	}
	if w.spaces, err = entry.Spaces(w.Child); err != nil {
		w.End(os.Kill)
		w.Child.Wait()
	}
	return err
}

// register lets other processes know that a program runs in the fork.
func (w *Work) register(ctx context.Context, n Net) (err error) {
	path := filepath.Join(w.fork.dir, openDir, ident.Hex(8))
	if w.alive, err = workspace.Lock(ctx, path, 0); err != nil {
		return err
	}
	w.file = path
	if err = w.describe(n); err != nil {
		w.leave()
	}
	return err
}

// describe lets other processes find the program's namespaces, once they are there.
func (w *Work) describe(n Net) error {
	m := member{PID: os.Getpid(), Net: n.Word, Proxy: w.spaces.Proxy}
	if w.spaces.User != nil {
		m.User, m.Mount = uint64(w.spaces.User.Fd()), uint64(w.spaces.Mount.Fd())
	}
	if w.spaces.Network != nil {
		m.Network = uint64(w.spaces.Network.Fd())
	}
	return writeSoon(w.file+".json", m)
}

// leave is for a program that does not run any more.
func (w *Work) leave() {
	_ = os.Remove(w.file + ".json")
	_ = os.Remove(w.file)
	_ = w.alive.Unlock()
	w.spaces.Close()
}

// spaces opens the namespaces of another process.
func (m member) spaces() (s sandbox.Spaces, err error) {
	open := func(fd uint64) *os.File {
		if err != nil || fd == 0 {
			return nil
		}
		var f *os.File
		if f, err = os.Open(fmt.Sprintf("/proc/%d/fd/%d", m.PID, fd)); err != nil {
			return nil
		}
		return f
	}
	s = sandbox.Spaces{User: open(m.User), Mount: open(m.Mount), Network: open(m.Network), Proxy: m.Proxy}
	if err == nil && s.User == nil {
		err = fault.New(fault.NotFoundCode, "process %d has no namespaces", m.PID)
	}
	if err != nil {
		s.Close()
	}
	return s, err
}

// Wait waits for the end of the program and for the base. missing says why there is no base, in which case files that
// were also changed in the workspace are reported as conflicts.
func (w *Work) Wait() (ending process.Ending, missing error) {
	ending = w.Child.Wait()
	close(w.over)
	w.leave()
	return ending, <-w.based
}

// Dial prepares connections to an address in the fork's network.
func (f *Fork) Dial(address string) (*sandbox.Dialer, error) {
	members := f.members()
	if len(members) == 0 {
		return nil, fault.New(fault.Conflicting, "no program runs in the fork %s", f.Name).
			Hint("omniagent fork run --name %s -- COMMAND", f.Name)
	}
	for _, m := range members {
		if f.Tier != Overlay || m.User != 0 && m.Network == 0 {
			return nil, fault.New(fault.Conflicting, "the fork %s has the network of this machine", f.Name).
				Hint("open http://%s itself", address)
		}
		s, err := m.spaces()
		if err != nil {
			continue
		}
		defer s.Close()
		d, err := s.Dial(address)
		if err != nil {
			return nil, fault.New(fault.Internal, "the network of the fork %s cannot be entered: %v", f.Name, err).
				Because(err)
		}
		return d, nil
	}
	return nil, fault.New(fault.Conflicting, "what ran in the fork %s has just ended", f.Name)
}

// try returns an error if the layers cannot be used here.
func (f *Fork) try() error {
	entry, err := f.fresh(process.Plan{
		Argv: []string{"try"}, Path: "/", Dir: "/", Env: []string{}, Name: "the trial of the fork",
	}, sandbox.Network{})
	if err != nil {
		return err
	}
	child, err := process.Start(entry.Plan)
	if err == nil {
		err = entry.Try(child)
	}
	if reason, fix := sandbox.NamespaceSettings("user.max_net_namespaces"); err != nil && reason != "" {
		return fault.New(fault.ServiceDown, "namespaces are denied, because %s", reason).Hint("%s", fix).Because(err)
	}
	return err
}
