package stream

import (
	"maps"
	"slices"
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/fault"
)

// course brings what agents tell into the one course that both dialects promise, whoever the agent is. Some repeat as a whole what they told in
// pieces, go on after what they call an error, never say what came of a call, or end in words of their own.
//
// Behind it a text is told once; each call has an object for its input and exactly one result, and each result its call; what ends a turn comes directly in front of an end that
// is not OK; and that end has one of a few reasons.
type course struct {
	pieces map[said]*strings.Builder // told, of which the whole may follow
	last   string                    // what the agent itself said last
	open   map[string]event.Event    // calls without a result
	order  []string                  // of those
	lost   *event.Event              // a failure with which the turn may end
}

type said struct {
	parent string
	kind   event.Kind
}

// The reasons of ends.
const (
	wentWell  = "success"
	wentWrong = "error_during_execution"
	cancelled = "cancelled"
)

// noResult stands where an agent did not say what came of a call.
const noResult = "The turn ended, and nothing is known of what came of this call."

// put returns what is to be told now.
func (c *course) put(e event.Event) []event.Event {
	switch e.Kind {
	case event.Text, event.Thinking:
		return c.words(e)
	case event.Answered, event.TurnBegan:
		c.rest(e.Parent)
	case event.ToolCall:
		c.rest(e.Parent)
		if _, twice := c.open[e.Call.ID]; twice {
			return notice(e, "a call that is told twice")
		}
		call := *e.Call
		call.Input, call.Canonical = call.Object(), nil
		e.Call = &call
		if c.open == nil {
			c.open = map[string]event.Event{}
		}
		c.open[e.Call.ID] = e
		c.order = append(c.order, e.Call.ID)
	case event.ToolResult:
		c.rest(e.Parent)
		if _, found := c.open[e.Result.ID]; !found {
			return notice(e, "a result without its call")
		}
		c.shut(e.Result.ID)
		if code := e.Result.ExitCode; code != nil && *code != 0 && !e.Result.Failed { // some call a command that ran a success, however it ended
			result := *e.Result
			result.Failed = true
			e.Result = &result
		}
	case event.Failed:
		if e.Terminal {
			c.fail(e)
			return nil
		}
	case event.Ended:
		return c.end(e)
	}
	return []event.Event{e}
}

func notice(e event.Event, words string) []event.Event {
	return []event.Event{{Kind: event.Notice, Session: e.Session, Parent: e.Parent, Text: words, Raw: e.Raw}}
}

// words tells a text once. The whole of what was told in pieces adds what they lack, and ends it.
func (c *course) words(e event.Event) []event.Event {
	key := said{e.Parent, e.Kind}
	b := c.pieces[key]
	if e.Delta {
		if b == nil {
			b = &strings.Builder{}
			if c.pieces == nil {
				c.pieces = map[said]*strings.Builder{}
			}
			c.pieces[key] = b
		}
		b.WriteString(e.Text)
		return []event.Event{e}
	}
	delete(c.pieces, key)
	if key == (said{"", event.Text}) && e.Text != "" {
		c.last = e.Text
	}
	if b == nil {
		return []event.Event{e}
	}
	more, follows := strings.CutPrefix(e.Text, b.String())
	if !follows {
		return []event.Event{e}
	}
	whole := e
	whole.Text = ""
	if more == "" {
		return []event.Event{whole}
	}
	e.Text, e.Delta = more, true
	return []event.Event{e, whole}
}

// rest ends what was told in pieces.
func (c *course) rest(parent string) {
	if b := c.pieces[said{"", event.Text}]; parent == "" && b != nil && b.Len() > 0 {
		c.last = b.String()
	}
	maps.DeleteFunc(c.pieces, func(k said, _ *strings.Builder) bool { return k.parent == parent })
}

func (c *course) shut(id string) {
	delete(c.open, id)
	c.order = slices.DeleteFunc(c.order, func(o string) bool { return o == id })
}

// fail keeps a failure until it is known that the turn ends with it. Of two the one that says more counts.
func (c *course) fail(e event.Event) {
	general := func(code fault.Code) bool { return code == fault.AgentFailed || code == fault.APIError }
	if c.lost == nil || general(c.lost.Fault.Code) || !general(e.Fault.Code) {
		e.Raw = nil
		c.lost = &e
	}
}

// end tells first what has not been told.
func (c *course) end(e event.Event) (out []event.Event) {
	c.rest("")
	for _, id := range slices.Backward(c.order) { // that of a sub-agent's call in front of that of the call which is the sub-agent
		call := c.open[id]
		out = append(out, event.Event{
			Kind: event.ToolResult, Session: e.Session, Parent: call.Parent, Synthetic: true,
			Result: &event.Result{ID: id, Name: call.Call.Name, Failed: true, Output: noResult},
		})
	}
	end := *e.End
	switch {
	case end.OK:
		end.Reason = wentWell
		if end.Text == "" {
			end.Text = c.last
		}
		if c.lost != nil { // it was overcome
			end.Notes = append(slices.Clone(end.Notes), c.lost.Fault.Sentence())
		}
	case c.lost != nil && c.lost.Fault.Code == fault.Interrupted, c.lost == nil && end.Reason == "interrupted":
		end.Reason = cancelled
	default:
		end.Reason = reason(end.Reason)
		if c.lost != nil {
			out = append(out, *c.lost)
		}
	}
	e.End = &end
	*c = course{}
	return append(out, e)
}

// reason is why a turn failed, in the words that hosts know.
func reason(word string) string {
	switch word {
	case cancelled, "error_max_turns", "error_max_budget_usd", "error_max_structured_output_retries":
		return word
	case "max_turns":
		return "error_max_turns"
	case "max_budget_usd", "budget_exceeded":
		return "error_max_budget_usd"
	case "structured_output_retry_exhausted":
		return "error_max_structured_output_retries"
	}
	return wentWrong
}
