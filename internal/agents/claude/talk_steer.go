package claude

import (
	"slices"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	wire "omniagent/internal/wire/claude"
)

// steer is a message for the current turn. The CLI queues it, and shows it to the model with the next tool result. If
// the turn ends first, the CLI immediately begins another turn with it. The conversation sees both as one turn.
//
//	sent ──► queued ──► started             it was shown with a result
//	            │
//	            ├─────► result ──► started  the CLI began a turn with it; ours ends with that one
//	            │
//	            └─────► cancelled           the turn was interrupted, and we withdrew it
type steer struct {
	id     string
	token  int
	queued bool // the CLI has it
}

func (t *talk) steer(blocks []event.Block, token int) error {
	if t.current == "" || !t.started || t.stops { // an older CLI never reports that it started a message
		return fault.New(fault.Unsupported, "Claude Code is not working on a message that could be added to")
	}
	s := steer{id: t.o.id(), token: token}
	line, err := wire.UserLine(s.id, t.session, blocks)
	if err != nil {
		return err
	}
	t.steers = append(t.steers, s)
	t.say(line)
	return nil
}

// cancelSteers withdraws the steers that the model has not seen. Otherwise the CLI would begin a turn with them.
func (t *talk) cancelSteers() {
	for _, s := range t.steers {
		t.say(t.control(ownRequest{}, wire.Control{Subtype: "cancel_async_message", MessageID: s.id}))
	}
}

// settle reports, once, whether the CLI has accepted a steer.
func (t *talk) settle(s *steer, err error) {
	if !s.queued {
		s.queued = true
		t.step.AddResult(s.token, err)
	}
}

// lifecycle reads the new state of a message.
func (t *talk) lifecycle(l *wire.Line) []event.Event {
	t.lifecycles = true
	var out []event.Event
	if i := slices.IndexFunc(t.steers, func(s steer) bool { return s.id == l.Command }); i >= 0 {
		out = t.steered(i, l.State)
	}
	if l.Command != t.current || l.State != "started" {
		return out
	}
	t.started = true
	if t.stops { // the interruption came before the turn
		t.interrupt()
	}
	return out
}

// steered handles the new state of a steer.
func (t *talk) steered(i int, state string) []event.Event {
	s := &t.steers[i]
	switch state {
	case "queued":
		t.settle(s, nil)
		return nil
	case "started":
		t.settle(s, nil)
	case "cancelled", "discarded", "refused":
		t.settle(s, fault.New(fault.Interrupted, "Claude Code did not take the message into its turn"))
	default:
		return nil
	}
	id := s.id
	t.steers = slices.Delete(t.steers, i, i+1)
	if state == "started" || t.partial == nil || t.current != id {
		return nil
	}
	// The turn would have continued with this steer.
	end := event.Event{Kind: event.Ended, Session: t.session, End: t.partial}
	t.current, t.partial, t.stops = "", nil, false
	return []event.Event{end}
}

// conclude takes the events of a result. It ends the turn of the message, unless the CLI continues with a steer.
func (t *talk) conclude(events []event.Event) []event.Event {
	i := slices.IndexFunc(events, func(e event.Event) bool { return e.Kind == event.Ended })
	if i < 0 {
		return events
	}
	end := withEarlier(t.partial, events[i].End)
	if len(t.steers) > 0 && !t.stops {
		t.partial, t.current, t.started = end, t.steers[0].id, false
		for j := range events {
			events[j].Terminal = false
		}
		return slices.Delete(events, i, i+1)
	}
	for i := range t.steers {
		t.settle(&t.steers[i], fault.New(fault.Interrupted, "the turn ended before Claude Code had the message"))
	}
	events[i].End = end
	t.current, t.started, t.stops, t.partial, t.steers = "", false, false, nil, nil
	return events
}

// continued drops TurnBegan for a turn that only continues another.
func (t *talk) continued(events []event.Event) []event.Event {
	if t.partial == nil || !t.started {
		return events
	}
	return slices.DeleteFunc(events, func(e event.Event) bool { return e.Kind == event.TurnBegan })
}

// withEarlier returns the end of a turn, including the cost of an earlier part of it.
func withEarlier(before, end *event.End) *event.End {
	if before == nil {
		return end
	}
	sum := *end
	sum.Took += before.Took
	sum.Asking += before.Asking
	sum.Notes = append(slices.Clone(before.Notes), end.Notes...)
	if before.Turns != nil && end.Turns != nil {
		sum.Turns = new(*before.Turns + *end.Turns)
	}
	if before.Usage != nil && end.Usage != nil {
		usage := *end.Usage
		usage.Add(*before.Usage)
		sum.Usage = &usage
	}
	return &sum
}

// modeChanged follows a change of mode by the CLI itself, as after a plan was accepted. It ignores the CLI's mode while
// our hook enforces ours, and while a change that we requested has no response.
func (t *talk) modeChanged(mode string) {
	if mode == "" || mode == modeWord(t.mode) || hookKeeps(t.mode) {
		return
	}
	for _, r := range t.requests {
		if r.change != nil && r.change.Mode != "" {
			return
		}
	}
	for _, m := range []setting.Approval{t.o.mode, setting.Prompt, setting.Plan, setting.AutoEdit, setting.Yolo} {
		if modeWord(m) == mode && !hookKeeps(m) {
			t.mode = m
			return
		}
	}
}
