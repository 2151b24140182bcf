package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/event"
	wire "omniagent/internal/proto/acp"
)

// The words of our answers, as the agents know them.
const (
	allow  = "allow"
	always = "always"
	deny   = "deny"
)

// form is the input of a tool with which an agent asks a person something.
type form struct {
	Questions []struct {
		Question string `json:"question"`
		Header   string `json:"header"`
		Several  bool   `json:"multiSelect"`
		Options  []struct {
			Label string `json:"label"`
			About string `json:"description"`
		} `json:"options"`
	} `json:"questions"`
}

// question puts an agent's question to the client.
func (c *conversation) question(q *event.Ask) {
	if c.turn != nil && c.turn.cancelled || c.closing {
		c.answer(q.ID, event.Reply{Option: deny, Text: "the turn was cancelled"})
		return
	}
	switch f := formOf(q); {
	case f != nil:
		c.fill(q, f)
	case q.Tool == nil:
		c.choose(q)
	default:
		c.permit(q)
	}
}

// formOf is the form that a question is about, nil where it is another.
func formOf(q *event.Ask) *form {
	if q.Tool == nil || q.Tool.Name != "AskUserQuestion" {
		return nil
	}
	f := &form{}
	if json.Unmarshal(q.Tool.Input, f) != nil || len(f.Questions) == 0 {
		return nil
	}
	for _, one := range f.Questions {
		if len(one.Options) == 0 || one.Question == "" {
			return nil
		}
	}
	return f
}

// permit asks whether a call may run.
func (c *conversation) permit(q *event.Ask) {
	var options []wire.Option
	for _, o := range []wire.Option{
		{ID: allow, Name: "Allow", Kind: wire.AllowOnce},
		{ID: always, Name: "Allow always", Kind: wire.AllowAlways},
		{ID: deny, Name: "Reject", Kind: wire.RejectOnce},
	} {
		if o.ID == always && !slices.Contains(q.Options, always) {
			continue // this agent does not remember
		}
		options = append(options, o)
	}
	t := c.narrator.asked(q)
	c.ask(q.ID, "session/request_permission", c.encoder.Permission(c.id, t.Title, reasonOf(q, t.Title), t, options), func(result json.RawMessage) event.Reply {
		option, ok := wire.Chosen(result)
		switch {
		case ok && slices.ContainsFunc(options, func(o wire.Option) bool { return o.ID == option }):
			return event.Reply{Option: option}
		case ok:
			return event.Reply{Option: deny, Text: "the answer was none of those that were offered"}
		}
		return event.Reply{Option: deny}
	})
}

// reasonOf is why is asked, without what the title says already.
func reasonOf(q *event.Ask, title string) string {
	if rest, cut := strings.CutPrefix(q.Text, title); cut {
		return strings.TrimLeft(rest, ": ")
	}
	if strings.HasPrefix(q.Text, q.Tool.Name+" ") && !strings.Contains(q.Text, ": ") {
		return ""
	}
	return q.Text
}

// choose asks a question with answers of the agent's own.
func (c *conversation) choose(q *event.Ask) {
	var choices []wire.Choice
	for _, o := range q.Options {
		choices = append(choices, wire.Choice{ID: o, Name: o})
	}
	const field = "answer"
	none := event.Reply{Option: deny, Text: "the question was not answered"}
	switch {
	case c.encoder.Client.Forms:
		params := wire.Form(c.id, "", orWord(q.Text, "The agent asks"), []wire.Field{{ID: field, Title: "Answer", Choices: choices}})
		c.ask(q.ID, "elicitation/create", params, func(result json.RawMessage) event.Reply {
			filled, ok := wire.Filled(result)
			if !ok || len(filled[field]) != 1 || len(q.Options) > 0 && !slices.Contains(q.Options, filled[field][0]) {
				return none
			}
			return event.Reply{Option: filled[field][0], Text: filled[field][0]}
		})
	case len(choices) > 0:
		c.pick(q, q.ID, orWord(q.Text, "The agent asks"), choices, func(i int) event.Reply { return event.Reply{Option: q.Options[i], Text: q.Options[i]} }, none)
	default:
		c.answer(q.ID, event.Reply{Option: deny, Text: "this client can show no question that is answered with a text"})
	}
}

