package delegate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/conversation"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
	"omniagent/internal/text"
)

// The statuses of a call.
const (
	done       = "done"
	blocked    = "blocked"     // there is an answer, but a tool was denied
	needsInput = "needs_input" // the agent asked a question that needs a person
	failed     = "failed"
	timedOut   = "timed_out"
)

// answer is the result of ask_agent.
type answer struct {
	Agent    string    `json:"agent"`
	Session  *string   `json:"session"` // null: it cannot be resumed
	Status   string    `json:"status"`
	Text     string    `json:"text"`
	Cut      bool      `json:"text_cut,omitempty"`
	Denials  []denial  `json:"denials"`
	Question *question `json:"question"`
	Changed  *bool     `json:"changed"` // null: unknown
	Usage    *usage    `json:"usage"`
	Error    *trouble  `json:"error"`
	TookMS   int64     `json:"took_ms"`
}

type denial struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

type question struct {
	Text    string   `json:"text"`
	Options []string `json:"options"`
	Tool    string   `json:"tool,omitempty"` // the question is whether this may run
}

type usage struct {
	Input   int64    `json:"input_tokens"`
	Output  int64    `json:"output_tokens"`
	CostUSD *float64 `json:"cost_usd"`
}

type trouble struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ask asks an agent and waits for its answer.
func (s *server) ask(ctx context.Context, raw json.RawMessage, progress func(string)) outcome {
	if s.o.Depth >= maxDepth {
		return mistake(
			"agents have asked agents %d times over already, and that is the limit: do it yourself, or say that it "+
				"cannot be done", s.o.Depth)
	}
	r, err := s.check(raw)
	if err != nil {
		return mistake("%v", err)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return mistake(
			"%d agents work already, which is as many as there may be at once; ask again when one has answered",
			maxAtOnce)
	}
	began := time.Now()
	c := chat{server: s, request: r, progress: progress, tools: map[string]*used{}}
	a := c.run(ctx)
	a.TookMS = time.Since(began).Milliseconds()
	if a.Session != nil {
		s.mu.Lock()
		s.sessions[*a.Session] = startedSession{r.Agent, r.Dir}
		s.mu.Unlock()
	}
	result := textResult(a.words(), a)
	result.Failed = a.Status == failed || a.Status == timedOut
	return result
}

// chat is a conversation of one message.
//
//	Open ── Send ──▶ listen ── Ended ───────────────────────────────▶ Close ──▶ answer
//	  │                 └── a question, a time limit, cancelled ──▶ Interrupt, listen ──▶ Close ──▶ answer
//	  └── error ──▶ answer
type chat struct {
	*server
	request
	progress func(string)

	conversation *conversation.Conversation // nil: none was opened
	end          *event.End
	endedByUs    bool         // we ended the turn, so the agent may not have reported its tools
	fault        *fault.Fault // why the turn failed
	text         string
	ask          *event.Ask
	denials      []event.Denial
	tools        map[string]*used // by the id of the call
}

// used is a tool that was called.
type used struct {
	kind          event.ToolKind
	ended, failed bool
}

// spec returns the agent's spec.
func (c *chat) spec() agent.Spec {
	mode := c.Mode.Approval(c.o.Reads)
	shared := setting.Defaults()
	shared.Approval = setting.Chosen[setting.Approval]{Value: mode, Origin: setting.Typed}
	if c.Model != "" {
		shared.Model = setting.Chosen[string]{Value: c.Model, Origin: setting.Typed}
	}
	env := slices.DeleteFunc(slices.Clone(c.o.Env), func(entry string) bool {
		return strings.HasPrefix(entry, agent.DepthVariable+"=")
	})
	env = append(env, agent.DepthVariable+"="+strconv.Itoa(c.o.Depth+1))
	return agent.Spec{Dir: c.Dir, Resume: c.Session, Shared: shared, Env: env, Terms: agent.Terms{Mode: mode}}
}

