package gemini

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/setting"
)

// observer reads what a run added to the transcript of its session.
type observer struct {
	launch agent.Launch
	before map[string]int64 // sizes of the transcripts before the start
}

// Observe records the size of the transcript of a session that will be resumed.
func (d driver) Observe(l agent.Launch) agent.Observer {
	o := &observer{launch: l}
	o.before = cli.Sizes(o.transcripts())
	if l.Session == "" && l.Spec.Newest {
		o.before = cli.Sizes(slices.Concat(o.all("session-*.jsonl"), o.all(filepath.Join("*", "*.jsonl"))))
	}
	return o
}

// newest returns the session that --resume=latest resumed: its transcript is the only one that has grown.
func (o *observer) newest() (id string) {
	cli.EachLine(cli.Grown(o.before, o.all("session-*.jsonl")), 0, maxLine, func(l lines.Line) bool {
		var first transcriptLine
		if json.Unmarshal(l.Text, &first) == nil {
			id = first.SessionID
		}
		return false
	})
	return id
}

// all returns transcripts of all projects, by a pattern of their names.
func (o *observer) all(name string) []string {
	chats := configPath(o.launch.Env, "tmp", "*", "chats")
	if chats == "" {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(chats, name))
	return files
}

// transcripts returns the files that may contain the session, followed by those of its subagents. Their names contain
// the first eight characters of the id. All projects are searched, because the name of a project's directory is not
// known.
func (o *observer) transcripts() []string {
	id := o.launch.Session
	if len(id) < 8 || strings.ContainsAny(id, `/\*?[`) {
		return nil
	}
	return append(o.all("session-*-"+id[:8]+".jsonl"), o.all(filepath.Join(id, "*.jsonl"))...)
}

// After reads what the run added.
func (o *observer) After(x agent.Exit) agent.Evidence {
	o.launch.Session = cmp.Or(o.launch.Session, x.Session)
	if o.launch.Session == "" && o.launch.Spec.Newest {
		o.launch.Session = o.newest()
	}
	e := agent.Evidence{Session: o.launch.Session, Fault: o.fault(x)}
	var t tally
	for _, path := range o.transcripts() {
		if t.read(path, o.before[path], o.launch.Session, o.launch.Session == o.launch.Spec.Fresh) {
			e.Records = append(e.Records, path)
		}
	}
	if len(e.Records) == 0 {
		return e
	}
	e.Denials, e.Model, e.Usage, e.Calls = t.denials(), t.model, t.usage(), t.calls()
	switch {
	case t.resumed > 1: // another process resumed the session at the same time
		e.Denials, e.Usage, e.Calls = nil, nil, nil
	case t.answered:
		e.Answered = agent.Yes
	case !o.launch.Interactive:
		e.Answered = agent.No
	}
	if t.headless {
		e.Usage = nil
	}
	e.DenialsKnown = t.resumed <= 1 && !t.cut && !t.headless && o.yolo()
	return e
}

// fault returns what ended the run, judging by the exit code and stderr. Transcripts do not record it.
func (o *observer) fault(x agent.Exit) *fault.Fault {
	if x.Code == 0 {
		return nil
	}
	f := codeFault(x.Code, o.form() != setting.Text)
	if f == nil || f.Detail["status"] != nil { // otherwise the code says more
		if detailed := stderrFault(x.Stderr); detailed != nil {
			return detailed
		}
	}
	return f
}

// form returns the effective output format.
func (o *observer) form() setting.Output {
	s := o.launch.Spec
	if value, ok := cli.PassedValue(s.Passthrough, outputFlag, "--outputFormat", "-o"); ok && !s.Shared.Output.Typed() {
		return setting.Output(value)
	}
	// with two output formats, the CLI prints text
	if passedOutput(s.Passthrough) || s.Mode == setting.Interactive || s.Shared.Output.Value == "" {
		return setting.Text
	}
	return s.Shared.Output.Value
}

// yolo reports whether the model got all tools. Otherwise it lacks the tools that would ask, and their denial is not
// recorded.
func (o *observer) yolo() bool {
	s := o.launch.Spec
	return s.Shared.Approval.Value == setting.Yolo && !cli.Passed(s.Passthrough, approvalFlag)
}

// tally collects what the transcripts of a run say.
type tally struct {
	model    string
	answered bool // the last message is the model's
	cut      bool // a line of the model was too long
	resumed  int  // how often the session was resumed
	headless bool // the first line is missing
	order    []string
	messages map[string]message
}

// message is the part of a message that is evidence. The CLI writes a message again when it has more of it.
type message struct {
	denials []event.Denial
	usage   event.Usage
	calls   []event.FinishedCall
}

