package codex

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
)

// Do translates a command for Codex.
func (t *talk) Do(c live.Command) (live.Step, error) {
	var err error
	switch {
	case c.Message != nil:
		err = t.sendMessage(c.Message)
	case c.Steer != nil:
		err = t.steer(c.Steer, c.Token)
	case c.Answer != nil:
		err = t.reply(*c.Answer)
	case c.Change != nil:
		err = agent.ErrRestart // Codex accepts no changes during a turn
	case c.Interrupt:
		t.interrupt()
	}
	return t.Step.Take(), err
}

func (t *talk) sendMessage(blocks []event.Block) error {
	if t.failed != nil {
		return t.failed
	}
	input, err := inputOf(blocks)
	if err != nil {
		return err
	}
	t.busy, t.stops = true, false
	if t.thread == "" {
		t.message = input
	} else {
		t.begin(input)
	}
	return nil
}

// inputOf returns a message in Codex's form.
func inputOf(blocks []event.Block) ([]any, error) {
	var input []any
	for _, b := range blocks {
		switch {
		case b.Media == "":
			input = append(input, map[string]any{"type": "text", "text": b.Text})
		case strings.HasPrefix(b.Media, "image/"):
			url := "data:" + b.Media + ";base64," + base64.StdEncoding.EncodeToString(b.Data)
			input = append(input, map[string]any{"type": "image", "url": url})
		default:
			return nil, fault.New(fault.Unsupported, "codex does not accept %s in a message", b.Media)
		}
	}
	return input, nil
}

// steer adds a message to the current turn. Codex sends it to the model in another request before the turn ends.
func (t *talk) steer(blocks []event.Block, token int) error {
	if !t.busy || t.turn == "" || t.stops {
		return fault.New(fault.Unsupported, "codex is not working on a message that could be added to")
	}
	input, err := inputOf(blocks)
	if err != nil {
		return err
	}
	t.Request(ownRequest{"turn/steer", token}, "turn/steer", map[string]any{
		"threadId": t.thread, "expectedTurnId": t.turn, "input": input,
	})
	return nil
}

// interrupt ends the turn, now or as soon as it has an id. A message that waits for the thread is dropped.
func (t *talk) interrupt() {
	switch {
	case t.message != nil:
		t.message, t.busy = nil, false
		end := cli.Unfinished(t.thread, "")
		end.End.Reason = event.Cancelled
		t.Step.Events = append(t.Step.Events, end)
	case t.turn != "":
		t.stop()
	default:
		t.stops = t.busy
	}
}

func (t *talk) stop() {
	t.stops = false
	t.send("turn/interrupt", map[string]any{"threadId": t.thread, "turnId": t.turn})
}

// stricter reports whether fewer calls run in a mode than in another.
func stricter(m, than setting.Approval) bool {
	return slices.Index(setting.Approvals(), m) < slices.Index(setting.Approvals(), than)
}

// reply answers a question.
func (t *talk) reply(r event.Reply) error {
	open, err := t.Questions.Find(r.Question)
	if err != nil {
		return err
	}
	q := &open.Request
	if open.Form {
		return t.filled(q, r)
	}
	denied := r.Automatic || r.Stop || r.Option == event.Deny
	switch {
	case !denied && r.Option != event.Allow && r.Option != event.Always:
		return fault.New(fault.ArgError, "invalid answer %q", r.Option).Hint("allow, always or deny")
	case len(r.Rules) > 0, q.call != nil && len(r.Input) > 0 && !text.SameJSON(r.Input, q.call.Input):
		denied = true // Codex can only run the unchanged call
	case r.Mode != "" && !denied:
		if _, _, err := policies(r.Mode, t.o); err != nil || stricter(r.Mode, t.mode) {
			denied = true
		} else {
			t.later = r.Mode
		}
	}
	t.Questions.Close(open)
	t.respond(q.id, q.result(r, denied))
	if denied && q.call != nil {
		t.items.denied[q.call.ID] = true
		reason := cmp.Or(r.Text, "the user does not want this to run")
		t.Step.Events = append(t.Step.Events, event.Event{Kind: event.Denied, Session: t.thread, Denial: &event.Denial{
			CallID: q.call.ID, Tool: q.call.Name, Reason: cli.FirstLine(reason), ByUser: !r.Automatic,
		}})
	}
	return nil
}

// result returns the answer in the form that the request expects.
func (q *question) result(r event.Reply, denied bool) map[string]any {
	always := r.Option == event.Always && q.session && !denied
	switch q.method {
	case "mcpServer/elicitation/request":
		switch {
		case r.Stop:
			return map[string]any{"action": "cancel", "content": nil}
		case denied:
			return map[string]any{"action": "decline", "content": nil}
		case len(r.Input) > 0:
			return map[string]any{"action": "accept", "content": r.Input}
		}
		return map[string]any{"action": "accept", "content": map[string]any{}}
	case "item/permissions/requestApproval":
		switch {
		case denied:
			return map[string]any{"permissions": map[string]any{}, "scope": "turn"}
		case always:
			return map[string]any{"permissions": q.call.Input, "scope": "session"}
		}
		return map[string]any{"permissions": q.call.Input, "scope": "turn"}
	}
	decision := "accept"
	switch {
	case r.Stop:
		decision = "cancel"
	case denied:
		decision = "decline"
	case always:
		decision = "acceptForSession"
	}
	return map[string]any{"decision": decision}
}

// filled records the answer to one question of a form. After the last one, it sends all answers.
func (t *talk) filled(q *question, r event.Reply) error {
	answer := cmp.Or(r.Text, r.Option)
	if r.Automatic || r.Stop || r.Option == event.Deny {
		answer = cmp.Or(r.Text, "(no answer)")
	}
	all, err := t.Questions.Fill(r.Question, answer)
	if all == nil {
		return err
	}
	answers := map[string]any{}
	for i, key := range q.keys {
		answers[key] = map[string]any{"answers": []string{all[i]}}
	}
	t.respond(q.id, map[string]any{"answers": answers})
	return nil
}
