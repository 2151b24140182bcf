package acp

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"omniagent/internal/kit/text"
)

// Hello returns the parameters of initialize, which offer version 2. They have the members of both versions; an agent
// reads those of its own version. An agent uses its own tools for files and terminals that are not offered.
func Hello(name, version string, offered Offered) any {
	info, form := object{"name": name, "version": version}, object{"form": object{}}
	return object{
		"protocolVersion": V2,
		"clientInfo":      info, "info": info,
		"clientCapabilities": object{
			"fs":       object{"readTextFile": offered.Files, "writeTextFile": offered.Files},
			"terminal": offered.Terminals, "elicitation": form,
			"session": object{"notices": object{}, "compaction": object{}}, "_meta": object{"terminal_output": true},
		},
		"capabilities": object{"elicitation": form},
	}
}

// Agent is what an agent declares about itself to a client.
type Agent struct {
	Version Version
	About
	Load, Resume bool // it can resume a session: Load repeats its messages, Resume does not
	HTTP         bool // it accepts MCP servers with an address
}

// ReadAgent reads the response to initialize. ok is false if the version is unknown.
func ReadAgent(result json.RawMessage) (a Agent, ok bool) {
	type set struct{}
	type session struct {
		Resume, Fork, AdditionalDirectories *set
		Prompt                              struct{ Image *set }
		MCP                                 struct{ HTTP *set }
	}
	type about struct{ Name, Title, Version string }
	var r struct {
		ProtocolVersion   int
		Info              about
		AgentInfo         about
		AuthMethods       []struct{ ID, MethodID, Name, Description string }
		Capabilities      struct{ Session session }
		AgentCapabilities struct {
			LoadSession         bool
			PromptCapabilities  struct{ Image bool }
			MCPCapabilities     struct{ HTTP bool }
			SessionCapabilities session
		}
	}
	if !text.Lenient(result, &r) || r.ProtocolVersion != int(V1) && r.ProtocolVersion != int(V2) {
		return Agent{}, false
	}
	a.Version = Version(r.ProtocolVersion)
	info, s := r.AgentInfo, r.AgentCapabilities.SessionCapabilities
	a.Load, a.Resume = r.AgentCapabilities.LoadSession, s.Resume != nil
	a.Images, a.HTTP = r.AgentCapabilities.PromptCapabilities.Image, r.AgentCapabilities.MCPCapabilities.HTTP
	if a.Version == V2 {
		info, s = r.Info, r.Capabilities.Session
		a.Resume, a.Images, a.HTTP = true, s.Prompt.Image != nil, s.MCP.HTTP != nil
	}
	a.Name, a.Title, a.About.Version = info.Name, info.Title, info.Version
	a.Dirs, a.Fork = s.AdditionalDirectories != nil, s.Fork != nil
	for _, m := range r.AuthMethods[:min(1, len(r.AuthMethods))] {
		a.Login = &Method{ID: cmp.Or(m.ID, m.MethodID), Name: m.Name, About: m.Description}
	}
	return a, true
}

// Server is an MCP server for the agent.
type Server struct {
	Name, Command string
	Args          []string
	Env           map[string]string
	URL           string
	Headers       map[string]string
}

// Opening returns the parameters of a request that opens a session; session is empty for a new one.
func (a Agent) Opening(session, dir string, servers []Server) any {
	list := []object{}
	for _, s := range servers {
		o := object{"name": s.Name}
		if s.URL != "" {
			o["type"], o["url"], o["headers"] = "http", s.URL, named(s.Headers)
		} else {
			o["command"], o["args"], o["env"] = s.Command, append([]string{}, s.Args...), named(s.Env)
			if a.Version == V2 {
				o["type"] = "stdio"
			}
		}
		list = append(list, o)
	}
	return object{"cwd": dir, "mcpServers": list}.text("sessionId", session)
}

func named(values map[string]string) []variable {
	list := []variable{}
	for name, value := range values {
		list = append(list, variable{name, value})
	}
	return list
}

