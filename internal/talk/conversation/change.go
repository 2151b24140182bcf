package conversation

import (
	"context"
	"errors"
	"slices"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// confirmWithin is how long an agent may take to confirm a change.
const confirmWithin = 10 * time.Second

// With returns the Spec after a change.
func With(s agent.Spec, change agent.Change) agent.Spec {
	if change.Mode != "" {
		s.Terms.Mode = change.Mode
		approval := change.Mode
		if !slices.Contains(setting.Common(), approval) {
			approval = setting.Prompt // the strictest mode that every agent has
		}
		s.Shared.Approval = setting.AsTyped(approval)
	}
	if change.Model != "" {
		s.Shared.Model = setting.AsTyped(change.Model)
	}
	if change.Dir != "" && !slices.Contains(s.Terms.Dirs, change.Dir) {
		s.Terms.Dirs = append(slices.Clip(s.Terms.Dirs), change.Dir)
	}
	return s
}

// set implements Set. Changes are made one after the other.
func (c *Conversation) set(change agent.Change, reply func(error)) {
	c.changes = append(c.changes, func() { c.apply(change, reply) })
	c.proceed()
}

// MayBypass reports whether the mode may become yolo: the conversation began with it, or its host allowed that.
func (c *Conversation) MayBypass() bool { return c.o.Spec.Terms.Bypass }

// apply makes a change, or refuses it.
func (c *Conversation) apply(change agent.Change, reply func(error)) {
	switch {
	case c.failure != nil:
		reply(c.failure)
		return
	case c.closing:
		reply(c.overError())
		return
	case change.Mode != "" && !slices.Contains(setting.Approvals(), change.Mode):
		reply(fault.New(fault.ArgError, "there is no mode %q", change.Mode).
			Hint("deny, ask, plan, prompt, default, auto-edit or yolo"))
		return
	case change.Mode == setting.Yolo && !c.MayBypass():
		reply(fault.New(fault.PermissionDenied, "the mode cannot become yolo, in which nothing is asked about").
			Hint("begin the conversation with --yolo, or with --allow-bypass"))
		return
	}
	if c.abandoned || change.Mode != "" && !c.able.Mode || change.Model != "" && !c.able.Model {
		c.restartWith(change, reply)
		return
	}
	c.changing = true // no turn begins before the answer
	mind := c.mind
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), confirmWithin)
		defer cancel()
		err := mind.Set(ctx, change)
		c.inbox.post(func() {
			if errors.Is(err, agent.ErrRestart) {
				c.changing = false
				c.restartWith(change, reply)
				return
			}
			reply(err)
			c.changed()
		})
	}()
}

// changed is called when a change is made or refused.
func (c *Conversation) changed() {
	c.changing = false
	c.proceed()
}

// returning reports whether a turn has ended, but its Mind.Turn has not returned. A host that has read the end may
// ask for a change that is only possible between turns, so changes wait for the return.
func (c *Conversation) returning() bool { return c.turn != nil && c.turn.ended }

// proceed makes the changes that wait, then begins the next turn.
func (c *Conversation) proceed() {
	for !c.changing && !c.returning() && len(c.changes) > 0 {
		next := c.changes[0]
		c.changes = c.changes[1:]
		next()
	}
	c.next()
}

// restartWith makes a change that an agent accepts only when it starts.
func (c *Conversation) restartWith(change agent.Change, reply func(error)) {
	facts := c.Facts()
	var refused error
	switch {
	case !c.abandoned && (change.Dir == "" || slices.Contains(c.spec.Terms.Dirs, change.Dir)) &&
		(change.Mode == "" || change.Mode == facts.Mode) &&
		(change.Model == "" || change.Model == facts.Model): // nothing to change
	case c.returning(): // it ended while the Mind was asked for the change
		c.changes = slices.Insert(c.changes, 0, func() { c.restartWith(change, reply) })
		return
	case c.turn != nil || c.unprompted != nil:
		refused = fault.New(fault.Unsupported, "%s does not change that in the middle of a turn", facts.Agent).
			Hint("wait for its end, or interrupt it")
	case c.last > 0 && (!c.able.Resume || c.AgentSessionID() == ""):
		refused = fault.New(fault.Unsupported, "%s cannot change that: it cannot resume a conversation", facts.Agent).
			Hint("begin another conversation")
	default:
		c.restart(With(c.spec, change), func(err error) {
			if err == nil && (change.Mode != "" || change.Model != "") {
				c.tell(&event.Event{
					Kind: event.Changed, Facts: &event.Facts{Mode: change.Mode, Model: change.Model}, Synthetic: true,
				})
			}
			reply(err)
			c.changed()
		})
		return
	}
	reply(refused)
	c.changed()
}

// restart closes the Mind and makes another that resumes the conversation. If that fails, the conversation keeps its
// old Spec.
func (c *Conversation) restart(s agent.Spec, then func(error)) {
	c.changing = true
	before, old := c.spec, c.mind
	if own := c.AgentSessionID(); own != "" {
		s.Resume, before.Resume = own, own
		s.Fresh, before.Fresh = "", ""
	}
	c.generation++ // events of the old Mind are ignored
	c.closeMind(old, func(agent.Outcome, error) { c.reopen(s, before, then) })
}

// reopen makes the Mind. A Mind starts nothing before the first message, so this may block run.
func (c *Conversation) reopen(s, before agent.Spec, then func(error)) {
	c.changing = false
	mind, err := c.newMind(context.Background(), s)
	if err == nil {
		c.spec = s
	} else {
		var again error
		if mind, again = c.newMind(context.Background(), before); again != nil {
			c.mind = nil
			c.fail(again)
			then(err)
			return
		}
	}
	c.adopt(mind)
	then(err)
}
