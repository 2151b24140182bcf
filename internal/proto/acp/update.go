package acp

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"omniagent/internal/proto/jsonrpc"
)

// Kind says what an Update tells.
type Kind string

// The kinds. The comment names the members of Update that matter.
const (
	Said       Kind = "user"       // Blocks, Message
	Answer     Kind = "agent"      // Text, Message
	Thought    Kind = "thought"    // Text, Message
	Called     Kind = "tool"       // Tool
	Planned    Kind = "plan"       // Steps
	Optioned   Kind = "options"    // Options
	Titled     Kind = "title"      // Title, Time
	Used       Kind = "usage"      // Usage
	Noticed    Kind = "notice"     // Severity, Text
	Compacted  Kind = "compaction" // Message: its id
	Conditions Kind = "state"      // State, Stop, Error; version 2 alone
)

// Update is something that a client is told of a session, in a form for all versions.
type Update struct {
	Kind     Kind
	Message  string // the id of the message that it belongs to
	Text     string
	Blocks   []Block
	Tool     *Tool
	Steps    []Step
	Options  *Options
	Title    string
	Time     string
	Usage    *Usage
	Severity string // info, warning, error
	State    string // running, idle, requires_action
	Stop     string
	Error    *jsonrpc.Error
}

// The statuses of a tool's call.
const (
	Pending    = "pending"
	InProgress = "in_progress"
	Completed  = "completed"
	FailedCall = "failed"
)

// Tool is a call, or what is new of it. Empty members are as they were.
type Tool struct {
	ID        string
	New       bool // it is told for the first time
	Name      string
	Title     string
	Kind      string // read, edit, search, execute, think, fetch, other
	Status    string
	Content   []Content
	Locations []string
	Input     json.RawMessage
	Parent    string // the call whose sub-agent made this one
	Terminal  *Terminal
}

// Content is a text or a diff.
type Content struct {
	Text string
	Diff *Diff
}

// Diff is what becomes of a file.
type Diff struct {
	Path string
	Old  *string // nil: there is no such file yet
	New  string
	Part bool // Old and New are pieces of it
}

// Terminal is what a command printed. It ran in no terminal of the client.
type Terminal struct {
	Command string
	Dir     string
	Output  *string // all of it; nil: not yet
	Exit    *int
	Ended   bool
}

// Step is one of a plan.
type Step struct {
	Text   string
	Status string // pending, in_progress, completed
}

// Usage is how full the context is, and what the session cost until now.
type Usage struct {
	Used, Size int64
	CostUSD    *float64
}

// Choice is one of an option's.
type Choice struct{ ID, Name, About string }

// Options are what holds in a session and can be changed.
type Options struct {
	Mode, Model   string
	Modes, Models []Choice
}

// Encoder writes what a client is told.
type Encoder struct {
	Version Version
	Client  Client
}

// object is a JSON object with its members in an order; fields that are nil are left out.
type object map[string]any

// Update is the lines of one update, none where this client is not told such things.
func (e Encoder) Update(session string, u Update) [][]byte {
	var lines [][]byte
	for _, o := range e.update(u) {
		lines = append(lines, jsonrpc.Notification("session/update", object{"sessionId": session, "update": o}))
	}
	return lines
}

