package forks

import (
	"context"
	"slices"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/repo/fork"
)

// New makes a fork of the workspace around a directory.
func New(ctx context.Context, c *contract.Call, dir string) (*fork.Fork, error) {
	store, err := stores.Forks(c)
	if err != nil {
		return nil, err
	}
	return store.Make(ctx, fork.Wanted{Dir: dir})
}

// forkNamed returns the fork that a call names.
func forkNamed(c *contract.Call) (*fork.Fork, error) {
	store, err := stores.Forks(c)
	if err != nil {
		return nil, err
	}
	return store.Open(c.String("id"))
}

// Command adds the declarations shared by the commands about forks whose result is an envelope.
func Command(c contract.Command) *contract.Command {
	c.Class, c.Version, c.Scopes, c.LooseConfig = contract.Envelope, "1.0.0", []string{}, true
	c.LongRunning, c.Timeout = true, 10*time.Minute
	c.Exits = append(c.Exits,
		contract.Exit{Code: contract.PreconditionFailed, When: "no home, or another process has it locked"},
		contract.Exit{Code: contract.PermissionDenied, When: "no access"},
	)
	return &c
}

func forkParam() contract.Param {
	return contract.Param{
		Name: "id", Kind: contract.Name, Position: 1, Required: true, MaxLen: 64, Help: "name of the fork",
	}
}

// Files declares the directory with the forks.
func Files() contract.FileEffect {
	return contract.FileEffect{
		Path: "~/.local/state/omniagent/forks", Type: "state", ClearableWith: "omniagent fork delete",
	}
}

func noFork() contract.Exit { return contract.Exit{Code: contract.NotFound, When: "no such fork"} }

type forkListData struct {
	Forks contract.Rows[contract.Foreign[forkRow]] `json:"forks"`
}

type forkRow struct {
	Name      string     `json:"name"`
	Tier      string     `json:"tier"`
	Workspace string     `json:"workspace"`
	Made      time.Time  `json:"made"`
	Applied   *time.Time `json:"applied" doc:"the last time; null: never"`
	Running   []int      `json:"running" doc:"the processes that run something in it"`
	Bytes     int64      `json:"bytes"`
}

func forkList() *contract.Command {
	return Command(contract.Command{
		Path: "fork list", Summary: "list the forks of all workspaces", Danger: contract.Safe,
		Output: contract.TypeOf[forkListData](), Volatile: []string{"forks"},
		List: &contract.List{
			Key: "forks", ID: "name", Order: "given",
			Columns: []string{"name", "tier", "made", "running", "bytes", "workspace"},
		},
		Exits:    []contract.Exit{{Code: contract.Success, When: "they are listed"}},
		Examples: []contract.Example{{Description: "All of them", Command: "omniagent fork list"}},
		Run: contract.WithStore(stores.Forks, func(
			_ context.Context, _ *contract.Call, store fork.Store,
		) (contract.Result, error) {
			all, err := store.List()
			var rows []forkRow
			for _, f := range all {
				row := forkRow{
					Name: f.Name, Tier: string(f.Tier), Workspace: f.Workspace, Made: f.Made,
					Running: f.Running(), Bytes: f.Size(),
				}
				if !f.Applied.IsZero() {
					row.Applied = &f.Record.Applied
				}
				rows = append(rows, row)
			}
			return contract.Result{Data: forkListData{contract.ForeignRows(rows)}}, err
		}),
	})
}

type forkDeleted struct {
	Forks []forkGone `json:"forks"`
	Bytes int64      `json:"bytes_freed"`
}

type forkGone struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes_freed"`
}

func forkDelete() *contract.Command {
	several := forkParam()
	several.Variadic, several.Help = true, "names of forks"
	return Command(contract.Command{
		Path: "fork delete", Summary: "delete these forks and all changes not yet applied",
		Danger: contract.Destructive, DryRun: true,
		Output: contract.TypeOf[forkDeleted](), Volatile: []string{"bytes_freed"}, Params: []contract.Param{several},
		Files: []contract.FileEffect{Files()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "they are deleted"},
			noFork(),
			{Code: contract.Conflict, When: "programs run in one of them", Changed: contract.Some},
		},
		Examples: []contract.Example{
			{Description: "Throw it away", Command: "omniagent fork delete try --confirm-destructive"},
		},
		Run: contract.WithStore(stores.Forks, deleteForks),
	})
}

// deleteForks checks all forks first, so that a wrong name or a fork in use keeps the others from being deleted.
func deleteForks(ctx context.Context, c *contract.Call, store fork.Store) (_ contract.Result, err error) {
	var all []*fork.Fork
	for _, name := range c.Strings("id") {
		f, err := store.OpenToDelete(name)
		if err == nil {
			err = f.Idle()
		}
		if err != nil {
			return contract.Result{}, err
		}
		if !slices.ContainsFunc(all, func(o *fork.Fork) bool { return o.ID == f.ID }) {
			all = append(all, f)
		}
	}
	d, affected := forkDeleted{}, []any{}
	for _, f := range all {
		one := forkGone{f.Name, f.Size()}
		var changed, git []string
		if changes, err := f.Changes(ctx); err == nil { // the workspace may be gone
			for _, change := range changes {
				if !change.Arrived {
					changed = append(changed, change.Path)
				}
			}
		}
		if own, err := ownOf(ctx, f); err == nil {
			for _, o := range own {
				git = append(git, o.Ref+" "+o.Commit+" of "+shownIn(f.Workspace, o.Repository))
			}
		}
		affected = append(affected, map[string]any{
			"fork": f.Name, "changed": changed[:min(len(changed), 100)], "git": git[:min(len(git), 100)],
			"bytes": one.Bytes,
		})
		if !c.DryRun() {
			if one.Bytes, err = f.Delete(ctx); err != nil {
				break
			}
		}
		d.Forks, d.Bytes = append(d.Forks, one), d.Bytes+one.Bytes
	}
	return contract.Result{
		Data: d, Effect: contract.Deleted, Target: map[string]any{"forks": affected, "bytes": d.Bytes},
	}, err
}
