package acp

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"omniagent/internal/kit/text"
	"omniagent/internal/wire/jsonrpc"
)

// Kind is the kind of an Update.
type Kind string

// The kinds, with the fields of Update that they use.
const (
	UserMessage    Kind = "user"       // Blocks, Message
	Answer         Kind = "agent"      // Text, Message
	Thinking       Kind = "thought"    // Text, Message
	ToolCall       Kind = "tool"       // Tool
	Plan           Kind = "plan"       // Steps
	OptionsChanged Kind = "options"    // Options
	SessionTitle   Kind = "title"      // Title, Time
	ContextUsage   Kind = "usage"      // Usage
	Notice         Kind = "notice"     // Severity, Text
	Compaction     Kind = "compaction" // Message is its id
	Conditions     Kind = "state"      // State, Stop, Error; version 2 only
	Commands       Kind = "commands"   // Text has their names, one a line
	TerminalOutput Kind = "terminal"   // Tool, with the id of the terminal; version 2 only
)

// Update is a change of a session, in a form for all versions.
type Update struct {
	Kind     Kind
	Message  string // the id of the message that it belongs to
	Text     string
	Whole    bool // Text is the whole message, not a piece
	Blocks   []Block
	Tool     *Tool
	Steps    []Step
	Options  *Options
	Commands []Command
	Title    string
	Time     string
	Usage    *Usage
	Severity string // info, warning, error
	State    string // running, idle, requires_action
	Stop     string
	Error    *jsonrpc.Error
}

// Command is a word that a message may begin with, after a slash.
type Command struct{ Name, About string }

// The statuses of a tool call.
const (
	Pending    = "pending"
	InProgress = "in_progress"
	Completed  = "completed"
	FailedCall = "failed"
)

// Tool is a tool call, or a change of one. Empty fields are unchanged.
type Tool struct {
	ID        string
	New       bool // the client does not know it yet
	Name      string
	Title     string
	Kind      string // read, edit, search, execute, think, fetch, other
	Status    string
	Content   []Content
	Locations []string
	Input     json.RawMessage
	Parent    string // the call whose sub-agent made this one
	Terminal  *Terminal

	// The fields below only come from agents.
	Output string // its result
	Code   string // why it did not run, in the agent's word
	More   bool   // Content and the output of Terminal are appended
}

// Content is a text, a diff, or the id of a terminal.
type Content struct {
	Text     string
	Diff     *Diff
	Terminal string
}

// Diff is a change of a file.
type Diff struct {
	Path string
	Old  *string // nil for a new file
	New  string
	Part bool // Old and New are excerpts
}

// Terminal is the output of a command that did not run in a terminal of the client.
type Terminal struct {
	Command string
	Dir     string
	Output  *string // all output; nil before the first of it
	Exit    *int
	Ended   bool
}

// Step is a step of a plan.
type Step struct {
	Text   string
	Status string // pending, in_progress, completed
}

// Usage says how full the context is, and what the session has cost so far.
type Usage struct {
	Used, Size int64
	CostUSD    *float64
}

// Choice is a choice of an option.
type Choice struct{ ID, Name, About string }

// Options are the current settings of a session and the choices.
type Options struct {
	Mode, Model   string
	Modes, Models []Choice
}

// Encoder encodes updates for a client.
type Encoder struct {
	Version Version
	Client  Client
}

// object is a JSON object.
type object map[string]any

// text adds a member, unless it is empty.
func (o object) text(name, value string) object {
	if value != "" {
		o[name] = value
	}
	return o
}

// Update returns the lines of one update, or none if this client does not support it.
func (e Encoder) Update(session string, u Update) [][]byte {
	var lines [][]byte
	for _, o := range e.update(u) {
		lines = append(lines, jsonrpc.Notification("session/update", object{"sessionId": session, "update": o}))
	}
	return lines
}

func (e Encoder) update(u Update) []object {
	switch u.Kind {
	case UserMessage:
		return e.userMessage(u)
	case Answer:
		return e.chunk("agent_message_chunk", u)
	case Thinking:
		return e.chunk("agent_thought_chunk", u)
	case ToolCall:
		return e.tool(u.Tool)
	case Plan:
		return e.plan(u.Steps)
	case OptionsChanged:
		changed := []object{{"sessionUpdate": "config_option_update", "configOptions": e.options(*u.Options)}}
		if e.Version == V1 {
			changed = append(changed, object{"sessionUpdate": "current_mode_update", "currentModeId": u.Options.Mode})
		}
		return changed
	case Commands:
		offered := []object{}
		for _, c := range u.Commands {
			offered = append(offered, object{"name": c.Name, "description": c.About})
		}
		return []object{{"sessionUpdate": "available_commands_update", "availableCommands": offered}}
	case SessionTitle:
		return []object{{"sessionUpdate": "session_info_update", "title": u.Title, "updatedAt": u.Time}}
	case ContextUsage:
		o := object{"sessionUpdate": "usage_update", "used": u.Usage.Used, "size": u.Usage.Size}
		if u.Usage.CostUSD != nil {
			o["cost"] = object{"amount": *u.Usage.CostUSD, "currency": "USD"}
		}
		return []object{o}
	case Notice:
		if e.Version == V1 && !e.Client.Notices || strings.TrimSpace(u.Text) == "" {
			return nil
		}
		return []object{{"sessionUpdate": "notice", "severity": u.Severity, "title": u.Text}}
	case Compaction:
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
	o := object{"sessionUpdate": "state_update", "state": u.State}.text("stopReason", u.Stop)
	if u.Error != nil {
		o["error"] = u.Error
	}
	return []object{o}
}

func (e Encoder) chunk(name string, u Update) []object {
	if u.Text == "" {
		return nil
	}
	return []object{object{"sessionUpdate": name, "content": textOf(u.Text)}.text("messageId", u.Message)}
}

// userMessage returns a message of the user: as a whole in version 2, in pieces in version 1.
func (e Encoder) userMessage(u Update) []object {
	var all []object
	for _, b := range u.Blocks {
		all = append(all, block(b))
	}
	if e.Version == V2 {
		return []object{{"sessionUpdate": "user_message", "messageId": u.Message, "content": all}}
	}
	for i, o := range all {
		all[i] = object{"sessionUpdate": "user_message_chunk", "content": o}.text("messageId", u.Message)
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

// tool returns a call. The output of a command goes to a terminal if the client supports that: in messages in version
// 2, in _meta in version 1. Otherwise the output is text.
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

// call returns a call without the member sessionUpdate.
func (e Encoder) call(t *Tool) object {
	o := object{"toolCallId": t.ID}.text("name", t.Name).text("title", t.Title).text("kind", t.Kind).
		text("status", t.Status)
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

// terminal returns the parts of the call for its terminal, which has the id of the call.
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
		return []object{{"type": "content", "content": textOf(text.Fenced("console", *term.Output))}}
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
	o := object{"sessionUpdate": "terminal_update", "terminalId": t.ID}.text("command", term.Command).
		text("cwd", term.Dir)
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

// options returns the settings of a session for display.
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
			list = append(list, object{"value": c.ID, "name": c.Name}.text("description", c.About))
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
