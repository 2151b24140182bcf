package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	wire "omniagent/internal/wire/acp"
)

// patience is how long a call waits for a question about it before it is reported as running.
const patience = 100 * time.Millisecond

// longestOutput limits how much of a tool's output a client gets.
const longestOutput = 256 << 10

// narrator converts events to updates, and keeps track of what was sent.
type narrator struct {
	mark    string // prefix of message ids, which differs between processes
	dir     string
	past    bool // replaying; files may have changed since
	mask    func(string) string
	window  int64
	used    int64 // last reported tokens of the context
	cost    float64
	costs   bool
	number  int
	message string                   // the id of the current message
	kind    event.Kind               // its kind: text or thinking
	calls   map[string]*narratedCall // calls without a result
}

// narratedCall is a call without a result.
//
//	pending ──── question ───▶ pending, with a question ── allowed ──▶ in_progress ── result ──▶ completed, failed
//	   │                          └───────── denied ─────────▶ failed             ▲
//	   └── patience runs out, without a question ──────────────────────────────────┘
type narratedCall struct {
	event.Call
	tool      wire.Tool
	since     time.Time
	question  string // the id of the question about it, or empty
	announced bool   // reported as running
	rejected  bool   // reported as denied
	change    []wire.Content
}

func newNarrator(mark, dir string, mask func(string) string) narrator {
	if mask == nil {
		mask = func(s string) string { return s }
	}
	return narrator{mark: mark, dir: dir, mask: mask, calls: map[string]*narratedCall{}}
}

// boundary ends the current message.
func (n *narrator) boundary() { n.message, n.kind = "", "" }

// event returns the updates for an event.
func (n *narrator) event(e event.Event) []wire.Update {
	switch e.Kind {
	case event.Text, event.Thinking:
		if e.Parent != "" { // a sub-agent's text is the result of its call
			return nil
		}
		return n.text(e)
	case event.Answered:
		return n.usageUpdate(e)
	case event.ToolCall:
		n.boundary()
		return []wire.Update{{Kind: wire.ToolCall, Tool: n.newCall(e.Call.ForHosts(), e.Parent)}}
	case event.ToolResult:
		n.boundary()
		return n.result(e.Result)
	case event.Denied:
		return n.denial(e.Denial)
	case event.Retry:
		return []wire.Update{{Kind: wire.Notice, Severity: "warning", Text: e.Retry.Sentence()}}
	case event.Failed:
		return []wire.Update{{Kind: wire.Notice, Severity: "warning", Text: text.OneLine(e.Fault.Message, 4000)}}
	case event.Compacted:
		n.number++
		return []wire.Update{{Kind: wire.Compaction, Message: n.mark + "-c" + strconv.Itoa(n.number)}}
	}
	return nil
}

// text handles the pieces of a text. It ignores a whole text, which was sent in pieces before.
func (n *narrator) text(e event.Event) []wire.Update {
	if !e.Delta {
		n.boundary()
		return nil
	}
	if n.kind != e.Kind {
		n.number++
		n.kind, n.message = e.Kind, n.mark+"-"+strconv.Itoa(n.number)
	}
	kind := wire.Answer
	if e.Kind == event.Thinking {
		kind = wire.Thinking
	}
	return []wire.Update{{Kind: kind, Message: n.message, Text: e.Text}}
}

func (n *narrator) usageUpdate(e event.Event) []wire.Update {
	u := e.Answer.Usage
	if e.Parent != "" || u == nil || n.window <= 0 || u.Input+u.Output <= 0 {
		return nil
	}
	n.used = u.Input + u.Output
	return []wire.Update{{Kind: wire.ContextUsage, Usage: n.usage()}}
}

func (n *narrator) usage() *wire.Usage {
	u := &wire.Usage{Used: n.used, Size: n.window}
	if n.costs {
		u.CostUSD = new(n.cost)
	}
	return u
}

// end handles the end of a turn, when the cost is known.
func (n *narrator) end(end *event.End) []wire.Update {
	n.boundary()
	var updates []wire.Update
	if end.Usage != nil && end.Usage.CostUSD != nil {
		n.cost, n.costs = n.cost+*end.Usage.CostUSD, true
		if n.used > 0 {
			updates = append(updates, wire.Update{Kind: wire.ContextUsage, Usage: n.usage()})
		}
	}
	return updates
}

// newCall returns the update for a new call.
func (n *narrator) newCall(e *event.Call, parent string) *wire.Tool {
	t := wire.Tool{
		ID: e.ID, New: true, Name: e.Name, Title: n.titleOf(e), Kind: kindOf(e.Kind), Status: wire.Pending,
		Input: valid(e.Input), Parent: parent, Locations: n.places(e),
	}
	c := &narratedCall{Call: *e, since: time.Now()}
	if e.Kind == event.Shell {
		t.Terminal = &wire.Terminal{Command: e.Command, Dir: n.dir}
	} else {
		c.change = n.preview(e)
		t.Content = c.change
	}
	c.tool = t
	n.calls[e.ID] = c
	return &t
}

// question returns the call that a question is about.
func (n *narrator) question(q *event.Ask) *wire.Tool {
	c := n.calls[q.Tool.ID]
	if c == nil { // not sent before
		n.newCall(q.Tool, "")
		c = n.calls[q.Tool.ID]
	}
	c.question, c.announced = q.ID, false
	t := c.tool
	if t.Terminal == nil {
		if again := n.preview(&c.Call); again != nil { // nothing has run yet, so the preview is exact
			c.change = again
		}
		t.Content = c.change
	}
	return &t
}