// pick asks with a permission request, of which the options are the choices: every client knows those.
func (c *conversation) pick(q *event.Ask, call, title string, choices []wire.Choice, said func(int) event.Reply, none event.Reply) {
	var options []wire.Option
	for i, o := range choices {
		options = append(options, wire.Option{ID: "choice-" + strconv.Itoa(i), Name: o.Name, Kind: wire.AllowOnce})
	}
	options = append(options, wire.Option{ID: deny, Name: "None of these", Kind: wire.RejectOnce})
	var about []wire.Content
	for _, o := range choices {
		if o.About != "" {
			about = append(about, wire.Content{Text: o.Name + ": " + o.About})
		}
	}
	t := &wire.Tool{ID: call, New: true, Title: title, Kind: "other", Status: wire.Pending, Content: about}
	c.ask(q.ID, "session/request_permission", c.encoder.Permission(c.id, title, "", t, options), func(result json.RawMessage) event.Reply {
		option, _ := wire.Chosen(result)
		i, err := strconv.Atoi(strings.TrimPrefix(option, "choice-"))
		if err != nil || i < 0 || i >= len(choices) || !strings.HasPrefix(option, "choice-") {
			return none
		}
		return said(i)
	})
}

// fill has a person fill in a form. A client that shows none gets one question as a choice, and more than that is a no.
func (c *conversation) fill(q *event.Ask, f *form) {
	var fields []wire.Field
	for i, one := range f.Questions {
		field := wire.Field{ID: "question_" + strconv.Itoa(i), Title: one.Header, About: one.Question, Several: one.Several}
		for _, o := range one.Options {
			field.Choices = append(field.Choices, wire.Choice{ID: o.Label, Name: o.Label, About: o.About})
		}
		fields = append(fields, field)
	}
	none := event.Reply{Option: deny, Text: "the questions were not answered"}
	switch {
	case c.encoder.Client.Forms:
		text := "The agent has questions."
		if len(fields) == 1 {
			text = fields[0].About
		}
		c.ask(q.ID, "elicitation/create", wire.Form(c.id, q.Tool.ID, text, fields), func(result json.RawMessage) event.Reply {
			filled, ok := wire.Filled(result)
			if !ok {
				return none
			}
			answers := map[string]string{}
			for i, field := range fields {
				chosen := filled[field.ID]
				for _, label := range chosen {
					if !slices.ContainsFunc(field.Choices, func(o wire.Choice) bool { return o.ID == label }) {
						return none
					}
				}
				if len(chosen) > 0 && (field.Several || len(chosen) == 1) {
					answers[f.Questions[i].Question] = strings.Join(chosen, ", ")
				}
			}
			if len(answers) < len(fields) {
				return none
			}
			return filledIn(q, answers)
		})
	case len(fields) == 1:
		c.pick(q, q.Tool.ID, fields[0].About, fields[0].Choices, func(i int) event.Reply {
			return filledIn(q, map[string]string{fields[0].About: fields[0].Choices[i].ID})
		}, none)
	default:
		c.answer(q.ID, event.Reply{Option: deny, Text: "this client shows no forms, so nobody could be asked several questions; ask one at a time"})
	}
}

// filledIn is the form as it was asked, with the answers in it.
func filledIn(q *event.Ask, answers map[string]string) event.Reply {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(q.Tool.Input, &members) // it was read before
	input := map[string]any{"questions": members["questions"], "answers": answers}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(input) // texts, and JSON that was valid
	return event.Reply{Option: allow, Input: bytes.TrimSpace(b.Bytes())}
}

// ask sends a request, and hands the answer to the agent. An error is a no.
func (c *conversation) ask(question, method string, params any, read func(json.RawMessage) event.Reply) {
	c.state("requires_action", "", nil)
	c.asked[question] = c.host.ask(c, method, params, func(result json.RawMessage, wrong *wire.Error) {
		if _, open := c.asked[question]; !open {
			return
		}
		delete(c.asked, question)
		said := event.Reply{Option: deny}
		switch {
		case c.turn != nil && c.turn.cancelled:
		case wrong != nil:
			said.Text = "the client could not ask: " + wrong.Message
		default:
			said = read(result)
		}
		if said.Option != deny {
			c.tell(c.narrator.allowed(question)...)
		}
		if len(c.asked) == 0 {
			c.state("running", "", nil)
		}
		c.answer(question, said)
	})
}

// answer tells the agent.
func (c *conversation) answer(question string, said event.Reply) {
	if c.link == nil {
		return
	}
	session := c.link.session
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		if err := session.Answer(ctx, question, said); err != nil && said.Option != deny { // a no that comes too late changes nothing
			c.host.Log("an answer came too late: %v", err)
		}
	}()
}

func orWord(word, otherwise string) string {
	if word == "" {
		return otherwise
	}
	return word
}
