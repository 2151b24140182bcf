package eidolon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/event"
	"omniagent/internal/text"
	"omniagent/internal/workspace"
	"omniagent/internal/xnl"
)

// Record is the record of a conversation, in a directory of its own:
//
//	history.xnl   each message, appended when it is there
//	history.json  the same messages, brought up to date at the end of each turn
//	todos.json    the list of tasks
//	app.log       what happened, a line each
//
// It is a projection of the journal: who opens it again writes it anew from there.
type Record struct {
	dir      string
	kind     string // of the model's API, for the log
	history  *os.File
	json     *os.File
	size     int64 // of history.json, without its last bracket
	log      *os.File
	facts    event.Facts
	answer   *message // of the model; what it calls is added until something else comes
	ended    [][]byte // messages of the turn, as JSON
	messages int
	failed   error
}

// message is one as the files have it, with its members in their order.
type message struct {
	role   string
	fields xnl.Object
	calls  []any
	raw    []any
	names  map[string]string // of its calls, by their ids
}

// RecordFiles are the names of the files of a record.
func RecordFiles() []string { return []string{"history.xnl", "history.json", "todos.json", "app.log"} }

// OpenRecord begins the record of a conversation in a directory, in place of what is there. kind is the kind of the
// model's API: openai, anthropic, or the name of an agent.
func OpenRecord(dir, kind string) (*Record, error) {
	if err := workspace.MkdirAll(dir); err != nil {
		return nil, err
	}
	r := &Record{dir: dir, kind: kind}
	files := map[string]**os.File{"history.xnl": &r.history, "history.json": &r.json, "app.log": &r.log}
	for name, file := range files {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			r.Close()
			return nil, err
		}
		*file = f
	}
	return r, r.flush()
}

// Close ends the record.
func (r *Record) Close() {
	for _, f := range []*os.File{r.history, r.json, r.log} {
		if f != nil {
			_ = f.Close() // every write was checked
		}
	}
}

// Begin notes the facts of the conversation.
func (r *Record) Begin(f event.Facts) {
	r.facts = f
	r.line(time.Now(), "session start workspace=%s agent=%s provider=%s apiKind=%s model=%s", f.Dir, f.Agent,
		f.Provider,
		r.kind, f.Model)
}

// Add notes an event of the conversation. It returns the first error that there was.
func (r *Record) Add(e event.Event) error {
	if e.Parent != "" || e.Delta || r.failed != nil { // a sub-agent's messages are its own
		return r.failed
	}
	switch e.Kind {
	case event.Prompted, event.Steered:
		r.prompt(e)
	case event.Thinking:
		r.model().set("reasoning_content", e.Text)
	case event.Text:
		r.model().set("content", e.Text)
	case event.ToolCall:
		r.call(e)
	case event.ToolResult:
		r.result(e)
	case event.Answered:
		r.model()
	case event.Changed:
		r.facts.Merge(*e.Facts)
	case event.Failed:
		r.line(e.Time, "error %s", e.Fault.Error())
	case event.Denied:
		r.line(e.Time, "denied %s: %s", e.Denial.Tool, e.Denial.Reason)
	case event.TurnBegan:
		r.line(e.Time, "request provider=%s apiKind=%s model=%s messages=%d", r.facts.Provider, r.kind, r.facts.Model,
			r.messages)
	case event.Ended:
		r.put(nil)
		if u := e.End.Usage; u != nil {
			r.line(e.Time, "usage prompt=%d completion=%d", u.Input, u.Output)
		}
		r.fail(r.flush())
	}
	return r.failed
}

// prompt notes what a person said. What travelled before it are messages of the system.
func (r *Record) prompt(e event.Event) {
	r.put(nil)
	for _, b := range e.Blocks {
		switch {
		case b.Media != "":
			r.put(&message{
				role:   "user",
				fields: xnl.Object{{Key: "content", Value: "[" + b.Media + " " + b.Name + "]"}},
			})
		case strings.HasPrefix(b.Name, "@"):
			r.put(&message{role: "system", fields: xnl.Object{{Key: "content", Value: b.Text}}})
			name, _, _ := strings.Cut(b.Name, "\n")
			r.line(e.Time, "with the message: %s", name)
		default:
			r.put(&message{role: "user", fields: xnl.Object{{Key: "content", Value: b.Text}}})
			r.line(e.Time, "user input, %d characters", len([]rune(b.Text)))
		}
	}
}

// model returns the model's message that has not been written yet. A new answer begins another one.
func (r *Record) model() *message {
	if r.answer != nil && len(r.answer.calls) > 0 {
		r.put(nil)
	}
	if r.answer == nil {
		r.answer = &message{role: "assistant", names: map[string]string{}, fields: xnl.Object{
			{Key: "reasoning_content", Value: ""}, {Key: "content", Value: ""},
		}}
	}
	return r.answer
}

// set adds to a field of the message.
func (m *message) set(key, value string) {
	for i := range m.fields {
		if m.fields[i].Key == key {
			m.fields[i].Value = m.fields[i].Value.(string) + value
		}
	}
}