// allowed returns the update that a call runs after its question was answered.
func (n *narrator) allowed(question string) []wire.Update {
	for _, c := range n.calls {
		if c.question == question && !c.announced {
			c.announced = true
			return []wire.Update{{Kind: wire.ToolCall, Tool: &wire.Tool{ID: c.ID, Status: wire.InProgress}}}
		}
	}
	return nil
}

// unannounced reports whether there are calls to report as running.
func (n *narrator) unannounced() bool {
	for _, c := range n.calls {
		if c.question == "" && !c.announced {
			return true
		}
	}
	return false
}

// running returns updates for the calls that run without a question.
func (n *narrator) running() []wire.Update {
	var updates []wire.Update
	for _, id := range slices.Sorted(maps.Keys(n.calls)) {
		if c := n.calls[id]; c.question == "" && !c.announced && time.Since(c.since) >= patience {
			c.announced = true
			updates = append(updates,
				wire.Update{Kind: wire.ToolCall, Tool: &wire.Tool{ID: id, Status: wire.InProgress}})
		}
	}
	return updates
}

func (n *narrator) result(r *event.Result) []wire.Update {
	c := n.calls[r.ID]
	delete(n.calls, r.ID)
	if c != nil && c.rejected { // already sent
		return nil
	}
	t := &wire.Tool{ID: r.ID, Status: wire.Completed}
	if r.Failed {
		t.Status = wire.FailedCall
	}
	if c == nil {
		c = &narratedCall{Call: event.Call{ID: r.ID, Name: r.Name}}
		t.New, t.Title, t.Name = true, cmp.Or(r.Name, "A tool"), r.Name
	}
	output := clipped(r.Output)
	switch {
	case c.Kind == event.Shell:
		t.Terminal = &wire.Terminal{Output: &output, Exit: r.ExitCode, Ended: true}
		if t.New {
			t.Terminal.Dir = n.dir
		}
	case r.Change != nil && !r.Failed && (r.Change.Old == nil || *r.Change.Old != r.Change.New):
		t.Content = []wire.Content{{Diff: &wire.Diff{Path: r.Change.Path, Old: r.Change.Old, New: r.Change.New}}}
	case c.change != nil && !r.Failed: // the diff shows it
	case output != "":
		t.Content = []wire.Content{{Text: output}}
	}
	updates := []wire.Update{{Kind: wire.ToolCall, Tool: t}}
	if steps := planOf(c.Input); steps != nil && !r.Failed {
		updates = append(updates, wire.Update{Kind: wire.Plan, Steps: steps})
	}
	return updates
}

// denial handles a denied call. If the call has a result, that says so too.
func (n *narrator) denial(d *event.Denial) []wire.Update {
	c := n.calls[d.CallID]
	if c == nil {
		return nil
	}
	c.announced, c.rejected = true, true
	return []wire.Update{{Kind: wire.ToolCall, Tool: &wire.Tool{
		ID: c.ID, Status: wire.FailedCall, Content: []wire.Content{{Text: "It did not run: " + d.Reason}},
	}}}
}

// planOf returns the plan in the input of a call, or nil. Each agent has its own name for such a tool, but all send a
// list of steps with a status, so the form of the input decides.
func planOf(input json.RawMessage) []wire.Step {
	type item struct {
		Content     string `json:"content"`
		Step        string `json:"step"`
		Description string `json:"description"`
		Status      string `json:"status"`
	}
	var in struct {
		Todos []item `json:"todos"`
		Plan  []item `json:"plan"`
		Items []item `json:"items"` // of SysBuiltIn.todo_write
	}
	if json.Unmarshal(input, &in) != nil || in.Todos == nil && in.Plan == nil && in.Items == nil {
		return nil
	}
	steps := []wire.Step{}
	for _, i := range slices.Concat(in.Todos, in.Plan, in.Items) {
		switch i.Status {
		case "":
			return nil // a list of something else
		case "pending", "in_progress", "completed":
			steps = append(steps, wire.Step{Text: cmp.Or(i.Content, i.Step, i.Description), Status: i.Status})
		} // skip others, such as cancelled steps
	}
	return steps
}

// kindOf returns the protocol's kind of a tool.
func kindOf(k event.ToolKind) string {
	return cmp.Or(map[event.ToolKind]string{
		event.Shell: "execute", event.Read: "read", event.Write: "edit", event.Web: "fetch", event.Search: "search",
		event.Agent: "think",
	}[k], "other")
}

// titleOf describes a call in one line.
func (n *narrator) titleOf(e *event.Call) string {
	title := e.Command
	if title == "" {
		rel, _ := pathname.In(n.dir, e.Path)
		in := event.Texts(e.Input, "description", "pattern", "query", "url", "path", "prompt")
		title = cmp.Or(e.Name, "A tool") + " " + cmp.Or(rel, e.Path, e.HandsOver(),
			in["description"], in["pattern"], in["query"], in["url"], in["path"], in["prompt"])
	}
	return text.OneLine(title, 200)
}

// places returns the files that a call reads or changes.
func (n *narrator) places(e *event.Call) []string {
	if e.Path == "" {
		return nil
	}
	return []string{n.absolute(e.Path)}
}

func (n *narrator) absolute(path string) string {
	return filepath.Clean(pathname.From(n.dir, path))
}

func clipped(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= longestOutput {
		return s
	}
	return strings.ToValidUTF8(s[:longestOutput/2], "") + fmt.Sprintf("\n… %d bytes are left out …\n",
		len(s)-longestOutput) +
		strings.ToValidUTF8(s[len(s)-longestOutput/2:], "")
}

func valid(input json.RawMessage) json.RawMessage {
	if len(input) == 0 || !json.Valid(input) {
		return nil
	}
	return input
}