func (e Encoder) update(u Update) []object {
	switch u.Kind {
	case Said:
		return e.said(u)
	case Answer:
		return e.chunk("agent_message_chunk", u)
	case Thought:
		return e.chunk("agent_thought_chunk", u)
	case Called:
		return e.tool(u.Tool)
	case Planned:
		return e.plan(u.Steps)
	case Optioned:
		changed := []object{{"sessionUpdate": "config_option_update", "configOptions": e.options(*u.Options)}}
		if e.Version == V1 {
			changed = append(changed, object{"sessionUpdate": "current_mode_update", "currentModeId": u.Options.Mode})
		}
		return changed
	case Titled:
		return []object{{"sessionUpdate": "session_info_update", "title": u.Title, "updatedAt": u.Time}}
	case Used:
		o := object{"sessionUpdate": "usage_update", "used": u.Usage.Used, "size": u.Usage.Size}
		if u.Usage.CostUSD != nil {
			o["cost"] = object{"amount": *u.Usage.CostUSD, "currency": "USD"}
		}
		return []object{o}
	case Noticed:
		if e.Version == V1 && !e.Client.Notices || strings.TrimSpace(u.Text) == "" {
			return nil
		}
		return []object{{"sessionUpdate": "notice", "severity": u.Severity, "title": u.Text}}
	case Compacted:
		if e.Version == V1 && !e.Client.Compactions {
			return nil
		}
		return []object{{"sessionUpdate": "compaction_update", "compactionId": u.Message, "status": Completed}}
	case Conditions:
		return e.state(u)
	}
	return nil
}

func (e Encoder) state(u Update) []object {
	if e.Version == V1 {
		return nil
	}
	o := object{"sessionUpdate": "state_update", "state": u.State}
	if u.Stop != "" {
		o["stopReason"] = u.Stop
	}
	if u.Error != nil {
		o["error"] = u.Error
	}
	return []object{o}
}

func (e Encoder) chunk(name string, u Update) []object {
	if u.Text == "" {
		return nil
	}
	return []object{message(object{"sessionUpdate": name, "content": textOf(u.Text)}, u.Message)}
}

func message(o object, id string) object {
	if id != "" {
		o["messageId"] = id
	}
	return o
}

// said is a message of the user: as a whole in version 2, in pieces before.
func (e Encoder) said(u Update) []object {
	var all []object
	for _, b := range u.Blocks {
		o := textOf(b.Text)
		switch {
		case strings.HasPrefix(b.Media, "image/"):
			o = object{"type": "image", "mimeType": b.Media, "data": base64.StdEncoding.EncodeToString(b.Data)}
		case b.Media != "":
			name := b.Name
			if !strings.Contains(name, ":") {
				name = "attachment:" + name
			}
			o = object{"type": "resource", "resource": object{
				"uri": name, "mimeType": b.Media,
				"blob": base64.StdEncoding.EncodeToString(b.Data),
			}}
		}
		all = append(all, o)
	}
	if e.Version == V2 {
		return []object{{"sessionUpdate": "user_message", "messageId": u.Message, "content": all}}
	}
	for i, o := range all {
		all[i] = message(object{"sessionUpdate": "user_message_chunk", "content": o}, u.Message)
	}
	return all
}

func textOf(text string) object { return object{"type": "text", "text": text} }

func (e Encoder) plan(steps []Step) []object {
	entries := []object{}
	for _, s := range steps {
		entries = append(entries, object{"content": s.Text, "priority": "medium", "status": s.Status})
	}
	if e.Version == V2 {
		return []object{{"sessionUpdate": "plan_update", "plan": object{
			"type": "items", "planId": "plan",
			"entries": entries,
		}}}
	}
	return []object{{"sessionUpdate": "plan", "entries": entries}}
}

// tool is a call. What a command prints is told in a terminal where the client makes one of its own: with messages in
// version 2, with _meta in version 1. Where it does not, the output is text.
func (e Encoder) tool(t *Tool) []object {
	o := e.call(t)
	switch {
	case e.Version == V2:
		o["sessionUpdate"] = "tool_call_update"
		if t.Terminal != nil {
			return []object{terminalUpdate(t), o}
		}
	case t.New:
		o["sessionUpdate"] = "tool_call"
	default:
		o["sessionUpdate"] = "tool_call_update"
	}
	return []object{o}
}

