package eidolon

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/kit/xnl"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
	"omniagent/internal/native/xnlcall"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/talk/session"
)

// Record is the record of a conversation, in its own directory:
//
//	history.xnl   each message, appended when it is there
//	history.json  the same messages, brought up to date at the end of each turn
//	todos.json    the list of tasks
//	app.log       what happened, a line each
//
// The messages are those that the model gets: if it calls tools in its text, they contain the blocks that it wrote and
// the results in the form that it got. The record is a projection of the journal: OpenRecord continues after the last
// complete turn.
type Record struct {
	dir      string
	kind     string // of the model's API, for the log
	history  *os.File
	json     *os.File
	size     int64 // of history.json, without its last bracket
	log      *os.File
	facts    event.Facts
	turn     []model.Message // of the turn, as the model gets them
	thought  string          // thinking of an agent whose messages do not contain it
	thinks   bool            // the agent's messages contain its thinking
	adopted  int             // adopted messages that are still to come
	asks     time.Time       // when the next request began, until it is logged or the turn ends
	ended    [][]byte        // messages of the turn, as JSON
	lists    Lists
	messages int
	seq      int64 // of the last event
	failed   error
}

// position is the end of the last complete turn in the files. What follows it is written again.
type position struct {
	Seq      int64 `json:"seq"`
	History  int64 `json:"history"`
	JSON     int64 `json:"json"`
	Log      int64 `json:"log"`
	Messages int   `json:"messages"`
}

const positionFile = ".position"

// RecordFiles returns the names of the files of a record.
func RecordFiles() []string {
	return []string{"history.xnl", "history.json", "todos.json", "app.log", positionFile}
}

// OpenRecord begins the record of a conversation in a directory, or continues the one there with the event after Seq.
// kind is the kind of the model's API: openai, anthropic, or the name of an agent.
func OpenRecord(dir, kind string) (*Record, error) {
	if err := workspace.MkdirAll(dir); err != nil {
		return nil, err
	}
	r := &Record{dir: dir, kind: kind}
	var at position
	// without a readable position, the files are written from the beginning
	_ = workspace.ReadJSON(filepath.Join(dir, positionFile), 1<<10, &at)
	for range 2 {
		whole, err := r.open(at)
		if err != nil {
			r.Close()
			return nil, err
		}
		if whole {
			break
		}
		r.Close()
		at = position{} // a file has become shorter
	}
	r.size, r.messages, r.seq = at.JSON, at.Messages, at.Seq
	return r, r.flush()
}

