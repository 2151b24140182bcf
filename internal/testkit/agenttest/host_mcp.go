//go:build unix

package agenttest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
)

// Delegate drives a conversation with the calls of another agent, over the Model Context Protocol.
func Delegate(built *Built) Host {
	const each = "its client names the mode with each call, and nothing between calls"
	return Host{
		Name: "mcp", soft: true, mute: true, idle: "there is no call to cancel",
		single: "a call is a turn, and its client waits for the end of it",
		unsaid: map[int]string{
			1: "a call is a turn: a second one of the same session is refused meanwhile",
			4: "nothing waits: a call is a turn",
			5: each, 6: each, 7: each, 8: noAbilities, 9: "nobody can be asked: what needs an answer is denied",
			10: "nobody can be asked: what needs an answer is denied",
			13: "its client gets the answer with the end of the call, so there is nothing to read meanwhile",
			14: "nothing waits: a call is a turn", 17: "its client hears nothing between calls",
			18: "the protocol has no request for steering",
			19: "a server continues the sessions that it began, and after the end of its input it is another server",
		},
		open: func(t *testing.T, s Subject, w wish) side {
			args := []string{"mcp", "--allow-mode", "yolo"}
			if s.Driver == nil {
				args = append(args, "--provider", "anthropic", "--api-base", w.in.model.URL())
			}
			d := &delegate{rpc: &rpc{host: launch(t, s, w, *built, args...)}, s: s, w: w}
			d.name = w.resume
			d.must("initialize", object{
				"protocolVersion": "2025-06-18", "capabilities": object{}, "clientInfo": object{
					"name":    "laws",
					"version": "1",
				},
			})
			if err := d.notify("notifications/initialized", object{}); err != nil {
				t.Fatal(err)
			}
			return d
		},
	}
}

type delegate struct {
	*rpc
	s         Subject
	w         wish
	last      string // request
	cancelled bool
}

// id returns the name of the only journal but that of the second conversation: the client learns it at the end of the
// first call.
func (d *delegate) id() string {
	if d.name == "" {
		found, _ := filepath.Glob(filepath.Join(d.p.store().Dir(), "*.jsonl"))
		found = slices.DeleteFunc(found, func(name string) bool { return filepath.Base(name) == d.p.other+".jsonl" })
		if len(found) == 1 {
			return strings.TrimSuffix(filepath.Base(found[0]), ".jsonl")
		}
	}
	return d.name
}

func (d *delegate) next() func(context.Context) (event.Event, error) { return d.host.next(d.id) }

func (d *delegate) send(text string) (err error) {
	name := "native"
	arguments := object{"prompt": text}
	if d.s.Driver != nil {
		name = d.s.Driver.Name()
	} else {
		arguments["model"] = "claude-sonnet-5-5"
	}
	arguments["agent"] = name
	arguments["mode"] = map[setting.Approval]string{setting.Yolo: "yolo", setting.AutoEdit: "edit"}[d.w.mode]
	if d.last != "" || d.w.resume != "" {
		arguments["session"] = d.id()
	}
	if d.last != "" && !d.cancelled { // one turn at a time; a call that was cancelled has no answer
		d.response(d.last)
	}
	d.cancelled = false
	d.last, err = d.request("tools/call", object{"name": "ask_agent", "arguments": arguments})
	return err
}

func (d *delegate) steer(string) (bool, error) { return false, errCannot }
func (d *delegate) set(agent.Change) error     { return errCannot }

func (d *delegate) interrupt(bool) error {
	d.cancelled = true
	return d.notify("notifications/cancelled", object{"requestId": d.last, "reason": "not needed"})
}

func (d *delegate) answer(event.Ask, string) error { return errCannot }

// Lines drives a conversation as a person who types lines does.
func Lines(built *Built) Host {
	const fixed = "its mode is chosen at the start"
	return Host{
		Name: "chat --plain", soft: true, fixed: fixed, idle: "it ends the conversation",
		single: "a pipe is not read while the agent works",
		unsaid: map[int]string{
			1: "a pipe is not read while the agent works", 4: "nothing waits: a pipe is not read while the agent works",
			6: fixed, 7: fixed, 8: noAbilities, 14: "nothing waits: a pipe is not read while the agent works",
			18: "a pipe is not read while the agent works",
		},
		open: func(t *testing.T, s Subject, w wish) side {
			args := []string{
				"chat", "--plain", "--cwd", w.in.work, "--sandbox", "off", "--permission-mode",
				modeFlag(w.mode),
			}
			args = append(args, s.agentArgs(w.in)...)
			name := w.resume
			if name == "" {
				name = newName(t)
				args = append(args, "--session-id", name)
			} else {
				args = append(args, "--resume", name)
			}
			p := &person{launch(t, s, w, *built, args...)}
			p.name = name
			return p
		},
	}
}

type person struct{ *host }

func (p *person) id() string { return p.name }

func (p *person) next() func(context.Context) (event.Event, error) { return p.host.next(p.id) }

func (p *person) send(text string) error {
	_, err := fmt.Fprintln(p.in, text)
	return err
}

func (p *person) steer(string) (bool, error) { return false, errCannot }
func (p *person) set(agent.Change) error     { return errCannot }
func (p *person) interrupt(bool) error       { return p.cmd.Process.Signal(syscall.SIGINT) }

func (p *person) answer(_ event.Ask, option string) error {
	word := "y"
	if option == event.Deny {
		word = "no"
	}
	_, err := fmt.Fprintln(p.in, word)
	return err
}
