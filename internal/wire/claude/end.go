package claude

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// fail reports the failure that ends the turn. Failures of the model API are reported as Claude Code does: as an answer
// with the message.
func (e *Encoder) fail(f *fault.Fault) [][]byte {
	e.failure = f
	lines := e.shutAll(true)
	kind := errorKind(f)
	if kind == "" {
		return lines
	}
	m := &message{id: e.UUID(), model: "<synthetic>"}
	return append(lines,
		e.line(messageLine{
			Type: "assistant", Message: m.line([]any{textBlock{"text", "API Error: " + f.Sentence()}}), Error: kind,
		}))
}

// errorKind returns Claude Code's word for a failure of the model API, or "" for other failures.
func errorKind(f *fault.Fault) string {
	switch f.Code {
	case fault.AuthRequired, fault.CredentialsExpired, fault.PermissionDenied:
		return "authentication_failed"
	case fault.TooManyRequests:
		return "rate_limit"
	case fault.QuotaExhausted:
		return "billing_error"
	case fault.NotFoundCode:
		return "model_not_found"
	case fault.ContextFull, fault.ModelRefused:
		return "invalid_request"
	case fault.ServiceDown:
		return "overloaded"
	case fault.APIError, fault.TimedOut:
		return "server_error"
	}
	return ""
}

// shutAll ends every open message.
func (e *Encoder) shutAll(aborted bool) (lines [][]byte) {
	for _, p := range slices.Sorted(maps.Keys(e.open)) {
		lines = append(lines, e.shut(p, aborted)...)
	}
	return lines
}

// end returns the result of a turn.
func (e *Encoder) end(ev event.Event) [][]byte {
	end := ev.End
	cancelled := !end.OK && end.Reason == event.Cancelled
	lines := e.shutAll(cancelled)
	if cancelled {
		words := "[Request interrupted by user]"
		if e.running != "" {
			words = "[Request interrupted by user for tool use]"
		}
		lines = append(lines,
			e.line(messageLine{Type: "user", Message: userMessage{"user", []any{textBlock{"text", words}}}}))
	}
	r := Result{
		Type: "result", Subtype: event.Success, IsError: !end.OK, Took: end.Took.Milliseconds(),
		Asking: end.Asking.Milliseconds(), Turns: end.Turns, Session: e.session, Usage: turnTokens(end.Usage),
		Denials: nonNil(e.denials), Structured: end.Structured, NotKept: end.NotKept,
		Identifier: e.UUID(),
	}
	r.Turns = cmp.Or(r.Turns, new(1))
	if e.stop != "" {
		r.Stop = new(e.stop)
	}
	e.total(ev, &r)
	switch {
	case end.OK:
		words := cmp.Or(end.Text, e.last)
		if words == "" && len(end.Structured) > 0 {
			words = string(end.Structured)
		}
		r.Result = &words
	case e.failure != nil && errorKind(e.failure) != "":
		r.Result = new("API Error: " + e.failure.Sentence())
		if status, ok := e.failure.Detail["status"].(int); ok {
			r.Status = &status
		}
	default:
		r.Subtype = event.FailedTurn
		if slices.Contains([]string{event.MaxTurns, event.MaxBudget, event.MaxFormErrors}, end.Reason) {
			r.Subtype = end.Reason
		}
		r.Errors = append(slices.Clone(end.Notes), e.words(end))
	}
	e.within, e.due, e.denials, e.failure, e.calls, e.running = false, false, nil, nil, nil, ""
	return append(lines, encode(r))
}

// total adds the cost of the turn to the totals of the process.
func (e *Encoder) total(ev event.Event, r *Result) {
	if e.models == nil {
		e.models = map[string]ModelTokens{}
	}
	if u := ev.End.Usage; u != nil {
		r.Estimated = u.Estimated
		name := cmp.Or(ev.Model, e.facts.Model)
		m, c := e.models[name], count(u)
		m.Input, m.Output, m.Cached, m.Written, m.Window = m.Input+c.Input, m.Output+c.Output, m.Cached+
			c.Cached, m.Written+c.Written, e.facts.Window
		m.Cost = cmp.Or(m.Cost, new(float64))
		if u.CostUSD != nil {
			*m.Cost += *u.CostUSD
			e.cost += *u.CostUSD
		}
		e.models[name] = m
	}
	r.Cost, r.Models = &e.cost, e.models
}

// words returns why a turn failed.
func (e *Encoder) words(end *event.End) string {
	switch {
	case e.failure != nil:
		return e.failure.Sentence()
	case end.Reason == event.MaxTurns && e.Limits.Turns > 0:
		return fmt.Sprintf("Reached maximum number of turns (%d)", e.Limits.Turns)
	case end.Reason == event.MaxTurns:
		return "Reached maximum number of turns"
	case end.Reason == event.MaxBudget && e.Limits.USD > 0:
		return fmt.Sprintf("Reached maximum budget ($%v)", e.Limits.USD)
	case end.Reason == event.MaxBudget:
		return "Reached maximum budget"
	case end.Reason == event.MaxFormErrors:
		return "Failed to provide valid structured output"
	case end.Reason == event.Cancelled:
		return "Request interrupted by user"
	}
	return "the turn failed"
}

// Refuse returns the whole stream of a conversation that cannot begin.
func (e *Encoder) Refuse(f *fault.Fault) [][]byte { return e.refuse(f.Sentence()) }

// NoConversation returns the whole stream if there is no conversation with that id to resume.
func (e *Encoder) NoConversation(id string) [][]byte { return e.refuse(NoConversation(id)) }

// NoConversation returns Claude Code's message.
func NoConversation(id string) string { return "No conversation found with session ID: " + id }

func (e *Encoder) refuse(why string) [][]byte {
	return [][]byte{encode(Result{
		Type: "result", Subtype: event.FailedTurn, IsError: true, Errors: []string{why}, Session: e.session,
		Turns: new(int), Cost: new(float64), Usage: turnTokens(nil), Models: map[string]ModelTokens{},
		Denials: []Denial{}, Identifier: e.UUID(),
	})}
}

func turnTokens(u *event.Usage) *TurnTokens {
	none := map[string]int64{"web_search_requests": 0, "web_fetch_requests": 0}
	return &TurnTokens{count(u), none, "standard"}
}
