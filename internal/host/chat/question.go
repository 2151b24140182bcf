package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/term/screen"
)

// Question is a question as a person sees it: the agent's, or one of ours.
type Question struct {
	Title  string        // in our words
	Said   string        // the agent's words, marked as such
	Detail string        // the command or input, as it will run
	Change *event.Change // how a file would change
	Why    string        // our reason, shown last
	Hint   string        // how to answer
	Keys   string        // answers of one letter, which need no Return
	Items  []screen.Item // to choose one from; its text is the answer

	opens  string // the directory that the answer d opens
	id     string // of the agent's question; empty: one of ours
	call   string // id of the call that it is about
	answer func(ctx context.Context, words string) error
}

// short returns a short hint, for a window in which letters answer.
func (q *Question) short() string {
	switch q.Keys {
	case "yn":
		return "y yes · n no · or say why not"
	case "ynd":
		return "y yes · n no · d open " + q.opens + " · or say why not"
	case "yand":
		return "y yes · a always exactly this · n no · d open " + q.opens + " · or say why not"
	case "yan":
		return "y yes · a always exactly this · n no · or say why not"
	}
	return strings.TrimSuffix(q.Hint, ": ")
}

// ask shows one of our questions after those that are open.
func (c *Chat) ask(q *Question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue(q)
}

// queue adds a question to the open ones. The caller holds the lock.
func (c *Chat) queue(q *Question) {
	if c.open = append(c.open, q); len(c.open) == 1 {
		c.present(q)
	}
}

func (c *Chat) present(q *Question) {
	c.shown++ // before the question is shown, so that no answer comes first
	c.View.Ask(q)
	c.update()
}

func (c *Chat) questioned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) > 0
}

// answers answers the shown question with a line, and reports whether it did.
func (c *Chat) answers(ctx context.Context, in Input) bool {
	c.mu.Lock()
	// A command does not answer it, nor does a line that was typed before it was shown.
	if len(c.open) == 0 || c.Typed && (in.Asked < c.shown || isCommand(strings.TrimSpace(in.Text))) {
		c.mu.Unlock()
		return false
	}
	q := c.open[0]
	c.remove(0)
	c.mu.Unlock()
	c.answer(ctx, q, strings.TrimSpace(in.Text))
	return true
}

// answer passes the answer of a question that is closed.
func (c *Chat) answer(ctx context.Context, q *Question, words string) {
	if err := q.answer(ctx, words); err != nil {
		c.notice("the answer was not taken: " + err.Error())
	}
	c.ready()
}

// remove closes a question, and shows the next one if it was the one shown. The caller holds the lock.
func (c *Chat) remove(i int) {
	if i == 0 {
		c.View.Ask(nil)
	}
	c.open = slices.Delete(c.open, i, i+1)
	if i == 0 && len(c.open) > 0 {
		c.present(c.open[0])
	}
}

// forget closes a question of the agent, and reports whether it was open.
func (c *Chat) forget(id string) bool {
	i := slices.IndexFunc(c.open, func(q *Question) bool { return q.id == id && id != "" })
	if i < 0 {
		return false
	}
	c.remove(i)
	return true
}

// asked converts a question of the agent for a person.
func (c *Chat) asked(q *event.Ask) *Question {
	with := c.Conversation()
	send := func(ctx context.Context, r event.Reply) error {
		r.Question = q.ID
		_, err := with.Answer(ctx, r)
		return err
	}
	if q.Form || q.Tool == nil && !slices.Contains(q.Options, event.Allow) {
		return c.form(q, send)
	}
	one := &Question{id: q.ID, Title: c.agentName() + " asks", Keys: "yn"}
	if q.Tool == nil {
		one.Said = text.ForDecision(q.Text)
	} else {
		c.about(one, q)
	}
	always := ""
	if slices.Contains(q.Options, event.Always) {
		always, one.Keys = "a allows exactly this from now on, ", "yan"
	}
	if q.Opens != "" {
		one.opens, one.Keys = text.Name(q.Opens), one.Keys+"d"
		always += "d opens " + one.opens + " in this conversation, "
	}
	one.Hint = "y allows it, " + always + "Return refuses, anything else refuses and says why: "
	lasting := slices.Contains(q.Options, event.Always)
	one.answer = func(ctx context.Context, words string) error {
		if q.Opens != "" && strings.EqualFold(words, "d") {
			return c.widen(ctx, q.Opens, send)
		}
		if utf8.RuneCountInString(words) == 1 && !strings.Contains(one.Keys, strings.ToLower(words)) {
			c.notice(text.Visible(words) + " is not one of the answers here")
			c.ask(one)
			return nil
		}
		r := reply(words, lasting)
		if r.Option == event.Deny {
			c.decline(q, "refused", r.Text)
		}
		return send(ctx, r)
	}
	return one
}

