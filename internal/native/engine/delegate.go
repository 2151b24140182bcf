package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/touch"
)

// caller is the conversation as seen by another agent that does the work of a call. That agent is reported as a
// sub-agent: its calls have ids of this conversation, and each has one result.
type caller struct {
	*loop

	mu    sync.Mutex
	calls int
	open  map[string]string // calls without a result: from the agent's ids to ours
}

var _ tool.Caller = (*caller)(nil)

// delegate returns the function that runs a call whose work another agent does.
func (l *loop) delegate(s *step) func(context.Context) tool.Result {
	c := &caller{
		loop: &loop{mind: l.mind, turn: l.turn, parent: s.call.ID, outer: l}, open: map[string]string{},
	}
	return func(ctx context.Context) tool.Result {
		w := c.callHook(ctx, agent.Moment{Name: agent.HelperBegins, Text: tool.RunnerName})
		if w.Decision == event.Deny {
			return tool.Result{Text: "It was not begun: " + reasonOf(w) + ".", Failed: true}
		}
		result := s.action.Delegate(ctx, c)
		c.close()
		c.callHook(ctx, agent.Moment{Name: agent.HelperEnds, Text: result.Text})
		return result
	}
}

// Mode returns the current mode of the conversation.
func (c *caller) Mode() setting.Approval { return c.mind.mode() }

// CanAsk reports whether a person can be asked.
func (c *caller) CanAsk() bool { return c.mind.o.Services.CanAsk }

// Touched returns the log for the paths that the agent writes.
func (c *caller) Touched() *touch.Log { return c.mind.o.Services.Touched }

// Ask asks a person. Hosts see the question as one about a call: the agent's own, or a call that consists of the
// question. ok is false without an answer.
func (c *caller) Ask(ctx context.Context, ask event.Ask) (event.Reply, bool) {
	if !c.CanAsk() {
		return event.Reply{}, false
	}
	call := event.Call{ID: ask.ID, Name: event.FormTool, Kind: event.Other}
	own := ask.Tool == nil
	if own {
		call.Input, _ = json.Marshal(event.FormOf(ask)) // texts
	} else {
		call = *ask.Tool
	}
	given := call.ID
	call.ID = c.begin(call)
	asked := ask
	asked.ID, asked.Tool, asked.Form = call.ID, &call, ask.Form || own
	reply, ok := c.replyTo(ctx, &asked)
	if reply.Stop {
		c.mind.interrupt(c.turn)
	}
	ok = ok && !reply.Automatic && !reply.Stop
	if own {
		reply, ok = answered(ask, call, reply, ok)
		c.end(event.Result{ID: given, Failed: !ok, Output: reply.Text})
	}
	if reply.Mode != "" || reply.Rules != nil { // they would change this conversation, not the agent's
		reply = event.Reply{Option: event.Deny, Text: "only this call can be allowed, and nothing beyond it"}
	}
	return reply, ok
}

// answered reads the answer to a question that was asked as a form.
func answered(ask event.Ask, call event.Call, reply event.Reply, ok bool) (event.Reply, bool) {
	var form struct {
		Answers map[string]string `json:"answers"`
	}
	_ = json.Unmarshal(reply.Input, &form) // any other input has no answers
	words := cmp.Or(form.Answers[ask.Text], reply.Text)
	if words == "" && slices.Contains(ask.Options, reply.Option) {
		words = reply.Option
	}
	return event.Reply{Question: call.ID, Text: words}, ok && reply.Option != event.Deny && words != ""
}

// Tell reports the calls of the agent and their results.
func (c *caller) Tell(e event.Event) {
	switch e.Kind {
	case event.ToolCall:
		c.begin(*e.Call)
	case event.ToolResult:
		c.end(*e.Result)
	}
}

// begin reports a call, once, and returns its id in this conversation.
func (c *caller) begin(call event.Call) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, known := c.open[call.ID]; known {
		return id
	}
	c.calls++
	id := fmt.Sprintf("%s.%d", c.parent, c.calls)
	c.open[call.ID], call.ID = id, id
	c.tell(event.Event{Kind: event.ToolCall, Call: &call})
	return id
}

// end reports the result of a call that begin reported.
func (c *caller) end(r event.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, known := c.open[r.ID]
	if !known {
		return
	}
	delete(c.open, r.ID)
	r.ID = id
	c.tell(event.Event{Kind: event.ToolResult, Result: &r})
}

// close ends the calls without a result.
func (c *caller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.open {
		r := &event.Result{ID: id, Failed: true, Output: "It ended without a result."}
		c.tell(event.Event{Kind: event.ToolResult, Result: r, Synthetic: true})
	}
	c.open = map[string]string{}
}

// Spend adds the agent's usage to that of the turn and to the limits of the conversation.
func (c *caller) Spend(u *event.Usage) {
	if u == nil {
		c.spend(model.Usage{}, 0, false)
		return
	}
	cost := 0.0
	if u.CostUSD != nil {
		cost = *u.CostUSD
	}
	c.spend(model.Usage{
		Input: u.Input - u.Cached - u.Written, CacheRead: u.Cached, CacheWrite: u.Written, Output: u.Output,
		Reasoning: u.Reasoning,
	}, cost, u.CostUSD != nil)
}
