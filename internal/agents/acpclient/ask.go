package acpclient

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// question is a request of the agent that a person has to answer.
type question struct {
	id      json.RawMessage // the id of the request
	form    bool            // it is a form, or a page to visit
	call    *event.Call
	text    *string         // the new content of the file that the call writes; nil if the call does not show all of it
	method  string          // what it asks us to do, with params; empty if it only asks for permission
	params  json.RawMessage //
	choices []acp.Option    // answers with the agent's own names
	allow   string          // ids of options, or empty
	always  string
	deny    string
	fields  []acp.Field
}

// requested handles a request by the agent.
func (t *talk) requested(m jsonrpc.Message) []event.Event {
	if t.o.Offered.Has(m.Method) {
		return t.chore(m)
	}
	q := question{id: slices.Clone(m.ID)}
	name := "q" + string(m.ID)
	wrong := jsonrpc.Errorf(jsonrpc.InvalidParams, "%s: invalid parameters", m.Method)
	switch m.Method {
	case "session/request_permission":
		if p, ok := acp.ReadPermission(m.Params); ok {
			return append(t.begins(), t.permission(name, q, p)...)
		}
	case "elicitation/create":
		if b, ok := acp.ReadForm(m.Params); ok {
			q.form = true
			return append(t.begins(), t.form(name, q, b)...)
		}
	default:
		wrong = jsonrpc.Errorf(jsonrpc.MethodNotFound, "%s is not supported", m.Method)
	}
	t.AddLine(jsonrpc.Failure(m.ID, wrong))
	return []event.Event{{Kind: event.Notice, Text: m.Method}}
}

// permission asks whether a call may run, unless the mode decides that.
func (t *talk) permission(name string, q question, p acp.Permission) []event.Event {
	p.Tool.Status = ""
	p.Tool.ID = cmp.Or(p.Tool.ID, name)
	input := p.Tool.Input // some agents show more here than in the call
	if known := t.calls[p.Tool.ID]; known != nil && known.Input != nil {
		p.Tool.Input = nil
	}
	c := t.merge(p.Tool)
	about := c.Tool
	if input != nil {
		about.Input = input
	}
	out := t.tell(c)
	q.call, q.text = t.call(&about), writtenBy(&about)
	q.sort(p.Options)
	switch allowed, decided := t.judge(q.call); {
	case decided && allowed && len(q.choices) == 0 && cmp.Or(q.allow, q.always) != "":
		t.AddLine(jsonrpc.Result(q.id, acp.Choose(cmp.Or(q.allow, q.always))))
		return out
	case decided && !allowed:
		t.refuse(&q, false)
		return append(out, t.denial(q.call, "the mode is "+string(t.o.mode), false))
	}
	ask := &event.Ask{ID: name, Text: strings.TrimSpace(cmp.Or(p.Title, c.Title) + "\n" + p.Text), Options: q.names()}
	if ask.Tool = q.call; len(q.choices) > 0 {
		ask.Tool, q.call = nil, nil // there are more answers than yes and no
	}
	t.Questions.Ask(name, q)
	return append(out, event.Event{Kind: event.Question, Session: t.offer.Session, Parent: c.Parent, Ask: ask})
}

// judge decides about a call by the mode, if the mode decides.
//
//	deny                     no call runs
//	plan                     what changes something does not run; the rest is asked about
//	ask, prompt, default     all is asked about
//	auto-edit                files of the workspace may be changed; the rest is asked about
//	yolo                     everything runs
func (t *talk) judge(c *event.Call) (allowed, decided bool) {
	switch t.o.mode {
	case setting.DenyAll:
		return false, true
	case setting.Plan:
		return false, c.Kind != event.Read && c.Kind != event.Search
	case setting.AutoEdit:
		return true, c.Kind == event.Write && c.Path != "" && pathname.Within(t.o.dir, c.Path)
	case setting.Yolo:
		return true, true
	}
	return false, false
}

// sort sets the answers from the kinds of the options, because each agent has its own ids. If there are several ways to
// allow the call once, each becomes an answer.
func (q *question) sort(options []acp.Option) {
	once := 0
	for _, o := range options {
		switch o.Kind {
		case acp.AllowOnce:
			q.allow = cmp.Or(q.allow, o.ID)
			once++
		case acp.AllowAlways:
			q.always = cmp.Or(q.always, o.ID)
		case acp.RejectOnce:
			q.deny = o.ID
		case acp.RejectAlways:
			q.deny = cmp.Or(q.deny, o.ID)
		default:
			once = len(options) + 1
		}
	}
	if once > 1 {
		q.choices = options
	}
}

// names returns the possible answers.
func (q *question) names() []string {
	var names []string
	for _, o := range q.choices {
		names = append(names, o.Name)
	}
	if len(names) > 0 {
		return names
	}
	if q.allow != "" || q.form {
		names = append(names, event.Allow)
	}
	if q.always != "" {
		names = append(names, event.Always)
	}
	return append(names, event.Deny)
}

// choice returns the id of the option that a person chose, or "".
func (q *question) choice(r event.Reply) string {
	for _, o := range q.choices {
		if o.ID == r.Option || o.Name == r.Option || o.Name == r.Text && (r.Option == "" || r.Option == event.Allow) {
			return o.ID
		}
	}
	switch {
	case len(q.choices) > 0:
	case r.Option == event.Allow && q.form:
		return event.Allow
	case r.Option == event.Allow:
		return q.allow
	case r.Option == event.Always:
		return q.always
	}
	return ""
}

// refuse denies a request. If stop is true, the turn should end.
func (t *talk) refuse(q *question, stop bool) {
	if q.method != "" {
		t.deny(q.id)
		return
	}
	t.AddLine(jsonrpc.Result(q.id, q.refusal(stop)))
}

func (q *question) refusal(stop bool) any {
	switch {
	case q.form:
		return acp.Submit(nil)
	case stop:
		return acp.Choose("")
	}
	return acp.Choose(q.deny)
}

// form asks a question for each field of a form.
func (t *talk) form(name string, q question, b acp.Blank) []event.Event {
	q.fields = b.Fields
	if b.URL != "" {
		t.Questions.Ask(name, q)
		ask := &event.Ask{ID: name, Text: strings.TrimSpace(b.Text + "\n" + b.URL), Options: q.names()}
		return []event.Event{{Kind: event.Question, Session: t.offer.Session, Ask: ask}}
	}
	var form []event.FormQuestion
	for _, f := range b.Fields {
		words := strings.TrimSpace(cmp.Or(f.Title, f.ID) + "\n" + f.About)
		if len(b.Fields) == 1 && b.Text != "" {
			words = b.Text
		}
		asked := event.FormQuestion{Question: words, Several: f.Several}
		for _, c := range f.Choices {
			asked.Options = append(asked.Options, event.FormOption{Label: c.Name, Description: c.About})
		}
		form = append(form, asked)
	}
	return t.Questions.AskForm(name, t.offer.Session, form, q)
}