// decline records what to show as the result of a call that the person refused or skipped, because agents report it as
// a failure.
func (c *Chat) decline(q *event.Ask, what, why string) {
	if q.Tool == nil {
		return
	}
	if why != "" {
		what += ": " + why
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.declined == nil {
		c.declined = map[string]string{}
	}
	c.declined[q.Tool.ID] = what
}

// reply reads an answer: y or yes allows, a or always allows from now on if that is offered, and anything else refuses
// and is the reason.
func reply(words string, always bool) event.Reply {
	r := event.Reply{Option: event.Deny}
	switch word := strings.ToLower(words); {
	case yes(words):
		r.Option = event.Allow
	case always && (word == "a" || word == "always"):
		r.Option = event.Always
	case word == "", word == "n", word == "no":
	default:
		r.Text = words
	}
	return r
}

func yes(words string) bool {
	word := strings.ToLower(strings.TrimSpace(words))
	return word == "y" || word == "yes"
}

// form returns the first question of a form; the answer to one asks the next. A question without a form becomes a form
// with one question.
func (c *Chat) form(q *event.Ask, send func(context.Context, event.Reply) error) *Question {
	var form event.Form
	filled := q.Tool != nil && json.Unmarshal(q.Tool.Input, &form) == nil && len(form.Questions) > 0
	if !filled {
		ask := event.FormQuestion{Question: q.Text}
		for _, label := range q.Options {
			ask.Options = append(ask.Options, event.FormOption{Label: label})
		}
		form.Questions = []event.FormQuestion{ask}
	}
	answers := map[string]string{}
	var step func(i int) *Question
	step = func(i int) *Question {
		ask := form.Questions[i]
		one := &Question{
			id: q.ID, Title: c.agentName() + " asks", Said: text.ForDecision(ask.Question), Detail: bars(options(ask)),
		}
		switch {
		case len(ask.Options) == 0:
			one.Hint = "type your answer; Return skips: "
		case ask.Several:
			one.Hint = "type numbers with commas, or your own answer; Return skips: "
		default:
			one.Hint = "type a number or your own answer; Return skips: "
		}
		one.answer = func(ctx context.Context, words string) error {
			if words == "" {
				c.decline(q, "skipped", "")
				return send(ctx, event.Reply{Option: event.Deny})
			}
			answers[ask.Question] = ask.Chosen(words)
			if i+1 < len(form.Questions) {
				c.ask(step(i + 1))
				return nil
			}
			if filled {
				return send(ctx, event.Reply{Option: event.Allow, Input: event.Filled(q.Tool.Input, answers)})
			}
			return send(ctx, event.Reply{Option: event.Allow, Text: answers[ask.Question]})
		}
		return one
	}
	return step(0)
}

func options(q event.FormQuestion) string {
	var b strings.Builder
	for i, o := range q.Options {
		fmt.Fprintf(&b, "%d. %s\n", i+1, o.Shown())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// changeOf returns how a call changes a file, or nil if its input does not say.
func changeOf(call *event.Call) *event.Change {
	if call.Kind != event.Write {
		return nil
	}
	var in struct {
		Path    string  `json:"file_path"`
		Old     *string `json:"old_string"`
		New     *string `json:"new_string"`
		Content *string `json:"content"`
	}
	if json.Unmarshal(call.ForHosts().Input, &in) != nil || in.Path == "" {
		return nil
	}
	switch {
	case in.Content != nil && in.New == nil:
		return &event.Change{Path: in.Path, Old: nil, New: *in.Content}
	case in.Old != nil && in.New != nil: // for parts of a file, a missing newline at the end means nothing
		return &event.Change{Path: in.Path, Old: new(ended(*in.Old)), New: ended(*in.New)}
	}
	return nil
}

// longestCompared limits the size of a file that a question compares.
const longestCompared = 1 << 20

// replaced adds the old content to a change that replaces a whole file, or returns why it cannot be shown.
func (c *Chat) replaced(change *event.Change) (problem string) {
	path := pathname.From(c.World.Dir, change.Path)
	if change.Old != nil || c.World.Load == nil || c.World.Exists == nil || !c.World.Exists(path) {
		return ""
	}
	data, err := c.World.Load(eidolon.File{Path: path})
	switch {
	case err != nil:
		return "The file exists, and what is lost of it cannot be shown: " + text.Visible(err.Error())
	case len(data) > longestCompared, !utf8.Valid(data):
		return "The file exists, and what is lost of it cannot be shown: it is long, or not text."
	}
	change.Old = new(string(data))
	return ""
}

func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}