// run opens the conversation, sends the prompt, reads the turn to its end and closes.
func (c *chat) run(ctx context.Context) answer {
	opening, opened := context.WithTimeoutCause(ctx, c.limit, c.timeoutFault())
	defer opened()
	conv, err := c.o.Open(opening, c.Agent, c.spec(), agent.Services{
		CanAsk:  c.Mode.Approval(c.o.Reads) != setting.Default, // other modes can need a person
		Timeout: c.limit, Connect: c.o.Connect,
	})
	if err != nil {
		return c.conclude(agent.Outcome{}, cmp.Or(context.Cause(opening), err))
	}
	c.conversation = conv
	events := conv.Events(conv.Last() + 1)
	defer events.Close()
	var turn int64
	// A resumed session has its own mode, but this call's mode applies.
	if mode := c.Mode.Approval(c.o.Reads); c.Session != "" && conv.Facts().Mode != mode {
		err = conv.Set(opening, agent.Change{Mode: mode})
	}
	if err == nil {
		turn, err = conv.Send(opening, []event.Block{{Text: c.Prompt}})
	}
	if err == nil {
		quiet := c.beat()
		err = c.listen(ctx, events, turn)
		quiet()
	}
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if turn > 0 && c.end == nil { // events after this belong to the answer
		asked := c.ask
		c.ask = nil
		conv.Interrupt(true)
		_ = c.listen(out, events, turn)
		c.ask = asked
	}
	outcome, lost := conv.Close(out)
	return c.conclude(outcome, cmp.Or(err, lost))
}

// timeoutFault returns the fault for a call that took too long.
func (c *chat) timeoutFault() error {
	return fault.New(fault.TimedOut, "%s did not end within %s; what it did until then is done", c.Agent, c.limit)
}

// beat sends signs of life until quiet is called.
func (c *chat) beat() (quiet func()) {
	c.progress(c.Agent + " works")
	ticker, over := time.NewTicker(beat), make(chan struct{})
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.progress(c.Agent + " works")
			case <-over:
				return
			}
		}
	}()
	return func() { close(over) }
}

// listen reads events up to the end of the turn or a question that only a person can answer.
func (c *chat) listen(ctx context.Context, events *conversation.Events, turn int64) error {
	for c.end == nil && c.ask == nil {
		e, err := events.Next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fault.New(fault.AgentFailed, "%s ended in the middle of its turn", c.Agent)
		case e.Turn == turn:
			c.event(ctx, e)
		}
	}
	return nil
}

// event keeps what matters of an event. Of a sub-agent that is what it did.
func (c *chat) event(ctx context.Context, e event.Event) {
	switch e.Kind {
	case event.Text:
		if e.Parent == "" && !e.Delta {
			c.text = e.Text
		}
	case event.ToolCall:
		c.tools[e.Call.ID] = &used{kind: e.Call.Kind}
		c.progress(strings.TrimSpace(e.Call.Name + " " + text.OneLine(cmp.Or(e.Call.Command, e.Call.Path), 120)))
	case event.ToolResult:
		if u := c.tools[e.Result.ID]; u != nil && !e.Synthetic {
			u.ended, u.failed = true, e.Result.Failed
		}
	case event.Question:
		if e.Ask.Tool == nil || e.Ask.Form {
			c.ask = e.Ask
			return
		}
		_ = c.conversation.Answer(ctx, event.Reply{ // too late: the question was withdrawn
			Question: e.Ask.ID, Option: event.Deny, ByUs: true, Text: "it needs approval, and nobody can be asked",
		})
	case event.Denied:
		c.denials = append(c.denials, *e.Denial)
	case event.Failed:
		if e.Terminal && e.Parent == "" {
			c.fault = e.Fault
		}
	case event.Ended:
		c.end, c.endedByUs = e.End, e.Synthetic
	}
}

// conclude returns the answer. The conversation knows how the turn ended; the outcome adds what only the agent's own
// records show.
func (c *chat) conclude(out agent.Outcome, err error) answer {
	a := answer{Agent: c.Agent, Status: done, Denials: []denial{}}
	for _, d := range out.Evidence.Denials {
		if !slices.ContainsFunc(c.denials, func(e event.Denial) bool {
			return e.CallID == d.CallID &&
				e.Tool == d.Tool
		}) {
			c.denials = append(c.denials, d)
		}
	}
	for _, d := range c.denials {
		a.Denials = append(a.Denials, denial{text.OneLine(d.Tool, 200), text.OneLine(d.Reason, 500)})
	}
	a.Text, a.Cut = c.answerText()
	if c.conversation != nil {
		id := c.conversation.ID()
		a.Session = &id
	}
	spent := out.Evidence.Usage
	if c.end != nil && c.end.Usage != nil {
		spent = c.end.Usage
	}
	if spent != nil {
		a.Usage = &usage{spent.Input, spent.Output, spent.CostUSD}
	}
	a.Changed = c.changed()
	if c.ask != nil {
		a.Status, a.Question = needsInput, &question{Text: text.Cut(clean(c.ask.Text), 4000), Options: []string{}}
		for _, o := range c.ask.Options {
			// a form is filled in, not allowed
			if !c.ask.Form || o != event.Allow && o != event.Always && o != event.Deny {
				a.Question.Options = append(a.Question.Options, o)
			}
		}
		if c.ask.Tool != nil {
			a.Question.Tool = c.ask.Tool.Name
		}
		return a
	}
	var f *fault.Fault
	if a.Status, f = c.status(out, err); f != nil {
		message := f.Error()
		if f.Suggestion != "" {
			message += "; " + f.Suggestion
		}
		a.Error = &trouble{string(f.Code), text.Cut(clean(message), 2000)}
	}
	return a
}

