package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/work/run"
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
	if s.o.Depth >= MaxDepth {
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
	a := s.carryOut(ctx, r, progress)
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

// carryOut lets the agent do the task, within the time limit of the request.
func (s *server) carryOut(ctx context.Context, r askInput, progress func(string)) answer {
	limited, cancel := context.WithTimeoutCause(ctx, r.limit, fault.New(fault.TimedOut,
		"%s did not end within %s; what it did until then is done", r.Agent, r.limit))
	defer cancel()
	quiet := func() {}
	mode := r.Mode.Approval(s.o.Reads)
	e := run.Exchange{
		Open: s.o.Open, Agent: r.Agent, Spec: s.spec(r), Mode: mode, Prompt: r.Prompt, Ask: ask,
		Services: agent.Services{
			CanAsk: mode != setting.Default, // other modes can need a person
			// the limit of the whole call ends first
			Timeout: r.limit, Connect: s.o.Connect,
		},
		Sent: func(int64) { quiet = beat(r.Agent, progress) },
		OnEvent: func(e event.Event) {
			if c := e.Call; e.Kind == event.ToolCall {
				progress(strings.TrimSpace(c.Name + " " + text.OneLine(cmp.Or(c.Command, c.Path), 120)))
			}
		},
	}
	ending := e.Run(limited)
	quiet()
	return answerOf(r.Agent, ending)
}

// spec returns the Spec of the agent's conversation.
func (s *server) spec(r askInput) agent.Spec {
	mode := r.Mode.Approval(s.o.Reads)
	shared := setting.Defaults()
	shared.Approval = setting.AsTyped(mode)
	if s.o.Sandbox != "" {
		shared.Sandbox = setting.AsTyped(s.o.Sandbox)
	}
	if r.Model != "" {
		shared.Model = setting.AsTyped(r.Model)
	}
	return agent.Spec{
		Dir: r.Dir, Resume: r.Session, Shared: shared, Env: Deeper(s.o.Env, s.o.Depth),
		Terms: agent.Terms{Mode: mode}, ReadOnly: r.Mode == Read,
	}
}

// ask decides about a question of the agent: it denies a tool; any other question ends the call.
func ask(a event.Ask) (*event.Reply, bool) {
	if a.Tool == nil || a.Form {
		return nil, false
	}
	return &event.Reply{
		Option: event.Deny, Automatic: true, Text: "it needs approval, and nobody can be asked",
	}, false
}

// beat reports progress at intervals until quiet is called.
func beat(agent string, progress func(string)) (quiet func()) {
	progress(agent + " works")
	ticker, over := time.NewTicker(heartbeat), make(chan struct{})
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				progress(agent + " works")
			case <-over:
				return
			}
		}
	}()
	return func() { close(over) }
}

// answerOf returns the answer to a call.
func answerOf(agent string, e run.Ending) answer {
	a := answer{Agent: agent, Denials: []denial{}, Changed: e.Touched()}
	for _, d := range e.Denials {
		a.Denials = append(a.Denials, denial{text.OneLine(d.Tool, 200), text.OneLine(d.Reason, 500)})
	}
	if a.Text = clean(e.Answer()); len(a.Text) > maxText {
		a.Text, a.Cut = strings.TrimSuffix(text.Cut(a.Text, maxText), "…"), true
	}
	if e.Session != "" {
		a.Session = &e.Session
	}
	if u := e.Usage(); u != nil {
		a.Usage = &usage{u.Input, u.Output, u.CostUSD}
	}
	v := run.Judge(e, nil)
	switch {
	case v.State == run.NeedsInput:
		a.Status, a.Question = needsInput, questionOf(e.Question)
		return a
	case v.State == run.Succeeded:
		a.Status = done
		return a
	case v.State == run.Blocked && e.End != nil && e.End.OK:
		a.Status = blocked
		return a
	case v.State == run.TimedOut:
		a.Status = timedOut
	default:
		a.Status = failed
	}
	message := v.Fault.Error()
	if v.Fault.Suggestion != "" {
		message += "; " + v.Fault.Suggestion
	}
	a.Error = &trouble{string(v.Fault.Code), text.Cut(clean(message), 2000)}
	return a
}

// questionOf returns a question in the form of the result.
func questionOf(ask *event.Ask) *question {
	q := &question{Text: text.Cut(clean(ask.Text), 4000), Options: append([]string{}, ask.Options...)}
	if ask.Tool != nil {
		q.Tool = ask.Tool.Name
	}
	return q
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

// clean returns an untrusted text as valid UTF-8, without control characters.
func clean(s string) string {
	s, _ = text.Clean(strings.ToValidUTF8(s, "\uFFFD"))
	return s
}
