package runs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/forks"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch"
	"omniagent/internal/native"
	"omniagent/internal/repo/undo"
	"omniagent/internal/walls/autorun"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/shell"
	"omniagent/internal/work/run"
)

// runTask begins a run and carries it out, or hands it over to a detached process.
func (p commands) runTask(ctx context.Context, c *contract.Call) (contract.Result, error) {
	if !c.DryRun() {
		if err := p.checkUnwalled(c); err != nil {
			return contract.Result{}, err
		}
	}
	if c.Given("batch") {
		return p.batch(ctx, c)
	}
	task, err := p.taskOf(ctx, c)
	if err != nil {
		return contract.Result{}, err
	}
	if err := p.checkPlace(c, task); err != nil {
		return contract.Result{}, err
	}
	store, err := stores.Runs(c)
	if err != nil {
		return contract.Result{}, err
	}
	if c.DryRun() {
		return dryRunResult(run.Record{Task: task, State: run.Queued, Created: time.Now()}, contract.Created), nil
	}
	if c.Given("race") {
		return p.race(ctx, c, store, task)
	}
	known, err := answersOf(c)
	if err != nil {
		return contract.Result{}, err
	}
	if c.Bool("fork") && task.Fork == "" { // a detached run: others are in their fork already
		if err := p.refusesRun(ctx, c); err != nil {
			return contract.Result{}, err
		}
		if task, err = forkAhead(ctx, c, task); err != nil {
			return contract.Result{}, err
		}
	}
	store.Prune(ctx, c.Config.Duration("run.keep"))
	r, err := store.Create(ctx, task)
	if err != nil {
		return contract.Result{}, err
	}
	if err := addQuestions(c, r, known); err != nil {
		r.Abandon()
		return contract.Result{}, err
	}
	if task.Detached && len(r.Open()) == 0 {
		return leave(ctx, c, store, r)
	}
	return p.carryOut(ctx, c, r)
}

