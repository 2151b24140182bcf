package gemini

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
)

// observer reads the transcript of one session, from where it ended before the start.
type observer struct {
	launch agent.Launch
	before map[string]int64
}

// Observe notes the size of the transcript of a session that will be resumed.
func (d driver) Observe(l agent.Launch) agent.Observer {
	o := &observer{launch: l, before: map[string]int64{}}
	for _, path := range o.transcripts() {
		if f, size, err := openRegular(path); err == nil {
			f.Close()
			o.before[path] = size
		}
	}
	return o
}

// transcripts are the files that may have the session, those of its subagents behind them. Their names carry the first
// eight characters of the id. The directory in between is named after the project in a way that only the CLI's own
// register knows; the id is enough.
func (o *observer) transcripts() []string {
	id := o.launch.Session
	if len(id) < 8 || strings.ContainsAny(id, `/\*?[`) {
		return nil
	}
	chats := own(o.launch.Env, "tmp", "*", "chats")
	if chats == "" {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(chats, "session-*-"+id[:8]+".jsonl"))
	agents, _ := filepath.Glob(filepath.Join(chats, id, "*.jsonl"))
	return append(files, agents...)
}

// After reads what the run added.
func (o *observer) After(x agent.Exit) agent.Evidence {
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
	e.Denials, e.Model, e.Usage = t.denials(), t.model, t.usage()
	switch {
	case t.resumed > 1: // somebody else went on with the session at the same time
		e.Denials, e.Usage = nil, nil
	case t.answered:
		e.Answered = agent.Yes
	case !o.launch.Interactive:
		e.Answered = agent.No
	}
	if t.beheaded {
		e.Usage = nil
	}
	e.DenialsTold = t.resumed <= 1 && !t.cut && !t.beheaded && o.yolo()
	return e
}

// fault is what ended the run, where the exit code or standard error say so: the transcript has nothing of it.
func (o *observer) fault(x agent.Exit) *fault.Fault {
	if x.Code == 0 {
		return nil
	}
	f := codeFault(x.Code, o.form() != setting.Text)
	if f == nil || f.Detail["status"] != nil { // else it is a code of its own
		if said := stderrFault(x.Stderr); said != nil {
			return said
		}
	}
	return f
}

// form is the output that is in force.
func (o *observer) form() setting.Output {
	s := o.launch.Spec
	if value, ok := cli.PassedValue(s.Passthrough, outputFlag, "--outputFormat", "-o"); ok && !s.Shared.Output.Typed() {
		return setting.Output(value)
	}
	if passedOutput(s.Passthrough) { // told twice it prints text
		return setting.Text
	}
	if s.Mode == setting.Interactive || s.Shared.Output.Value == "" {
		return setting.Text
	}
	return s.Shared.Output.Value
}

// yolo says whether the model got all tools. With less it lacks those that would ask, and what it lacks it cannot be
// denied.
func (o *observer) yolo() bool {
	s := o.launch.Spec
	return s.Shared.Approval.Value == setting.Yolo && !cli.Passed(s.Passthrough, approvalFlag)
}

// tally is what a transcript says of one run.
type tally struct {
	model    string
	answered bool // the last word is the model's
	cut      bool // a line of the model was too long to be read whole
	resumed  int  // how often the session was resumed
	beheaded bool // the beginning is lost
	order    []string
	messages map[string]message
}

// message is what is kept of one. The CLI writes a message again where it has learned more of it.
type message struct {
	denials []event.Denial
	usage   event.Usage
}

// record is one line of a transcript.
type record struct {
	SessionID string          `json:"sessionId"`
	Kind      string          `json:"kind"`
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Content   json.RawMessage `json:"content"`
	Model     string          `json:"model"`
	Tokens    *struct {
		Input, Output, Cached, Thoughts int64
	} `json:"tokens"`
	ToolCalls []struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Status string `json:"status"`
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

// read takes in a transcript, and says whether it is one of this session and has anything new.
//
// Whose it is stands in the first line. But another run that starts in the same project removes a transcript which has
// no message yet, and the next message makes a new one, without that line. Where the id was made for this run and
// nothing was there before, its name is enough.
func (t *tally) read(path string, from int64, session string, ours bool) bool {
	agentOf := filepath.Base(filepath.Dir(path)) == session
	found, headed := agentOf || ours, agentOf
	if from > 0 && !agentOf {
		eachLine(path, 0, func(data []byte, _ bool) bool {
			var r record
			found = json.Unmarshal(data, &r) == nil && r.SessionID == session
			headed = found
			return false
		})
		if !found {
			return false
		}
	}
	fresh := false
	eachLine(path, from, func(data []byte, whole bool) bool {
		var r record
		if !whole {
			if found {
				t.long(data, agentOf)
				fresh = true
			}
			return true
		}
		if json.Unmarshal(data, &r) != nil {
			return true // such as a last line that was not finished
		}
		switch {
		case r.SessionID != "" && r.ID == "" && !agentOf:
			found = r.SessionID == session // sessions whose ids begin alike share the file of a minute
			headed = headed || found
			fresh = fresh || found
		case found:
			t.add(r, agentOf)
			fresh = true
		}
		return true
	})
	t.beheaded = t.beheaded || fresh && !headed
	return fresh
}

// long takes in the beginning of a line that is too long. Only prompts, answers and outputs of that size make one.
func (t *tally) long(data []byte, agentOf bool) {
	switch head := string(data[:min(len(data), 300)]); {
	case strings.HasPrefix(head, `{"$set"`): // the history once more
	case strings.Contains(head, `"type":"user"`):
		t.answered = t.answered && agentOf
	default:
		t.cut = true
		t.answered = t.answered || !agentOf
	}
}

func (t *tally) add(r record, agentOf bool) {
	switch {
	case r.Set != nil && r.Set.SessionID != "" && !agentOf:
		t.resumed++
	case r.ID == "":
	case r.Type == "user":
		t.answered = t.answered && agentOf
	case r.Type == "gemini":
		if !agentOf {
			t.answered = len(r.Content) > len(`""`)
			if r.Model != "" { // an empty answer has none
				t.model = r.Model
			}
		}
		var m message
		if r.Tokens != nil {
			m.usage = event.Usage{
				Input: r.Tokens.Input, Output: r.Tokens.Output, Cached: r.Tokens.Cached,
				Reasoning: r.Tokens.Thoughts,
			}
		}
		for _, c := range r.ToolCalls {
			for _, result := range c.Result {
				reason, _ := result.FunctionResponse.Response.Error.(string)
				if c.Status == "error" && denied(c.Name, "", reason) {
					m.denials = append(m.denials, event.Denial{CallID: c.ID, Tool: c.Name, Reason: reason})
				}
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
		out = slices.Concat(out, t.messages[id].denials)
	}
	return out
}

func (t *tally) usage() *event.Usage {
	if len(t.order) == 0 {
		return nil
	}
	var sum event.Usage
	for _, m := range t.messages {
		sum.Input += m.usage.Input
		sum.Output += m.usage.Output
		sum.Cached += m.usage.Cached
		sum.Reasoning += m.usage.Reasoning
	}
	return &sum
}