// Prompting returns the parameters of session/prompt.
func Prompting(session string, blocks []Block) any {
	list := []object{}
	for _, b := range blocks {
		list = append(list, block(b))
	}
	return object{"sessionId": session, "prompt": list}
}

// Canceling returns the parameters of session/cancel.
func Canceling(session string) any { return object{"sessionId": session} }

// Offer is a session as its agent describes it.
type Offer struct {
	Session string
	Options
	modeOption, modelOption string // ids of options; empty if there are separate methods
}

// Read updates f from a message about the session: the response that opens it, or an update.
func (f *Offer) Read(message json.RawMessage) {
	type choice struct {
		ID, ModelID, Value, Name, Description string
		Options                               []choice
	}
	var m struct {
		SessionID     string
		CurrentModeID string
		Modes         struct {
			CurrentModeID  string
			AvailableModes []choice
		}
		Models struct {
			CurrentModelID  string
			AvailableModels []choice
		}
		ConfigOptions []struct {
			ID, ConfigID, Category, Type string
			CurrentValue                 json.RawMessage
			Options                      []choice
		}
	}
	if !text.Lenient(message, &m) {
		return
	}
	choices := func(list []choice) (all []Choice) {
		for _, c := range list {
			for _, one := range append(c.Options, c) { // a choice may be a group of choices
				if id := cmp.Or(one.ID, one.ModelID, one.Value); id != "" {
					all = append(all, Choice{id, one.Name, one.Description})
				}
			}
		}
		return all
	}
	f.Session = cmp.Or(m.SessionID, f.Session)
	f.Mode = cmp.Or(m.CurrentModeID, m.Modes.CurrentModeID, f.Mode)
	f.Model = cmp.Or(m.Models.CurrentModelID, f.Model)
	if list := choices(m.Modes.AvailableModes); list != nil {
		f.Modes = list
	}
	if list := choices(m.Models.AvailableModels); list != nil {
		f.Models = list
	}
	for _, o := range m.ConfigOptions {
		var current string
		if json.Unmarshal(o.CurrentValue, &current) != nil || o.Type != "select" {
			continue
		}
		switch id := cmp.Or(o.ID, o.ConfigID); o.Category {
		case "mode":
			f.Mode, f.Modes, f.modeOption = current, choices(o.Options), id
		case "model":
			f.Model, f.Models, f.modelOption = current, choices(o.Options), id
		}
	}
}

// SetMode returns the request that changes the mode of the session.
func (f *Offer) SetMode(mode string) (method string, params any) {
	return f.set(f.modeOption, "session/set_mode", "modeId", mode)
}

// SetModel returns the request that changes its model.
func (f *Offer) SetModel(model string) (method string, params any) {
	return f.set(f.modelOption, "session/set_model", "modelId", model)
}

func (f *Offer) set(option, method, member, value string) (string, any) {
	if option == "" {
		return method, object{"sessionId": f.Session, member: value}
	}
	return "session/set_config_option", object{
		"sessionId": f.Session, "configId": option, "value": value, "type": "id",
	}
}

// Permission is a request for permission to a client.
type Permission struct {
	Title, Text string // the question, and the reason for it
	Tool        *Tool
	Options     []Option
}

// ReadPermission reads session/request_permission. ok is false if there are no options.
func ReadPermission(params json.RawMessage) (p Permission, ok bool) {
	var r struct {
		Title       string
		Description string
		ToolCall    *toolCall
		Subject     struct {
			Type, Command, ToolCallID string
			ToolCall                  *toolCall
		}
		Options []struct{ OptionID, Name, Kind string }
	}
	if !text.Lenient(params, &r) || len(r.Options) == 0 {
		return p, false
	}
	p.Title, p.Text, p.Tool = r.Title, r.Description, &Tool{}
	switch about := cmp.Or(r.ToolCall, r.Subject.ToolCall); {
	case about != nil:
		p.Tool = about.tool()
	case r.Subject.Type == "command":
		p.Tool = &Tool{ID: r.Subject.ToolCallID, Kind: "execute", Title: r.Subject.Command}
	}
	p.Title = cmp.Or(p.Title, p.Tool.Title)
	for _, o := range r.Options {
		p.Options = append(p.Options, Option{o.OptionID, o.Name, o.Kind})
	}
	return p, true
}

