package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
)

// AgentWalls are walls around the processes of one agent. Its methods may be called from several goroutines.
type AgentWalls struct {
	policy AgentPolicy
	homes  *Walls // keeps the home directories, and the list of holes
	tried  triedWalls

	mu       sync.Mutex
	readOnly bool
	running  []*agentProcess
	ours     []string // see remember
}

// agentProcess is a running process of the agent.
type agentProcess struct {
	*running
	answers chan string
	gone    chan struct{} // closed at the end, under mu
	mu      sync.Mutex
}

// OpenAgent builds walls around an agent, and fails if they do not hold. files are single files in home directories
// that belong to the agent: it gets copies, and its changes are written back, also those made by a rename.
func OpenAgent(p AgentPolicy, files []string, o Options) (*AgentWalls, error) {
	if walled() {
		return nil, fault.New(fault.ServiceDown, "no walls can be built here: %s", withinWalls).
			Hint("Run it outside of them.")
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	w := &AgentWalls{policy: p, homes: &Walls{
		policy: p.Policy, tier: Namespaces, seen: o.Watcher,
	}}
	// A host directory mounted at /tmp would show its outside name in the mount table, from which codex infers where
	// its own files are.
	holds := func(dir string) bool { return pathname.Within(dir, "/tmp") }
	if !slices.ContainsFunc(append([]string{p.Root}, p.Write...), holds) {
		w.homes.policy.Homes = append(slices.Clip(p.Homes), "/tmp")
	}
	w.homes.system.lives, w.homes.system.files = true, files
	if err := w.homes.openHomes(context.Background(), o.State); err != nil {
		_ = w.homes.release()
		return nil, err
	}
	w.policy.Hidden = w.homes.policy.Hidden
	w.tried = heldIn(o.State, w.policy, files)
	if _, held := w.tried.found(); !held {
		if err := w.try(); err != nil {
			_ = w.homes.release()
			return nil, err
		}
		w.tried.remember(nil)
	}
	w.homes.holes = []string{
		"the network is open",
		"the agent's own files: what it changes there counts for its next sessions too",
		"sockets with a name in the kernel's own space, such as that of a screen",
		"sockets of services that lie outside of /run, such as in /var/lib",
	}
	if os.Geteuid() != 0 {
		w.homes.holes = append(w.homes.holes,
			"processes of the user in control groups of the user's own, at or below that of the agent: it can end them")
	}
	return w, nil
}

// try builds the walls without an agent, and fails if they do not hold.
func (w *AgentWalls) try() error {
	said := ""
	plan, err := w.wrap(process.Plan{
		Argv: []string{"trial"}, Path: "/", Dir: w.policy.Root, Env: []string{}, Name: "the trial of the walls",
	}, AgentNeeds{}, true, func(text string) { said = text })
	if err != nil {
		return err
	}
	child, err := process.Start(plan)
	if err != nil {
		if passing(err) {
			return fault.New(fault.Internal, "the walls could not be tried").Because(err)
		}
		return fault.New(fault.ServiceDown, "no walls can be built around agents: %s", refusal(err)).
			Hint("Run: omniagent doctor").Because(err)
	}
	clock := time.AfterFunc(trialTime, func() { child.End(os.Kill) })
	ending := child.Wait()
	if clock.Stop(); ending.ExitCode == 0 && strings.HasPrefix(said, "trial") {
		return nil
	}
	if reason, failed := strings.CutPrefix(said, "failed "); failed {
		return fault.New(fault.ServiceDown, "no walls can be built around agents: %s", reason).
			Hint("Run: omniagent doctor")
	}
	return fault.New(fault.TimedOut, "the walls around an agent could not be tried (exit %d %s)", ending.ExitCode,
		ending.Signal).Hint("The machine may be busy; try again.")
}

// Enforced returns what these walls enforce.
func (w *AgentWalls) Enforced() event.Walls {
	return event.Walls{Name: w.homes.tier.String(), Network: "on", Holes: w.homes.holes}
}

// Plan returns the plan to run the agent behind the walls. The caller has to start it.
func (w *AgentWalls) Plan(p process.Plan, needs AgentNeeds) (process.Plan, error) {
	return w.wrap(p, needs, false, func(string) {})
}

func (w *AgentWalls) wrap(
	p process.Plan, needs AgentNeeds, trial bool, say func(string),
) (wrapped process.Plan, err error) {
	if p.Env == nil {
		p.Env = os.Environ()
	}
	o := w.homes.order(p, Network{Open: true})
	o.To, o.Trial, o.Identity = toAgent, trial, nil
	o.Veiled, o.OwnSettings, o.Reviewed = w.policy.Veiled, w.policy.OwnSettings, w.policy.Reviewed
	o.Readers, o.Shells = realPaths(needs.Readers), realPaths(needs.Shells)
	made, err := makeDirs(needs.Own)
	if err != nil {
		return p, err
	}
	o.Mine, o.Files = realPaths(needs.Own), w.homes.system.files
	o.Shown = slices.Concat(needs.Show, needs.Own) // of these, links that lead to them
	w.remember(&o)
	w.mu.Lock()
	o.ReadOnly = w.readOnly
	w.mu.Unlock()
	run := &agentProcess{
		running: &running{say: say, network: Network{Open: true}}, answers: make(chan string, 8),
		gone: make(chan struct{}),
	}
	defer func() {
		if err != nil {
			run.end(nil)
		}
	}()
	if run.home, err = w.homes.addHomes(&o, trial); err != nil {
		return p, err
	}
	if err = run.watch(&o, w.homes.watcher(trial)); err == nil {
		err = run.prepare(o)
	}
	if err != nil {
		return p, fault.New(fault.Internal, "the walls around the agent cannot be prepared").Because(err)
	}
	run.heard = func(text string) {
		if strings.HasPrefix(text, "failed ") {
			w.tried.forget()
		}
		select {
		case run.answers <- text:
		default:
		}
	}
	wrapped = run.stage(p, func(e *process.Ending) {
		w.mu.Lock()
		w.running = slices.DeleteFunc(w.running, func(r *agentProcess) bool { return r == run })
		w.mu.Unlock()
		run.mu.Lock()
		close(run.gone)
		run.mu.Unlock()
		run.end(e)
		for _, dir := range made {
			_ = os.Remove(dir)
		}
	})
	wrapped.Shape, wrapped.Bound = shapeAgent, true
	if !trial {
		w.mu.Lock()
		w.running = append(w.running, run)
		w.mu.Unlock()
		run.serving.Go(func() { run.hear(0) })
	}
	return wrapped, nil
}

// makeDirs creates directories for an agent, and returns those that were missing, deepest first: they are removed at
// the end if they are empty.
func makeDirs(dirs []string) (made []string, err error) {
	for _, dir := range dirs {
		for at := dir; unix.Access(at, unix.F_OK) == unix.ENOENT; at = filepath.Dir(at) {
			made = append(made, at)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fault.New(fault.PermissionDenied, "%s, which the agent needs, cannot be made", dir).Because(err)
		}
	}
	slices.SortFunc(made, func(a, b string) int { return len(b) - len(a) })
	return made, nil
}

// shapeAgent starts a stage in new namespaces, but only in those that let the agent build its own sandbox.
func shapeAgent(attr *syscall.SysProcAttr) {
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC
	attr.AmbientCaps = []uintptr{
		unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_SYS_PTRACE,
	}
	attr.UidMappings, attr.GidMappings = mappings("uid", os.Geteuid()), mappings("gid", os.Getegid())
	attr.GidMappingsEnableSetgroups = len(attr.GidMappings) > 0 && attr.GidMappings[0].Size > 1
}

// answerTime is how long a stage may take to change what the agent may write.
const answerTime = 10 * time.Second

// SetWritable sets whether the agent may change the workspace from now on. SetWritable(false) fails while a file there
// is open for writing.
func (w *AgentWalls) SetWritable(on bool) error {
	w.mu.Lock()
	w.readOnly = !on
	running := slices.Clone(w.running)
	w.mu.Unlock()
	word := wordRead
	if on {
		word = wordWrite
	}
	var failed error
	for _, r := range running {
		failed = errors.Join(failed, r.obeys(word))
	}
	return failed
}

// obeys sends a word to the stage and waits for the answer. It returns nil if the process has ended.
func (r *agentProcess) obeys(word string) error {
	for len(r.answers) > 0 {
		<-r.answers
	}
	r.mu.Lock()
	select {
	case <-r.gone:
		r.mu.Unlock()
		return nil
	default:
	}
	err := unix.Sendmsg(r.control, []byte(word), nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	r.mu.Unlock()
	if err != nil {
		return fmt.Errorf("the walls cannot be told: %w", err)
	}
	late := time.After(answerTime)
	for {
		select {
		case text := <-r.answers:
			if why, failed := strings.CutPrefix(text, "refused "); failed {
				return errors.New(why)
			}
			if text == word {
				return nil
			}
		case <-r.gone:
			return nil
		case <-late:
			return fmt.Errorf("the walls did not answer within %s", answerTime)
		}
	}
}

// Close releases everything. Processes of the agent that still run stay behind the walls.
func (w *AgentWalls) Close() error { return w.homes.release() }

// needed returns the paths that the stage has to mount because their directories are covered.
func (o *order) needed() (list []string) {
	covered := slices.Concat(o.Homes, exact{"/tmp", "/var/tmp", "/run", "/var/run", "/dev"})
	for _, path := range o.Shown {
		for _, path := range append([]string{filepath.Clean(path)}, realPaths([]string{path})...) {
			if first(covered, path) != "" && !slices.Contains(list, path) {
				list = append(list, path)
			}
		}
	}
	return list
}
