package live

import (
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// Questions holds the open questions of a wire to a person. A request of the agent is one question, or a form, whose
// questions are answered one by one before the agent gets all answers at once. Q is the wire's own data about a
// request.
type Questions[Q any] struct {
	open map[string]*Question[Q] // by the ids of the questions
}

// Question is a request of the agent.
type Question[Q any] struct {
	Request Q
	Form    bool
	ID      string   // of its first question
	IDs     []string // of the questions of a form
	answers map[string]string
}

// Ask opens a question.
func (q *Questions[Q]) Ask(id string, request Q) *Question[Q] {
	one := &Question[Q]{Request: request, ID: id, answers: map[string]string{}}
	q.put(id, one)
	return one
}

func (q *Questions[Q]) put(id string, one *Question[Q]) {
	if q.open == nil {
		q.open = map[string]*Question[Q]{}
	}
	q.open[id] = one
}

// AskForm opens the questions of a form. The first one has that id, and the others are numbered.
func (q *Questions[Q]) AskForm(id, session string, form []event.FormQuestion, request Q) (out []event.Event) {
	one := q.Ask(id, request)
	one.Form = true
	for i, asked := range form {
		name := id
		if i > 0 {
			name += "/" + strconv.Itoa(i)
		}
		ask := &event.Ask{ID: name, Text: asked.Question}
		for _, o := range asked.Options {
			ask.Options = append(ask.Options, o.Label)
		}
		q.put(name, one)
		one.IDs = append(one.IDs, name)
		out = append(out, event.Event{Kind: event.Question, Session: session, Ask: ask})
	}
	return out
}

// Find returns the request that an open question belongs to.
func (q *Questions[Q]) Find(id string) (*Question[Q], error) {
	if one := q.open[id]; one != nil {
		return one, nil
	}
	return nil, fault.New(fault.NotFoundCode, "there is no open question %s", id)
}

// Fill records the answer to one question of a form. It returns all answers once they are complete.
func (q *Questions[Q]) Fill(id, answer string) (answers []string, err error) {
	one := q.open[id]
	if strings.TrimSpace(answer) == "" {
		return nil, fault.New(fault.ArgError, "the answer is empty")
	}
	delete(q.open, id)
	one.answers[id] = answer
	if len(one.answers) < len(one.IDs) {
		return nil, nil
	}
	for _, id := range one.IDs {
		answers = append(answers, one.answers[id])
	}
	return answers, nil
}

// Requests returns the requests that have open questions.
func (q *Questions[Q]) Requests() (all []*Question[Q]) {
	for _, one := range q.open {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// Close forgets the questions of a request.
func (q *Questions[Q]) Close(one *Question[Q]) {
	q.forget(func(other *Question[Q]) bool { return other == one })
}

// Withdraw forgets the questions that were opened with that id, and reports it.
func (q *Questions[Q]) Withdraw(id string) []event.Event {
	return q.forget(func(one *Question[Q]) bool { return one.ID == id })
}

// WithdrawAll forgets all questions, and reports it.
func (q *Questions[Q]) WithdrawAll() []event.Event {
	return q.forget(func(*Question[Q]) bool { return true })
}

func (q *Questions[Q]) forget(which func(*Question[Q]) bool) (out []event.Event) {
	for name, one := range q.open {
		if which(one) {
			delete(q.open, name)
			out = append(out, event.Event{Kind: event.Withdrawn, Ask: &event.Ask{ID: name}})
		}
	}
	return out
}
