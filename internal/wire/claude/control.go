package claude

import (
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
)

// Control is the body of a control_request. Which fields are set depends on the subtype.
type Control struct {
	Subtype     string          `json:"subtype"`
	Tool        string          `json:"tool_name,omitempty"` // can_use_tool
	Display     string          `json:"display_name,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"` // of the tool, or of a hook
	Description string          `json:"description,omitempty"`
	Suggestions []Update        `json:"permission_suggestions,omitempty"`
	Path        string          `json:"blocked_path,omitempty"`
	Reason      string          `json:"decision_reason,omitempty"`
	Call        string          `json:"tool_use_id,omitempty"`
	Callback    string          `json:"callback_id,omitempty"`     // hook_callback
	Server      string          `json:"server_name,omitempty"`     // mcp_message
	Elicits     string          `json:"mcp_server_name,omitempty"` // elicitation: the server that asks
	Message     json.RawMessage `json:"message,omitempty"`         // of mcp_message; a text in elicitation
	Mode        string          `json:"mode,omitempty"`            // set_permission_mode
	Model       string          `json:"model,omitempty"`           // set_model
	MessageID   string          `json:"message_uuid,omitempty"`    // cancel_async_message
	*Greeting                   // initialize
}

// Greeting is the part of initialize that we send to the CLI.
type Greeting struct {
	Hooks   map[string][]HookMatcher `json:"hooks"`
	Servers []string                 `json:"sdkMcpServers,omitempty"`
	Helpers map[string]Helper        `json:"agents,omitempty"`
}

// Helper is a sub-agent.
type Helper struct {
	Description string   `json:"description"`
	Prompt      string   `json:"prompt"`
	Tools       []string `json:"tools,omitzero"` // nil for all
	Model       string   `json:"model,omitempty"`
}

// Permission is the answer to can_use_tool.
type Permission struct {
	Behavior  string          `json:"behavior"` // allow or deny
	Message   string          `json:"message,omitempty"`
	Interrupt bool            `json:"interrupt,omitempty"`
	Input     json.RawMessage `json:"updatedInput,omitempty"`
	Updates   []Update        `json:"updatedPermissions,omitempty"`
	Call      string          `json:"toolUseID,omitempty"`
}

// Update is a change of the permissions.
type Update struct {
	Type        string `json:"type"`
	Rules       []Rule `json:"rules,omitempty"`
	Behavior    string `json:"behavior,omitempty"`
	Mode        string `json:"mode,omitempty"`
	Destination string `json:"destination,omitempty"`
}

// Allow returns an update that allows calls until the conversation ends.
func Allow(rules ...Rule) Update {
	return Update{Type: "addRules", Rules: rules, Behavior: "allow", Destination: "session"}
}

// Rule matches the calls of a tool, or some of them.
type Rule struct {
	Tool    string `json:"toolName"`
	Content string `json:"ruleContent,omitempty"`
}

func (r Rule) String() string {
	if r.Content == "" {
		return r.Tool
	}
	return r.Tool + "(" + r.Content + ")"
}

// RuleOf parses a rule: Tool or Tool(content).
func RuleOf(text string) Rule {
	name, content, _ := strings.Cut(text, "(")
	return Rule{name, strings.TrimSuffix(content, ")")}
}

// response is the inner part of a control_response.
type response struct {
	Subtype string `json:"subtype"` // success or error
	ID      string `json:"request_id"`
	Body    any    `json:"response,omitempty"`
	Error   string `json:"error,omitempty"`
}

// OK answers a request with a result; body may be nil.
func OK(id string, body any) []byte { return respond(response{Subtype: "success", ID: id, Body: body}) }

// No answers a request with an error.
func No(id, why string) []byte { return respond(response{Subtype: "error", ID: id, Error: why}) }

func respond(r response) []byte {
	return encode(struct {
		Type     string   `json:"type"`
		Response response `json:"response"`
	}{"control_response", r})
}

// Unsupported returns the error for a request of an unknown kind.
func Unsupported(subtype string) string {
	return "Unsupported control request subtype: " + clipped(subtype)
}

// Ask returns a control_request.
func Ask(id string, c Control) []byte {
	return encode(struct {
		Type    string  `json:"type"`
		ID      string  `json:"request_id"`
		Request Control `json:"request"`
	}{"control_request", id, c})
}

// Withdraw returns the line that cancels one of our requests.
func Withdraw(id string) []byte {
	return encode(struct {
		Type string `json:"type"`
		ID   string `json:"request_id"`
	}{"control_cancel_request", id})
}

