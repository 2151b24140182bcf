package contract

import (
	"context"
	"slices"

	"omniagent/internal/kit/fault"
)

// stepLog records how far a command with steps has come.
//
//	pending ─┬─ before --resume-from ─▶ skipped
//	         └─ do ─┬─ no error ─▶ completed
//	                └─ error ────▶ failed: no further step begins
type stepLog struct {
	completed []string
	skipped   []string
	current   string
	failed    string
	err       error // of the failed step
}

// Step runs one declared step. It skips steps before --resume-from; none begins after one has failed or the call has
// ended.
func (c *Call) Step(ctx context.Context, name string, do func(context.Context) error) error {
	if !slices.Contains(c.Command.Steps, name) {
		return c.undeclared("the step " + name)
	}
	if done, err := c.stepDone(name); err != nil {
		return err
	} else if done {
		return c.undeclared("the step " + name + " a second time")
	}
	if from := c.String("resume-from"); from != "" &&
		slices.Index(c.Command.Steps, name) < slices.Index(c.Command.Steps, from) {
		c.withSteps(func(s *stepLog) { s.skipped = append(s.skipped, name) })
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	first := false
	c.withSteps(func(s *stepLog) { first, s.current = len(s.completed) == 0, name })
	if first && c.format() == "jsonl" {
		c.out.beat(append(appendJSON(nil, object{{"event", "steps"}, {"steps", names(c.Command.Steps)}}), '\n'))
	}
	c.stepEvent("step_started", name)
	if err := do(ctx); err != nil {
		if ctx.Err() == nil {
			c.withSteps(func(s *stepLog) { s.failed, s.err, s.current = name, err, "" })
			c.stepEvent("step_failed", name)
		}
		return err
	}
	c.withSteps(func(s *stepLog) { s.completed, s.current = append(s.completed, name), "" })
	c.stepEvent("step_completed", name)
	return nil
}

// stepDone reports whether the step has begun or was skipped. The error is that of a step that failed: none may begin
// after it.
func (c *Call) stepDone(name string) (done bool, err error) {
	c.withSteps(func(s *stepLog) {
		done, err = slices.Contains(s.completed, name) || slices.Contains(s.skipped, name) || s.current == name, s.err
	})
	return done, err
}

// halfDone returns the fault of a call in which a step failed after others were done: whatever the reason, part of the
// work remains.
func (c *Call) halfDone(f *fault.Fault) *fault.Fault {
	half := false
	c.withSteps(func(s *stepLog) { half = s.failed != "" && len(s.completed)+len(s.skipped) > 0 })
	if !half || f == nil || f.Kind() == fault.Partial {
		return f
	}
	partial := fault.New(fault.PartialFailure, "%s stopped half-way: %s", c.Command.Path, f.Message).With("cause_code",
		string(f.Code)).Because(f.Cause)
	partial.Suggestion, partial.Fix = f.Suggestion, f.Fix
	return partial
}

// SkipStep records that a declared step is skipped because the caller did not ask for it.
func (c *Call) SkipStep(name string) {
	c.withSteps(func(s *stepLog) { s.skipped = append(s.skipped, name) })
}

func (c *Call) withSteps(f func(*stepLog)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.steps)
}

func (c *Call) currentStep() (name string) {
	c.withSteps(func(s *stepLog) { name = s.current })
	return name
}

// stepEvent reports a step to a reader of lines.
func (c *Call) stepEvent(event, step string) {
	c.Progress("%s %s", event, step)
	if c.format() == "jsonl" {
		c.out.beat(append(appendJSON(nil, object{{"event", event}, {"step", step}}), '\n'))
	}
}

// stepMembers adds the state of the steps to the data, whatever the outcome.
func (c *Call) stepMembers(o object, failed *fault.Fault) object {
	if len(c.Command.Steps) == 0 {
		return o
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.steps
	pending := []any{}
	for _, name := range c.Command.Steps {
		if !slices.Contains(s.completed, name) && !slices.Contains(s.skipped, name) {
			pending = append(pending, name)
		}
	}
	o = o.set("completed_steps", names(s.completed)).set("skipped_steps", names(s.skipped))
	if failed == nil {
		return o
	}
	o = o.set("pending_steps", pending)
	if s.failed != "" {
		o = o.set("failed_step", s.failed)
	}
	if len(pending) > 0 {
		o = o.set("resume_from", pending[0])
	}
	return o
}

func names(list []string) []any {
	out := []any{}
	for _, s := range list {
		out = append(out, s)
	}
	return out
}
