package run

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/conversation"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/process"
	"omniagent/internal/setting"
	"omniagent/internal/workspace"
)

// Owner carries a run to its end, or to a question that waits for a person.
type Owner struct {
	Run  *Run
	Open conversation.Opener
	// Spec returns what the host asks of an agent; this package adds the task's own.
	Spec     func(agent string) agent.Spec
	Grace    time.Duration
	Parallel int           // runs at once; 0: any number
	Lifetime time.Duration // of this process, whatever the run waits for; 0: any time
	Apart    bool          // the agent gets a PID namespace of its own, where the system has them
	Patience time.Duration // for the answer to a question while the agent waits for it; 0: it does not wait
	// Person asks a person, as in Errand.
	Person func(context.Context, event.Ask) (event.Reply, bool)
	Hooks  Hooks
	Inside string // the agent that works in this process; empty: none does
	// Tell gets each state of the run, and each event of its conversations; nil: nobody listens.
	Tell func(Progress)
	Log  func(format string, args ...any)
}

// Progress is what an owner tells about its run.
type Progress struct {
	State   State        // entered; empty: see Event
	Attempt *Attempt     // that runs
	Event   *event.Event // of its conversation
}

// Work carries the run out. It returns when the run is over, or when nothing goes on without a person. The record then
// has the Result.
func (o *Owner) Work(ctx context.Context) error {
	r := o.Run
	if len(r.Open()) > 0 {
		return o.rest(missing(r))
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
	desk, err := listen(r, cancel)
	if err != nil {
		return err
	}
	defer desk.close()
	free, err := o.queue(ctx)
	if err != nil {
		return o.conclude(verdictOf(Ending{Err: cmp.Or(context.Cause(ctx), err)}, nil), Ending{}, nil)
	}
	defer free()
	if !r.Until.IsZero() { // an earlier owner waited
		if err := o.waitFor(ctx, 0); err != nil {
			return o.conclude(verdictOf(Ending{Err: err}, nil), Ending{}, nil)
		}
	}
	ready := o.prepare(ctx)
	defer ready.standby.Dismiss()
	i := max(0, slices.Index(r.Agents, r.agent())) // the one that asked goes on
	for again := 0; ; {
		name := r.Agents[min(i, len(r.Agents)-1)]
		ending := o.attempt(ctx, name, desk, ready)
		ready.survey() // an attempt that failed may not have waited for it
		changed := r.changed(ctx)
		v := Judge(ending, differ(changed))
		if v.Reason == Idle {
			v.Fault.Hint("omniagent runs retry %s, or a longer --idle-timeout", r.ID)
		}
		o.ended(&r.Attempts[len(r.Attempts)-1], ending, v)
		switch {
		case ctx.Err() != nil:
		case v.Reason == Asked && r.repeats(*v.Question):
			v = repeated(*v.Question)
		case v.Reason == Asked:
			r.ask(*v.Question)
			return o.rest(v)
		case v.State == Failed && len(ending.Tools) == 0 && ending.Text == "" && r.anew():
			continue
		case passes(v.Reason) && i+1 < len(r.Agents):
			i++
			continue
		case r.WaitQuota && limited(v) && o.waitFor(ctx, v.Fault.RetryAfter) == nil:
			continue
		case again < r.Retries && retryable(v, ending) && wait(ctx, v.Fault, again) == nil:
			again++
			continue
		}
		if v.State == Succeeded && r.Check != "" {
			v = o.check(ctx, v)
		}
		return o.conclude(v, ending, changed)
	}
}

// anew makes the next attempt begin a session of its own, with all answers, if the last one could not go on with an
// earlier session. It reports whether that was so.
func (r *Run) anew() bool {
	last := r.Attempts[len(r.Attempts)-1]
	if !last.Resumed {
		return false
	}
	for i := range r.Attempts {
		if r.Attempts[i].Agent == last.Agent {
			r.Attempts[i].Resumes = false
		}
	}
	return true
}

// passes reports whether the next agent is tried after such an end: this one could not begin.
func passes(r Reason) bool {
	return slices.Contains([]Reason{NotInstalled, NotLoggedIn, OutOfQuota, NotAllowed}, r)
}

// limited reports whether the service says how long a limit of its lasts.
func limited(v Verdict) bool {
	return (v.Reason == OutOfQuota || v.Reason == RateLimited) && v.Fault != nil && v.Fault.RetryAfter > 0
}

// waitFor waits for a limit of the service. Another process may take the wait up.
func (o *Owner) waitFor(ctx context.Context, d time.Duration) error {
	r := o.Run
	if r.Until.IsZero() {
		r.Until = time.Now().Add(d).UTC()
	}
	if err := o.enter(Queued); err != nil {
		return err
	}
	for { // in steps: a timer does not count while the machine sleeps
		left := time.Until(r.Until)
		if left <= 0 {
			r.Until = time.Time{}
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(left, time.Second)):
		}
	}
}

