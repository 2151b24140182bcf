package claude

import (
	"slices"

	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	wire "omniagent/internal/proto/claude"
	"omniagent/internal/setting"
)

// steer is a message for the turn that runs. The CLI puts it into its queue, and shows it to the model with the next
// result of a tool. Where the turn ends first, the CLI begins another for it at once: to the conversation that is the
// same turn, which goes on.
//
//	said ──► queued ──► started             it was shown with a result
//	            │
//	            ├─────► result ──► started  the CLI makes a turn of its own of it; ours ends with that one
//	            │
//	            └─────► cancelled           the turn was interrupted, and we took it back
type steer struct {
	id     string
	token  int
	queued bool // the CLI has it
}

func (t *talk) steer(blocks []event.Block, token int) error {
	if t.asked == "" || !t.begun || t.stops { // a CLI that does not tell of lifecycles never has begun
		return fault.New(fault.Unsupported, "Claude Code is not at work on a message that more could be said to")
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

// cancelSteers takes back what the CLI has not shown to the model: else an interruption would begin a turn for it.
func (t *talk) cancelSteers() {
	for _, s := range t.steers {
		t.say(t.control(request{stop: true}, wire.Control{Subtype: "cancel_async_message", MessageID: s.id}))
	}
}

// settle says whether the CLI has a steer.
func (t *talk) settle(s *steer, err error) {
	if !s.queued {
		s.queued = true
		t.step.Settled = append(t.step.Settled, cli.Settled{Token: s.token, Err: err})
	}
}

// lifecycle hears what became of a message.
func (t *talk) lifecycle(l *wire.Line) []event.Event {
	t.told = true
	var out []event.Event
	if i := slices.IndexFunc(t.steers, func(s steer) bool { return s.id == l.Command }); i >= 0 {
		out = t.steered(i, l.State)
	}
	if l.Command != t.asked || l.State != "started" {
		return out
	}
	t.begun = true
	if t.stops { // the interruption came before there was a turn
		t.say(t.control(request{stop: true}, wire.Control{Subtype: "interrupt"}))
	}
	return out
}

// steered hears what became of a steer.
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
	if state == "started" || t.partial == nil || t.asked != id {
		return nil
	}
	end := event.Event{Kind: event.Ended, Session: t.session, End: t.partial} // the turn that was to go on does not
	t.asked, t.partial, t.stops = "", nil, false
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
		t.partial, t.asked, t.begun = end, t.steers[0].id, false
		for j := range events {
			events[j].Terminal = false
		}
		return slices.Delete(events, i, i+1)
	}
	for i := range t.steers {
		t.settle(&t.steers[i], fault.New(fault.Interrupted, "the turn ended before Claude Code had the message"))
	}
	events[i].End = end
	t.asked, t.begun, t.stops, t.partial, t.steers = "", false, false, nil, nil
	return events
}

// goesOn drops the beginning of a turn that continues one of the conversation.
func (t *talk) goesOn(events []event.Event) []event.Event {
	if t.partial == nil || !t.begun {
		return events
	}
	return slices.DeleteFunc(events, func(e event.Event) bool { return e.Kind == event.TurnBegan })
}

// added is an end with the costs of what went before it in the same turn.
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
	if before.Usage == nil || end.Usage == nil {
		return &sum
	}
	u, b := *end.Usage, before.Usage
	u.Input, u.Output, u.Cached = u.Input+b.Input, u.Output+b.Output, u.Cached+b.Cached
	u.Written, u.Reasoning = u.Written+b.Written, u.Reasoning+b.Reasoning
	if u.CostUSD != nil && b.CostUSD != nil {
		cost := *u.CostUSD + *b.CostUSD
		u.CostUSD = &cost
	}
	sum.Usage = &u
	return &sum
}

// heardMode takes over a mode that the CLI has changed to by itself, as when a plan was agreed to. Modes that our hook
// keeps stay: in them the CLI's own decides about nothing. The answer to a change of ours comes by itself.
func (t *talk) heardMode(mode string) {
	if mode == "" || mode == word(t.mode) || keptByUs(t.mode) {
		return
	}
	for _, r := range t.requests {
		if r.change != nil && r.change.Mode != "" {
			return
		}
	}
	for _, m := range []setting.Approval{t.o.mode, setting.Prompt, setting.Plan, setting.AutoEdit, setting.Yolo} {
		if word(m) == mode && !keptByUs(m) {
			t.mode = m
			return
		}
	}
}
