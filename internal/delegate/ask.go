package delegate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
	"omniagent/internal/text"
)

// How a call went.
const (
	done       = "done"
	blocked    = "blocked"     // there is an answer, but a tool was denied
	needsInput = "needs_input" // the agent asked something, and nobody can answer
	failed     = "failed"
	timedOut   = "timed_out"
)

// answer is what ask_agent gives back.
type answer struct {
	Agent    string    `json:"agent"`
	Session  *string   `json:"session"` // null: it cannot go on
	Status   string    `json:"status"`
	Text     string    `json:"text"`
	Cut      bool      `json:"text_cut,omitempty"`
	Denials  []denial  `json:"denials"`
	Question *question `json:"question"`
	Changed  *bool     `json:"changed"` // null: not known
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
		return mistake("agents have asked agents %d times over already, and that is the limit: do it yourself, or say that it cannot be done", s.o.Depth)
	}
	r, err := s.check(raw)
	if err != nil {
		return mistake("%v", err)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return mistake("%d agents work already, which is as many as there may be at once; ask again when one has answered", maxAtOnce)
	}
	began := time.Now()
	ctx, stop := context.WithTimeoutCause(ctx, r.limit, errTime)
	defer stop()
	c := chat{server: s, request: r, progress: progress, tools: map[string]*used{}}
	a := c.run(ctx)
	a.TookMS = time.Since(began).Milliseconds()
	if a.Session != nil {
		s.mu.Lock()
		s.sessions[*a.Session] = conversation{r.Agent, r.Dir}
		s.mu.Unlock()
	}
	result := said(a.words(), a)
	result.Failed = a.Status == failed || a.Status == timedOut
	return result
}

// errTime is why a call ended that took too long.
var errTime = errors.New("the time of the call is over")

// chat is a conversation of one message.
type chat struct {
	*server
	request
	progress func(string)

	events  []event.Event // what the truth about the end is read from
	last    *event.End
	pieces  strings.Builder
	whole   string
	ask     *event.Ask
	tools   map[string]*used // by the id of the call
	guessed bool             // the end was concluded by us, so the agent may not tell its tools
}

// used is a tool that was called.
type used struct {
	kind          event.ToolKind
	ended, failed bool
}

// spec is what is wanted of the agent.
func (c *chat) spec() agent.Spec {
	mode := map[Mode]setting.Approval{Read: setting.Prompt, Edit: setting.AutoEdit, Yolo: setting.Yolo}[c.Mode]
	shared := setting.Defaults()
	shared.Approval = setting.Chosen[setting.Approval]{Value: setting.Approval(mode), Origin: setting.Typed}
	if c.Model != "" {
		shared.Model = setting.Chosen[string]{Value: c.Model, Origin: setting.Typed}
	}
	env := slices.DeleteFunc(slices.Clone(c.o.Env), func(entry string) bool { return strings.HasPrefix(entry, agent.DepthVariable+"=") })
	env = append(env, agent.DepthVariable+"="+strconv.Itoa(c.o.Depth+1))
	return agent.Spec{Dir: c.Dir, Resume: c.Session, Shared: shared, Env: env, Terms: agent.Terms{Mode: mode}}
}

// run opens the conversation, sends the prompt, hears the turn to its end and closes.
func (c *chat) run(ctx context.Context) answer {
	session, err := c.o.Open(ctx, c.Agent, c.spec(), agent.Services{})
	if err != nil {
		return c.conclude(ctx, nil, agent.Outcome{}, err)
	}
	events, quiet := hearing(session)
	err = session.Send(ctx, []event.Block{{Text: c.Prompt}})
	sent := err == nil
	if sent {
		err = c.listen(ctx, events)
	}
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if sent && c.last == nil {
		_ = session.Interrupt(out)
		c.drain(out, events)
	}
	ending, _ := session.Close(out)
	quiet()
	return c.conclude(ctx, session, ending, err)
}

