//go:build unix

package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
)

const noAbilities = "abilities are asked for directly; through a host, the laws that need them try them"

// Flat drives a conversation with the flat lines of `omniagent start`.
func Flat(built *Built) Host {
	return Host{
		Name: "flat lines", soft: true, holds: true, freer: setting.Yolo, tight: setting.Default,
		queue: map[bool]string{false: "its interrupt drops what waits"},
		unsaid: map[int]string{
			7:  "its modes are taken live, and it has no frame for a model",
			8:  noAbilities,
			18: "it has no frame for steering: what is said to a turn is a message",
		},
		open: func(t *testing.T, s Subject, w wish) side {
			f := &flat{host: startLines(t, s, w, *built, modeFlag(w.mode))}
			return f
		},
	}
}

// startLines starts the program for frames.
func startLines(t *testing.T, s Subject, w wish, built Built, mode string, more ...string) *host {
	t.Helper()
	args := []string{"start", "--cwd", w.in.work, "--input-format", "stream-json", "--sandbox", "off"}
	args = append(args, s.agentArgs(w.in)...)
	args = append(append(args, "--permission-mode", mode), more...)
	name := w.resume
	if name == "" {
		name = newName(t)
		args = append(args, "--session-id", name)
	} else {
		args = append(args, "--resume", name)
	}
	if !w.mute && !slices.Contains(more, "claude") {
		args = append(args, "--questions", "host")
	}
	if !slices.Contains(more, "claude") {
		args = append(args, "--allow-bypass")
	}
	h := launch(t, s, w, built, args...)
	h.name = name
	return h
}

type flat struct{ *host }

func (f *flat) id() string { return f.name }

func (f *flat) next() func(context.Context) (event.Event, error) { return f.host.next(f.id) }

func (f *flat) send(text string) error { return f.frame(object{"type": "user", "content": text}) }

func (f *flat) steer(string) (bool, error) { return false, errCannot }

func (f *flat) interrupt(bool) error { return f.frame(object{"type": "interrupt"}) }

func (f *flat) answer(ask event.Ask, option string) error {
	id := ask.ID
	if ask.Tool != nil {
		id = ask.Tool.ID
	}
	return f.frame(object{"type": "tool_approval", "id": id, "approved": option != event.Deny})
}

func (f *flat) set(c agent.Change) error {
	if c.Model != "" {
		return errCannot
	}
	word := map[setting.Approval]string{
		setting.Yolo: "auto", setting.Default: "default", setting.DenyAll: "deny", setting.AskAll: "interactive",
	}[c.Mode]
	if word == "" {
		return errCannot
	}
	return f.frame(object{"type": "set_permission_mode", "mode": word})
}

// said is what the client was told.
func (f *flat) said(int64) string {
	var b strings.Builder
	for _, line := range f.printed() {
		var m struct {
			Type    string `json:"type"`
			Content string `json:"content"`
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Type == "text" {
			b.WriteString(m.Content)
		}
	}
	return b.String()
}

// Nested drives a conversation with the nested lines of `omniagent start --dialect claude`.
func Nested(built *Built) Host {
	return Host{
		Name: "nested lines", soft: true, holds: true,
		passes: "the agent speaks these lines itself, so they pass as they are: test/agents looks at that",
		freer:  setting.AutoEdit,
		queue:  map[bool]string{true: "its interrupt keeps what waits", false: "its interrupt drops what waits"},
		unsaid: map[int]string{
			7:  "its modes are taken live",
			8:  noAbilities,
			18: "it has no request for steering: what is said to a turn is a message",
		},
		open: func(t *testing.T, s Subject, w wish) side {
			flags := []string{
				"--dialect", "claude", "--output-format", "stream-json", "--verbose",
				"--include-partial-messages",
			}
			if !w.mute {
				flags = append(flags, "--permission-prompt-tool", "stdio")
			}
			return &nested{host: startLines(t, s, w, *built, nestedWord(w.mode), flags...)}
		},
	}
}

type nested struct {
	*host
	sent int
}

func (n *nested) id() string { return n.name }

func (n *nested) next() func(context.Context) (event.Event, error) { return n.host.next(n.id) }

func (n *nested) send(text string) error {
	return n.frame(object{
		"type": "user", "message": object{"role": "user", "content": text}, "parent_tool_use_id": nil, "session_id": "",
	})
}

func (n *nested) steer(string) (bool, error) { return false, errCannot }

// request sends a request and returns its error.
func (n *nested) request(body object, waits bool) error {
	n.sent++
	id := fmt.Sprint("r", n.sent)
	if err := n.frame(object{"type": "control_request", "request_id": id, "request": body}); err != nil || !waits {
		return err
	}
	line, _ := n.await("answer to "+id, 0, func(line string) bool {
		return strings.Contains(line, `"control_response"`) && strings.Contains(line, `"request_id":"`+id+`"`)
	})
	if !strings.Contains(line, `"subtype":"success"`) {
		return fmt.Errorf("%s", line)
	}
	return nil
}

func (n *nested) interrupt(bool) error { return n.request(object{"subtype": "interrupt"}, false) }

func (n *nested) set(c agent.Change) error {
	word := nestedWord(c.Mode)
	switch {
	case c.Model != "":
		return n.request(object{"subtype": "set_model", "model": c.Model}, true)
	case word == "":
		return errCannot
	}
	return n.request(object{"subtype": "set_permission_mode", "mode": word}, true)
}

// nestedWord returns a mode in the words of that dialect.
func nestedWord(m setting.Approval) string {
	return map[setting.Approval]string{
		setting.Yolo: "bypassPermissions", setting.Default: "default", setting.Prompt: "default",
		setting.AutoEdit: "acceptEdits",
		setting.Plan:     "plan",
	}[m]
}

func (n *nested) answer(ask event.Ask, option string) error {
	if ask.Tool == nil {
		return errCannot
	}
	line, _ := n.await("the question about "+ask.Tool.ID, 0, func(line string) bool {
		return strings.Contains(line, `"can_use_tool"`) && strings.Contains(line, `"`+ask.Tool.ID+`"`)
	})
	var m struct {
		ID string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return err
	}
	body := object{"behavior": "allow", "updatedInput": object{}}
	if option == event.Deny {
		body = object{"behavior": "deny", "message": "no"}
	}
	if option == event.Allow {
		delete(body, "updatedInput")
	}
	response := object{"subtype": "success", "request_id": m.ID, "response": body}
	return n.frame(object{"type": "control_response", "response": response})
}

// said is what the client was told in pieces.
func (n *nested) said(int64) string {
	var b strings.Builder
	for _, line := range n.printed() {
		var m struct {
			Type  string `json:"type"`
			Event struct {
				Delta struct{ Type, Text string } `json:"delta"`
			} `json:"event"`
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Type == "stream_event" && m.Event.Delta.Type == "text_delta" {
			b.WriteString(m.Event.Delta.Text)
		}
	}
	return b.String()
}
