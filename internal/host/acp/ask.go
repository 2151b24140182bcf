package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/core/event"
	wire "omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// question sends an agent's question to the client.
func (s *clientSession) question(turn int64, q *event.Ask) {
	if s.cancelled(turn) {
		return // the conversation withdraws it with the end of the turn
	}
	switch f := formOf(q); {
	case f != nil:
		s.fill(q, turn, f)
	case q.Tool == nil:
		s.choose(q, turn)
	default:
		s.permit(q, turn)
	}
}

// formOf returns the form of a question, or nil if it has none.
func formOf(q *event.Ask) *event.Form {
	if q.Tool == nil || q.Tool.Name != event.FormTool {
		return nil
	}
	f := &event.Form{}
	if json.Unmarshal(q.Tool.Input, f) != nil || len(f.Questions) == 0 {
		return nil
	}
	for _, one := range f.Questions {
		if one.Question == "" {
			return nil
		}
	}
	return f
}

// permit asks whether a call may run.
func (s *clientSession) permit(q *event.Ask, turn int64) {
	var options []wire.Option
	for _, o := range []wire.Option{
		{ID: event.Allow, Name: "Allow", Kind: wire.AllowOnce},
		{ID: event.Always, Name: "Allow always", Kind: wire.AllowAlways},
		{ID: event.Deny, Name: "Reject", Kind: wire.RejectOnce},
	} {
		if o.ID == event.Always && !slices.Contains(q.Options, event.Always) {
			continue // the agent cannot remember an answer
		}
		options = append(options, o)
	}
	t := s.narrator.question(q)
	s.ask(q, turn, "session/request_permission", s.encoder.Permission(s.id, t.Title, reasonOf(q, t.Title), t, options),
		func(result json.RawMessage) event.Reply {
			option, ok := wire.Chosen(result)
			switch {
			case ok && slices.ContainsFunc(options, func(o wire.Option) bool { return o.ID == option }):
				return event.Reply{Option: option}
			case ok:
				return denied("the answer was not one of those that were offered")
			}
			return denied(unanswered)
		})
}

// reasonOf returns the reason for a question, unless the title contains it.
func reasonOf(q *event.Ask, title string) string {
	if rest, cut := strings.CutPrefix(q.Text, title); cut {
		return strings.TrimLeft(rest, ": ")
	}
	if strings.HasPrefix(q.Text, q.Tool.Name+" ") && !strings.Contains(q.Text, ": ") {
		return ""
	}
	return q.Text
}

// choose asks a question with the agent's own answers.
func (s *clientSession) choose(q *event.Ask, turn int64) {
	field := wire.Field{ID: "answer", Title: "Answer"}
	for _, o := range q.Options {
		field.Choices = append(field.Choices, wire.Choice{ID: o, Name: o})
	}
	s.show(q, turn, "", q.ID, cmp.Or(q.Text, "The agent asks"), []wire.Field{field}, func(said ...string) event.Reply {
		return event.Reply{Option: said[0], Text: said[0]}
	})
}

// fill asks a person to fill in a form.
func (s *clientSession) fill(q *event.Ask, turn int64, f *event.Form) {
	var fields []wire.Field
	for i, one := range f.Questions {
		field := wire.Field{
			ID: "question_" + strconv.Itoa(i), Title: one.Header, About: one.Question, Several: one.Several,
		}
		for _, o := range one.Options {
			field.Choices = append(field.Choices, wire.Choice{ID: o.Label, Name: o.Label, About: o.Description})
		}
		fields = append(fields, field)
	}
	text := "The agent has questions."
	if len(fields) == 1 {
		text = fields[0].About
	}
	s.show(q, turn, q.Tool.ID, q.Tool.ID, text, fields, func(said ...string) event.Reply {
		answers := map[string]string{}
		for i, one := range f.Questions {
			answers[one.Question] = said[i]
		}
		if len(answers) < len(said) { // two questions with the same text
			return denied(unanswered)
		}
		return event.Reply{Option: event.Allow, Input: event.Filled(q.Tool.Input, answers)}
	})
}

