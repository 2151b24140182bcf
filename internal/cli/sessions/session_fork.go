package sessions

import (
	"context"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/talk/session"
)

type sessionForked struct {
	ID       *string `json:"id" doc:"null: chosen when it is done"`
	From     string  `json:"forked_from"`
	Messages int     `json:"messages"`
}

func sessionFork() *contract.Command {
	return sessionCommand(contract.Command{
		Path: "session fork", Summary: "begin a conversation with the past of another", Danger: contract.Mutating,
		DryRun: true, Reversible: true, Output: contract.TypeOf[sessionForked](), Volatile: []string{"id"},
		Params: []contract.Param{sessionParam(), {
			Name: "as", Kind: contract.ID, MaxLen: 128, Help: "id of the new one",
		}},
		Files: []contract.FileEffect{{Path: "~/.yume/sessions", Type: "state"}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is forked"},
			{Code: contract.Conflict, When: "the new id is taken"},
		},
		Examples: []contract.Example{{Description: "Try another way", Command: "omniagent session fork sess-1a2b3c4d"}},
		Run: contract.WithStore(stores.Sessions, func(
			ctx context.Context, c *contract.Call, store session.Store,
		) (contract.Result, error) {
			v, err := store.Show(c.String("id"))
			if err != nil {
				return contract.Result{}, err
			}
			v.Close()
			d := sessionForked{ID: contract.OrNil(c.String("as")), From: c.String("id"), Messages: v.State.Messages}
			if c.DryRun() {
				if d.ID != nil && store.Has(*d.ID) {
					return contract.Result{}, session.IDTaken(*d.ID)
				}
				return contract.Result{
					Data: d, Effect: contract.Created, Target: map[string]any{"session": d.From, "as": d.ID},
				}, nil
			}
			forked, err := store.Fork(ctx, d.From, c.String("as"))
			if err != nil {
				return contract.Result{}, err
			}
			id := forked.ID()
			if err := forked.Close(); err != nil {
				c.Warn("SESSION_PROJECTION", "%s is forked, but its projection could not be written: %v", id,
					fault.Of(err).Message)
			}
			d.ID = &id
			return contract.Result{Data: d, Effect: contract.Created}, nil
		}),
	})
}
