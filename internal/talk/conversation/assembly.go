package conversation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/redact"
)

// assembly puts the events of every agent into the same order. Some agents repeat as a whole what they sent in pieces,
// continue after what they call an error, never report the result of a call, report success without an answer, or end a
// turn with a reason of their own.
//
// What put returns keeps these rules. A text comes in pieces and then as a whole, and the pieces add up to the whole.
// Each call has exactly one result, and each result its call. A fatal error comes directly before the end of its turn.
// That end has one of the reasons of package event.
//
//	piece ─────▶ pieces ─▶ whole text, or any other event ─▶ whole
//	call ──────▶ open ───▶ result, or the end of the turn ─▶ result
//	error ─────▶ held ───▶ the turn succeeds ─▶ a note of its end
//	                       the turn fails ────▶ error, end
type assembly struct {
	texts       map[textKey]*strings.Builder // texts sent in pieces, not yet as a whole
	lastText    string                       // the agent's own last text
	open        map[string]event.Event       // calls without a result
	order       []string                     // ids of open, oldest first
	denied      map[string]bool              // ids of calls that were denied
	did         bool                         // the turn made a call or a compaction, so it needs no text
	failure     *event.Event                 // the turn may end with this error
	failureText string                       // the error of the turn that ended, for its record
	hidden      *redact.Values               // secrets to mask, even if they span pieces; nil: none
	streams     map[textKey]*redact.Stream   // masks hidden in texts that come in pieces
}

type textKey struct {
	parent string
	kind   event.Kind
}

// longestWhole is the longest text that is held until it is whole. A longer one is published as several texts.
const longestWhole = 1 << 20

// The output of a call whose result the agent did not report.
const (
	noResult   = "The turn ended, and the result of this call is not known."
	noEnd      = noResult + " If the command still runs, what it changes from now on belongs to no turn."
	wasRefused = "This call was denied."
)

// put takes an event of the agent and returns the events to publish now.
func (a *assembly) put(e event.Event) []event.Event {
	switch e.Kind {
	case event.Text, event.Thinking:
		return a.text(e)
	case event.Compacted:
		a.did = true
	case event.Denied:
		if a.denied == nil {
			a.denied = map[string]bool{}
		}
		a.denied[e.Denial.CallID] = true
	case event.Answered, event.TurnBegan:
		return append(a.flush(e), e)
	case event.ToolCall:
		return append(a.flush(e), a.call(e)...)
	case event.ToolResult:
		return append(a.flush(e), a.result(e)...)
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
		return notice(e, "a call that was reported twice")
	}
	if a.open == nil {
		a.open = map[string]event.Event{}
	}
	a.open[e.Call.ID], a.did = e, true
	a.order = append(a.order, e.Call.ID)
	return []event.Event{e}
}

