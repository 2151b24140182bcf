package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/touch"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/sandbox"
	"omniagent/internal/wire/mcp"
)

// AgentWalls is the walls around the processes of an installed agent in a conversation. It may have none.
type AgentWalls struct {
	walls *policy.AgentWalls // nil: none
	close func()
	fixed bool // the workspace is never writable

	homes   []string // home directories of the agent's own
	scratch []string // see agent.About.Scratch
	title   string
	dir     string // the workspace
	// returns whether the agent may read and write a path
	explain func(path string) ([]sandbox.Effect, error)
	calls   map[string]*event.Call // without a result yet
	asked   map[string]string      // the calls of open questions
	keptBy  string                 // the flag that gives it further directories; empty: none
	log     func(format string, args ...any)

	mu      sync.Mutex
	mode    setting.Approval
	changes int      // how often hold was called without an error
	told    []string // see notKept
}

// OpenWalls builds walls around an agent. The result has none if they are switched off or this machine cannot build
// them. touched gets what the agent writes; it may be nil.
func (e Env) OpenWalls(d agent.Driver, s agent.Spec, touched *touch.Log) (*AgentWalls, error) {
	about := d.Describe()
	a := &AgentWalls{
		close: func() {}, fixed: s.ReadOnly, mode: cli.ModeOf(s), scratch: about.Scratch, log: e.Log,
		title: about.Title, dir: s.Dir, calls: map[string]*event.Call{}, asked: map[string]string{},
	}
	if touched != nil {
		defer func() {
			if a.walls == nil {
				touched.Unseen(touch.ReasonUnwatched)
			}
		}()
	}
	if about.Lasting {
		a.keptBy = "--add-dir DIR"
	}
	if e.Bare || s.Shared.Sandbox.Value == setting.Off && s.Shared.Sandbox.Asked() {
		return a, nil
	}
	temp, err := os.MkdirTemp(e.Temp, "omniagent-agent-")
	if err != nil {
		return nil, fault.New(fault.PermissionDenied, "no temporary directory can be made").Because(err)
	}
	w := e.Wanted(d, s)
	if w.Temp = temp; touched != nil {
		w.Watcher = touched
	}
	a.walls, err = policy.OpenAgent(w)
	if err == nil {
		a.homes = a.walls.Homes()
		a.explain = func(path string) ([]sandbox.Effect, error) {
			effects, _, err := w.Explain(path, s.Install.Path)
			return effects, err
		}
		a.close = func() { a.last(); a.walls.Close(); _ = os.RemoveAll(temp); _ = os.RemoveAll(temp + "-home") }
		_ = a.walls.SetWritable(a.may(a.mode)) // no process runs yet
		return a, nil
	}
	_ = os.RemoveAll(temp)
	if errors.Is(err, fault.ServiceDown) {
		e.Log("no walls of ours stand around %s: %v", d.Describe().Title, err)
		return a, nil
	}
	f := fault.Of(err)
	return nil, f.Hint("%s", strings.TrimSpace(f.Suggestion+" Or let the agent run without walls: --sandbox off"))
}

// Wanted returns the description of the walls around an agent that Prepare has found, without their temporary
// directory.
func (e Env) Wanted(d agent.Driver, s agent.Spec) policy.AgentWanted {
	about := d.Describe()
	commands := e.Native.Walls
	w := policy.AgentWanted{
		Wanted: policy.Wanted{
			Root: s.Dir, Roots: s.Terms.Dirs, Home: e.Home, Agents: commands.Agents, State: commands.State,
			Read: commands.Read, Lookup: e.Lookup,
		},
		Env: s.Env, Files: s.Temp, Own: slices.Clone(e.Owns), Programs: []string{s.Install.Path, s.Install.Program},
		Caches:      about.Caches,
		Parts:       append(slices.Clone(about.Parts), servedBy(s.Terms.Servers)...),
		Veiled:      slices.Compact(slices.Sorted(slices.Values(slices.Concat(e.Veiled, Veiled(about))))),
		OwnSettings: about.OwnSettings,
	}
	w.Keeps = func(env []string) (dirs, files []string) {
		if about.Keeps != nil {
			k := about.Keeps(env)
			dirs, files = k.Dirs, k.Files
		}
		if s.Rehearsal != nil {
			dirs = append(slices.Clip(dirs), s.Rehearsal.Home)
		}
		return dirs, files
	}
	if e.Trust != nil {
		w.Reviewed = e.Trust.Beneath(append([]string{s.Dir}, s.Terms.Dirs...))
	}
	return w
}

// Veiled returns the names of files in a workspace that an agent obeys. They are hidden from all agents, because some
// agents read the files of others, and because an agent trusts a file by its path, not by the content that a person has
// trusted.
func Veiled(about agent.About) []string {
	return slices.Concat(about.Settings, about.RepoFiles, about.Obeys)
}

// servedBy returns the files that the command lines of a host's MCP servers name. It ignores servers that it cannot
// read; the driver refuses them.
func servedBy(servers []byte) (files []string) {
	all, _ := mcp.Entries(servers)
	for _, raw := range all {
		var one mcp.Entry
		if json.Unmarshal(raw, &one) != nil {
			continue
		}
		for _, path := range append([]string{one.Command}, one.Args...) {
			if filepath.IsAbs(path) {
				files = append(files, path)
			}
		}
	}
	return files
}

