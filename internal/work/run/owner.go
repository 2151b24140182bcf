package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/process"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/walls/autorun"
	"omniagent/internal/walls/shell"
)

// Owner carries out a run until its end, or until a question for a person.
type Owner struct {
	Run  *Run
	Open conversation.Opener
	// Spec returns the host's spec for an agent; this package adds the task's terms.
	Spec     func(agent string) agent.Spec
	Grace    time.Duration
	Parallel int           // most runs at once; 0 for any number
	Lifetime time.Duration // time limit of this process, whatever the run waits for; 0 for none
	OwnPIDs  bool          // the agent gets its own PID namespace, where the system has them
	Patience time.Duration // how long the agent waits for an answer; 0 for not at all
	// Person asks a person, as in Exchange.
	Person func(context.Context, event.Ask) (event.Reply, bool)
	Hooks  Hooks
	// Check runs the check of a task; the last argument is the time from the request to end until the kill.
	Check  func(context.Context, Task, time.Duration) (shell.Outcome, error)
	Inside string // the agent that works in this process, if any
	// Fork returns a function that reports whether the run's fork has written a path so far; nil: the run is in no
	// fork.
	Fork func() func(path string) bool
	// Later returns the policy that says which files of a directory run later by themselves; nil: the result does not
	// name them.
	Later func(dir string) autorun.Policy
	// Tell gets each state of the run, and each event of its conversations. It may be nil.
	Tell func(Progress)
	Log  func(format string, args ...any)

	over   <-chan struct{} // closed once the run has to end; nil before it began
	unread bool            // Tell blocked too long, and is not called again
	paused bool            // see pause
}

