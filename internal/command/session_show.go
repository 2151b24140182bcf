package command

import (
	"context"
	"fmt"
	"strings"

	"omniagent/internal/contract"
	"omniagent/internal/event"
	"omniagent/internal/session"
)

type sessionMessage struct {
	Role  string   `json:"role"`
	Text  string   `json:"text"`
	Calls []string `json:"calls" doc:"tools, with their arguments"`
}

type sessionTodo struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

type sessionData struct {
	sessionRow
	Mode        string                             `json:"permission_mode"`
	Input       int64                              `json:"input_tokens"`
	Output      int64                              `json:"output_tokens"`
	Calls       int                                `json:"tool_calls"`
	Denials     int                                `json:"denials"`
	Compactions int                                `json:"compactions"`
	ForkedFrom  *string                            `json:"forked_from"`
	Damaged     int                                `json:"damaged" doc:"lines of its file that could not be read"`
	Walls       *event.Walls                       `json:"walls" doc:"what held its commands, as it was tried; null: nothing is on record"`
	Todos       contract.Foreign[[]sessionTodo]    `json:"todos"`
	History     []contract.Foreign[sessionMessage] `json:"history" doc:"what the model sees now"`
}

// PlainText is what a person looks for: the figures, then what was said.
func (d sessionData) PlainText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n%s (%s) in %s\n%d messages, %d turns, %d calls, %d compactions; %d tokens in, %d out, %.4f USD\n", d.ID, d.Title, d.Model, d.Provider, d.Cwd,
		d.Messages, d.Turns, d.Calls, d.Compactions, d.Input, d.Output, d.CostUSD)
	if d.Walls != nil {
		fmt.Fprintf(&b, "Walls: %s, network %s.\n", d.Walls.Name, d.Walls.Network)
		for _, hole := range d.Walls.Holes {
			fmt.Fprintf(&b, "  They do not stop: %s\n", hole)
		}
	}
	for _, m := range d.History {
		fmt.Fprintf(&b, "\n%s:\n", m.Value.Role)
		for _, text := range append([]string{m.Value.Text}, m.Value.Calls...) {
			if text != "" {
				fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
			}
		}
	}
	return b.String()
}

func sessionShow() *contract.Command {
	return sessionCommand(contract.Command{
		Path: "session show", Summary: "show one conversation as the model sees it", Danger: contract.Safe,
		Output: contract.TypeOf[sessionData](), Params: []contract.Param{sessionParam()},
		Exits:    []contract.Exit{{Code: contract.Success, When: "it is shown"}},
		Examples: []contract.Example{{Description: "One of them", Command: "omniagent session show sess-1a2b3c4d"}},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			store, err := sessionStore(c)
			if err != nil {
				return contract.Result{}, err
			}
			v, err := store.Show(c.String("id"))
			if err != nil {
				return contract.Result{}, err
			}
			defer v.Close()
			data := describeSession(v)
			return contract.Result{Data: data, Meta: sandboxMeta(data.Walls)}, nil
		},
	})
}

func describeSession(v *session.View) sessionData {
	messages, s := v.Messages(), v.Info()
	d := sessionData{
		sessionRow: sessionRowOf(s), Mode: s.Mode, Input: s.Usage.Context(), Output: s.Usage.Output, Calls: s.Calls, Denials: s.Denials,
		Compactions: s.Compactions, Damaged: s.Damaged, History: []contract.Foreign[sessionMessage]{},
	}
	if s.Walls != "" {
		d.Walls = &event.Walls{Name: s.Walls, Network: s.Network, Holes: []string{}}
		if s.Holes != "" {
			d.Walls.Holes = strings.Split(s.Holes, "\n")
		}
	}
	if s.Begin.Forked != nil {
		d.ForkedFrom = &s.Begin.Forked.ID
	}
	d.Todos.Value = []sessionTodo{}
	for _, t := range s.Todos {
		d.Todos.Value = append(d.Todos.Value, sessionTodo{t.Content, t.Status})
	}
	for _, m := range messages {
		for _, spoken := range session.Speak(m) {
			shown := sessionMessage{Role: spoken.Role, Text: spoken.Content, Calls: []string{}}
			for _, call := range spoken.Calls {
				shown.Calls = append(shown.Calls, call.Name+" "+string(call.Input))
			}
			d.History = append(d.History, contract.Foreign[sessionMessage]{Value: shown})
		}
	}
	return d
}
