package sessions

import (
	"context"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/stores"
	"omniagent/internal/talk/session"
)

type sessionHit struct {
	sessionRow
	Found   int    `json:"found" doc:"messages that have it; 0: only the title"`
	Record  int64  `json:"record" doc:"number of the first of them; of an agent's own records, the message"`
	Role    string `json:"role"`
	Snippet string `json:"snippet"`
}

type sessionHits struct {
	Sessions contract.Rows[contract.Foreign[sessionHit]] `json:"sessions"`
}

func (p commands) sessionSearch() *contract.Command {
	return sessionCommand(contract.Command{
		Path: "session search", Summary: "find conversations by title or words", Danger: contract.Safe,
		Output: contract.TypeOf[sessionHits](), Volatile: []string{"sessions"},
		List: &contract.List{
			Key: "sessions", ID: "id", Order: "given", Columns: []string{"id", "title", "found", "snippet"},
		},
		Params: []contract.Param{
			{Name: "text", Kind: contract.Text, Position: 1, Required: true, MaxLen: 1024, Help: "in any case"},
			agentParam(), providerParam(), flags.Here(), allParam(),
		},
		Exits: []contract.Exit{{Code: contract.Success, When: "what was found is listed"}},
		Examples: []contract.Example{{
			Description: "Where was that said",
			Command:     "omniagent session search deadlock",
		}},
		Run: contract.WithStore(stores.Sessions, func(
			ctx context.Context, c *contract.Call, store session.Store,
		) (contract.Result, error) {
			filter := sessionFilter(c)
			hits, skipped, err := store.Search(ctx, c.String("text"), filter)
			if err != nil {
				return contract.Result{}, err
			}
			warnSkipped(c, skipped)
			var rows []sessionHit
			row := sessionRows(c)
			for _, h := range hits {
				rows = append(rows, sessionHit{
					row(h.Info), h.Found, h.Record, h.Role, h.Snippet,
				})
			}
			if c.Bool("all") {
				theirs, err := p.searchArchived(ctx, c, store, filter)
				if err != nil {
					return contract.Result{}, err
				}
				rows = append(rows, theirs...)
			}
			return contract.Result{Data: sessionHits{contract.ForeignRows(rows)}}, nil
		}),
	})
}
