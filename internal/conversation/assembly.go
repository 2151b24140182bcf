package conversation

import (
	"maps"
	"slices"
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/fault"
)

// assembly brings what agents tell into one order, for every agent. Some repeat as a whole what they told in
// pieces, go on after what they call an error, never say what came of a call, or end in words of their own.
//
// Behind it a text is told in pieces and then as a whole, and the pieces are the whole; each call has exactly one
// result, and each result its call; what ends a turn comes directly in front of an end that is not OK; and that end has
// one of the reasons of package event.
type assembly struct {
	texts map[textKey]*strings.Builder // told in pieces, of which the whole is due
	last  string                       // what the agent itself said last
	open  map[string]event.Event       // calls without a result
	order []string                     // of those
	lost  *event.Event                 // a failure with which the turn may end
	why   string                       // that failure in words, for the record of the end
}

type textKey struct {
	parent string
	kind   event.Kind
}

// longestWhole is how much text is held until the whole is told. One that is longer is told as several.
const longestWhole = 1 << 20

// noResult stands where an agent did not say what came of a call.
const noResult = "The turn ended, and nothing is known of what came of this call."

// put returns what is to be told now.
func (a *assembly) put(e event.Event) []event.Event {
	switch e.Kind {
	case event.Text, event.Thinking:
		return a.words(e)
	case event.Answered, event.TurnBegan:
		return append(a.rest(e), e)
	case event.ToolCall:
		return append(a.rest(e), a.call(e)...)
	case event.ToolResult:
		return append(a.rest(e), a.result(e)...)
	case event.Failed:
		if e.Terminal {
			a.fail(e)
			return nil
		}
	case event.Ended:
		return a.end(e)
	}
	return []event.Event{e}
}

func (a *assembly) call(e event.Event) []event.Event {
	if _, twice := a.open[e.Call.ID]; twice {
		return notice(e, "a call that is told twice")
	}
	if a.open == nil {
		a.open = map[string]event.Event{}
	}
	a.open[e.Call.ID] = e
	a.order = append(a.order, e.Call.ID)
	return []event.Event{e}
}

func (a *assembly) result(e event.Event) []event.Event {
	if _, found := a.open[e.Result.ID]; !found {
		return notice(e, "a result without its call")
	}
	delete(a.open, e.Result.ID)
	a.order = slices.DeleteFunc(a.order, func(o string) bool { return o == e.Result.ID })
	// some call a command that ran a success, however it ended
	if code := e.Result.ExitCode; code != nil && *code != 0 && !e.Result.Failed {
		result := *e.Result
		result.Failed = true
		e.Result = &result
	}
	return []event.Event{e}
}

func notice(e event.Event, words string) []event.Event {
	return []event.Event{{Kind: event.Notice, Session: e.Session, Parent: e.Parent, Text: words, Hash: e.Hash}}
}

// words tells a text in pieces, and as a whole behind them.
func (a *assembly) words(e event.Event) []event.Event {
	e.Text = strings.ToValidUTF8(e.Text, "\uFFFD")
	key := textKey{e.Parent, e.Kind}
	told := a.texts[key]
	if e.Delta {
		if e.Text == "" {
			return nil
		}
		if told == nil {
			told = &strings.Builder{}
			if a.texts == nil {
				a.texts = map[textKey]*strings.Builder{}
			}
			a.texts[key] = told
		}
		told.WriteString(e.Text)
		if told.Len() < longestWhole {
			return []event.Event{e}
		}
		return append([]event.Event{e}, a.whole(key, e, true)...)
	}
	var out []event.Event
	more := e.Text
	if told != nil {
		rest, follows := strings.CutPrefix(e.Text, told.String())
		if follows {
			more = rest
		} else { // it says something else: both were said
			out = a.whole(key, e, true)
			told = nil
		}
	}
	if more != "" {
		piece := e
		piece.Text, piece.Delta = more, true
		out = append(out, piece)
	}
	if told == nil && more == "" {
		return out
	}
	delete(a.texts, key)
	a.spoke(key, e.Text)
	return append(out, e)
}

// whole ends a text that was told in pieces.
func (a *assembly) whole(key textKey, at event.Event, synthetic bool) []event.Event {
	text := a.texts[key].String()
	delete(a.texts, key)
	a.spoke(key, text)
	return []event.Event{
		{Kind: key.kind, Session: at.Session, Parent: key.parent, Model: at.Model, Text: text, Synthetic: synthetic},
	}
}

func (a *assembly) spoke(key textKey, text string) {
	if key == (textKey{"", event.Text}) && text != "" {
		a.last = text
	}
}

// rest ends what was told in pieces in front of an event.
func (a *assembly) rest(e event.Event) (out []event.Event) {
	for _, kind := range []event.Kind{event.Thinking, event.Text} {
		if key := (textKey{e.Parent, kind}); a.texts[key] != nil {
			out = append(out, a.whole(key, e, true)...)
		}
	}
	return out
}

// fail keeps a failure until it is known that the turn ends with it. Of two the one that says more counts.
func (a *assembly) fail(e event.Event) {
	general := func(code fault.Code) bool { return code == fault.AgentFailed || code == fault.APIError }
	if a.lost == nil || general(a.lost.Fault.Code) || !general(e.Fault.Code) {
		a.lost = &e
	}
}

// end tells first what has not been told.
func (a *assembly) end(e event.Event) (out []event.Event) {
	for _, key := range slices.SortedFunc(maps.Keys(a.texts),
		func(x, y textKey) int { return strings.Compare(y.parent, x.parent) }) {
		out = append(out, a.whole(key, e, true)...)
	}
	// that of a sub-agent's call in front of that of the call which is the sub-agent
	for _, id := range slices.Backward(a.order) {
		call := a.open[id]
		out = append(out, event.Event{
			Kind: event.ToolResult, Session: e.Session, Parent: call.Parent, Synthetic: true,
			Result: &event.Result{ID: id, Name: call.Call.Name, Failed: true, Output: noResult},
		})
	}
	end := *e.End
	said := end.Reason
	why := ""
	switch {
	case end.OK:
		end.Reason = event.Success
		if end.Text == "" {
			end.Text = a.last
		}
		if a.lost != nil { // it was overcome
			end.Notes = append(slices.Clone(end.Notes), a.lost.Fault.Sentence())
		}
	case a.lost != nil && a.lost.Fault.Code == fault.Interrupted, a.lost == nil && end.Reason == "interrupted":
		end.Reason = event.Cancelled
	default:
		end.Reason = reason(end.Reason)
		if a.lost != nil {
			why = a.lost.Fault.Sentence()
			out = append(out, *a.lost)
		}
	}
	if said != end.Reason && end.Said == "" {
		end.Said = said
	}
	e.End = &end
	*a = assembly{why: why}
	return append(out, e)
}

// reason is why a turn failed, in the words of package event.
func reason(word string) event.Reason {
	switch word {
	case event.Cancelled, event.MaxTurns, event.MaxBudget, event.MaxFormErrors:
		return word
	case "max_turns":
		return event.MaxTurns
	case "max_budget_usd", "budget_exceeded":
		return event.MaxBudget
	case "structured_output_retry_exhausted":
		return event.MaxFormErrors
	}
	return event.FailedTurn
}
