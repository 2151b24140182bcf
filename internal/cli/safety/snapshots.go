package safety

import (
	"context"
	"slices"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/stores"
	"omniagent/internal/repo/undo"
)

type snapshotsData struct {
	Turns contract.Rows[contract.Foreign[snapshotRow]] `json:"turns"`
	Bytes int64                                        `json:"bytes" doc:"of all snapshots; objects of git that a repository also has take none"`
}

type snapshotRow struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	Workspace string    `json:"workspace"`
	Agent     string    `json:"agent"`
	Session   string    `json:"session_id"`
	Began     time.Time `json:"began"`
	Files     *int      `json:"files"`
}

func snapshotsList() *contract.Command {
	return contract.StoreCommand(contract.Command{
		Path: "snapshots list", Summary: "list the turns that can be undone, in all workspaces", Danger: contract.Safe,
		Output: contract.TypeOf[snapshotsData](), Volatile: []string{"turns", "bytes"},
		List: &contract.List{
			Key: "turns", ID: "id", Order: "given",
			Columns: []string{"id", "began", "kind", "files", "agent", "workspace"},
		},
		Params: []contract.Param{flags.Here()},
		Exits:  []contract.Exit{{Code: contract.Success, When: "they are listed"}},
		Examples: []contract.Example{
			{Description: "All of them", Command: "omniagent snapshots list"},
			{Description: "The IDs of this workspace", Command: "omniagent snapshots list --here --output id"},
		},
		Run: contract.WithStore(stores.Snapshots, func(
			_ context.Context, c *contract.Call, store undo.Store,
		) (contract.Result, error) {
			list := store.All
			if c.Bool("here") {
				list = func() ([]undo.Record, error) { return store.List(c.Dir()) }
			}
			all, err := list()
			var rows []snapshotRow
			for _, r := range all {
				t := undoTurnOf(r)
				rows = append(rows, snapshotRow{r.ID, t.Kind, t.Workspace, r.Agent, r.Session, r.Began, t.Files})
			}
			return contract.Result{Data: snapshotsData{contract.ForeignRows(rows), store.Size()}}, err
		}),
	}, "no home", "no such turn")
}

type snapshotsDeleted struct {
	IDs   []string `json:"ids"`
	Bytes *int64   `json:"bytes_freed" doc:"null: not known, as with --dry-run"`
}

func snapshotsDelete() *contract.Command {
	return contract.StoreCommand(contract.Command{
		Path: "snapshots delete", Summary: "forget a turn, which then cannot be taken back",
		Danger: contract.Destructive, DryRun: true,
		Output: contract.TypeOf[snapshotsDeleted](), Volatile: []string{"bytes_freed"},
		Files: stores.UndoFiles(),
		Params: []contract.Param{{
			Name: "id", Kind: contract.ID, Position: 1, Required: true, MaxLen: 128, Stdin: true,
			Help: "the turn, or how its name begins",
		}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is forgotten"},
			{Code: contract.Conflict, When: "the name fits several, or an undo was interrupted"},
		},
		Examples: []contract.Example{{
			Description: "One of them", Command: "omniagent snapshots delete 6nk2b0p5 --confirm-destructive",
		}},
		Run: contract.WithStore(stores.Snapshots, func(
			ctx context.Context, c *contract.Call, store undo.Store,
		) (contract.Result, error) {
			all, err := store.All()
			if err != nil {
				return contract.Result{}, err
			}
			over := slices.DeleteFunc(all, func(r undo.Record) bool { return r.Ended.IsZero() && !r.Abandoned })
			turn, err := undo.ByName(over, c.String("id"))
			if err != nil {
				return contract.Result{}, err
			}
			d := snapshotsDeleted{IDs: []string{turn.ID}}
			if !c.DryRun() {
				var freed int64
				_, freed, err = store.Delete(ctx, func(r undo.Record) bool { return r.ID == turn.ID })
				d.Bytes = &freed
			}
			return contract.Result{Data: d, Effect: contract.Deleted, Target: map[string]any{"turns": d.IDs}}, err
		}),
	}, "no home", "no such turn")
}