func (r *Record) call(e event.Event) {
	if r.answer == nil {
		r.model()
	}
	c := e.Call
	input, err := xnl.FromJSON(c.Object())
	if err != nil {
		input = string(c.Input)
	}
	m := r.answer
	m.calls = append(m.calls, xnl.Object{{Key: "id", Value: c.ID}, {Key: "name", Value: c.Name}, {
		Key:   "input",
		Value: input,
	}})
	m.raw = append(m.raw, xnl.Object{{Key: "id", Value: c.ID}, {Key: "name", Value: c.Name}, {
		Key:   "arguments",
		Value: string(c.Input),
	}})
	m.names[c.ID] = c.Name
	r.line(e.Time, "tool_call id=%s route=%s", c.ID, c.Name)
	if items, ok := Tasks(c); ok {
		r.fail(r.writeTodos(items))
		r.line(e.Time, "todos total=%d", len(items))
	}
}

func (r *Record) result(e event.Event) {
	name := e.Result.Name
	if r.answer != nil && name == "" {
		name = r.answer.names[e.Result.ID]
	}
	r.put(nil)
	r.put(&message{role: "tool", fields: xnl.Object{
		{Key: "name", Value: name}, {Key: "content", Value: e.Result.Output}, {Key: "toolCallId", Value: e.Result.ID},
	}})
}

// put writes the model's message, and then the given one.
func (r *Record) put(next *message) {
	if m := r.answer; m != nil {
		r.answer = nil
		m.fields = append(m.fields, xnl.Member{Key: "toolCalls", Value: list(m.calls)},
			xnl.Member{Key: "rawToolCalls", Value: list(m.raw)})
		if len(m.raw) > 0 {
			raw, _ := json.MarshalIndent(m.raw, "", "  ") // of texts
			m.fields = append(m.fields, xnl.Member{Key: "rawToolCallsStr", Value: string(raw)})
		}
		r.write(m)
	}
	if next != nil {
		r.write(next)
	}
}

func list(all []any) []any {
	if all == nil {
		return []any{}
	}
	return all
}

func (r *Record) write(m *message) {
	_, err := r.history.WriteString(xnl.Record(m.role, m.fields) + "\n")
	r.fail(err)
	form, err := json.Marshal(append(xnl.Object{{Key: "role", Value: m.role}}, m.fields...))
	r.fail(err)
	r.ended = append(r.ended, form)
	r.messages++
}

// flush brings history.json up to date. It only grows, in one write, and is whole before and after it.
func (r *Record) flush() error {
	var b bytes.Buffer
	if r.size == 0 {
		b.WriteString("[")
	}
	for i, form := range r.ended {
		if r.size > 1 || i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  ")
		if err := json.Indent(&b, form, "  ", "  "); err != nil {
			return err
		}
	}
	size := int64(b.Len())
	b.WriteString("\n]\n")
	if _, err := r.json.WriteAt(b.Bytes(), r.size); err != nil {
		return err
	}
	r.size, r.ended = r.size+size, nil
	return nil
}

func (r *Record) fail(err error) {
	if r.failed == nil {
		r.failed = err
	}
}

func (r *Record) line(at time.Time, format string, args ...any) {
	if at.IsZero() {
		at = time.Now()
	}
	_, err := fmt.Fprintf(r.log, "[%s] %s\n", at.UTC().Format("2006-01-02T15:04:05.000Z"),
		text.Flat(fmt.Sprintf(format, args...)))
	r.fail(err)
}

// Task is one of the list of tasks that a model keeps.
type Task struct {
	ID      string `json:"id"`
	Content string `json:"content"`
	Status  string `json:"status"` // pending, in_progress, completed
	Active  string `json:"activeForm"`
}

// Tasks returns the list of tasks that a call of a tool writes, and whether it is such a call.
func Tasks(c *event.Call) (tasks []Task, ok bool) {
	var in struct {
		Todos, Items []struct {
			ID      any
			Content string
			Status  string
			Active  string `json:"activeForm"`
		}
	}
	if !strings.Contains(strings.ToLower(c.Name), "todo") || json.Unmarshal(c.Object(), &in) != nil {
		return nil, false
	}
	tasks = []Task{}
	for i, t := range append(in.Todos, in.Items...) {
		id := strconv.Itoa(i + 1)
		if t.ID != nil {
			id = fmt.Sprint(t.ID)
		}
		tasks = append(tasks, Task{id, strings.TrimSpace(t.Content), t.Status, strings.TrimSpace(t.Active)})
	}
	return tasks, true
}

func (r *Record) writeTodos(items []Task) error {
	type stats struct {
		Total      int `json:"total"`
		Completed  int `json:"completed"`
		InProgress int `json:"inProgress"`
	}
	all := struct {
		Items []Task `json:"items"`
		Stats stats  `json:"stats"`
	}{Items: items, Stats: stats{Total: len(items)}}
	for _, t := range items {
		switch t.Status {
		case "completed":
			all.Stats.Completed++
		case "in_progress":
			all.Stats.InProgress++
		}
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return workspace.WriteDerived(filepath.Join(r.dir, "todos.json"), append(data, '\n'), 0o600)
}