// open opens the files at a position. whole is false if one of them is shorter.
func (r *Record) open(at position) (whole bool, err error) {
	for _, one := range []struct {
		name string
		file **os.File
		size int64
	}{
		{"history.xnl", &r.history, at.History}, {"history.json", &r.json, at.JSON}, {"app.log", &r.log, at.Log},
	} {
		f, err := os.OpenFile(filepath.Join(r.dir, one.name), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return false, err
		}
		*one.file = f
		info, err := f.Stat()
		if err != nil || info.Size() < one.size {
			return false, err
		}
		if err := f.Truncate(one.size); err != nil {
			return false, err
		}
		if _, err := f.Seek(one.size, io.SeekStart); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Seq returns the number of the last event in the record.
func (r *Record) Seq() int64 { return r.seq }

// Close ends the record.
func (r *Record) Close() {
	for _, f := range []*os.File{r.history, r.json, r.log} {
		if f != nil {
			_ = f.Close() // every write was checked
		}
	}
}

// Begin records the facts of the conversation and, if it is new, the instructions of the model.
func (r *Record) Begin(f event.Facts, instructions []string) {
	r.facts = f
	r.line(time.Now(), "session start workspace=%s agent=%s provider=%s apiKind=%s model=%s", f.Dir, f.Agent,
		r.provider(), r.kind, f.Model)
	if r.messages == 0 {
		for _, text := range instructions {
			r.say("system", text)
		}
	}
}

// provider returns the name of the model's provider, or of the vendor that a profile names.
func (r *Record) provider() string { return cmp.Or(r.facts.Vendor, r.facts.Provider) }

// Add adds a record of the conversation's journal. It returns the first error of this Record.
func (r *Record) Add(entry session.Entry) error {
	switch record := entry.Record.(type) {
	case session.Adopted:
		r.adopted = record.Messages
	case session.Message:
		if record.Message.Role == model.Assistant {
			r.asked()
		}
		before := r.messages
		r.message(record.Message)
		if record.Message.Role == model.User && r.messages > before && r.adopted == 0 {
			r.asks = cmp.Or(entry.Time, time.Now())
		}
	}
	if e := entry.Event(); e != nil && e.Parent == "" && !e.Delta && r.failed == nil { // not those of a sub-agent
		r.event(*e)
	}
	return r.failed
}

// event logs an event. Texts of the model and of the tools are recorded as messages.
func (r *Record) event(e event.Event) {
	r.seq = e.Seq
	switch e.Kind {
	case event.Prompted, event.Steered:
		r.prompt(e)
	case event.Thinking:
		r.thought += e.Text
	case event.ToolCall:
		r.line(e.Time, "tool_call id=%s route=%s", e.Call.ID, e.Call.Name)
		r.lists.RecordCall(e.Call)
	case event.ToolResult:
		if items, ok := r.lists.After(e.Result); ok {
			r.fail(r.writeTodos(items))
			r.line(e.Time, "todos total=%d", len(items))
		}
	case event.Changed:
		r.facts.Merge(*e.Facts)
	case event.Failed:
		r.asked()
		r.line(e.Time, "error %s", e.Fault.Error())
	case event.Denied:
		r.line(e.Time, "denied %s: %s", e.Denial.Tool, e.Denial.Reason)
	case event.TurnBegan:
		r.asks = cmp.Or(e.Time, time.Now())
		r.asked()
	case event.Ended:
		r.asks = time.Time{}
		if u := e.End.Usage; u != nil {
			r.line(e.Time, "usage prompt=%d completion=%d", u.Input, u.Output)
		}
		r.turn, r.thought = nil, ""
		r.fail(r.flush())
		r.fail(r.mark())
	}
}

// asked logs the request to the model, if there was one.
func (r *Record) asked() {
	if !r.asks.IsZero() {
		r.line(r.asks, "request provider=%s apiKind=%s model=%s messages=%d", r.provider(), r.kind, r.facts.Model,
			r.messages)
	}
	r.asks = time.Time{}
}

// mark writes the current position.
func (r *Record) mark() error {
	at := position{Seq: r.seq, JSON: r.size, Messages: r.messages}
	for file, size := range map[*os.File]*int64{r.history: &at.History, r.log: &at.Log} {
		offset, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		*size = offset
	}
	data, err := json.Marshal(at)
	if err != nil {
		return err
	}
	return workspace.WriteDerived(filepath.Join(r.dir, positionFile), data, 0o600)
}

// prompt records the message of a person. The texts that a host has added become messages of the system.
func (r *Record) prompt(e event.Event) {
	for _, b := range e.Blocks {
		switch {
		case b.Media != "":
			r.say("user", "["+b.Media+" "+b.Name+"]")
		case strings.HasPrefix(b.Name, "@"):
			r.say("system", b.Text)
			name, _, _ := strings.Cut(b.Name, "\n")
			r.line(e.Time, "with the message: %s", name)
		default:
			r.say("user", b.Text)
			r.line(e.Time, "user input, %d characters", len([]rune(b.Text)))
		}
	}
}

// say writes a message with a text.
func (r *Record) say(role, text string) {
	r.write(role, xnl.Object{{Key: "content", Value: text}})
}

// message records a message as the model gets it. A person's message was recorded when it was accepted, unless it was
// adopted.
func (r *Record) message(m model.Message) {
	adopted := r.adopted > 0
	r.adopted = max(r.adopted-1, 0)
	switch {
	case r.failed != nil:
	case m.Role == model.Assistant:
		r.answer(m)
	case adopted && textOf(m, model.Text) != "":
		r.say("user", textOf(m, model.Text))
	default:
		r.results(m)
	}
	r.turn = append(r.turn, m)
}

// textOf returns the texts of one kind in a message.
func textOf(m model.Message, kind model.Kind) string {
	var b strings.Builder
	for _, block := range m.Blocks {
		if block.Kind == kind {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// answer writes an answer of the model. If its text contains calls, the content is the text as the model wrote it.
func (r *Record) answer(m model.Message) {
	thought := textOf(m, model.Thinking)
	r.thinks = r.thinks || thought != ""
	if !r.thinks { // the messages of some agents do not contain it
		thought = r.thought
	}
	r.thought = ""
	content, blocks := textOf(xnlcall.AsWritten(m, r.turn), model.Text), xnlcall.RawText(m)
	if blocks == "" {
		content = textOf(m, model.Text)
	}
	calls, raw := []any{}, []any{}
	for _, b := range m.Blocks {
		if b.Kind != model.Call || b.Name == tool.RejectedName {
			continue
		}
		calls = append(calls, xnl.Object{
			{Key: "id", Value: xnlcall.ID(b)}, {Key: "name", Value: b.Name}, {Key: "input", Value: inputOf(b)},
		})
		if blocks == "" {
			raw = append(raw, xnl.Object{
				{Key: "id", Value: b.ID},
				{Key: "name", Value: b.Name},
				{Key: "arguments", Value: cmp.Or(b.Broken, string(b.Input))},
			})
		}
	}
	fields := xnl.Object{
		{Key: "reasoning_content", Value: thought},
		{Key: "content", Value: content},
		{Key: "toolCalls", Value: calls},
		{Key: "rawToolCalls", Value: raw},
	}
	if len(raw) > 0 {
		form, _ := json.MarshalIndent(raw, "", "  ") // of texts
		blocks = string(form)
	}
	if blocks != "" {
		fields = append(fields, xnl.Member{Key: "rawToolCallsStr", Value: blocks})
	}
	r.write("assistant", fields)
}

// inputOf returns the input of a call.
func inputOf(b model.Block) any {
	input, err := xnl.FromJSON(b.Input)
	if b.Broken != "" || err != nil {
		return xnl.Object{{Key: "__raw", Value: cmp.Or(b.Broken, string(b.Input))}}
	}
	return input
}

// results writes the results of tools: one message for all if the calls were text, otherwise one for each.
func (r *Record) results(m model.Message) {
	told, notes := xnlcall.ResultTexts(m, r.turn)
	if told != "" {
		r.write("user", xnl.Object{{Key: "name", Value: "tool_results"}, {Key: "content", Value: told}})
	}
	for _, note := range notes {
		r.say("user", note)
	}
	if told != "" || len(notes) > 0 {
		return
	}
	for _, b := range m.Blocks {
		if b.Kind == model.Result {
			r.write("tool", xnl.Object{
				{Key: "name", Value: b.Name}, {Key: "content", Value: b.Text}, {Key: "toolCallId", Value: b.ID},
			})
		}
	}
}

// write appends a message, with its members in their order.
func (r *Record) write(role string, fields xnl.Object) {
	_, err := r.history.WriteString(xnl.Record(role, fields) + "\n")
	r.fail(err)
	form, err := json.Marshal(append(xnl.Object{{Key: "role", Value: role}}, fields...))
	r.fail(err)
	r.ended = append(r.ended, form)
	r.messages++
}

// flush appends the new messages to history.json in one write, so that the file is always valid JSON.
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

// Task is an entry of the model's list of tasks.
type Task struct {
	ID      string `json:"id"`
	Content string `json:"content"`
	Status  string `json:"status"` // pending, in_progress, completed
	Active  string `json:"activeForm"`
}

// Lists holds the lists of tasks that calls without a result want to write, by the id of the call.
type Lists map[string][]Task

// RecordCall records a call of any tool.
func (l *Lists) RecordCall(c *event.Call) {
	tasks, ok := tasksOf(c)
	if !ok {
		return
	}
	if *l == nil {
		*l = Lists{}
	}
	(*l)[c.ID] = tasks
}

// After returns the list that a call has written, given its result. ok is false if the call failed or writes no list.
func (l Lists) After(r *event.Result) (tasks []Task, ok bool) {
	tasks, ok = l[r.ID]
	delete(l, r.ID)
	return tasks, ok && !r.Failed
}

// tasksOf returns the list of tasks that a call writes. ok is false if it writes none.
func tasksOf(c *event.Call) (tasks []Task, ok bool) {
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
	all := struct {
		Items []Task         `json:"items"`
		Stats tool.TodoStats `json:"stats"`
	}{Items: items}
	for _, t := range items {
		all.Stats.Add(t.Status)
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return workspace.WriteDerived(filepath.Join(r.dir, "todos.json"), append(data, '\n'), 0o600)
}
