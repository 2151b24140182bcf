package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	wire "omniagent/internal/proto/acp"
	"omniagent/internal/setting"
)

// set changes an option. What the agent cannot change as it runs is changed by going on with its session anew, between two turns.
func (c *conversation) set(id json.RawMessage, option, value string) {
	change, choices := agent.Change{Mode: setting.Approval(value)}, c.options.Modes
	switch option {
	case "mode":
	case "model":
		change, choices = agent.Change{Model: value}, c.options.Models
	default:
		c.host.put(wire.Fail(id, wire.Wrong(wire.InvalidParams, "there is no option %q; there are mode and model", option)))
		return
	}
	switch {
	case c.closing || c.over:
		c.host.put(wire.Fail(id, noSession(c.id)))
		return
	case !slices.ContainsFunc(choices, func(o wire.Choice) bool { return o.ID == value }):
		c.host.put(wire.Fail(id, wire.Wrong(wire.InvalidParams, "%s cannot be %q here", option, value)))
		return
	case c.changing:
		c.host.put(wire.Fail(id, wire.Wrong(wire.InvalidRequest, "another option is being changed")))
		return
	}
	c.changing = true // also where our copy says the same: only the session knows
	idle, session := c.turn == nil, c.link.session
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		err := session.Set(ctx, change)
		unable := errors.Is(err, fault.Unsupported)
		c.post(func() {
			switch {
			case err == nil, unable && holds(session.Facts(), change):
				c.changed(id, change, c.options)
			case unable && idle && !c.closing && !c.over:
				c.reopen(id, change)
			default:
				c.changing = false
				c.host.put(wire.Fail(id, errorOf(err)))
				c.next()
			}
		})
	}()
}

// holds says whether a session says of itself that a change would change nothing.
func holds(f event.Facts, change agent.Change) bool {
	return (change.Mode == "" || change.Mode == f.Mode) && (change.Model == "" || change.Model == f.Model)
}

// changed answers a request for a change that holds now. The client was last shown the options before.
func (c *conversation) changed(id json.RawMessage, change agent.Change, before wire.Options) {
	c.changing = false
	c.refresh(change, before)
	c.host.put(wire.Reply(id, c.encoder.Changed(c.options)))
	c.next()
}

// refresh takes over a change, whoever caused it, and tells the client if it is news. The mode is the one that the
// session reports now: it may have changed again since.
func (c *conversation) refresh(change agent.Change, before wire.Options) {
	if c.link != nil {
		if now := c.link.session.Facts().Mode; now != "" {
			change.Mode = now
		}
	}
	if !slices.ContainsFunc(c.options.Models, func(o wire.Choice) bool { return o.ID == change.Model }) {
		change.Model = "" // another name of the model that was chosen
	}
	c.spec = with(c.spec, change)
	if change.Mode != "" {
		c.options.Mode = string(change.Mode)
		c.options.Modes = offered(c.options.Modes, c.options.Mode)
	}
	if change.Model != "" {
		c.options.Model = change.Model
	}
	if options := c.options; options.Mode != before.Mode || options.Model != before.Model {
		c.tell(wire.Update{Kind: wire.Optioned, Options: &options})
	}
}

// with is what a conversation begins with after a change.
func with(s agent.Spec, change agent.Change) agent.Spec {
	if change.Mode != "" {
		s = WithMode(s, change.Mode)
	}
	if change.Model != "" {
		s.Shared.Model = setting.Chosen[string]{Value: change.Model, Origin: setting.Typed}
	}
	return s
}

// WithMode is what a conversation in that mode begins with.
func WithMode(s agent.Spec, mode setting.Approval) agent.Spec {
	s.Terms.Mode = mode
	approval := setting.Approval(mode)
	if !slices.Contains(setting.Common(), approval) {
		approval = setting.Prompt // the strictest of the words that all agents share
	}
	s.Shared.Approval = setting.Chosen[setting.Approval]{Value: approval, Origin: setting.Typed}
	return s
}

// reopen closes what the client talks with and goes on with it, changed. If it cannot be, it goes on as it was.
func (c *conversation) reopen(id json.RawMessage, change agent.Change) {
	c.known()
	before, old := c.spec, c.link
	if before.Resume = c.resume; before.Resume != "" {
		before.Fresh, before.Terms.Fork = "", false
	}
	c.link = nil
	go func() {
		_ = old.close()
		spec := with(before, change)
		l, err := c.host.open(context.Background(), spec)
		var again error
		if err != nil {
			spec = before
			l, again = c.host.open(context.Background(), spec)
		}
		c.post(func() {
			c.changing = false
			if again != nil {
				c.host.put(wire.Fail(id, errorOf(again)))
				c.over = true
				return
			}
			shown := c.options
			c.adopt(l, spec)
			switch {
			case c.closing:
				c.host.put(wire.Fail(id, noSession(c.id)))
				c.unlink()
			case err != nil:
				c.host.put(wire.Fail(id, errorOf(err)))
				c.next()
			default:
				c.changed(id, change, shown)
			}
		})
	}()
}
