// Package order holds streams against the rules of the dialect that they are in, whatever they say. The tests of
// everything that speaks one share it.
//
// It promises that a stream which breaks a rule is an error that names the line. It refuses to know an agent.
package order

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Flat is the order of the flat dialect: init first and once, unless the call never began; ids unique; a call directly
// followed by its result; text of sub-agents marked; a question about a call directly behind the call, and once; usage
// above zero; usage, result, message_stop at the end of each turn; an error only in front of a result that is one; no
// two equal lines of text.
//
// Long because it is the list of the rules.
func Flat(lines []string) error {
	var (
		begun, stopped, failed bool
		open                   string // the call that waits for its result
		ids                    = map[string]bool{}
		said                   = map[string]bool{}
		asked, ended           = map[string]bool{}, map[string]bool{}
		last                   string
		lastCall               string // the line before is the call of that id
	)
	for i, line := range lines {
		wrong := func(format string, args ...any) error {
			return fmt.Errorf("line %d: %s: %s", i+1, fmt.Sprintf(format, args...), line)
		}
		if !utf8.ValidString(line) {
			return wrong("no UTF-8")
		}
		var m struct {
			Type    string          `json:"type"`
			Subtype string          `json:"subtype"`
			ID      string          `json:"id"`
			UseID   string          `json:"tool_use_id"`
			Ask     string          `json:"question_id"`
			Options []string        `json:"options"`
			Parent  string          `json:"parent_tool_use_id"`
			Input   json.RawMessage `json:"input"`
			Content *string         `json:"content"`
			Message *string         `json:"message"`
			IsError *bool           `json:"is_error"`
			In      *int64          `json:"input_tokens"`
			Out     *int64          `json:"output_tokens"`
			Usage   *struct {
				In  int64 `json:"input_tokens"`
				Out int64 `json:"output_tokens"`
			} `json:"usage"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return wrong("%v", err)
		}
		init := m.Type == "system" && m.Subtype == "init"
		switch {
		case init && begun:
			return wrong("a second init")
		case init && i > 0:
			return wrong("init is not the first line")
		case i == 0 && !init && (m.Type != "system" || m.Subtype != "error") && m.Type != "error":
			return wrong("the first line is not an init")
		}
		begun = begun || init
		if m.Parent == "" && open != "" && m.Type != "tool_result" && m.Type != "interrupt" && m.Type != "system" {
			return wrong("the call %s has no result yet", open)
		}
		switch m.Type {
		case "text", "tool_result":
			if m.Content == nil {
				return wrong("content is not text")
			}
		case "error":
			if m.Message == nil {
				return wrong("message is not text")
			}
		}
		switch m.Type {
		case "text", "thinking":
			if said[line] {
				return wrong("an equal line was dropped by the GUI")
			}
			said[line] = true
		case "tool_use":
			if ids[m.ID] || m.ID == "" {
				return wrong("the id is not unique")
			}
			if len(m.Input) == 0 || m.Input[0] != '{' {
				return wrong("input is not an object")
			}
			ids[m.ID] = true
			if m.Parent == "" {
				open = m.ID
			}
		case "tool_result":
			if !ids[m.UseID] {
				return wrong("a result without its call")
			}
			ended[m.UseID] = true
			if m.Parent == "" {
				if open != m.UseID {
					return wrong("the open call is %q", open)
				}
				open = ""
			}
		case "usage":
			if m.In == nil || m.Out == nil || *m.In+*m.Out == 0 {
				return wrong("no usage")
			}
		case "error":
			failed = true
		case "result":
			if m.IsError == nil || failed && !*m.IsError {
				return wrong("after an error the result is one")
			}
			if m.Usage != nil && (m.Usage.In == 0 && m.Usage.Out == 0) {
				return wrong("a usage of zero would be taken for a compaction")
			}
			if m.Usage != nil && last != "usage" {
				return wrong("usage comes directly before")
			}
			failed = false
		case "message_stop":
			if last != "result" {
				return wrong("result comes directly before")
			}
		case "system":
			if m.Subtype == "permission_request" {
				switch {
				case m.Ask == "" || asked[m.Ask] || m.Options == nil:
					return wrong("not one question with its options")
				case m.UseID != "" && m.UseID == open && lastCall != open:
					return wrong("the question does not follow its call")
				case m.UseID != "" && (!ids[m.UseID] || ended[m.UseID]):
					return wrong("a question about no call that waits")
				}
				asked[m.Ask] = true
			}
		case "interrupt":
		default:
			return wrong("an unknown type")
		}
		stopped, last, lastCall = m.Type == "message_stop", m.Type, ""
		if m.Type == "tool_use" {
			lastCall = m.ID
		}
	}
	if len(lines) > 0 && !stopped {
		return fmt.Errorf("it does not end with message_stop")
	}
	return nil
}
