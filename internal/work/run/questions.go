package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/stuckprompt"
)

// questionOf converts a question of an agent to that of a run.
func questionOf(ask event.Ask) Question {
	q := Question{ID: ask.ID, Text: ask.Text, Asked: time.Now().UTC()}
	if ask.Tool != nil && !ask.Form {
		q.Tool, q.Call, q.whole = ask.Tool.Name, identity(ask.Tool, ask.Text), onlyCommand(ask.Tool)
		q.Input = cmp.Or(ask.Tool.Command, ask.Tool.Path, string(ask.Tool.Input))
		does := cmp.Or(ask.Tool.Command, ask.Tool.Path)
		switch {
		case ask.Text == "":
			q.Text = does
		case !strings.Contains(ask.Text, does): // the agent's title may say anything
			q.Text += ": " + does
		}
		q.Text = strings.TrimSpace("May " + q.Tool + " run? " + q.Text)
	}
	q.Options = ask.Options
	var form event.Form
	if ask.Form && ask.Tool != nil && json.Unmarshal(ask.Tool.Input, &form) == nil && len(form.Questions) > 0 {
		if q.Form = ask.Tool.Input; len(form.Questions) == 1 {
			q.Text = cmp.Or(form.Questions[0].Question, q.Text)
		}
	}
	return q
}

// Parts returns what is asked, one by one: the questions of a form, or the question itself.
func (q Question) Parts() []event.FormQuestion {
	var form event.Form
	if json.Unmarshal(q.Form, &form) != nil || len(form.Questions) == 0 {
		form = event.FormOf(event.Ask{Text: q.Text, Options: q.Options})
	}
	return form.Questions
}

// together joins the answers to the parts of a question into one text.
func (q Question) together(answers map[string]string) string {
	parts := q.Parts()
	if len(parts) == 1 {
		return answers[parts[0].Question]
	}
	var lines []string
	for _, part := range parts {
		if said := answers[part.Question]; said != "" {
			lines = append(lines, part.Question+" "+said)
		}
	}
	return strings.Join(lines, "\n")
}

// Filled returns the answer that consists of the answers to the parts of a question, by their texts.
func (q Question) Filled(answers map[string]string) Answer {
	return Answer{Text: q.together(answers), parts: answers, At: time.Now().UTC(), By: os.Getpid()}
}

// PersonOf returns an Owner.Person that calls ask with the question in the form of the run's record.
func PersonOf(ask func(context.Context, Question) (Answer, bool)) func(context.Context, event.Ask) (event.Reply, bool) {
	return func(ctx context.Context, of event.Ask) (event.Reply, bool) {
		q := questionOf(of)
		a, ok := ask(ctx, q)
		return q.reply(a), ok
	}
}

// question returns the question for a person that ended an exchange, or nil.
func (e Ending) question() *Question {
	switch p := e.Prompt; {
	case e.Question != nil:
		return new(questionOf(*e.Question))
	case p != nil && !p.Kind.Sensitive():
		words := cmp.Or(p.Question, p.Text, "the agent waits for input")
		return &Question{ID: "prompt-" + ident.Hex(4), Text: words, Options: p.Choices, Asked: time.Now().UTC()}
	case e.End != nil && e.End.OK:
		if _, only := stuckprompt.Questions(e.Answer()); only {
			words := text.Cut(strings.TrimSpace(e.Answer()), longestQuestion)
			return &Question{ID: "answer-" + ident.Hex(4), Text: words, Asked: time.Now().UTC()}
		}
	}
	return nil
}

const longestQuestion = 4000 // bytes