// hearing hands on what happens in a conversation, until quiet is called. The channel is closed when no more will come.
func hearing(session agent.Session) (heard <-chan event.Event, quiet func()) {
	ctx, stop := context.WithCancel(context.Background())
	events, ended := make(chan event.Event), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(events)
		for {
			e, err := session.Next(ctx)
			if err != nil {
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events, func() { stop(); <-ended }
}

// listen hears the turn, and gives a sign of life where the agent gives none.
func (c *chat) listen(ctx context.Context, events <-chan event.Event) error {
	c.progress(c.Agent + " works")
	alive := time.NewTicker(beat)
	defer alive.Stop()
	for c.ask == nil && c.last == nil {
		select {
		case e, open := <-events:
			if !open {
				return fault.New(fault.AgentFailed, "%s ended in the middle of its turn", c.Agent)
			}
			c.take(e)
		case <-alive.C:
			c.progress(c.Agent + " works")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// drain hears what comes until the turn has ended: what happened meanwhile belongs to the answer.
func (c *chat) drain(ctx context.Context, events <-chan event.Event) {
	for c.last == nil {
		select {
		case e, open := <-events:
			if !open {
				return
			}
			if e.Kind != event.Question {
				c.take(e)
			}
		case <-ctx.Done():
			return
		}
	}
}

// take remembers what matters of an event.
func (c *chat) take(e event.Event) {
	if e.Raw = nil; e.Parent != "" && e.Kind != event.Denied && e.Kind != event.ToolCall && e.Kind != event.ToolResult {
		return // of a sub-agent only what it did
	}
	switch e.Kind {
	case event.Text:
		if e.Delta {
			if c.pieces.Len() < maxText {
				c.pieces.WriteString(e.Text)
			}
		} else {
			c.whole = e.Text
			c.pieces.Reset()
		}
		c.remember(event.Event{Kind: event.Text, Session: e.Session, Model: e.Model})
	case event.ToolCall:
		c.tools[e.Call.ID] = &used{kind: e.Call.Kind}
		c.remember(event.Event{Kind: event.Text, Session: e.Session})
		c.progress(strings.TrimSpace(e.Call.Name + " " + oneLine(firstOf(e.Call.Command, e.Call.Path), 120)))
	case event.ToolResult:
		if u := c.tools[e.Result.ID]; u != nil {
			u.ended, u.failed = true, e.Result.Failed
		}
	case event.Question:
		c.ask = e.Ask
	case event.Denied, event.Failed:
		c.events = append(c.events, e)
	case event.Ended:
		c.last, c.guessed = e.End, e.Synthetic
		c.events = append(c.events, e)
	default:
		if e.Session != "" {
			c.remember(event.Event{Kind: event.Notice, Session: e.Session, Model: e.Model})
		}
	}
}

// remember keeps an event of which one is as good as many.
func (c *chat) remember(e event.Event) {
	if !slices.ContainsFunc(c.events, func(k event.Event) bool { return k.Kind == e.Kind && k.Session == e.Session && k.Model == e.Model }) {
		c.events = append(c.events, e)
	}
}

// conclude says how it went.
func (c *chat) conclude(ctx context.Context, session agent.Session, out agent.Outcome, err error) answer {
	a := answer{Agent: c.Agent, Status: done, Denials: []denial{}}
	evidence := cli.EvidenceOf(c.events)
	if evidence.Usage == nil {
		evidence.Usage = out.Evidence.Usage
	}
	if evidence.Fault == nil {
		evidence.Fault = out.Evidence.Fault
	}
	for _, d := range out.Evidence.Denials {
		if !slices.ContainsFunc(evidence.Denials, func(e event.Denial) bool { return e.CallID == d.CallID && e.Tool == d.Tool }) {
			evidence.Denials = append(evidence.Denials, d)
		}
	}
	for _, d := range evidence.Denials {
		a.Denials = append(a.Denials, denial{oneLine(d.Tool, 200), oneLine(d.Reason, 500)})
	}
	a.Text, a.Cut = c.said()
	if session != nil && session.ID() != "" {
		id := session.ID()
		a.Session = &id
	}
	if u := evidence.Usage; u != nil {
		a.Usage = &usage{u.Input, u.Output, u.CostUSD}
	}
	a.Changed = c.changed(session, evidence.Denials)
	if c.ask != nil {
		a.Status, a.Question = needsInput, &question{Text: oneText(c.ask.Text, 4000), Options: append([]string{}, c.ask.Options...)}
		if c.ask.Tool != nil {
			a.Question.Tool = c.ask.Tool.Name
		}
		return a
	}
	var f *fault.Fault
	if a.Status, f = c.judge(ctx, out.Exit, evidence, err); f != nil {
		message := f.Error()
		if f.Suggestion != "" {
			message += "; " + f.Suggestion
		}
		a.Error = &trouble{string(f.Code), oneText(message, 2000)}
	}
	return a
}

// judge says how a turn ended that nobody asked anything in.
func (c *chat) judge(ctx context.Context, x agent.Exit, evidence agent.Evidence, err error) (string, *fault.Fault) {
	switch {
	case errors.Is(context.Cause(ctx), errTime) && c.last == nil || errors.Is(err, errTime):
		return timedOut, fault.New(fault.TimedOut, "%s did not end within %s; what it did until then is done", c.Agent, c.limit)
	case err != nil && ctx.Err() != nil:
		return failed, fault.New(fault.Interrupted, "%s was interrupted", c.Agent)
	case err != nil:
		return failed, fault.Of(err)
	}
	f := cli.Judge(x, evidence)
	switch {
	case f != nil && f.Code == fault.Blocked:
		return blocked, nil
	case f == nil && c.last != nil && !c.last.OK:
		f = fault.New(fault.AgentFailed, "%s ended without success: %s", c.Agent, firstOf(c.last.Reason, "it does not say why"))
	}
	if f != nil {
		return failed, f
	}
	return done, nil
}

// said is the agent's answer.
func (c *chat) said() (whole string, cut bool) {
	if c.last != nil {
		whole = c.last.Text
	}
	whole = oneText(firstOf(whole, c.whole, c.pieces.String()), -1)
	if len(whole) <= maxText {
		return whole, false
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(whole[n]) {
		n--
	}
	return whole[:n], true
}

// changed says whether files were: a tool for that has succeeded, or nothing ran that could have. Of a command, or of an agent that does not tell
// its tools, nobody knows.
func (c *chat) changed(session agent.Session, denials []event.Denial) *bool {
	wrote, unclear := false, c.guessed || c.last == nil
	for id, u := range c.tools {
		switch {
		case slices.ContainsFunc(denials, func(d event.Denial) bool { return d.CallID == id }):
		case u.kind == event.Read || u.kind == event.Search || u.kind == event.Web:
		case u.kind == event.Write && u.ended:
			wrote = wrote || !u.failed
		default:
			unclear = true
		}
	}
	switch {
	case wrote:
		return &wrote
	case unclear && session != nil: // without a session nothing was started
		return nil
	}
	return &wrote
}

// words are the answer for a model that reads no structured content.
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

func oneLine(s string, most int) string { return oneText(strings.Join(strings.Fields(s), " "), most) }

// oneText is a text from elsewhere, fit to hand on.
func oneText(s string, most int) string {
	s, _ = text.Clean(strings.ToValidUTF8(s, "\uFFFD"))
	if most < 0 || len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

func firstOf(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}