// transcriptLine is one line of a transcript.
type transcriptLine struct {
	SessionID string          `json:"sessionId"`
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Time      string          `json:"timestamp"`
	Content   json.RawMessage `json:"content"`
	Model     string          `json:"model"`
	Tokens    *struct {
		Input, Output, Cached, Thoughts int64
	} `json:"tokens"`
	ToolCalls []struct {
		ID     string          `json:"id"`
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"args"`
		Status string          `json:"status"`
		Time   string          `json:"timestamp"`
		Result []struct {
			FunctionResponse struct {
				Response struct {
					Error any `json:"error"`
				} `json:"response"`
			} `json:"functionResponse"`
		} `json:"result"`
	} `json:"toolCalls"`
	Set *struct {
		SessionID string `json:"sessionId"`
	} `json:"$set"`
}

// read reads a transcript from an offset on. It reports whether the transcript belongs to this session and has anything
// new.
//
// The first line has the session's id. But another run that starts in the same project removes a transcript without
// messages, and the next message creates a new one without that line. If the id was created for this run, the name of
// the file is enough.
func (t *tally) read(path string, from int64, session string, fresh bool) bool {
	subagent := filepath.Base(filepath.Dir(path)) == session
	ours, headed := subagent || fresh, subagent
	if from > 0 && !subagent {
		cli.EachLine(path, 0, maxLine, func(l lines.Line) bool {
			var r transcriptLine
			ours = json.Unmarshal(l.Text, &r) == nil && r.SessionID == session
			headed = ours
			return false
		})
		if !ours {
			return false
		}
	}
	added := false
	cli.EachLine(path, from, maxLine, func(l lines.Line) bool {
		var r transcriptLine
		switch {
		case l.Long && ours:
			t.long(l.Text, subagent)
			added = true
		case l.Long, json.Unmarshal(l.Text, &r) != nil: // such as an incomplete last line
		case r.SessionID != "" && r.ID == "" && !subagent:
			ours = r.SessionID == session // sessions with similar ids that begin in the same minute share a file
			headed = headed || ours
			added = added || ours
		case ours:
			t.add(r, subagent)
			added = true
		}
		return true
	})
	t.headless = t.headless || added && !headed
	return added
}

// long reads the beginning of a line that is too long. Only prompts, answers and outputs are that long.
func (t *tally) long(data []byte, subagent bool) {
	switch head := string(data[:min(len(data), 300)]); {
	case strings.HasPrefix(head, `{"$set"`): // a repeated history
	case strings.Contains(head, `"type":"user"`):
		t.answered = t.answered && subagent
	default:
		t.cut = true
		t.answered = t.answered || !subagent
	}
}

func (t *tally) add(r transcriptLine, subagent bool) {
	switch {
	case r.Set != nil && r.Set.SessionID != "" && !subagent:
		t.resumed++
	case r.ID == "":
	case r.Type == "user":
		t.answered = t.answered && subagent
	case r.Type == "gemini":
		if !subagent {
			t.answered = len(r.Content) > len(`""`)
			if r.Model != "" { // an empty answer has none
				t.model = r.Model
			}
		}
		var m message
		if r.Tokens != nil {
			m.usage = event.Usage{
				Input: r.Tokens.Input, Output: r.Tokens.Output, Cached: r.Tokens.Cached, Reasoning: r.Tokens.Thoughts,
			}
		}
		for _, c := range r.ToolCalls {
			ran := c.Status == "success" || c.Status == "error"
			for _, result := range c.Result {
				reason, _ := result.FunctionResponse.Response.Error.(string)
				if c.Status == "error" && denied(c.Name, "", reason) {
					m.denials = append(m.denials, event.Denial{CallID: c.ID, Tool: c.Name, Reason: reason})
					ran = false
				}
			}
			if ran {
				m.calls = append(m.calls, event.FinishedCall{
					Call: *call(c.ID, c.Name, c.Args), Began: cli.Time(r.Time), Ended: cli.Time(c.Time),
					Failed: c.Status == "error",
				})
			}
		}
		if _, known := t.messages[r.ID]; !known {
			t.order = append(t.order, r.ID)
		}
		if t.messages == nil {
			t.messages = map[string]message{}
		}
		t.messages[r.ID] = m
	}
}

func (t *tally) denials() []event.Denial {
	var out []event.Denial
	for _, id := range t.order {
		out = append(out, t.messages[id].denials...)
	}
	return out
}

func (t *tally) calls() (all []event.FinishedCall) {
	for _, id := range t.order {
		all = append(all, t.messages[id].calls...)
	}
	return all
}

func (t *tally) usage() *event.Usage {
	if len(t.order) == 0 {
		return nil
	}
	var sum event.Usage
	for _, m := range t.messages {
		sum.Add(m.usage)
	}
	return &sum
}