// same reports whether a later question is the same. Questions about the same call are, even if their words differ.
func (q Question) same(later Question) bool {
	switch {
	case q.Call != "" && later.Call != "":
		return q.Call == later.Call
	case q.Call != later.Call: // one was recorded before calls were, and gives other reasons
		return q.resembles(later) && later.whole
	}
	plain := func(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
	return q.Tool == later.Tool && q.Input == later.Input && plain(q.Text) == plain(later.Text)
}

// resembles reports whether a question that was recorded before calls were may be about the call of a later one. It has
// only the command or the path of a call, and not what else would run or be written.
func (q Question) resembles(later Question) bool {
	return q.Call == "" && later.Call != "" && q.Input != "" && q.Tool == later.Tool && q.Input == later.Input
}

// plainly returns a question without the secrets.
func (r *Run) plainly(q Question) Question {
	whole := q.whole
	q = plain(&r.secrets, q)
	q.whole = whole
	return q
}

// Asks returns how many questions of the agent were answered, in the run that this one retries and in this one.
func (r Record) Asks() (before, here int) {
	for _, q := range r.Questions {
		switch {
		case q.Answer == nil || q.Required || q.Tool != "":
		case q.Attempt == 0:
			before++
		default:
			here++
		}
	}
	return before, here
}

// Ask adds a question that must be answered before the task begins.
func (r *Run) Ask(key, words string) {
	r.Questions = append(r.Questions, Question{ID: key, Text: words, Required: true, Asked: time.Now().UTC()})
}

// Approve and Reject are the options of an Answer about a tool call.
const (
	Approve = event.Allow
	Reject  = event.Deny
)

// Question finds an open question. An empty id means the only one. It returns CONFLICT, with the answering process, if
// the question was answered, and an error if it was never asked.
func (r *Record) Question(id string) (*Question, error) {
	open := r.Open()
	switch {
	case id != "":
	case len(open) == 0:
		for _, q := range slices.Backward(r.Questions) {
			if q.Answer != nil {
				return nil, answeredBefore(q.ID, *q.Answer)
			}
		}
		return nil, fault.New(fault.Conflicting, "%s has no open question: it is %s", r.ID, r.State).With("run_id",
			r.ID)
	case len(open) > 1:
		return nil, fault.New(fault.ArgError, "%s has %d open questions", r.ID, len(open)).
			Hint("name one with --question: omniagent runs show %s lists them", r.ID)
	default:
		id = open[0].ID
	}
	for i := range r.Questions {
		switch q := &r.Questions[i]; {
		case q.ID != id:
		case q.Answer != nil:
			return nil, answeredBefore(id, *q.Answer)
		default:
			return q, nil
		}
	}
	return nil, fault.New(fault.NotFoundCode, "%s has no question %s", r.ID, id).With("run_id", r.ID).
		Hint("omniagent runs show %s", r.ID)
}

// QuestionFor returns the id of the question that an answer is for: id itself, or the only open question. So an answer
// that waits does not go to a later question. It returns "" if several are open, and an error if none is.
func (r *Record) QuestionFor(id string) (string, error) {
	switch open := r.Open(); {
	case id != "" || len(open) > 1:
		return id, nil
	case len(open) == 1:
		return open[0].ID, nil
	}
	_, err := r.Question("")
	return "", r.Late("", err)
}

// Takes returns the open question that an answer is for. It fails if no open question fits the answer.
func (r *Record) Takes(id string, a Answer) (*Question, error) {
	q, err := r.Question(id)
	if err == nil {
		err = q.accepts(r.ID, a)
	}
	return q, err
}

// accepts returns a fault for a text that answers a question whether a tool may run, and for an approval or a rejection
// of a question that asks for something else: an agent would take the word as the answer.
func (q Question) accepts(run string, a Answer) error {
	words := []string{event.Allow, event.Always, event.Deny}
	switch {
	case q.Tool == "" && len(q.Options) > 0 && !slices.Contains(q.Options, cmp.Or(a.Option, a.Text)) &&
		(a.Option != "" || slices.Contains(words, a.Text)):
		return fault.New(fault.ArgError, "question %s asks for one of: %s; not whether a tool may run", q.ID,
			strings.Join(q.Options, ", ")).With("options", q.Options).
			Hint("omniagent answer %s --question %s 'TEXT'", run, q.ID)
	case q.Tool == "" && a.Option != "" && !slices.Contains(q.Options, a.Option):
		return fault.New(fault.ArgError, "question %s asks for a text, and not whether a tool may run", q.ID).
			Hint("omniagent answer %s --question %s 'TEXT'", run, q.ID)
	case q.Tool == "" || a.Option != "" || slices.Contains(q.Options, a.Text):
		return nil
	}
	return fault.New(fault.ArgError, "question %s is whether %s may run; a text alone does not answer it: "+
		"--reject or --approve does", q.ID, q.Tool).
		Hint("omniagent answer %s --question %s --reject", run, q.ID).
		Also("omniagent answer %s --question %s --approve", run, q.ID)
}

// Answers returns the commands that answer the first open question of a run, or the one that shows a run without any.
// The first command never lets a tool run, because a program might run it unread.
func (r Record) Answers() []string {
	open := r.Open()
	if len(open) == 0 {
		return []string{"omniagent runs show " + r.ID}
	}
	answer := "omniagent answer " + r.ID
	if len(open) > 1 {
		answer += " --question " + open[0].ID
	}
	if open[0].Tool == "" {
		return []string{answer + " 'TEXT'"}
	}
	return []string{answer + " --reject", answer + " --approve"}
}

// reply converts an answer for the agent.
func (q Question) reply(a Answer) event.Reply {
	reply := event.Reply{Question: q.ID, Option: a.Option, Text: a.Text, Secret: a.Secret}
	switch {
	case a.Option != "":
	case q.Form != nil && a.parts == nil && len(q.Parts()) > 1:
		reply.Option = event.Allow // one text answers them all
	case q.Form != nil:
		if a.parts == nil {
			a.parts = map[string]string{q.Text: a.Text}
		}
		reply.Option, reply.Text, reply.Input = event.Allow, "", event.Filled(q.Form, a.parts)
	case slices.Contains(q.Options, a.Text):
		reply.Option, reply.Text = a.Text, ""
	}
	return reply
}

// Answer records the answer to an open question; see Question for its id. A secret text is passed to the agent, but not
// stored.
func (r *Run) Answer(id string, a Answer) error {
	q, err := r.Takes(id, a)
	if err != nil {
		return err
	}
	if a.Secret {
		r.secrets.add(q.ID, a.Text)
		a.Text = ""
	}
	q.Answer = &a
	return r.save()
}

// Inherit records the answers of another run. It asks again what the task needs and nobody answered, and what was
// answered with a secret, which was not stored.
func (r *Run) Inherit(from Record) error {
	for _, q := range from.Questions {
		switch {
		case q.Answer != nil && !q.Answer.Secret:
			q.Attempt, q.Made, q.Failure = 0, false, ""
			r.Questions = append(r.Questions, q)
		case q.Answer != nil, q.Required:
			r.Ask(q.ID, q.Text)
		}
	}
	return r.save()
}

// reopen asks again for secrets that the next attempt needs and this process does not have. An agent that resumes its
// session still has those of earlier attempts.
func (r *Run) reopen() {
	resume := r.resumes(r.agent())
	for i := range r.Questions {
		q := &r.Questions[i]
		if q.Answer != nil && q.Answer.Secret && (q.Attempt == len(r.Attempts) || resume == "") &&
			r.secrets.of(q.ID) == "" {
			q.Answer = nil
		}
	}
}

// answeredBefore returns the fault for a second answer.
func answeredBefore(id string, a Answer) error {
	return fault.New(fault.Conflicting, "question %s was answered at %s by process %d", id, a.At.Format(time.RFC3339),
		a.By).
		With("answered_at", a.At).With("answered_by", a.By)
}

// Late returns the fault for an answer that came too late, which says who answered the question and when; or err if
// nobody did.
func (r *Record) Late(question string, err error) error {
	_, before := r.Question(question)
	f := fault.Of(before)
	if before == nil || f.Detail["answered_at"] == nil {
		return err
	}
	f.Message += ", and " + r.ID
	if r.State.Terminal() {
		f.Message += fmt.Sprintf(" has ended (%s)", r.State)
		return f.Hint("omniagent runs retry %s", r.ID)
	}
	f.Message += " works with that answer"
	return f.Hint("omniagent runs watch %s", r.ID)
}

// ask records a question of the agent, unless it is already recorded.
func (r *Run) ask(q Question) {
	q = r.plainly(q)
	if slices.ContainsFunc(r.Questions, func(known Question) bool { return known.ID == q.ID }) {
		return
	}
	for _, known := range slices.Backward(r.Questions) {
		if known.Stale && (known.same(q) || known.resembles(q)) {
			q.Text += " (" + known.staleness() + " since this was allowed)"
			break
		}
	}
	q.Attempt, q.File = len(r.Attempts), cmp.Or(q.File, r.files[q.Call])
	r.Questions = append(r.Questions, q)
}

// staleness says why an approval does not count any more.
func (q Question) staleness() string {
	switch {
	case q.Call != "":
		return "the file has changed"
	case q.File != "": // it was recorded before files were
		return "it is not known whether the file has changed"
	}
	return "it is not known whether its other input has changed"
}

// repeats reports whether a person has already answered the question.
func (r *Run) repeats(q Question) bool {
	q = r.plainly(q)
	return slices.ContainsFunc(r.Questions, func(known Question) bool {
		return known.Answer != nil && !known.Made && !known.Stale && known.same(q)
	})
}

func repeated(q Question) Verdict {
	return Verdict{
		State: Blocked, Reason: Repeated,
		Fault:    fault.New(fault.Repeated, "the agent repeats a question that was answered: %s", q.Text),
		Evidence: []string{"question " + q.ID + " has the words of one that was answered"},
	}
}

// missing returns the verdict of a task that needs answers first.
func missing(r *Run) Verdict {
	var keys []string
	for _, q := range r.Open() {
		keys = append(keys, q.ID)
	}
	f := fault.New(fault.NeedsInput, "the task needs an answer: %s", r.Open()[0].Text).With("questions", keys)
	if len(keys) > 1 {
		f = fault.New(fault.NeedsInput, "the task needs %d answers: %s", len(keys), strings.Join(keys, ", ")).
			With("questions", keys)
	}
	return Verdict{State: NeedsInput, Reason: Missing, Fault: f, Evidence: []string{"nothing was started"}}
}
