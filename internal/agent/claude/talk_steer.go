package claude

import (
	"slices"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	wire "omniagent/internal/proto/claude"
	"omniagent/internal/setting"
)

// steer is a message for the turn that runs. The CLI queues it, and shows it to the model with the next result of a
// tool. If the turn ends first, the CLI immediately begins another with it. The conversation sees both as one turn.
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
	if t.current == "" || !t.started || t.stops { // an older CLI does not report when it starts a message
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

// cancelSteers withdraws the steers that the model has not seen: otherwise the CLI would begin a turn with them.
func (t *talk) cancelSteers() {
	for _, s := range t.steers {
		t.say(t.control(request{}, wire.Control{Subtype: "cancel_async_message", MessageID: s.id}))
	}
}

// settle reports, once, whether the CLI has accepted a steer.
func (t *talk) settle(s *steer, err error) {
	if !s.queued {
		s.queued = true
		t.step.Settle(s.token, err)
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
	if t.stops { // the interruption came before there was a turn
		t.interrupt()
	}
	return out
}

// steered takes the new state of a steer.
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
	// the turn was to continue with this steer
	end := event.Event{Kind: event.Ended, Session: t.session, End: t.partial}
	t.current, t.partial, t.stops = "", nil, false
	return []event.Event{end}
}

// conclude ends the turn of the message, unless the CLI continues with a steer. events are those of a result.
func (t *talk) conclude(events []event.Event) []event.Event {
	i := slices.IndexFunc(events, func(e event.Event) bool { return e.Kind == event.Ended })
	if i < 0 {
		return events
	}
	end := added(t.partial, events[i].End)
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

// continued drops the beginning of a turn that continues one of the conversation.
func (t *talk) continued(events []event.Event) []event.Event {
	if t.partial == nil || !t.started {
		return events
	}
	return slices.DeleteFunc(events, func(e event.Event) bool { return e.Kind == event.TurnBegan })
}

// added returns the end of a turn, with the costs of an earlier part of it.
func added(before, end *event.End) *event.End {
	if before == nil {
		return end
	}
	sum := *end
	sum.Took += before.Took
	sum.Asking += before.Asking
	sum.Notes = append(slices.Clone(before.Notes), end.Notes...)
	if before.Turns != nil && end.Turns != nil {
		turns := *before.Turns + *end.Turns
		sum.Turns = &turns
	}
	if before.Usage != nil && end.Usage != nil {
		usage := *end.Usage
		usage.Add(*before.Usage)
		sum.Usage = &usage
	}
	return &sum
}

// modeChanged takes over a mode that the CLI has changed to by itself, as after a plan was accepted. Modes that our
// hook keeps remain, because in them the CLI's own mode decides nothing. A change of ours has a response of its own.
func (t *talk) modeChanged(mode string) {
	if mode == "" || mode == word(t.mode) || hookKeeps(t.mode) {
		return
	}
	for _, r := range t.requests {
		if r.change != nil && r.change.Mode != "" {
			return
		}
	}
	for _, m := range []setting.Approval{t.o.mode, setting.Prompt, setting.Plan, setting.AutoEdit, setting.Yolo} {
		if word(m) == mode && !hookKeeps(m) {
			t.mode = m
			return
		}
	}
}