// status returns how the turn ended, in the words of the answer.
func (c *chat) status(out agent.Outcome, err error) (string, *fault.Fault) {
	switch f := c.fault; {
	case errors.Is(err, fault.TimedOut), f != nil && f.Detail["turn_timeout"] != nil: // our own time limit
		return timedOut, fault.Of(c.timeoutFault())
	case err != nil && c.end == nil:
		return failed, fault.Of(err)
	case c.end == nil:
		return failed, fault.New(fault.AgentFailed, "%s ended in the middle of its turn", c.Agent)
	case !c.end.OK && f != nil:
		return failed, f
	case c.end.Reason == event.Cancelled:
		return failed, fault.New(fault.Interrupted, "%s was interrupted", c.Agent)
	case !c.end.OK && out.Evidence.Fault != nil:
		return failed, out.Evidence.Fault
	case !c.end.OK:
		return failed, fault.New(fault.AgentFailed, "%s ended without success: %s", c.Agent,
			cmp.Or(c.end.Said, c.end.Reason))
	case len(c.denials) > 0:
		return blocked, nil
	case c.text == "" && c.end.Text == "" && len(c.end.Structured) == 0 && len(c.tools) == 0:
		return failed, fault.New(fault.NoAnswer, "%s reported success without an answer", c.Agent)
	}
	return done, nil
}

// answerText returns the agent's answer.
func (c *chat) answerText() (whole string, cut bool) {
	if c.end != nil {
		whole = c.end.Text
	}
	whole = clean(cmp.Or(whole, c.text))
	if len(whole) <= maxText {
		return whole, false
	}
	return strings.TrimSuffix(text.Cut(whole, maxText), "…"), true
}

// changed reports whether files were changed: true if a tool for that succeeded, false if nothing ran that could have.
// It is unknown after a command, or with an agent that does not report its tools.
func (c *chat) changed() *bool {
	wrote, unclear := false, c.endedByUs || c.end == nil
	for id, u := range c.tools {
		switch {
		case slices.ContainsFunc(c.denials, func(d event.Denial) bool { return d.CallID == id }):
		case u.kind == event.Read || u.kind == event.Search || u.kind == event.Web:
		case u.kind == event.Write && u.ended:
			wrote = wrote || !u.failed
		default:
			unclear = true
		}
	}
	if !wrote && unclear && c.conversation != nil { // without a conversation nothing was started
		return nil
	}
	return &wrote
}

// words returns the answer for a model that does not read structured content.
func (a answer) words() string {
	var b strings.Builder
	b.WriteString(a.Text)
	add := func(format string, args ...any) {
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, format, args...)
	}
	if a.Cut {
		add("[the rest of the answer is left out]")
	}
	for _, d := range a.Denials {
		add("[%s was not allowed to use %s: %s]", a.Agent, d.Tool, d.Reason)
	}
	if q := a.Question; q != nil {
		add("[%s asks, and nobody was there to answer: %s", a.Agent, q.Text)
		if len(q.Options) > 0 {
			b.WriteString(" (" + strings.Join(q.Options, ", ") + ")")
		}
		b.WriteString("]")
	}
	if a.Error != nil {
		add("[%s: %s]", a.Error.Code, a.Error.Message)
	}
	if a.Session != nil {
		add("[session %s]", *a.Session)
	}
	return b.String()
}

// clean returns an untrusted text, fit to pass on.
func clean(s string) string {
	s, _ = text.Clean(strings.ToValidUTF8(s, "\uFFFD"))
	return s
}
