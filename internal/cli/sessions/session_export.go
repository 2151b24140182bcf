package sessions

import (
	"context"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/talk/session"
)

type sessionExported struct {
	ID      string                   `json:"id"`
	Form    string                   `json:"form"`
	Content contract.Foreign[string] `json:"content"`
}

// PlainText returns the text itself, for a file or another program.
func (d sessionExported) PlainText() string { return d.Content.Value }

func sessionExport() *contract.Command {
	return sessionCommand(contract.Command{
		Path: "session export", Summary: "write one conversation out as a whole", Danger: contract.Safe,
		Output: contract.TypeOf[sessionExported](),
		Params: []contract.Param{
			sessionParam(),
			{
				Name: "form", Kind: contract.Enum, Enum: []string{"jsonl", "json", "markdown"}, Default: "markdown",
				Help: "records, history, or for people",
			},
		},
		Exits: []contract.Exit{{Code: contract.Success, When: "it is written"}},
		Examples: []contract.Example{{
			Description: "As a page",
			Command:     "omniagent session export sess-1a2b3c4d --output plain",
		}},
		Run: contract.WithStore(stores.Sessions, func(
			_ context.Context, c *contract.Call, store session.Store,
		) (contract.Result, error) {
			var text strings.Builder
			if err := store.Export(c.String("id"), session.Form(c.String("form")), &text); err != nil {
				return contract.Result{}, err
			}
			d := sessionExported{ID: c.String("id"), Form: c.String("form")}
			d.Content.Value = text.String()
			return contract.Result{Data: d}, nil
		}),
	})
}
