package acpclient

import (
	"cmp"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// Do translates a command for the agent.
func (t *talk) Do(c live.Command) (live.Step, error) {
	var err error
	switch {
	case c.Message != nil:
		err = t.sendMessage(c.Message)
	case c.Steer != nil:
		err = fault.New(fault.Unsupported, "%s accepts no message while it works", t.o.name)
	case c.Answer != nil:
		err = t.reply(*c.Answer)
	case c.Change != nil:
		err = t.change(*c.Change, c.Token)
	case c.Interrupt:
		t.interrupt()
	case c.HostAnswer != nil:
		t.hostAnswered(*c.HostAnswer)
	}
	return t.Step.Take(), err
}

func (t *talk) sendMessage(message []event.Block) error {
	if t.failed != nil {
		return t.failed
	}
	for _, b := range message {
		if strings.HasPrefix(b.Media, "image/") && t.greeted && !t.agent.Images {
			return fault.New(fault.Unsupported, "%s does not accept images", t.o.name)
		}
	}
	if t.busy = true; !t.open {
		t.message = message
		return nil
	}
	t.prompt(message)
	return nil
}

// change changes the model, if the agent offers that. A change of mode needs a restart, because it also changes the
// flags.
func (t *talk) change(c agent.Change, token int) error {
	offered := func(m acp.Choice) bool { return m.ID == c.Model }
	if c.Mode != "" || !t.open || !slices.ContainsFunc(t.offer.Models, offered) {
		return agent.ErrRestart
	}
	method, params := t.offer.SetModel(c.Model)
	t.Request(ownRequest{method, token}, method, params)
	t.offer.Model = c.Model
	return nil
}

// changed handles the response to a change.
func (t *talk) changed(r ownRequest, m jsonrpc.Message) []event.Event {
	if m.Error != nil {
		t.Step.AddResult(r.token, t.faultOf(r.method, m.Error))
		return nil
	}
	t.offer.Read(m.Result)
	t.Step.AddResult(r.token, nil)
	return nil
}

// interrupt ends the turn. A message that waits for the session is dropped.
func (t *talk) interrupt() {
	switch {
	case t.message != nil:
		t.message, t.busy = nil, false
		end := cli.Unfinished(t.offer.Session, "")
		end.End.Reason = event.Cancelled
		t.Step.Events = append(t.Step.Events, end)
	case t.busy:
		t.stops = true
		for _, q := range t.Questions.Requests() {
			t.refuse(&q.Request, true)
		}
		t.Step.Events = append(t.Step.Events, t.Questions.WithdrawAll()...)
		t.AddLine(jsonrpc.Notification("session/cancel", acp.Canceling(t.offer.Session)))
	}
}

// reply answers a question.
func (t *talk) reply(r event.Reply) error {
	open, err := t.Questions.Find(r.Question)
	if err != nil {
		return err
	}
	q := &open.Request
	if open.Form {
		return t.filled(open, r)
	}
	denied := r.Automatic || r.Stop || r.Option == event.Deny
	choice := q.choice(r)
	switch {
	case !denied && choice == "":
		return fault.New(fault.ArgError, "invalid answer %q", cmp.Or(r.Option, r.Text)).
			Hint("%s", strings.Join(q.names(), ", "))
	case len(r.Rules) > 0 || r.Mode != "" || q.call != nil && len(r.Input) > 0 && !text.SameJSON(r.Input, q.call.Input):
		denied = true // the agent can only run the unchanged call
	}
	t.Questions.Close(open)
	if denied {
		t.refuse(q, r.Stop)
		if q.call != nil {
			t.Step.Events = append(t.Step.Events,
				t.denial(q.call, cmp.Or(r.Text, "the user does not want this to run"), !r.Automatic))
		}
		return nil
	}
	t.grant(q)
	switch {
	case q.method != "":
		t.need(q.id, q.method, q.params)
	case q.form:
		t.AddLine(jsonrpc.Result(q.id, acp.Submit(map[string]any{})))
	default:
		t.AddLine(jsonrpc.Result(q.id, acp.Choose(choice)))
	}
	return nil
}

// filled records the answer to one question of a form. After the last one, it sends all answers.
func (t *talk) filled(open *live.Question[question], r event.Reply) error {
	q := open.Request
	if r.Automatic || r.Stop || r.Option == event.Deny {
		t.Step.Events = append(t.Step.Events, t.Questions.Withdraw(open.ID)...) // the other questions of the form
		t.AddLine(jsonrpc.Result(q.id, acp.Submit(nil)))
		return nil
	}
	answer := cmp.Or(r.Text, r.Option)
	field := q.fields[slices.Index(open.IDs, r.Question)]
	if _, ok := field.Value(answer); !ok {
		return fault.New(fault.ArgError, "invalid answer %q", answer).Hint("%s", field.About)
	}
	all, err := t.Questions.Fill(r.Question, answer)
	if all == nil {
		return err
	}
	content := map[string]any{}
	for i, f := range q.fields {
		content[f.ID], _ = f.Value(all[i])
	}
	t.AddLine(jsonrpc.Result(q.id, acp.Submit(content)))
	return nil
}