// Choose answers a request for permission with one of its options, or cancels it if option is empty.
func Choose(option string) any {
	if option == "" {
		return object{"outcome": object{"outcome": "cancelled"}}
	}
	return object{"outcome": object{"outcome": "selected", "optionId": option}}
}

// Blank is a form for a person to fill in, or with URL a page to visit.
type Blank struct {
	Text, URL string
	Fields    []Field
}

// ReadForm reads elicitation/create. ok is false if its kind is unknown.
func ReadForm(params json.RawMessage) (b Blank, ok bool) {
	var r struct {
		Mode, Message, URL string
		RequestedSchema    struct{ Properties json.RawMessage }
	}
	if !text.Lenient(params, &r) {
		return b, false
	}
	b = Blank{Text: r.Message, URL: r.URL}
	if r.Mode == "url" {
		return b, r.URL != ""
	}
	type constant struct{ Const, Title, Description string }
	for d := json.NewDecoder(bytes.NewReader(r.RequestedSchema.Properties)); ; { // keep the order of the form
		name, err := d.Token()
		id, is := name.(string)
		if err != nil || !is && name != json.Delim('{') {
			return b, r.Mode == "form" && len(b.Fields) > 0
		}
		if !is {
			continue
		}
		var p struct {
			Type, Title, Description string
			Enum                     []string
			OneOf                    []constant
			Items                    struct {
				Enum  []string
				AnyOf []constant
			}
		}
		if d.Decode(&p) != nil {
			return b, false
		}
		f := Field{ID: id, Title: p.Title, About: p.Description, Type: p.Type, Several: p.Type == "array"}
		for _, c := range append(p.OneOf, p.Items.AnyOf...) {
			f.Choices = append(f.Choices, Choice{c.Const, cmp.Or(c.Title, c.Const), c.Description})
		}
		for _, word := range append(p.Enum, p.Items.Enum...) {
			f.Choices = append(f.Choices, Choice{ID: word, Name: word})
		}
		b.Fields = append(b.Fields, f)
	}
}

// Value converts a person's answer, which may be the name of a choice, to the value of a field. ok is false if the
// answer does not fit the field.
func (f Field) Value(said string) (value any, ok bool) {
	if f.Several {
		all := []any{}
		for _, part := range strings.Split(said, ",") {
			one, ok := Field{Choices: f.Choices}.Value(strings.TrimSpace(part))
			if !ok {
				return nil, false
			}
			all = append(all, one)
		}
		return all, true
	}
	for _, c := range f.Choices {
		if said == c.ID || said == c.Name {
			return c.ID, true
		}
	}
	switch f.Type {
	case "boolean", "number", "integer":
		err := json.Unmarshal([]byte(said), &value)
		_, text := value.(string)
		return value, err == nil && !text
	}
	return said, len(f.Choices) == 0
}

// Submit answers a form. A nil content declines it.
func Submit(content map[string]any) any {
	if content == nil {
		return object{"action": "decline"}
	}
	return object{"action": "accept", "content": content}
}

// block returns a part of a message in the form of the protocol.
func block(b Block) object {
	data := base64.StdEncoding.EncodeToString(b.Data)
	switch {
	case b.Media == "":
		return textOf(b.Text)
	case strings.HasPrefix(b.Media, "image/"):
		return object{"type": "image", "mimeType": b.Media, "data": data}
	}
	name := b.Name
	if !strings.Contains(name, ":") {
		name = "attachment:" + name
	}
	return object{"type": "resource", "resource": object{"uri": name, "mimeType": b.Media, "blob": data}}
}