// show asks for all fields at once. reply converts the answers. A client without forms gets a permission request for a
// single field with choices; anything else is denied.
func (s *clientSession) show(q *event.Ask, turn int64, call, id, text string, fields []wire.Field,
	reply func(said ...string) event.Reply,
) {
	switch {
	case s.encoder.Client.Forms:
		s.ask(q, turn, "elicitation/create", wire.Form(s.id, call, text, fields),
			func(result json.RawMessage) event.Reply {
				filled, _ := wire.Filled(result)
				var said []string
				for _, field := range fields {
					chosen := filled[field.ID]
					if len(chosen) == 0 || len(chosen) > 1 && !field.Several ||
						slices.ContainsFunc(chosen, func(label string) bool { return !choosable(field, label) }) {
						return denied(unanswered)
					}
					said = append(said, strings.Join(chosen, ", "))
				}
				return reply(said...)
			})
	case len(fields) > 1:
		s.deny(q, "this client shows no forms, so nobody could be asked several questions; ask one at a time")
	case len(fields[0].Choices) == 0:
		s.deny(q, "this client can show no question that is answered with a text")
	default:
		s.pick(q, turn, id, text, fields[0].Choices, reply)
	}
}

// choosable reports whether a label is one of the choices. A field without choices accepts everything.
func choosable(field wire.Field, label string) bool {
	return len(field.Choices) == 0 ||
		slices.ContainsFunc(field.Choices, func(c wire.Choice) bool { return c.ID == label })
}

// pick asks with a permission request whose options are the choices, because every client supports those.
func (s *clientSession) pick(q *event.Ask, turn int64, call, title string, choices []wire.Choice,
	said func(...string) event.Reply,
) {
	var options []wire.Option
	for i, o := range choices {
		options = append(options, wire.Option{ID: "choice-" + strconv.Itoa(i), Name: o.Name, Kind: wire.AllowOnce})
	}
	options = append(options, wire.Option{ID: event.Deny, Name: noneOfThese, Kind: wire.RejectOnce})
	var about []wire.Content
	for _, o := range choices {
		if o.About != "" {
			about = append(about, wire.Content{Text: o.Name + ": " + o.About})
		}
	}
	t := &wire.Tool{ID: call, New: true, Title: title, Kind: "other", Status: wire.Pending, Content: about}
	s.ask(q, turn, "session/request_permission", s.encoder.Permission(s.id, title, "", t, options),
		func(result json.RawMessage) event.Reply {
			option, _ := wire.Chosen(result)
			if option == event.Deny {
				return event.Reply{Option: event.Deny, Text: noneOfThese}
			}
			i, err := strconv.Atoi(strings.TrimPrefix(option, "choice-"))
			if err != nil || i < 0 || i >= len(choices) || !strings.HasPrefix(option, "choice-") {
				return denied(unanswered)
			}
			return said(choices[i].ID)
		})
}

// ask sends a request, and passes the answer to the conversation. An error counts as a denial.
func (s *clientSession) ask(q *event.Ask, turn int64, method string, params any,
	read func(json.RawMessage) event.Reply,
) {
	s.state("requires_action", "", nil)
	s.questions[q.ID] = s.host.ask(s, method, params, func(result json.RawMessage, wrong *jsonrpc.Error) {
		switch {
		case s.cancelled(turn): // the question is withdrawn
		case wrong != nil:
			s.answer(q, denied("the client could not ask: "+wrong.Message))
		default:
			s.answer(q, read(result))
		}
	})
}

// withdraw cancels the request for a question that was answered or is no longer needed.
func (s *clientSession) withdraw(question string) {
	request, open := s.questions[question]
	if !open {
		return
	}
	delete(s.questions, question)
	s.host.withdraw(request)
	if len(s.questions) == 0 && len(s.turns) > 0 {
		s.state("running", "", nil)
	}
}

// noneOfThese is an answer that fits every question.
const noneOfThese = "None of these"

const unanswered = "the question was not answered"

// denied returns the denial of an unanswered question.
func denied(why string) event.Reply {
	return event.Reply{Option: event.Deny, Automatic: true, Text: why}
}

func (s *clientSession) deny(q *event.Ask, why string) { go s.answer(q, denied(why)) }

// answer passes an answer to the conversation, which refuses one that comes too late.
func (s *clientSession) answer(q *event.Ask, reply event.Reply) {
	reply.Question = q.ID
	if _, err := s.talk.Answer(context.Background(), reply); err != nil {
		s.host.Log("an answer was refused in the session %s: %v", s.id, err)
	}
}