// Work carries out the run. It returns when the run is over, or cannot continue without a person. The record then has
// the Result.
func (o *Owner) Work(ctx context.Context) error {
	r := o.Run
	r.sight.fork = o.Fork
	r.reopen()
	if len(r.Open()) > 0 {
		return o.rest(missing(r), Ending{}, nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, limit := range []time.Duration{r.Timeout, o.Lifetime} {
		if limit > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(ctx, limit)
			defer stop()
		}
	}
	o.over = ctx.Done()
	desk, err := listen(r, cancel)
	if err != nil {
		return err
	}
	defer desk.close()
	free, err := o.queue(ctx)
	if err != nil {
		return o.conclude(ctx, verdictOf(Ending{Err: cmp.Or(context.Cause(ctx), err)}, nil), Ending{}, nil)
	}
	defer free()
	if !r.Until.IsZero() { // an earlier owner was waiting
		if err := o.waitFor(ctx, 0); err != nil {
			return o.conclude(ctx, verdictOf(Ending{Err: err}, nil), Ending{}, nil)
		}
	}
	ready := o.prepare(ctx)
	defer ready.standby.Dismiss()
	i := max(0, slices.Index(r.Agents, r.agent())) // continue with the agent that asked
	for again := 0; ; {
		name := r.Agents[min(i, len(r.Agents)-1)]
		ending := o.attempt(ctx, name, desk, ready)
		if errors.Is(ending.Err, context.Canceled) && ctx.Err() != nil {
			ending.Err = context.Cause(ctx) // it says who ended the run
		}
		ready.survey() // a failed attempt may not have waited for it
		changed := o.changed(ctx)
		v := Judge(ending, differ(changed))
		if v.Reason == Idle {
			v.Fault.Hint("omniagent runs retry %s --idle-timeout %.0fm", r.ID, max(2*r.Idle, 5*time.Minute).Minutes())
		}
		o.ended(&r.Attempts[len(r.Attempts)-1], ending, v)
		switch {
		case ctx.Err() != nil:
		case v.Reason == Asked && r.repeats(*v.Question):
			v = repeated(*v.Question)
		case v.Reason == Asked:
			r.ask(*v.Question)
			return o.rest(v, ending, changed)
		case v.State == Failed && len(ending.Tools) == 0 && ending.Text == "" && r.startAfresh():
			continue
		case NeedsNextAgent(v.Reason) && i+1 < len(r.Agents):
			i++
			continue
		case r.WaitQuota && limited(v) && o.waitFor(ctx, v.Fault.RetryAfter) == nil:
			continue
		case again < r.Retries && retryable(v, ending) && wait(ctx, v.Fault, again) == nil:
			again++
			continue
		}
		if v.State == Succeeded {
			v = r.checkApproved(v)
		}
		if v.State == Succeeded && r.Check != "" {
			v = o.checked(ctx, v)
		}
		return o.conclude(ctx, v, ending, changed)
	}
}

// Skipped returns a line for each agent that could not begin and was replaced by the next one, with the reason.
func (r Record) Skipped() (lines []string) {
	for i, a := range r.Attempts {
		if i+1 < len(r.Attempts) && a.Agent != r.Attempts[i+1].Agent && NeedsNextAgent(a.Reason) {
			lines = append(lines, a.Agent+" could not begin: "+strings.ReplaceAll(string(a.Reason), "_", " "))
		}
	}
	return lines
}

// preparation is work that happens while the first conversation is opened.
type preparation struct {
	standby *process.Standby
	survey  func() // waits until the workspace has been surveyed
}

// prepare starts the preparation for an agent that is a process. It waits for the survey only if the user's hooks, or
// an agent in this process, may change the workspace before the task.
func (o *Owner) prepare(ctx context.Context) preparation {
	r := o.Run
	r.look() // before the log is handed to a conversation
	ready := preparation{survey: sync.OnceFunc(func() {
		if err := r.survey(ctx); err != nil {
			o.Log("what the run changes will not be known: %v", err)
		}
	})}
	if r.Agents[0] != o.Inside {
		ready.standby = process.Prepare(o.OwnPIDs)
		go ready.survey()
	}
	if ready.standby == nil || len(o.Hooks.Before) > 0 {
		o.save()
		ready.survey()
	}
	return ready
}

// checkDirs returns a fault if a further directory was replaced by a link since the run began, which an agent may have
// done while the run waited.
func (r *Run) checkDirs() error {
	for _, dir := range r.Dirs {
		if to := pathname.Real(dir); to != dir {
			return fault.New(fault.Unsafe, "%s leads elsewhere since the run began: to %s", dir, to).With("path", dir)
		}
	}
	return nil
}

// attempt opens one conversation with an agent, and returns how it ended.
func (o *Owner) attempt(ctx context.Context, name string, desk *desk, ready preparation) Ending {
	r := o.Run
	prompt, resume := r.prompt(name)
	r.Attempts = append(r.Attempts, Attempt{
		Agent: name, Began: time.Now().UTC(), Session: resume, Resumed: resume != "",
	})
	a := &r.Attempts[len(r.Attempts)-1]
	if err := o.enter(Starting); err != nil {
		return Ending{Err: err}
	}
	spec := o.Spec(name)
	spec.Dir, spec.Resume, spec.Terms.Mode = r.Dir, resume, r.Approval
	if spec.Terms.Transport = r.Transport; r.Transport == "" && asks(r.Approval) && !r.Approval.Edits() {
		spec.Terms.Transport = agent.ByChoice
	}
	// In other modes a call may become a question, which waits for a person.
	spec.Terms.Once = !asks(r.Approval) || r.Approval.Edits() || r.Approval == setting.Plan
	spec.Terms.Dirs = r.Dirs
	spec.Shared = setting.Defaults()
	spec.Shared.Approval = setting.AsTyped(r.Approval)
	if r.Sandbox != "" {
		spec.Shared.Sandbox = setting.AsTyped(r.Sandbox)
	}
	if r.Model != "" {
		spec.Shared.Model = setting.AsTyped(r.Model)
	}
	err := r.checkDirs()
	if err == nil {
		err = o.before(ctx, name)
	}
	if err != nil {
		return Ending{Err: err}
	}
	tap := r.tap()
	defer tap.close()
	asker := "" // another session numbers its questions from 1 again
	if n := len(r.Attempts); n > 1 {
		asker = fmt.Sprintf("a%d.", n)
	}
	e := Exchange{
		Open: o.Open, Agent: name, Spec: spec, Mode: r.Approval, Prompt: prompt, Idle: r.Idle,
		Secrets: r.secrets.values(),
		Busy:    max(r.Idle, longCall), Alive: tap.alive, Waits: tap.prompt,
		Lost: func() error { return tap.unkept(name) },
		Services: agent.Services{
			CanAsk: r.Approval != setting.DenyAll, Asker: asker, Grace: o.Grace, Connect: r.First, Tap: tap.services(),
			Private: r.secrets.in, Touched: r.sight.log,
			OwnPIDs: o.OwnPIDs, Standby: ready.standby,
		},
		Opened: func(c *conversation.Conversation) {
			a.Walls = c.Facts().Walls
			o.opened(a, c, desk)
			ready.survey() // before the agent gets the task
		},
		Sent: func(turn int64) { a.Turn = turn; o.ensure(Running) },
		OnEvent: func(e event.Event) {
			if left := tap.leaves(); a.RemoveIfEmpty == nil && left != nil {
				a.RemoveIfEmpty = left
				o.save()
			}
			o.see(ctx, a, e, desk)
		},
		Ask: o.decide, Patience: o.Patience, Person: o.Person,
	}
	ending := e.Run(ctx)
	r.recordMade(ending)
	ending.Err, ending.Said = cmp.Or(ending.Err, tap.unkept(name)), plain(&r.secrets, tap.last())
	desk.leave()
	tap.fill(a)
	return ending
}

// longCall is how long a tool may run without output, unless the idle timeout is longer.
const longCall = 15 * time.Minute

// asks reports whether an agent in this mode asks for permission.
func asks(mode setting.Approval) bool { return mode != setting.Yolo && mode != setting.DenyAll }

// opened records the conversation of an attempt.
func (o *Owner) opened(a *Attempt, c *conversation.Conversation, desk *desk) {
	facts := c.Facts()
	a.Session, a.First, a.Version, a.Resumes = c.ID(), c.Last(), facts.Version, c.Abilities().Resume
	desk.join(c)
	o.save()
}

// see updates the state by an event.
func (o *Owner) see(ctx context.Context, a *Attempt, e event.Event, desk *desk) {
	switch e.Kind {
	case event.Question:
		if o.Patience > 0 && len(o.Run.Open()) > 0 {
			if o.ensure(NeedsInput); len(o.Run.Open()) > 1 {
				o.save() // it waited already
			}
			o.pause(ctx)
			o.notify(a.Agent)
		}
	case event.Replied:
		o.replied(ctx, *e.Reply, desk.answerer(e.Reply.Question))
	case event.Withdrawn:
		o.withdrawn(ctx, e.Ask.ID)
	case event.Notice:
		if e.Denies {
			o.Log("%s", e.Text)
		}
	}
	o.tell(Progress{Event: &e})
}

// replied records an answer. The run continues when no other question is open. A denial that nobody gave leaves none.
func (o *Owner) replied(ctx context.Context, reply event.Reply, by int) {
	if reply.Automatic {
		o.withdrawn(ctx, reply.Question)
		return
	}
	for i := range o.Run.Questions {
		if q := &o.Run.Questions[i]; q.ID == reply.Question && q.Answer == nil {
			a := Answer{
				Text: reply.Text, Secret: reply.Secret, Option: reply.Option, At: time.Now().UTC(),
				By: cmp.Or(by, os.Getpid()),
			}
			if q.Form != nil && a.Option == event.Allow { // it only says that the form is filled
				a.Text, a.Option = cmp.Or(q.together(event.AnswersIn(reply.Input)), a.Text), ""
			}
			q.Answer = &a
			q.Made = q.decision() == Approve // the agent waits for it
		}
	}
	o.resume(ctx)
}

// withdrawn removes a question that the agent has withdrawn.
func (o *Owner) withdrawn(ctx context.Context, id string) {
	r := o.Run
	r.Questions = slices.DeleteFunc(r.Questions, func(q Question) bool { return q.ID == id && q.Answer == nil })
	if len(r.Open()) > 0 {
		o.save() // it goes on waiting
	}
	o.resume(ctx)
}

// resume continues a run that waited. Its look at the workspace goes on after an interrupt: what others changed while
// the run waited would otherwise count as the run's.
func (o *Owner) resume(ctx context.Context) {
	if r := o.Run; r.State == NeedsInput && len(r.Open()) == 0 {
		if o.ensure(Running); !o.paused {
			return
		}
		o.paused = false
		if err := r.survey(context.WithoutCancel(ctx)); err != nil {
			o.Log("what others changed meanwhile counts as the run's: %v", err)
		}
	}
}

// pause records what the run has changed, because its agent and it now wait for a person. If ctx ends during that, the
// run ends and does not wait.
func (o *Owner) pause(ctx context.Context) {
	_, _, err := o.Run.changes(ctx)
	if err == nil {
		err = o.Run.pause()
	}
	if err != nil && ctx.Err() != nil {
		return
	}
	o.paused = true
	if err != nil {
		o.Log("what others change meanwhile will count as the run's: %v", err)
	}
}

// ended completes the record of an attempt.
func (o *Owner) ended(a *Attempt, e Ending, v Verdict) {
	a.Ended, a.State, a.Reason = time.Now().UTC(), v.State, v.Reason
	if e.Session != "" {
		a.Session, a.Last, a.Turn, a.AgentSessionID = e.Session, e.Last, e.Turn, e.AgentSessionID
		a.Version, a.Walls = cmp.Or(e.Facts.Version, a.Version), cmp.Or(e.Facts.Walls, a.Walls)
		if x := e.Outcome.Exit; x.Failed == nil && a.Program != "" {
			a.ExitCode, a.Signal = new(x.Code), x.Signal
		}
	}
	a.Records = e.Outcome.Evidence.Records
	a.Worked = len(e.Tools) > 0 || e.Text != ""
	if u := e.Usage(); u != nil {
		a.Usage = &Usage{u.Input, u.Output, u.CostUSD}
	}
	a.Fingerprint = fingerprint(o.Run, *a)
}

// rest leaves the run in NeedsInput, without an owner.
func (o *Owner) rest(v Verdict, e Ending, changed *Changes) error {
	o.Run.Socket = ""
	o.Run.Result = plain(&o.Run.secrets, o.Run.result(v, e, changed))
	if err := o.Run.pause(); err != nil {
		o.Log("what others change meanwhile will count as the run's: %v", err)
	}
	err := o.enter(NeedsInput)
	o.notify(o.Run.agent())
	return err
}

// changed returns the changes since before the run, and in Later those that run later by themselves. It returns nil if
// the changes are unknown.
func (o *Owner) changed(ctx context.Context) *Changes {
	changed := o.Run.changed(ctx)
	if changed == nil || o.Later == nil || changed.Count+len(changed.Git)+changed.Doubtful == 0 {
		return changed
	}
	policy := o.Later(o.Run.Dir).Once()
	for _, f := range changed.Files {
		if f.Status != snapshot.Deleted && policy.RunsLater(f.Path, f.Status == snapshot.Added) {
			changed.Later = append(changed.Later, f.Path)
		}
	}
	for _, name := range changed.Git {
		if policy.RunsLater(name, false) {
			changed.Later = append(changed.Later, name)
		}
	}
	for _, d := range changed.Perhaps {
		if d.Status != snapshot.Deleted && policy.RunsLater(d.Path, d.Status == snapshot.Added) {
			changed.Later = append(changed.Later, d.Path)
		}
	}
	return changed
}

// conclude ends the run. If changed is nil, it looks for the changes, even if ctx has ended: the result of a run
// that was interrupted says what the run had changed.
func (o *Owner) conclude(ctx context.Context, v Verdict, e Ending, changed *Changes) error {
	r := o.Run
	if changed == nil {
		changed = o.changed(context.WithoutCancel(ctx))
	}
	err := r.conclude(v, e, changed)
	o.after(r.agent())
	o.tell(Progress{State: r.State})
	return err
}

// agent returns the current agent, or the last one.
func (r *Run) agent() string {
	if n := len(r.Attempts); n > 0 {
		return r.Attempts[n-1].Agent
	}
	return r.Agents[0]
}

func (o *Owner) enter(s State) error {
	err := o.Run.enter(s)
	if err == nil {
		o.tell(Progress{State: s})
	}
	return err
}

// ensure enters a state, unless the run is already in it.
func (o *Owner) ensure(s State) {
	if o.Run.State != s {
		if err := o.enter(s); err != nil {
			o.Log("%v", err)
		}
	}
}

func (o *Owner) save() {
	if err := o.Run.save(); err != nil {
		o.Log("%v", err)
	}
}