// MessageAnswer is the answer to mcp_message.
type MessageAnswer struct {
	Response json.RawMessage `json:"mcp_response"`
}

// Question is a question to the person, in the host's form.
type Question struct {
	Ask     event.Ask
	Request Control
}

// NewQuestion converts a question to the form of the host.
func NewQuestion(a event.Ask) Question {
	if a.Tool == nil {
		return Question{a, Control{
			Subtype: "can_use_tool", Tool: event.FormTool, Display: event.FormTool, Call: a.ID,
			Input: encode(event.FormOf(a)),
		}}
	}
	c := a.Tool
	r := Control{
		Subtype: "can_use_tool", Tool: c.Name, Display: c.Name, Input: c.Object(), Description: c.Command,
		Suggestions: suggestions(c), Reason: a.Text, Call: c.ID,
	}
	if c.Kind == event.Write {
		r.Description, r.Path = c.Path, c.Path
	}
	return Question{a, r}
}

// suggestions returns the permissions that the host may offer to remember: this exact command or this tool, or for
// files the mode that allows changing them.
func suggestions(c *event.Call) []Update {
	rule := Rule{Tool: c.Name}
	switch c.Kind {
	case event.Shell:
		if c.Command == "" || strings.ContainsAny(c.Command, "\n\r") || strings.HasSuffix(c.Command, "*") {
			return nil
		}
		rule.Content = c.Command
	case event.Write:
		return []Update{{Type: "setMode", Mode: "acceptEdits", Destination: "session"}}
	}
	return []Update{Allow(rule)}
}

// Verdict returns the host's answer. mode is set if the answer changes it; notes are for people.
func (q Question) Verdict(r Reply) (a event.Reply, mode *Mode, notes []string) {
	no := func(why string) (event.Reply, *Mode, []string) {
		return event.Reply{Option: q.option(false), Text: why}, nil, append(notes, why)
	}
	if r.Error != "" {
		return no("the host could not answer: " + r.Error)
	}
	var said Permission
	if json.Unmarshal(r.Body, &said) != nil {
		return no("the host's answer could not be read")
	}
	switch said.Behavior {
	case "deny":
		return event.Reply{Option: q.option(false), Text: said.Message, Stop: said.Interrupt}, nil, nil
	case "allow":
	default:
		return no("the host's answer is neither allow nor deny")
	}
	if q.Ask.Tool == nil {
		return q.reply(said.Input), nil, nil
	}
	a = event.Reply{Option: q.option(true)}
	if len(said.Input) > 0 && string(said.Input) != "null" && !text.SameJSON(said.Input, q.Ask.Tool.Object()) {
		var fields map[string]json.RawMessage
		if json.Unmarshal(said.Input, &fields) != nil {
			return no("the host's updatedInput is not an object")
		}
		a.Input = said.Input
	}
	for _, u := range said.Updates {
		switch {
		case u.Type == "addRules" && u.Behavior == "allow":
			for _, r := range u.Rules {
				a.Rules = append(a.Rules, r.String())
			}
			if u.Destination != "session" && u.Destination != "" {
				notes = append(notes, "what the host wants remembered in "+clipped(u.Destination)+
					" is remembered to the end of this conversation")
			}
		case u.Type == "setMode":
			m, why := ModeOf(u.Mode)
			if why != "" {
				return no("the host's answer sets the permission mode " + clipped(u.Mode) + ": " + why)
			}
			a.Mode, mode = m.Mode, &m
		case u.Type == "addDirectories":
			notes = append(notes,
				"the host's answer adds directories, which stay closed in this conversation: --add-dir opens them")
		default: // removing a permission is not supported
			return no("the host's answer changes permissions by " + clipped(u.Type+" "+u.Behavior) +
				", which cannot be kept here")
		}
	}
	return a, mode, notes
}

// reply returns the answer to a question that is not about a tool.
func (q Question) reply(input json.RawMessage) event.Reply {
	var filled struct {
		Answers map[string]json.RawMessage `json:"answers"`
	}
	_ = json.Unmarshal(input, &filled)
	var words string
	_ = json.Unmarshal(filled.Answers[q.Ask.Text], &words)
	if slices.Contains(q.Ask.Options, words) {
		return event.Reply{Option: words, Input: input}
	}
	return event.Reply{Text: words, Input: input}
}

// option returns the question's own option for yes, or no.
func (q Question) option(yes bool) string {
	words := []string{"deny", "reject", "no", "cancel"}
	if yes {
		words = []string{"allow", "accept", "approve", "yes"}
	}
	for _, w := range words {
		if slices.Contains(q.Ask.Options, w) {
			return w
		}
	}
	return words[0]
}