// call is a call without the word that tells what it is an update of.
func (e Encoder) call(t *Tool) object {
	o := object{"toolCallId": t.ID}
	for name, word := range map[string]string{"name": t.Name, "title": t.Title, "kind": t.Kind, "status": t.Status} {
		if word != "" {
			o[name] = word
		}
	}
	if len(t.Input) > 0 {
		o["rawInput"] = t.Input
	}
	if t.Locations != nil {
		places := []object{}
		for _, path := range t.Locations {
			places = append(places, object{"path": path})
		}
		o["locations"] = places
	}
	shown := []object{}
	for _, c := range t.Content {
		shown = append(shown, e.content(c)...)
	}
	meta := object{}
	if t.Terminal != nil {
		shown = append(shown, e.terminal(t, meta)...)
	}
	if t.Content != nil || len(shown) > 0 {
		o["content"] = shown
	}
	if t.Parent != "" {
		meta["omniagent"] = object{"parentToolCallId": t.Parent}
	}
	if len(meta) > 0 {
		o["_meta"] = meta
	}
	return o
}

// terminal is what stands in the call for its terminal, whose id is that of the call.
func (e Encoder) terminal(t *Tool, meta object) []object {
	term := t.Terminal
	window := []object{{"type": "terminal", "terminalId": t.ID}}
	if e.Version == V2 {
		if t.New {
			return window
		}
		return nil
	}
	if !e.Client.Terminals {
		if term.Output == nil || strings.TrimSpace(*term.Output) == "" {
			return nil
		}
		return []object{{"type": "content", "content": textOf(fenced(*term.Output))}}
	}
	if t.New {
		meta["terminal_info"] = object{"terminal_id": t.ID, "cwd": term.Dir}
	}
	if term.Output != nil {
		meta["terminal_output"] = object{
			"terminal_id": t.ID,
			"data":        strings.ReplaceAll(strings.ReplaceAll(*term.Output, "\r\n", "\n"), "\n", "\r\n"),
		}
	}
	if term.Ended {
		meta["terminal_exit"] = object{"terminal_id": t.ID, "exit_code": term.Exit, "signal": nil}
	}
	if !t.New {
		return nil
	}
	return window
}

func terminalUpdate(t *Tool) object {
	term := t.Terminal
	o := object{"sessionUpdate": "terminal_update", "terminalId": t.ID}
	if term.Command != "" {
		o["command"] = term.Command
	}
	if term.Dir != "" {
		o["cwd"] = term.Dir
	}
	if term.Output != nil {
		o["output"] = object{"data": base64.StdEncoding.EncodeToString([]byte(*term.Output))}
	}
	if term.Ended {
		exit := object{}
		if term.Exit != nil {
			exit["exitCode"] = *term.Exit
		}
		o["exitStatus"] = exit
	}
	return o
}

// fenced puts a text between fences that are longer than any in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "console\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

func (e Encoder) content(c Content) []object {
	d := c.Diff
	if d == nil {
		return []object{{"type": "content", "content": textOf(c.Text)}}
	}
	if e.Version == V1 {
		return []object{{"type": "diff", "path": d.Path, "oldText": d.Old, "newText": d.New}}
	}
	operation := "modify"
	if d.Old == nil {
		operation = "add"
	}
	o := object{"type": "diff", "changes": []object{{"operation": operation, "path": d.Path, "fileType": "text"}}}
	if !d.Part {
		o["patch"] = object{"format": "git_patch", "text": patch(*d)}
	}
	return []object{o}
}

// options are the settings of a session, as a client shows them.
func (e Encoder) options(s Options) []object {
	id := "id"
	if e.Version == V2 {
		id = "configId"
	}
	all := []object{}
	add := func(name, title, about, current string, choices []Choice) {
		if len(choices) == 0 {
			return
		}
		list := []object{}
		for _, c := range choices {
			list = append(list, described(object{"value": c.ID, "name": c.Name}, c.About))
		}
		all = append(all, object{
			id: name, "name": title, "description": about, "category": name, "type": "select", "currentValue": current,
			"options": list,
		})
	}
	add("mode", "Mode", "What may run without a question", s.Mode, s.Modes)
	add("model", "Model", "The model that answers", s.Model, s.Models)
	return all
}

func described(o object, about string) object {
	if about != "" {
		o["description"] = about
	}
	return o
}
