package order

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// nested is a line of the nested dialect, as far as its place matters.
type nested struct {
	Type    string  `json:"type"`
	Subtype string  `json:"subtype"`
	UUID    string  `json:"uuid"`
	Session *string `json:"session_id"`
	IsError *bool   `json:"is_error"`
	Result  *string `json:"result"`
	Errors  []string
	Message json.RawMessage `json:"message"`
	Parent  *string         `json:"parent_tool_use_id"`
	Denials json.RawMessage `json:"permission_denials"`
	Usage   *struct {
		In *int64 `json:"input_tokens"`
	} `json:"usage"`
}

type block struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Text    string          `json:"text"`
	Input   json.RawMessage `json:"input"`
	Of      string          `json:"tool_use_id"`
	Content *string         `json:"content"`
}

// scene is what the lines so far have begun.
type scene struct {
	within bool // a turn runs
	calls  []string
	ended  map[string]bool // calls with a result
	seen   map[string]bool // identifiers of lines
}

// Nested is the order of the nested dialect: init first of every turn, and result its last line and its only one,
// unless there is no conversation; each call with exactly one result, behind it and in the turn; lines of an assistant
// with an id of their message, one block each; an identifier of its own on every line; a failed turn that says why; no
// line of a type that a host would not know.
func Nested(lines []string) error {
	s := scene{ended: map[string]bool{}, seen: map[string]bool{}}
	for i, line := range lines {
		var l nested
		err := json.Unmarshal([]byte(line), &l)
		switch {
		case err != nil:
		case !utf8.ValidString(line):
			err = fmt.Errorf("no UTF-8")
		case len(lines) == 1 && l.Type == "result": // of a conversation that could not begin
			err = l.whole()
		default:
			err = s.next(l)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w: %s", i+1, err, line)
		}
	}
	if s.within {
		return fmt.Errorf("the last turn has no result")
	}
	return nil
}

func (s *scene) next(l nested) error {
	switch l.Type {
	// they stand anywhere, and have an identifier of another kind
	case "control_request", "control_response", "control_cancel_request", "command_lifecycle":
		return nil
	case "user", "assistant", "system", "stream_event", "result":
	default:
		return fmt.Errorf("an unknown type")
	}
	if l.UUID == "" || s.seen[l.UUID] {
		return fmt.Errorf("no identifier of its own")
	}
	s.seen[l.UUID] = true
	init := l.Type == "system" && l.Subtype == "init"
	switch {
	case l.Session == nil:
		return fmt.Errorf("no session_id")
	case init && s.within:
		return fmt.Errorf("a second init in a turn")
	case !init && !s.within && (l.Type != "system" || l.Subtype != "status"): // a mode may change between turns
		return fmt.Errorf("the first line of a turn is not an init")
	}
	s.within = s.within || init
	switch l.Type {
	case "assistant", "user":
		return s.message(l)
	case "result":
		s.within = false
		for _, id := range s.calls {
			if !s.ended[id] {
				return fmt.Errorf("the call %s has no result", id)
			}
		}
		s.calls = nil
		return l.whole()
	}
	return nil
}

func (s *scene) message(l nested) error {
	var m struct {
		ID      string  `json:"id"`
		Role    string  `json:"role"`
		Content []block `json:"content"`
	}
	if err := json.Unmarshal(l.Message, &m); err != nil || m.Role != l.Type || l.Type == "assistant" && m.ID == "" ||
		len(m.Content) != 1 {
		return fmt.Errorf("no message with a role, an id and one block: %v", err)
	}
	b := m.Content[0]
	if l.Parent != nil && !slices.Contains(s.calls, *l.Parent) {
		return fmt.Errorf("a sub-agent without its call")
	}
	switch b.Type {
	case "text", "thinking":
	case "tool_use":
		if b.ID == "" || b.Name == "" || slices.Contains(s.calls, b.ID) || len(b.Input) == 0 || b.Input[0] != '{' {
			return fmt.Errorf("no call with an id of its own, a name and an object")
		}
		s.calls = append(s.calls, b.ID)
		delete(s.ended, b.ID)
	case "tool_result":
		if !slices.Contains(s.calls, b.Of) || s.ended[b.Of] || b.Content == nil {
			return fmt.Errorf("not the one result of a call")
		}
		s.ended[b.Of] = true
	default:
		return fmt.Errorf("an unknown block")
	}
	return nil
}

// whole says what a result lacks.
func (l nested) whole() error {
	reasons := []string{
		"success", "error_during_execution", "error_max_turns", "error_max_budget_usd",
		"error_max_structured_output_retries",
	}
	switch {
	case !slices.Contains(reasons, l.Subtype):
		return fmt.Errorf("an unknown subtype")
	case l.IsError == nil || l.Usage == nil || l.Usage.In == nil || len(l.Denials) == 0 || l.Denials[0] != '[':
		return fmt.Errorf("no is_error, usage or permission_denials")
	case l.Subtype == "success" && l.Result == nil, l.Subtype != "success" && (len(l.Errors) == 0 || !*l.IsError):
		return fmt.Errorf("nothing is said of how it went")
	}
	return nil
}
