package command

import (
	"context"

	"omniagent/internal/contract"
	"omniagent/internal/fault"
	"omniagent/internal/undo"
)

type snapshotsData struct {
	Turns contract.Rows[contract.Foreign[snapshotRow]] `json:"turns"`
	Bytes int64                                        `json:"bytes" doc:"of all snapshots; objects of git that a repository also has take none"`
}

type snapshotRow struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	Workspace string `json:"workspace"`
	Agent     string `json:"agent"`
	Session   string `json:"session_id"`
	Began     string `json:"began"`
	Files     int    `json:"files"`
}

func snapshotsList() *contract.Command {
	return &contract.Command{
		Path: "snapshots list", Summary: "list the turns of all workspaces that can be taken back, the newest first",
		Class: contract.Envelope, Version: "1.0.0", Scopes: []string{}, Danger: contract.Safe, LooseConfig: true,
		Output: contract.TypeOf[snapshotsData](), Volatile: []string{"turns", "bytes"},
		List: &contract.List{
			Key: "turns", ID: "id", Order: "given", Columns: []string{"id", "kind", "files", "agent", "workspace"},
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "they are listed"},
			{Code: contract.PreconditionFailed, When: "no home"},
			{Code: contract.PermissionDenied, When: "no access"},
		},
		Examples: []contract.Example{{Description: "All of them", Command: "omniagent snapshots list"}},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			store, err := undoStore(c)
			if err != nil {
				return contract.Result{}, err
			}
			all, err := store.All()
			rows := []contract.Foreign[snapshotRow]{}
			for _, r := range all {
				t := undoTurnOf(r)
				rows = append(rows, contract.Foreign[snapshotRow]{Value: snapshotRow{
					r.ID, t.Kind, t.Workspace, r.Agent, r.Session, r.Began.Format("2006-01-02 15:04:05"), r.Files,
				}})
			}
			return contract.Result{Data: snapshotsData{contract.RowsOf(rows), store.Size()}}, err
		},
	}
}

type snapshotsDeleted struct {
	IDs   []string `json:"ids"`
	Bytes int64    `json:"bytes_freed"`
}

func snapshotsDelete() *contract.Command {
	return &contract.Command{
		Path: "snapshots delete", Summary: "forget a turn, which then cannot be taken back", Class: contract.Envelope,
		Version: "1.0.0", Scopes: []string{}, Danger: contract.Destructive, DryRun: true, LooseConfig: true,
		Output: contract.TypeOf[snapshotsDeleted](), Volatile: []string{"bytes_freed"},
		Files: []contract.FileEffect{undoFiles()},
		Params: []contract.Param{{
			Name: "id", Kind: contract.ID, Position: 1, Required: true, MaxLen: 128, Stdin: true, Help: "the turn",
		}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is forgotten"},
			{Code: contract.NotFound, When: "no such turn"},
			{Code: contract.PreconditionFailed, When: "no home"},
			{Code: contract.PermissionDenied, When: "no access"},
		},
		Examples: []contract.Example{{
			Description: "One of them", Command: "omniagent snapshots delete 6nk2b0p5 --confirm-destructive",
		}},
		Run: func(ctx context.Context, c *contract.Call) (contract.Result, error) {
			store, err := undoStore(c)
			if err != nil {
				return contract.Result{}, err
			}
			id, d := c.String("id"), snapshotsDeleted{IDs: []string{}}
			all, err := store.All()
			for _, r := range all {
				if r.ID == id && !r.Ended.IsZero() {
					d.IDs = append(d.IDs, r.ID)
				}
			}
			if err == nil && len(d.IDs) == 0 {
				err = fault.New(fault.NotFoundCode, "there is no turn %s", id).Hint("omniagent snapshots list")
			}
			if err != nil {
				return contract.Result{}, err
			}
			if !c.DryRun() {
				_, d.Bytes, err = store.Delete(ctx, func(r undo.Record) bool { return r.ID == id })
			}
			return contract.Result{Data: d, Effect: contract.Deleted, Target: map[string]any{"turns": d.IDs}}, err
		},
	}
}
