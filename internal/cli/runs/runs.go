package runs

import (
	"cmp"
	"context"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/work/run"
)

func runParam() contract.Param {
	return contract.Param{
		Name: "id", Kind: contract.ID, Position: 1, Required: true, MaxLen: 128, Stdin: true, Help: "the run",
	}
}

// runsCommand adds the declarations shared by the "runs" commands.
func runsCommand(c contract.Command) *contract.Command {
	return contract.StoreCommand(c, "no home", "no such run")
}

type runsData struct {
	Runs contract.Rows[contract.Foreign[runsRow]] `json:"runs"`
}

type runsRow struct {
	ID      string    `json:"run_id"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Agent   string    `json:"agent"`
	Age     string    `json:"age" doc:"since it began"`
	Created time.Time `json:"created"`
	Cwd     string    `json:"cwd"`
	Changed *int      `json:"changed" doc:"files; null: not known"`
	Task    string    `json:"task"`
	Asks    string    `json:"question" doc:"that waits for an answer, or empty"`
	Note    string    `json:"note" doc:"that question, what a queued run waits for, or that it never began"`
}

func runsList() *contract.Command {
	return runsCommand(contract.Command{
		Path: "runs list", Summary: "list the runs, the newest first", Danger: contract.Safe,
		Output: contract.TypeOf[runsData](), Volatile: []string{"runs"},
		List: &contract.List{
			Key: "runs", ID: "run_id", Order: "given",
			Columns: []string{"run_id", "status", "age", "cwd", "task", "note"},
		},
		Params: []contract.Param{
			flags.Here(),
			{Name: "status", Kind: contract.Enum, Enum: run.States(), Help: "only in this status"},
		},
		Exits: []contract.Exit{{Code: contract.Success, When: "they are listed"}},
		Examples: []contract.Example{
			{Description: "All of them", Command: "omniagent runs list"},
			{Description: "Those that wait for an answer", Command: "omniagent runs list --status needs_input"},
		},
		Run: contract.WithStore(stores.Runs, func(
			ctx context.Context, c *contract.Call, store run.Store,
		) (contract.Result, error) {
			all, skipped, err := store.List(ctx)
			if err != nil {
				return contract.Result{}, err
			}
			for _, s := range skipped {
				c.Warn("RUN_UNREADABLE", "%s: %v", s.ID, s.Err)
			}
			var rows []runsRow
			for _, r := range all {
				if c.Bool("here") && r.Dir != c.Dir() || c.Given("status") && string(r.State) != c.String("status") {
					continue
				}
				d := runDataOf(r)
				row := runsRow{
					r.ID, d.Status, d.Reason, d.Agent, contract.Ago(c, r.Created), r.Created, r.Dir, nil,
					d.Summary.Why.Value, text.OneLine(asks(r), 300), "",
				}
				row.Note = cmp.Or(row.Asks, waitsFor(store, r))
				if d.Reason == string(run.NeverBegan) {
					row.Note = "never began"
				}
				if d.Changed != nil {
					row.Changed = &d.Changed.Count
				}
				rows = append(rows, row)
			}
			return contract.Result{Data: runsData{contract.ForeignRows(rows)}}, nil
		}),
	})
}

func runsCancel() *contract.Command {
	one := runParam()
	one.Required = false
	return runsCommand(contract.Command{
		Path: "runs cancel", Summary: "end a run, and all that it started", Danger: contract.Mutating,
		Output: contract.TypeOf[cancelledRuns](), DryRun: true,
		Params: []contract.Param{one, {Name: "all", Kind: contract.Bool, Help: "every run that is not over"}},
		Rules:  []contract.Rule{{If: "all", Not: []string{"id"}}},
		Validate: func(c *contract.Call) []fault.Problem {
			if c.Given("id") || c.Bool("all") {
				return nil
			}
			return []fault.Problem{{Param: "id", Code: fault.MissingArgument, Message: "ID, or --all, is missing"}}
		},
		Files: []contract.FileEffect{stores.RunFiles()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is over now, or was before"},
			{Code: contract.Unavailable, When: "the process that carries it out cannot be reached"},
		},
		Examples: []contract.Example{
			{Description: "One of them", Command: "omniagent runs cancel run-1a2b3c4d"},
			{Description: "All that are not over", Command: "omniagent runs cancel --all"},
		},
		Run: contract.WithStore(stores.Runs, cancelRuns),
	})
}

// cancelledRuns is the answer of omniagent runs cancel: about the named run, or about all that were not over.
type cancelledRuns struct {
	cancelledRun
	Runs []cancelledRun `json:"runs" doc:"with --all, all of them"`
}

type cancelledRun struct {
	ID     string `json:"run_id" doc:"empty with --all"`
	Status string `json:"status" doc:"empty with --all"`
}

func cancelRuns(ctx context.Context, c *contract.Call, store run.Store) (contract.Result, error) {
	ids := []string{c.String("id")}
	if c.Bool("all") {
		ids = nil
		for _, r := range Live(ctx, c) {
			ids = append(ids, r.ID)
		}
	}
	d := cancelledRuns{Runs: []cancelledRun{}}
	out := contract.Result{Effect: contract.Noop, Target: map[string]any{"runs": ids}}
	var first error
	for _, id := range ids {
		r, err := store.Load(ctx, id)
		under := err == nil && !r.State.Terminal()
		if err == nil && !c.DryRun() {
			r, under, err = store.End(ctx, id)
		}
		if under {
			out.Effect = contract.Updated
		}
		if err != nil { // still end the others
			first = cmp.Or(first, err)
			continue
		}
		d.Runs = append(d.Runs, cancelledRun{id, string(r.State)})
	}
	if !c.Bool("all") && len(d.Runs) > 0 {
		d.cancelledRun = d.Runs[0]
	}
	out.Data = d
	return out, first
}

func runsDelete() *contract.Command {
	type deleted struct {
		ID string `json:"run_id"`
	}
	return runsCommand(contract.Command{
		Path: "runs delete", Summary: "delete the record of a run for ever; its conversations stay",
		Danger: contract.Destructive, DryRun: true,
		Output: contract.TypeOf[deleted](), Params: []contract.Param{runParam()},
		Files: []contract.FileEffect{stores.RunFiles()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is deleted"},
			{Code: contract.Conflict, When: "it is under way"},
		},
		Examples: []contract.Example{{
			Description: "One of them", Command: "omniagent runs delete run-1a2b3c4d --confirm-destructive",
		}},
		Run: contract.WithStore(stores.Runs, func(
			ctx context.Context, c *contract.Call, store run.Store,
		) (contract.Result, error) {
			r, err := store.Load(ctx, c.String("id"))
			if err == nil && !c.DryRun() {
				err = store.Delete(ctx, r.ID)
			}
			return contract.Result{
				Data: deleted{c.String("id")}, Effect: contract.Deleted, Target: map[string]any{"run": r.ID},
			}, err
		}),
	})
}

// runsContinue declares the command that a detached process runs. A person can use it for a queued or answered run
// without an owner.
func (p commands) runsContinue() *contract.Command {
	return p.runCommand(contract.Command{
		Path: "runs continue", Summary: "carry out a run that was left: queued, or answered",
		Detail: "It is what run --detach leaves behind. A run whose outcome nobody saw is not begun again: " +
			"runs retry does that.",
		Params: append([]contract.Param{runParam()}, runStart()...),
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the task is done"},
			{Code: contract.NotFound, When: "no such run, or agent here"},
			{Code: contract.Unavailable, When: "the service does not answer", Changed: contract.Some},
		},
		Examples: []contract.Example{{Description: "One of them", Command: "omniagent runs continue run-1a2b3c4d"}},
		Instead:  inForkOfRun,
		Run: contract.WithStore(stores.Runs, func(
			ctx context.Context, c *contract.Call, store run.Store,
		) (contract.Result, error) {
			if c.DryRun() {
				r, err := store.Free(ctx, c.String("id"))
				return dryRunResult(r, contract.Updated), err
			}
			r, err := store.Acquire(ctx, c.String("id"))
			if err != nil {
				return contract.Result{}, err
			}
			keepFlags(c, &r.Task)
			return p.carryOut(ctx, c, r)
		}),
	})
}
