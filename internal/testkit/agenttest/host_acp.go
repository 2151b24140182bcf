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
)

// Editor drives a conversation over the Agent Client Protocol, version 1.
func Editor(built *Built) Host {
	return Host{
		Name: "acp", soft: true, queue: map[bool]string{false: "session/cancel drops what waits"},
		unsaid: map[int]string{
			8:  noAbilities,
			18: "the protocol has no request for steering",
		},
		open: func(t *testing.T, s Subject, w wish) side {
			args := append([]string{"acp", "--permission-mode", string(w.mode), "--sandbox", "off"},
				s.agentArgs(w.in)...)
			e := &editor{rpc: &rpc{host: launch(t, s, w, *built, args...)}}
			e.must("initialize", object{"protocolVersion": 1, "clientCapabilities": object{}})
			if w.resume != "" {
				e.name = w.resume
				e.must("session/load", object{"sessionId": e.name, "cwd": w.in.work, "mcpServers": []any{}})
				return e
			}
			e.name, _ = e.must("session/new", object{"cwd": w.in.work, "mcpServers": []any{}})["sessionId"].(string)
			return e
		},
	}
}

// rpc is a client of a host that speaks JSON-RPC.
type rpc struct {
	*host
	sent int
}

// message is a JSON-RPC message of a host.
type message struct {
	ID     any    `json:"id"`
	Method string `json:"method"`
	Params object `json:"params"`
	Result object `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// request sends a request and returns its id.
func (r *rpc) request(method string, params object) (string, error) {
	r.sent++
	id := fmt.Sprint("c", r.sent)
	return id, r.frame(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

// response waits for the response to a request.
func (r *rpc) response(id string) message {
	r.t.Helper()
	line, _ := r.await("the answer to "+id, 0, func(line string) bool {
		var m message
		return strings.Contains(line, `"`+id+`"`) && json.Unmarshal([]byte(line), &m) == nil && m.ID == id &&
			m.Method == ""
	})
	var m message
	_ = json.Unmarshal([]byte(line), &m)
	return m
}

// call sends a request and returns its result.
func (r *rpc) call(method string, params object) (object, error) {
	r.t.Helper()
	id, err := r.request(method, params)
	if err != nil {
		return nil, err
	}
	m := r.response(id)
	if m.Error != nil {
		return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
	}
	return m.Result, nil
}

func (r *rpc) must(method string, params object) object {
	r.t.Helper()
	result, err := r.call(method, params)
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

func (r *rpc) notify(method string, params object) error {
	return r.frame(object{"jsonrpc": "2.0", "method": method, "params": params})
}

type editor struct{ *rpc }

func (e *editor) id() string { return e.name }

func (e *editor) next() func(context.Context) (event.Event, error) { return e.host.next(e.id) }

func (e *editor) send(text string) error {
	said := []any{object{"type": "text", "text": text}}
	_, err := e.request("session/prompt", object{"sessionId": e.name, "prompt": said})
	return err
}

func (e *editor) steer(string) (bool, error) { return false, errCannot }

func (e *editor) interrupt(bool) error {
	return e.notify("session/cancel", object{"sessionId": e.name})
}

func (e *editor) set(c agent.Change) error {
	if c.Model != "" {
		return errCannot
	}
	_, err := e.call("session/set_mode", object{"sessionId": e.name, "modeId": string(c.Mode)})
	return err
}

// shown reports whether the client was asked. A question whose turn is cancelled first may never reach it.
func (e *editor) shown(ask event.Ask) bool {
	return slices.ContainsFunc(e.printed(), func(line string) bool { return asksAbout(line, ask) })
}

func asksAbout(line string, ask event.Ask) bool {
	return strings.Contains(line, `"session/request_permission"`) && strings.Contains(line, ask.Tool.ID)
}

// answer answers the question about a call. It also answers one that was answered or taken back.
func (e *editor) answer(ask event.Ask, option string) error {
	if ask.Tool == nil {
		return errCannot
	}
	line, _ := e.await("the question about "+ask.Tool.ID, 0, func(line string) bool {
		return asksAbout(line, ask)
	})
	var m struct {
		ID     json.RawMessage `json:"id"`
		Params struct {
			Options []struct {
				ID   string `json:"optionId"`
				Kind string `json:"kind"`
			} `json:"options"`
		} `json:"params"`
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return err
	}
	kind := "allow_once"
	if option == event.Deny {
		kind = "reject_once"
	}
	for _, o := range m.Params.Options {
		if o.Kind == kind {
			outcome := object{"outcome": object{"outcome": "selected", "optionId": o.ID}}
			return e.frame(object{"jsonrpc": "2.0", "id": m.ID, "result": outcome})
		}
	}
	return fmt.Errorf("it offers no %s: %s", kind, line)
}

// said returns what the client got.
func (e *editor) said(int64) string {
	var b strings.Builder
	for _, line := range e.printed() {
		var m struct {
			Params struct {
				Update struct {
					Kind    string `json:"sessionUpdate"`
					Content struct{ Text string }
				}
			}
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Params.Update.Kind == "agent_message_chunk" {
			b.WriteString(m.Params.Update.Content.Text)
		}
	}
	return b.String()
}
