package command

import (
	"context"

	"omniagent/internal/contract"
	"omniagent/internal/session"
)

type sessionDeleted struct {
	ID    string `json:"id"`
	Bytes int64  `json:"bytes_freed"`
}

func sessionDelete() *contract.Command {
	return sessionCommand(contract.Command{
		Path: "session delete", Summary: "delete one conversation for ever", Danger: contract.Destructive, DryRun: true,
		Output: contract.TypeOf[sessionDeleted](), Params: []contract.Param{sessionParam()},
		Files: []contract.FileEffect{{Path: "~/.yume/sessions", Type: "state"}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is deleted"},
			{Code: contract.Conflict, When: "a process has it open"},
		},
		Examples: []contract.Example{{
			Description: "One of them",
			Command:     "omniagent session delete sess-1a2b3c4d --confirm-destructive",
		}},
		Run: inStore(func(ctx context.Context, c *contract.Call, store session.Store) (contract.Result, error) {
			d := sessionDeleted{ID: c.String("id")}
			files, err := store.Files(d.ID)
			if err != nil {
				return contract.Result{}, err
			}
			names := []string{}
			for _, f := range files {
				names = append(names, f.Path)
				d.Bytes += f.Size
			}
			if !c.DryRun() {
				if err := store.Delete(ctx, d.ID); err != nil {
					return contract.Result{}, err
				}
			}
			return contract.Result{
				Data: d, Effect: contract.Deleted,
				Target: map[string]any{"session": d.ID, "files": names, "bytes": d.Bytes},
			}, nil
		}),
	})
}