// retryable reports whether the same agent may be tried again: the reason passes by itself, and nothing was done. An
// agent that never showed a sign of life has not begun. One that fell silent has, and a second silence would let a
// person wait twice as long: what comes next is for the person to say.
func retryable(v Verdict, e Ending) bool {
	touched := e.Touched()
	if touched == nil || *touched {
		return false
	}
	return slices.Contains([]Reason{RateLimited, Unreachable, Crashed, CutStream, NoOutput, NoAnswer}, v.Reason)
}

const (
	firstWait   = time.Second
	longestWait = time.Minute
)

// wait waits before an attempt, as long as the service wants; else longer each time, and not all at the same moment.
func wait(ctx context.Context, f *fault.Fault, n int) error {
	d := min(firstWait<<n, longestWait)
	d += rand.N(d / 4)
	if f != nil && f.RetryAfter > 0 {
		d = f.RetryAfter
	}
	if d > longestWait {
		return errors.New("too long")
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// queue waits until fewer runs than Parallel are under way. Those that wait are taken in the order of their ids.
func (o *Owner) queue(ctx context.Context) (free func(), err error) {
	if o.Parallel <= 0 {
		return func() {}, nil
	}
	dir := filepath.Join(o.Run.store.Dir, ".slots")
	if err := workspace.MkdirAll(dir); err != nil {
		return nil, err
	}
	told := false
	for {
		// One process at a time looks for a place, and the others wait for their turn.
		turn, err := workspace.Lock(ctx, filepath.Join(dir, "turn"), time.Minute)
		if err != nil && !errors.Is(err, fault.LockHeld) {
			return nil, err
		}
		for err == nil {
			for n := range o.Parallel {
				held, err := workspace.Lock(ctx, filepath.Join(dir, fmt.Sprint(n)), 0)
				if err == nil {
					_ = turn.Unlock()
					return func() { _ = held.Unlock() }, nil
				}
			}
			if !told {
				told = true
				o.save() // a run that need not wait is saved when it starts
				o.tell(Progress{State: Queued})
			}
			select {
			case <-ctx.Done():
				_ = turn.Unlock()
				return nil, context.Cause(ctx)
			case <-time.After(25 * time.Millisecond):
			}
		}
	}
}

// preparation is what goes on while the first conversation is opened.
type preparation struct {
	standby *process.Standby
	survey  func() // returns when the workspace was looked at
}

// prepare begins what an agent needs that is a process. It waits for nothing, except where hooks of a person, or the
// agent in this process, may touch the workspace before the task.
func (o *Owner) prepare(ctx context.Context) preparation {
	r := o.Run
	ready := preparation{survey: sync.OnceFunc(func() {
		if err := r.survey(ctx); err != nil {
			o.Log("what the run changes will not be known: %v", err)
		}
	})}
	if r.Agents[0] != o.Inside {
		ready.standby = process.Prepare(o.Apart)
		go ready.survey()
	}
	if ready.standby == nil || len(o.Hooks.Before) > 0 {
		o.save()
		ready.survey()
	}
	return ready
}

// attempt holds one conversation.
func (o *Owner) attempt(ctx context.Context, name string, desk *desk, ready preparation) Ending {
	r := o.Run
	prompt, resume := r.prompt(name)
	r.Attempts = append(r.Attempts, Attempt{
		Agent: name, Began: time.Now().UTC(), Session: resume,
		Resumed: resume != "",
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
	// Everywhere else a call may become a question, which waits for a person however long that takes.
	spec.Terms.Once = !asks(r.Approval) || r.Approval.Edits() || r.Approval == setting.Plan
	spec.Shared = setting.Defaults()
	spec.Shared.Approval = setting.Chosen[setting.Approval]{Value: r.Approval, Origin: setting.Typed}
	if r.Sandbox != "" {
		spec.Shared.Sandbox = setting.Chosen[setting.Sandbox]{Value: r.Sandbox, Origin: setting.Typed}
	}
	if r.Model != "" {
		spec.Shared.Model = setting.Chosen[string]{Value: r.Model, Origin: setting.Typed}
	}
	if err := o.before(ctx, name); err != nil {
		return Ending{Err: err}
	}
	tap := r.tap()
	defer tap.close()
	e := Errand{
		Open: o.Open, Agent: name, Spec: spec, Mode: r.Approval, Prompt: prompt, Idle: r.Idle,
		Busy: max(r.Idle, longCall), Alive: tap.alive, Waits: tap.prompt,
		Services: agent.Services{
			CanAsk: asks(r.Approval), Grace: o.Grace, Connect: r.First, Tap: tap.services(),
			Apart: o.Apart, Standby: ready.standby,
		},
		Opened: func(c *conversation.Conversation) {
			a.Walls = c.Facts().Walls
			o.opened(a, c, desk)
			ready.survey() // before the agent has the task, which starts it
		},
		Sent: func(turn int64) { a.Turn = turn; o.must(Running) },
		See:  func(e event.Event) { o.see(a, e, desk) },
		Ask:  o.decide, Patience: o.Patience, Person: o.Person,
	}
	ending := e.Do(ctx)
	ending.Err = cmp.Or(ending.Err, tap.unkept(name))
	desk.leave()
	tap.fill(a)
	return ending
}

// longCall is how long a tool may run without a sign of life.
const longCall = 15 * time.Minute

// asks reports whether an agent in this mode asks a person. The others decide by themselves.
func asks(mode setting.Approval) bool { return mode != setting.Yolo && mode != setting.DenyAll }

// opened notes the conversation of an attempt.
func (o *Owner) opened(a *Attempt, c *conversation.Conversation, desk *desk) {
	facts := c.Facts()
	a.Session, a.First, a.Version, a.Resumes = c.ID(), c.Last(), facts.Version, c.Abilities().Resume
	desk.join(c)
	o.save()
}

// see notes what an event tells about the state.
func (o *Owner) see(a *Attempt, e event.Event, desk *desk) {
	switch e.Kind {
	case event.Question:
		if o.Patience > 0 && len(o.Run.Open()) > 0 {
			o.must(NeedsInput)
			o.notify(a.Agent)
		}
	case event.Replied:
		o.replied(*e.Reply, desk.answerer(e.Reply.Question))
	case event.Withdrawn:
		o.withdrawn(e.Ask.ID)
	}
	o.tell(Progress{Attempt: a, Event: &e})
}

// replied notes who answered what. The run works again when nothing else is open.
func (o *Owner) replied(reply event.Reply, by int) {
	for i := range o.Run.Questions {
		if q := &o.Run.Questions[i]; q.ID == reply.Question && q.Answer == nil && !reply.ByUs {
			q.Answer = &Answer{
				Text: reply.Text, Option: reply.Option, At: time.Now().UTC(), By: cmp.Or(by, os.Getpid()),
			}
		}
	}
	o.resume()
}

// withdrawn takes a question back that the agent does not ask any more.
func (o *Owner) withdrawn(id string) {
	r := o.Run
	r.Questions = slices.DeleteFunc(r.Questions, func(q Question) bool { return q.ID == id && q.Answer == nil })
	o.resume()
}

func (o *Owner) resume() {
	if r := o.Run; r.State == NeedsInput && len(r.Open()) == 0 {
		o.must(Running)
	}
}

// decide answers a question that a person has answered before, and otherwise waits for a person or ends the turn.
func (o *Owner) decide(ask event.Ask) (*event.Reply, bool) {
	q := questionOf(ask)
	for _, known := range o.Run.Questions {
		if a := known.Answer; a != nil && known.same(q) && a.Option != "" && q.Tool != "" {
			return &event.Reply{Option: a.Option, Text: a.Text}, false
		}
	}
	if o.Patience > 0 && !o.Run.repeats(q) {
		o.Run.ask(q)
		return nil, true
	}
	return nil, false
}

// ended completes the record of an attempt.
func (o *Owner) ended(a *Attempt, e Ending, v Verdict) {
	a.Ended, a.State, a.Reason = time.Now().UTC(), v.State, v.Reason
	if e.Session != "" {
		a.Session, a.Last, a.Turn, a.Own = e.Session, e.Last, e.Turn, e.Own
		a.Version = cmp.Or(e.Facts.Version, a.Version)
		if x := e.Outcome.Exit; x.Failed == nil && a.Program != "" {
			code := x.Code
			a.ExitCode, a.Signal = &code, x.Signal
		}
	}
	a.Worked = len(e.Tools) > 0 || e.Text != ""
	a.Fingerprint = fingerprint(o.Run, *a)
}

// fingerprint identifies what was started: the agent, its version, how, where, and for what.
func fingerprint(r *Run, a Attempt) string {
	h := sha256.New()
	parts := []string{a.Agent, a.Program, a.Version, r.Model, string(r.Approval), r.Transport, r.Dir, r.Text}
	if r.Comments != "" {
		parts = append(parts, r.Comments)
	}
	for _, part := range slices.Concat(parts, a.EnvKeys) { // arguments have ids that differ each time
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// rest leaves the run to a person.
func (o *Owner) rest(v Verdict) error {
	o.Run.Socket = ""
	o.Run.Result = o.Run.result(v, Ending{}, nil)
	err := o.enter(NeedsInput)
	o.notify(o.Run.agent())
	return err
}

// conclude ends the run. What changed is looked for here where the caller has not.
func (o *Owner) conclude(v Verdict, e Ending, changed *Changes) error {
	r := o.Run
	if changed == nil {
		changed = r.changed(context.Background())
	}
	err := r.conclude(v, e, changed)
	o.after(r.agent())
	o.tell(Progress{State: r.State})
	return err
}

// agent is the one that works, or worked last.
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

// must enters a state, unless the run is in it.
func (o *Owner) must(s State) {
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

func (o *Owner) tell(p Progress) {
	if o.Tell != nil {
		o.Tell(p)
	}
}

// conclude ends the run. Nothing changes it afterwards.
func (r *Run) conclude(v Verdict, e Ending, changed *Changes) error {
	r.Result, r.Socket = r.result(v, e, changed), ""
	return r.enter(v.State)
}

// result returns what a run came to.
func (r *Run) result(v Verdict, e Ending, changed *Changes) *Result {
	now := time.Now().UTC()
	worked, waited := r.Times(now)
	out := &Result{
		State: v.State, Reason: v.Reason, Text: e.Answer(), Changed: changed, Denials: []Denial{},
		Evidence: append([]string{}, v.Evidence...), Asks: v.Asks, Ended: now, Fault: v.Fault,
		DurationMS: worked.Milliseconds(), WaitedMS: waited.Milliseconds(), Tools: tools(e), Checks: checks(e),
		Tested: v.Tested,
	}
	for _, d := range e.Denials {
		out.Denials = append(out.Denials, Denial{d.Tool, d.Reason})
	}
	if spent := e.Usage(); spent != nil {
		out.Usage = &Usage{spent.Input, spent.Output, spent.CostUSD}
	}
	return out
}
