package sessions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/talk/session"
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
	Mode        string                            `json:"permission_mode"`
	Input       int64                             `json:"input_tokens"`
	Output      int64                             `json:"output_tokens"`
	Calls       int                               `json:"tool_calls"`
	Denials     int                               `json:"denials"`
	Compactions int                               `json:"compactions"`
	ForkedFrom  *string                           `json:"forked_from"`
	Session     *string                           `json:"agent_session" doc:"the agent's own id; null if it has none, or has not said it"`
	Path        string                            `json:"path" doc:"its journal"`
	Version     int                               `json:"version" doc:"of its records"`
	Records     int64                             `json:"records" doc:"number of the last one"`
	Writer      *stores.Writer                    `json:"writer" doc:"the process that has it open; null: none"`
	Unfinished  []int64                           `json:"unfinished_turns" doc:"turns that did not finish; if writer is null, what they changed is unknown"`
	Waited      []int64                           `json:"waiting_messages" doc:"those of unfinished_turns that no turn began with"`
	Questions   contract.Foreigns[sessionAsk]     `json:"open_questions" doc:"those of unfinished turns"`
	Damaged     int                               `json:"damaged" doc:"places of its file that could not be read"`
	Damage      []session.Damaged                 `json:"damage" doc:"where they are, up to a hundred; everything else is used"`
	Walls       *event.Walls                      `json:"walls" doc:"what held its commands, as it was tried; planned: no command ran; null: nothing is on record"`
	Todos       contract.Foreign[[]sessionTodo]   `json:"todos"`
	History     contract.Foreigns[sessionMessage] `json:"history" doc:"what the model sees now"`
}

type sessionAsk struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Tool string `json:"tool" doc:"the tool that it is about; empty: none"`
}

// ForPeople makes the lines fit the screen.
func (sessionData) ForPeople() {}

// PlainText returns the figures, then the messages.
func (d sessionData) PlainText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n%s", d.ID, d.Title, d.Agent)
	if d.Model != "" {
		b.WriteString(", " + d.Model)
	}
	if d.Provider != "" {
		b.WriteString(" (" + d.Provider + ")")
	}
	cost := "cost unknown"
	if d.CostUSD != nil {
		cost = fmt.Sprintf("%.4f USD", *d.CostUSD)
	}
	fmt.Fprintf(&b, " in %s\n%s\n%s, %s, %s, %s; %d tokens in, %d out, %s\n", d.Cwd, d.Path,
		text.Plural(*d.Messages, "message"), text.Plural(d.Turns, "turn"), text.Plural(d.Calls, "call"),
		text.Plural(d.Compactions, "compaction"), d.Input, d.Output, cost)
	if d.Walls != nil {
		fmt.Fprintf(&b, "Walls: %s.\n", d.Walls)
		for _, hole := range d.Walls.Holes {
			fmt.Fprintf(&b, "  They do not stop: %s\n", hole)
		}
	}
	d.troubles(&b)
	for _, m := range d.History {
		fmt.Fprintf(&b, "\n%s:\n", m.Role)
		for _, text := range append([]string{m.Text}, m.Calls...) {
			if text != "" {
				fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
			}
		}
	}
	return b.String()
}

// troubles writes what is wrong or open: the writer, unfinished turns, questions, damage.
func (d sessionData) troubles(b *strings.Builder) {
	if d.Writer != nil {
		fmt.Fprintf(b, "Process %d has it open.\n", d.Writer.PID)
	}
	for _, turn := range d.Unfinished {
		switch {
		case d.Writer != nil:
		case slices.Contains(d.Waited, turn):
			fmt.Fprintf(b, "Message %d waited when its process died. No turn began with it.\n", turn)
		default:
			fmt.Fprintf(b, "Turn %d did not finish. What it changed is unknown.\n", turn)
		}
	}
	for _, q := range d.Questions {
		fmt.Fprintf(b, "Question %s is open: %s\n", q.ID, q.Text)
	}
	for _, place := range d.Damage {
		fmt.Fprintf(b, "Damaged: byte %d, %d bytes: %s\n", place.At, place.Size, place.Reason)
	}
}

func sessionShow() *contract.Command {
	return sessionCommand(contract.Command{
		Path: "session show", Summary: "show one conversation as the model sees it, and what is wrong with its file",
		Danger: contract.Safe,
		Output: contract.TypeOf[sessionData](), Volatile: []string{
			"age",
			"writer",
		}, Params: []contract.Param{sessionParam()},
		Exits:    []contract.Exit{{Code: contract.Success, When: "it is shown"}},
		Examples: []contract.Example{{Description: "One of them", Command: "omniagent session show sess-1a2b3c4d"}},
		Run: contract.WithStore(stores.Sessions, func(
			ctx context.Context, c *contract.Call, store session.Store,
		) (contract.Result, error) {
			v, err := store.Show(c.String("id"))
			if err != nil {
				return contract.Result{}, err
			}
			defer v.Close()
			data, err := describeSession(ctx, c, store, v)
			if err != nil {
				return contract.Result{}, err
			}
			return contract.Result{Data: data, Meta: parts.SandboxMeta(data.Walls)}, nil
		}),
	})
}

func describeSession(
	ctx context.Context, c *contract.Call, store session.Store, v *session.View,
) (sessionData, error) {
	messages, s := v.Messages(), v.Info()
	damage, err := v.Check(ctx)
	if err != nil {
		return sessionData{}, err
	}
	d := sessionData{
		sessionRow: sessionRows(c)(s), Mode: s.Mode, Input: s.Usage.Context(), Output: s.Usage.Output,
		Calls: s.Calls, Denials: s.Denials, Compactions: s.Compactions, Damaged: len(damage), Damage: damage,
		Session: contract.OrNil(s.Session), Path: store.Path(s.Begin.ID), Version: s.Begin.Version, Records: v.Last(),
		Walls: s.Measured(),
	}
	if by, open := store.Writer(s.Begin.ID); open {
		d.Writer = &stores.Writer{PID: by.PID, Since: by.Since}
	}
	for _, u := range s.Unfinished {
		if d.Unfinished = append(d.Unfinished, u.Turn); u.Waited {
			d.Waited = append(d.Waited, u.Turn)
		}
	}
	for _, q := range s.Questions {
		asked := sessionAsk{ID: q.ID, Text: q.Text}
		if q.Tool != nil {
			asked.Tool = q.Tool.Name
		}
		d.Questions = append(d.Questions, asked)
	}
	if s.Begin.Forked != nil {
		d.ForkedFrom = &s.Begin.Forked.ID
	}
	for _, t := range s.Todos {
		d.Todos.Value = append(d.Todos.Value, sessionTodo{t.Content, t.Status})
	}
	for _, m := range messages {
		for _, spoken := range session.HistoryOf(m) {
			shown := sessionMessage{Role: spoken.Role, Text: spoken.Content}
			for _, call := range spoken.Calls {
				shown.Calls = append(shown.Calls, call.Name+" "+string(call.Input))
			}
			d.History = append(d.History, shown)
		}
	}
	return d, nil
}