func (a *assembly) result(e event.Event) []event.Event {
	if _, found := a.open[e.Result.ID]; !found {
		return notice(e, "a result without its call")
	}
	delete(a.open, e.Result.ID)
	a.order = slices.DeleteFunc(a.order, func(o string) bool { return o == e.Result.ID })
	// some agents call every command that ran a success, whatever its exit code
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

// text publishes a text in pieces, and then as a whole.
func (a *assembly) text(e event.Event) []event.Event {
	e.Text = strings.ToValidUTF8(e.Text, "\uFFFD")
	if e.Delta && e.Text == "" {
		return nil
	}
	key := textKey{e.Parent, e.Kind}
	e.Text = a.masked(key, e)
	pieces := a.texts[key]
	if e.Delta {
		if pieces == nil {
			pieces = &strings.Builder{}
			if a.texts == nil {
				a.texts = map[textKey]*strings.Builder{}
			}
			a.texts[key] = pieces
		}
		if e.Text == "" {
			return nil
		}
		pieces.WriteString(e.Text)
		if pieces.Len() < longestWhole {
			return []event.Event{e}
		}
		return append([]event.Event{e}, a.whole(key, e)...)
	}
	var out []event.Event
	more := e.Text
	if pieces != nil {
		tail, follows := strings.CutPrefix(e.Text, pieces.String())
		if follows {
			more = tail
		} else { // a different text: publish both
			out = a.whole(key, e)
			pieces = nil
		}
	}
	if more != "" {
		piece := e
		piece.Text, piece.Delta = more, true
		out = append(out, piece)
	}
	if pieces == nil && more == "" {
		return out
	}
	delete(a.texts, key)
	a.setLast(key, e.Text)
	return append(out, e)
}

// masked returns the text of an event without secrets. It holds back what may be the beginning of a secret until the
// next piece.
func (a *assembly) masked(key textKey, e event.Event) string {
	if a.hidden == nil {
		return e.Text
	}
	if !e.Delta {
		delete(a.streams, key)
		return a.hidden.String(e.Text)
	}
	if a.streams == nil {
		a.streams = map[textKey]*redact.Stream{}
	}
	if a.streams[key] == nil {
		a.streams[key] = a.hidden.Stream()
	}
	a.streams[key].Use(a.hidden)
	return a.streams[key].Feed(e.Text)
}

// whole publishes as a whole a text that came in pieces.
func (a *assembly) whole(key textKey, at event.Event) (out []event.Event) {
	e := event.Event{Kind: key.kind, Session: at.Session, Parent: key.parent, Model: at.Model, Synthetic: true}
	if s := a.streams[key]; s != nil {
		delete(a.streams, key)
		if e.Text = s.End(); e.Text != "" {
			a.texts[key].WriteString(e.Text)
			piece := e
			piece.Delta = true
			out = append(out, piece)
		}
	}
	e.Text = a.texts[key].String()
	delete(a.texts, key)
	a.setLast(key, e.Text)
	return append(out, e)
}

func (a *assembly) setLast(key textKey, text string) {
	if key == (textKey{"", event.Text}) && text != "" {
		a.lastText = text
	}
}

// flush publishes as a whole the texts that came in pieces before an event.
func (a *assembly) flush(e event.Event) (out []event.Event) {
	for _, kind := range []event.Kind{event.Thinking, event.Text} {
		if key := (textKey{e.Parent, kind}); a.texts[key] != nil {
			out = append(out, a.whole(key, e)...)
		}
	}
	return out
}

// fail holds an error until the turn ends. Of two errors, the more specific one counts.
func (a *assembly) fail(e event.Event) {
	general := func(code fault.Code) bool { return code == fault.AgentFailed || code == fault.APIError }
	if a.failure == nil || general(a.failure.Fault.Code) || !general(e.Fault.Code) {
		a.failure = &e
	}
}

// end ends the turn, after the texts, results and error that are still missing.
func (a *assembly) end(e event.Event) (out []event.Event) {
	for _, key := range slices.SortedFunc(maps.Keys(a.texts),
		func(x, y textKey) int { return strings.Compare(y.parent, x.parent) }) {
		out = append(out, a.whole(key, e)...)
	}
	// the result of a sub-agent's call comes before the result of the call that is the sub-agent
	for _, id := range slices.Backward(a.order) {
		call, output := a.open[id], noResult
		switch {
		case a.denied[id]:
			output = wasRefused
		case call.Call.Kind == event.Shell && e.End.OK:
			output = noEnd
		}
		out = append(out, event.Event{
			Kind: event.ToolResult, Session: e.Session, Parent: call.Parent, Synthetic: true,
			Result: &event.Result{ID: id, Name: call.Call.Name, Failed: true, Output: output},
		})
	}
	end := *e.End
	blank := strings.TrimSpace(end.Text+a.lastText) == "" && len(end.Structured) == 0
	if end.OK && blank && !a.did && !e.Unprompted { // a turn without a message needs no answer
		f := fault.New(fault.NoAnswer, "the agent reported success without an answer")
		a.fail(event.Event{Kind: event.Failed, Session: e.Session, Fault: f, Terminal: true, Synthetic: true})
		end.OK = false
	}
	original := end.Reason
	failureText := ""
	switch {
	case end.OK:
		end.Reason = event.Success
		end.Text = cmp.Or(end.Text, a.lastText)
		if a.failure != nil { // the agent recovered
			end.Notes = append(slices.Clone(end.Notes), a.failure.Fault.Sentence())
		}
	case a.failure != nil && a.failure.Fault.Code == fault.Interrupted, a.failure == nil && end.Reason == "interrupted":
		end.Reason = event.Cancelled
	default:
		end.Reason = reason(end.Reason)
		if a.failure != nil {
			failureText = a.failure.Fault.Sentence()
			out = append(out, *a.failure)
		}
	}
	if original != end.Reason && end.AgentReason == "" {
		end.AgentReason = original
	}
	e.End = &end
	*a = assembly{failureText: failureText, hidden: a.hidden}
	return append(out, e)
}

// reason maps the reason of a failed turn to the reasons of package event.
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