// Plan puts walls around a process, if there are any.
func (a *AgentWalls) Plan(p process.Plan) (process.Plan, error) {
	if a.walls == nil {
		return p, nil
	}
	return a.walls.Plan(p)
}

// Exist reports whether there are walls.
func (a *AgentWalls) Exist() bool { return a.walls != nil }

// Enforced returns the walls as an event reports them.
func (a *AgentWalls) Enforced() *event.Walls { return a.walls.Enforced() }

// Close removes the walls.
func (a *AgentWalls) Close() { a.close() }

// writes reports whether the mode lets an agent change the workspace at all.
func writes(mode setting.Approval) bool { return mode != setting.Plan && mode != setting.DenyAll }

func (a *AgentWalls) may(mode setting.Approval) bool { return !a.fixed && writes(mode) }

// Follow changes the walls if the event reports that the mode has changed.
func (a *AgentWalls) Follow(e event.Event) {
	if e.Facts != nil && e.Facts.Mode != "" {
		_, _ = a.hold(e.Facts.Mode)
	}
}

// hold changes the walls to those of the mode. If that fails, they stay as they were. undo takes the change back,
// unless another one followed.
func (a *AgentWalls) hold(mode setting.Approval) (undo func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.mode
	if err := a.change(mode); err != nil {
		return nil, err
	}
	a.changes++
	number := a.changes
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.changes == number {
			_ = a.change(old)
		}
	}, nil
}

// change does the work of hold. The caller has the lock.
func (a *AgentWalls) change(mode setting.Approval) error {
	if a.walls != nil && a.may(mode) != a.may(a.mode) {
		if err := a.walls.SetWritable(a.may(mode)); err != nil {
			_ = a.walls.SetWritable(a.may(a.mode))
			return err
		}
	}
	a.mode = mode
	return nil
}

// walled is a Mind whose processes run behind walls.
type walled struct {
	agent.Mind
	around *AgentWalls
	opens  func(dir string) error // returns why a further directory cannot be opened
	advise func(*fault.Fault) *fault.Fault
}

// plainly wraps an agent so that it is started for one message, like a call without a command.
type plainly struct{ agent.Driver }

// Mind implements agent.Driver.
func (d plainly) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	s.Terms.Mode = "" // the flags set the mode
	return cli.TurnMind(d.Driver, s, sv)
}

func (e Env) plain(d agent.Driver) agent.Driver {
	if e.Plain != nil {
		return plainly{d}
	}
	return d
}

// wall returns a NewMind of an installed agent whose processes run behind walls.
func (e Env) wall(d agent.Driver) agent.NewMind {
	env := e
	return func(ctx context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
		around, err := env.OpenWalls(d, s, sv.Touched)
		if err != nil {
			return nil, err
		}
		if s.Walled = around.Exist(); s.Walled {
			sv.WithWalls = around.Plan
			if s.Shared.Sandbox.Value == setting.WorkspaceWrite { // a default; with yolo, our walls are enough
				s.Shared = s.Shared.Derive()
			}
		}
		tell, advise := sv.Tell, func(f *fault.Fault) *fault.Fault { return env.advised(d, s, f) }
		sv.Tell = func(e event.Event) {
			if around.Follow(e); e.Kind == event.Started && e.Facts != nil {
				facts := *e.Facts
				facts.Walls, e.Facts = around.Enforced(), &facts
			}
			if e.Fault != nil {
				e.Fault = advise(e.Fault)
			}
			tell(around.tells(e))
		}
		m, err := d.Mind(ctx, s, sv)
		if err != nil {
			around.Close()
			return nil, err
		}
		return &walled{m, around, func(dir string) error {
			if about := d.Describe(); !about.Lasting {
				return fault.New(fault.Unsupported, "%s does not accept further directories", about.Title)
			}
			if !around.Exist() {
				return nil
			}
			return policy.CheckWorkspace(e.Home, s.Dir, append(slices.Clip(s.Terms.Dirs), dir))
		}, advise}, nil
	}
}

// Facts returns the agent's facts, with the walls.
func (w *walled) Facts() event.Facts {
	facts := w.Mind.Facts()
	facts.Walls = w.around.Enforced()
	return facts
}

// Set changes the walls, and then the agent. If the walls cannot be changed, it returns agent.ErrRestart. If the agent
// refuses, the walls become what they were, unless the agent has reported another mode meanwhile: a conversation makes
// one change at a time, but the agent's events come from another goroutine.
func (w *walled) Set(ctx context.Context, c agent.Change) error {
	if c.Dir != "" {
		return cmp.Or(w.opens(c.Dir), agent.ErrRestart)
	}
	if c.Mode == "" {
		return w.Mind.Set(ctx, c)
	}
	undo, err := w.around.hold(c.Mode)
	if err != nil {
		return agent.ErrRestart
	}
	if err = w.Mind.Set(ctx, c); err != nil {
		undo()
	}
	return err
}

// Answer answers a question.
func (w *walled) Answer(r event.Reply) error {
	w.around.answered(r)
	return w.Mind.Answer(r)
}

// Close closes the agent, and then removes the walls.
func (w *walled) Close(ctx context.Context) (agent.Outcome, error) {
	out, err := w.Mind.Close(ctx)
	if f := out.Evidence.Fault; f != nil {
		out.Evidence.Fault = w.advise(f)
	}
	w.around.Close()
	return out, err
}
