package claude

import (
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/event"
)

// OK answers a request of the host with what it asked for; body may be nil.
func OK(id string, body any) []byte {
	type response struct {
		Subtype string `json:"subtype"`
		ID      string `json:"request_id"`
		Body    any    `json:"response,omitempty"`
	}
	return encode(struct {
		Type     string   `json:"type"`
		Response response `json:"response"`
	}{"control_response", response{"success", id, body}})
}

// No answers a request of the host with why not.
func No(id, why string) []byte {
	type response struct {
		Subtype string `json:"subtype"`
		ID      string `json:"request_id"`
		Error   string `json:"error"`
	}
	return encode(struct {
		Type     string   `json:"type"`
		Response response `json:"response"`
	}{"control_response", response{"error", id, why}})
}

// Unsupported is why a request of an unknown kind is not answered.
func Unsupported(subtype string) string {
	return "Unsupported control request subtype: " + clipped(subtype)
}

// Ask is a request of ours.
func Ask(id string, request any) []byte {
	return encode(struct {
		Type    string `json:"type"`
		ID      string `json:"request_id"`
		Request any    `json:"request"`
	}{"control_request", id, request})
}

// Withdraw takes a request of ours back.
func Withdraw(id string) []byte {
	return encode(struct {
		Type string `json:"type"`
		ID   string `json:"request_id"`
	}{"control_cancel_request", id})
}

// Message is a request of ours that carries a message to an MCP server of the host.
func Message(server string, message []byte) any {
	return struct {
		Subtype string          `json:"subtype"`
		Server  string          `json:"server_name"`
		Message json.RawMessage `json:"message"`
	}{"mcp_message", server, message}
}

// MessageAnswer is what that server said; nil: nothing, as to a notification.
func MessageAnswer(body []byte) []byte {
	var b struct {
		Response json.RawMessage `json:"mcp_response"`
	}
	if json.Unmarshal(body, &b) != nil || string(b.Response) == "null" {
		return nil
	}
	return b.Response
}

// Question is a question of ours to the person, as the host gets it.
type Question struct {
	Ask     event.Ask
	Request any
}

// update is a change of what may run.
type update struct {
	Type        string   `json:"type"`
	Rules       []rule   `json:"rules,omitempty"`
	Behavior    string   `json:"behavior,omitempty"`
	Mode        string   `json:"mode,omitempty"`
	Directories []string `json:"directories,omitempty"`
	Destination string   `json:"destination,omitempty"`
}

type rule struct {
	Tool    string `json:"toolName"`
	Content string `json:"ruleContent,omitempty"`
}

func (r rule) String() string {
	if r.Content == "" {
		return r.Tool
	}
	return r.Tool + "(" + r.Content + ")"
}

// personal is Claude Code's tool with which a question to the person is asked.
const personal = "AskUserQuestion"

type option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

type inquiry struct {
	Question string   `json:"question"`
	Header   string   `json:"header"`
	Options  []option `json:"options"`
	Several  bool     `json:"multiSelect"`
}

// NewQuestion puts a question into the form of the host.
func NewQuestion(a event.Ask) Question {
	type request struct {
		Subtype     string   `json:"subtype"`
		Tool        string   `json:"tool_name"`
		Display     string   `json:"display_name"`
		Input       any      `json:"input"`
		Description string   `json:"description,omitempty"`
		Suggestions []update `json:"permission_suggestions,omitempty"`
		Path        string   `json:"blocked_path,omitempty"`
		Reason      string   `json:"decision_reason,omitempty"`
		Call        string   `json:"tool_use_id"`
	}
	if a.Tool == nil {
		q := inquiry{Question: a.Text, Header: "Question", Options: []option{}}
		for _, o := range a.Options {
			q.Options = append(q.Options, option{Label: o})
		}
		return Question{a, request{
			Subtype: "can_use_tool", Tool: personal, Display: personal, Call: a.ID,
			Input: struct {
				Questions []inquiry `json:"questions"`
			}{[]inquiry{q}},
		}}
	}
	c := a.Tool
	r := request{
		Subtype: "can_use_tool", Tool: c.Name, Display: c.Name, Input: c.Object(), Description: c.Command,
		Suggestions: suggestions(c), Reason: a.Text, Call: c.ID,
	}
	if c.Kind == event.Write {
		r.Description, r.Path = c.Path, c.Path
	}
	return Question{a, r}
}

// suggestions are what the host may offer to remember: this very command, or this tool; of files the mode in which they
// may be changed.
func suggestions(c *event.Call) []update {
	allow := update{Type: "addRules", Rules: []rule{{Tool: c.Name}}, Behavior: "allow", Destination: "session"}
	switch c.Kind {
	case event.Shell:
		if c.Command == "" || strings.ContainsAny(c.Command, "\n\r") || strings.HasSuffix(c.Command, "*") {
			return nil
		}
		allow.Rules[0].Content = c.Command
	case event.Write:
		return []update{{Type: "setMode", Mode: "acceptEdits", Destination: "session"}}
	}
	return []update{allow}
}

// Verdict is what the host answered. Later is the mode's word, where the answer changes it; Notes are for people.
func (q Question) Verdict(r Reply) (a event.Reply, mode *Mode, notes []string) {
	no := func(why string) (event.Reply, *Mode, []string) {
		return event.Reply{Option: q.option(false), Text: why}, nil, append(notes, why)
	}
	if r.Error != "" {
		return no("the host could not answer: " + r.Error)
	}
	var said struct {
		Behavior  string          `json:"behavior"`
		Message   string          `json:"message"`
		Interrupt bool            `json:"interrupt"`
		Input     json.RawMessage `json:"updatedInput"`
		Updates   []update        `json:"updatedPermissions"`
	}
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
	if len(said.Input) > 0 && string(said.Input) != "null" && !same(said.Input, q.Ask.Tool.Object()) {
		var fields map[string]json.RawMessage
		if json.Unmarshal(said.Input, &fields) != nil {
			return no("the host's updatedInput is no object")
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
		default: // it takes something away, which would not be kept
			return no("the host's answer changes permissions by " + clipped(u.Type+" "+u.Behavior) +
				", which cannot be kept here")
		}
	}
	return a, mode, notes
}

// reply is the answer to a question that is about no tool.
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

// option is the word among the question's own that says yes, or no.
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

// same says whether two inputs are one.
func same(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	one, _ := json.Marshal(x)
	other, _ := json.Marshal(y)
	return string(one) == string(other)
}