// checkPlace refuses a directory in which the walls of all agents of a task refuse to let them work. It is called
// before the run begins, because a run looks at all files of its directory.
func (p commands) checkPlace(c *contract.Call, t run.Task) (first error) {
	env := p.QuietOpener(c).Env()
	spec := agent.Spec{Dir: t.Dir, Shared: setting.Defaults()}
	spec.Terms.Dirs = t.Dirs
	if t.Sandbox != "" {
		spec.Shared.Sandbox = setting.AsTyped(t.Sandbox)
	}
	for _, name := range t.Agents {
		err := env.MayWork(name, spec)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	f := fault.Of(first)
	if project, _ := f.Detail["project"].(string); project != "" {
		how := ""
		if c.Given("agent") {
			how = " --agent " + text.Shell(c.String("agent"))
		}
		if t.Rehearse {
			how += " --rehearse"
		}
		project = text.Shell(project)
		return f.Hint("mkdir -p %s && omniagent run --cwd %s%s -p 'WHAT TO DO'", project, project, how)
	}
	return first
}

// dryRunResult returns the result of a dry run: what would be carried out.
func dryRunResult(r run.Record, effect contract.Effect) contract.Result {
	target := map[string]any{"agents": r.Agents, "cwd": r.Dir, "approval": r.Approval}
	d := runDataOf(r)
	if r.ID != "" {
		target["run"] = r.ID
		d.would = fmt.Sprintf("Would go on with %s: %s in %s.\n", r.ID, strings.Join(r.Agents, ", "), r.Dir)
	} else {
		d.would = fmt.Sprintf("Would begin: %s in %s, with --approval %s.\n", strings.Join(r.Agents, ", "), r.Dir,
			r.Approval)
	}
	return contract.Result{Data: d, Effect: effect, Target: target}
}

// carryOut carries out a run in this process until it is over or waits for a person.
func (p commands) carryOut(ctx context.Context, c *contract.Call, r *run.Run) (contract.Result, error) {
	defer func() { _ = r.Release() }()
	if c.Given("timeout") {
		r.Timeout = c.Duration("timeout")
	}
	if err := c.Begun(r.ID); err != nil {
		return contract.Result{}, err
	}
	stop := forks.RelayLoopback(ctx, c)
	defer stop()
	log := func(format string, args ...any) { c.Warn("RUN", "%s", fmt.Sprintf(format, args...)) }
	open := parts.Opener{
		Call: c, Log: log, Detail: c.Debug, Parts: p.Parts, Closed: true, Request: launch.Request{
			Provider: c.String("provider"), Base: c.String("api-base"), Mode: true, Patience: 24 * time.Hour,
		},
	}
	end, err := rehearsedRun(c, &open, r)
	if err != nil {
		return contract.Result{}, err
	}
	defer end()
	o := OwnerOf(open, r)
	o.Tell = progressTeller(c, r)
	if r.Detached {
		o.Patience, o.Lifetime = cmp.Or(r.Idle, 5*time.Minute), c.Command.Background.MaxLifetime
	}
	work := o.Work
	if c.Attended() && !r.Detached {
		work = workAttended(c, r, &o)
	}
	if err := work(ctx); err != nil {
		return contract.Result{Data: runDataOf(r.Record), Effect: contract.Updated}, err
	}
	if c.Attended() && !r.Detached {
		offerVariables(ctx, c, r.Record)
	}
	result, err := answerOf(r.Record)
	if d, is := result.Data.(runData); is && r.Dir != c.Dir() {
		d.where = r.Dir
		result.Data = d
	}
	if d, is := result.Data.(runData); is {
		d.undo = undoCommand(c, r.Record)
		if store, err := stores.Runs(c); err == nil {
			d.addBeside(store, r.Record)
		}
		result.Data = d
	}
	return result, err
}

// undoCommand returns the command that takes back the changes of a run. It returns "" in a fork, before the turn is
// over, and without snapshots, because no command does it there.
func undoCommand(c *contract.Call, r run.Record) string {
	if r.Fork != "" || !r.State.Terminal() && r.State != run.NeedsInput || stores.SnapshotsToKeep(c) == nil {
		return ""
	}
	line := "omniagent undo --run " + r.ID
	if r.Dir != c.Dir() {
		line += " --cwd " + text.Shell(r.Dir)
	}
	turns, _ := stores.SnapshotsToKeep(c).List(r.Dir)
	turns = slices.DeleteFunc(turns, func(t undo.Record) bool {
		return t.Run != r.ID || t.Kind != undo.OfTurn || t.UndoneBy != ""
	})
	if n := len(turns); n > 1 {
		line += fmt.Sprintf("\nThe run had %d turns: this takes back the last one, and again the one before it.", n)
	}
	return line
}

// NamespaceKey is the setting for a PID namespace around agents of runs, and NamespaceOff the value that turns it off.
const (
	NamespaceKey = "run.namespace"
	NamespaceOff = "off"
)

// OwnerOf returns the owner that carries out a run in this process, with the settings of the user's configuration.
func OwnerOf(o parts.Opener, r *run.Run) run.Owner {
	c := o.Call
	o.PartOf = r.ID
	var wrote func() func(path string) bool
	if f := stores.ForkAround(c); f != nil {
		wrote = f.Wrote
	}
	return run.Owner{
		Run: r, Open: inItsFork(o, r), Grace: c.Config.Duration("grace") / 2, Log: o.Log,
		Check: func(ctx context.Context, t run.Task, grace time.Duration) (shell.Outcome, error) {
			return runCheck(ctx, o, t, grace)
		},
		Later: func(dir string) autorun.Policy {
			return policy.Later(dir, o.Parts.Guarded(c), c.Host.Home(), c.Host.Lookup)
		},
		Spec:     func(string) agent.Spec { return agent.Spec{Env: os.Environ()} },
		Inside:   native.Name,
		Fork:     wrote,
		OwnPIDs:  c.Config.String(NamespaceKey) != NamespaceOff,
		Parallel: cmp.Or(int(c.Config.Int("run.parallel")), 2*runtime.NumCPU()),
		Hooks: run.Hooks{
			Before: c.Config.List("run.hooks.pre"), After: c.Config.List("run.hooks.post"),
			Notify: c.Config.List("run.notify"), Programs: parts.HookPrograms(c),
		},
	}
}

// answerOf returns the result of a call from the outcome of a run.
func answerOf(r run.Record) (contract.Result, error) {
	out := contract.Result{Data: runDataOf(r), Effect: contract.Updated}
	if r.Result == nil || r.Result.Fault == nil {
		return out, nil
	}
	f := *cmp.Or(r.Advised(), r.Result.Fault)
	f.Phase = fault.Execution
	nothing := r.Result.Changed != nil && r.Result.Changed.Count == 0 && r.Result.Changed.Doubtful == 0
	if r.State.Terminal() {
		f.Retry = new(nothing && (run.Temporary(r.Result.Reason) || r.Result.Reason == run.OwnerDied))
	}
	if r.State == run.NeedsInput {
		f.HintAny(r.Answers())
	}
	data := runDataOf(r)
	data.hints = append([]string{f.Suggestion}, f.Ways...)
	out.Data = data
	return out, &f
}

// rehearsedRun starts the scripted model for a run that is a rehearsal. stop removes the agent's home only if the run
// is over, because a run that waits for an answer needs it later. Any agent may rehearse, allowed for runs or not.
func rehearsedRun(c *contract.Call, o *parts.Opener, r *run.Run) (stop func(), err error) {
	if !r.Rehearse {
		return func() {}, nil
	}
	home := parts.RehearsalHome(c, r.ID)
	usual := runScript
	if c.Command.Path == "review" {
		usual = reviewScript
	}
	answered, here := r.Asks()
	by, end, err := parts.Rehearse(r.Script, usual, home, answered, here)
	if err != nil {
		return nil, err
	}
	o.Rehearsal, o.Closed = &by, false
	return func() {
		end()
		if r.State.Terminal() {
			_ = os.RemoveAll(home)
		}
	}, nil
}

// runScript is what the scripted model does in a run if no script is given.
const runScript = `[
	{"write": {"path": "greeting.txt", "content": "Hello!\n"}},
	{"ask": "Shall the greeting stay?"},
	{"say": "This was a rehearsal: a script answered, not a model."}
]`

// reviewScript is what the scripted model does in a review if no script is given: it finds nothing.
const reviewScript = `[{"say": "{\"findings\": 0}"}]`
