package command

import (
	"context"
	"os"
	"strings"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/contract"
	"omniagent/internal/fault"
	"omniagent/internal/run"
)

// Shared by the commands of "runs".

func runParam() contract.Param {
	return contract.Param{
		Name: "id", Kind: contract.ID, Position: 1, Required: true, MaxLen: 128, Stdin: true, Help: "the run",
	}
}

func runFiles() contract.FileEffect {
	return contract.FileEffect{
		Path: "~/.local/state/omniagent/runs", Type: "state", ClearableWith: "omniagent runs delete",
	}
}

// runsCommand adds the declarations that all of them share.
func runsCommand(c contract.Command) *contract.Command {
	return storeCommand(c, "no home", "no such run")
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
}

func runsList() *contract.Command {
	return runsCommand(contract.Command{
		Path: "runs list", Summary: "list the runs, the newest first", Danger: contract.Safe,
		Output: contract.TypeOf[runsData](), Volatile: []string{"runs"},
		List: &contract.List{
			Key: "runs", ID: "run_id", Order: "given", Columns: []string{"run_id", "status", "agent", "age", "task"},
		},
		Params: []contract.Param{
			hereParam(),
			{Name: "status", Kind: contract.Enum, Enum: run.States(), Help: "only in this status"},
		},
		Exits: []contract.Exit{{Code: contract.Success, When: "they are listed"}},
		Examples: []contract.Example{
			{Description: "All of them", Command: "omniagent runs list"},
			{Description: "Those that wait for an answer", Command: "omniagent runs list --status needs_input"},
		},
		Run: on(runStore, func(ctx context.Context, c *contract.Call, store run.Store) (contract.Result, error) {
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
					r.ID, d.Status, d.Reason, d.Agent, age(time.Since(r.Created)), r.Created, r.Dir, nil,
					d.Summary.Why.Value,
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
	type cancelled struct {
		ID     string `json:"run_id"`
		Status string `json:"status"`
	}
	return runsCommand(contract.Command{
		Path: "runs cancel", Summary: "end a run, and all that it started", Danger: contract.Mutating,
		Output: contract.TypeOf[cancelled](), Params: []contract.Param{runParam()}, DryRun: true,
		Files: []contract.FileEffect{runFiles()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is over now, or was before"},
			{Code: contract.Unavailable, When: "the process that carries it out cannot be reached"},
		},
		Examples: []contract.Example{{Description: "One of them", Command: "omniagent runs cancel run-1a2b3c4d"}},
		Run: on(runStore, func(ctx context.Context, c *contract.Call, store run.Store) (contract.Result, error) {
			r, err := store.Load(ctx, c.String("id"))
			under := err == nil && !r.State.Terminal()
			if err == nil && !c.DryRun() {
				r, under, err = store.End(ctx, r.ID)
			}
			effect := contract.Noop
			if under {
				effect = contract.Updated
			}
			return contract.Result{
				Data: cancelled{c.String("id"), string(r.State)}, Effect: effect, Target: map[string]any{"run": r.ID},
			}, err
		}),
	})
}

func runsDelete() *contract.Command {
	type deleted struct {
		ID string `json:"run_id"`
	}
	return runsCommand(contract.Command{
		Path: "runs delete", Summary: "delete the record of a run for ever; its conversations stay",
		Danger: contract.Destructive, DryRun: true,
		Output: contract.TypeOf[deleted](), Params: []contract.Param{runParam()},
		Files: []contract.FileEffect{runFiles()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is deleted"},
			{Code: contract.Conflict, When: "it is under way"},
		},
		Examples: []contract.Example{{
			Description: "One of them", Command: "omniagent runs delete run-1a2b3c4d --confirm-destructive",
		}},
		Run: on(runStore, func(ctx context.Context, c *contract.Call, store run.Store) (contract.Result, error) {
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

// runsContinue declares the command that takes up a run without an owner: it is what --detach leaves behind.
func (p Parts) runsContinue() *contract.Command {
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
		Run: on(runStore, func(ctx context.Context, c *contract.Call, store run.Store) (contract.Result, error) {
			if c.DryRun() {
				r, err := store.Free(ctx, c.String("id"))
				return untried(r, contract.Updated), err
			}
			r, err := store.Own(ctx, c.String("id"))
			if err != nil {
				return contract.Result{}, err
			}
			return p.carryOut(ctx, c, r)
		}),
	})
}

// answer declares the command that answers the question of a run, which then goes on.
func (p Parts) answer() *contract.Command {
	return p.runCommand(contract.Command{
		Path: "answer", Summary: "answer the question of a run, which then goes on",
		Detail: "It ends with the run's own exit code. A question is answered once; a later answer learns who " +
			"was first.",
		Params: append([]contract.Param{
			runParam(),
			{Name: "text", Kind: contract.Text, Position: 2, MaxLen: maxTask, Help: "the answer"},
			{Name: "question", Kind: contract.Name, Help: "which one, where several are open"},
			{Name: "approve", Kind: contract.Bool, Help: "the tool may run"},
			{Name: "reject", Kind: contract.Bool, Help: "the tool may not run; the text says why"},
			{Name: "secret", Kind: contract.Text, Secret: true, Help: "the answer, which is kept nowhere"},
			{Name: "detach", Kind: contract.Bool, Help: "return at once; a process carries it out"},
		}, runStart()...),
		Rules: []contract.Rule{{If: "approve", Not: []string{"reject"}}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is done; with --detach, it goes on"},
			{Code: contract.NotFound, When: "no such run, question, or agent here"},
			{Code: contract.Unavailable, When: "the service does not answer", Changed: contract.Some},
		},
		Examples: []contract.Example{
			{Description: "A text", Command: "omniagent answer run-1a2b3c4d blue"},
			{Description: "Let a tool run", Command: "omniagent answer run-1a2b3c4d --approve"},
		},
		Instead: inForkOfRun,
		Run:     on(runStore, p.runAnswer),
	})
}

func (p Parts) runAnswer(ctx context.Context, c *contract.Call, store run.Store) (contract.Result, error) {
	a := run.Answer{Text: c.String("text"), At: time.Now().UTC(), By: os.Getpid()}
	if a.Secret = givesSecret(c); a.Secret {
		var err error
		if a.Text, err = c.Secret("secret"); err != nil {
			return contract.Result{}, err
		}
		if err = run.CheckSecret(c.String("id"), a.Text); err != nil {
			return contract.Result{}, err
		}
		defer func() { p.tellKeeper(ctx, c, store) }()
	}
	switch {
	case c.Bool("approve"):
		a.Option = run.Approve
	case c.Bool("reject"):
		a.Option = run.Reject
	case a.Text == "":
		return contract.Result{}, fault.New(fault.ArgError, "there is no answer").
			Hint("omniagent answer %s 'TEXT'", c.String("id"))
	}
	record, err := store.Load(ctx, c.String("id"))
	if err != nil {
		return contract.Result{}, err
	}
	_, alive := store.Owner(record.ID)
	alive = alive && record.State == run.NeedsInput && record.Socket != "" // without it, an earlier answer is under way
	if c.DryRun() {
		if _, err = record.Takes(c.String("question"), a); err == nil && !alive {
			_, err = store.Free(ctx, record.ID)
		}
		return untried(record, contract.Updated), err
	}
	late := func(err error) error { // another answer may have come meanwhile
		if now, look := store.Load(ctx, record.ID); look == nil {
			return now.Late(c.String("question"), err)
		}
		return err
	}
	if alive {
		if err := store.Tell(ctx, record, c.String("question"), a); err != nil {
			return contract.Result{}, late(err)
		}
		return follow(ctx, store, record.ID)
	}
	r, err := store.Own(ctx, record.ID)
	if err != nil {
		return contract.Result{}, late(err)
	}
	if err := r.Answer(c.String("question"), a); err != nil {
		_ = r.Release()
		return contract.Result{}, err
	}
	if (r.Detached || c.Bool("detach")) && !a.Secret { // a secret does not leave this process
		result, err := p.leave(ctx, c, store, r)
		if err != nil || c.Bool("detach") {
			return result, err
		}
		return follow(ctx, store, record.ID)
	}
	return p.carryOut(ctx, c, r)
}

// tellKeeper says where the agent of a run that was told a secret keeps its own record.
func (p Parts) tellKeeper(ctx context.Context, c *contract.Call, store run.Store) {
	r, err := store.Load(ctx, c.String("id"))
	if err != nil || len(r.Attempts) == 0 || c.DryRun() {
		return
	}
	last := r.Attempts[len(r.Attempts)-1]
	places := last.Records
	if d, known := agent.Find(p.Agents, last.Agent); known {
		if d.Describe().BuiltIn {
			return // its record is ours
		}
		if keeps := d.Describe().Keeps; len(places) == 0 && keeps != nil {
			places = keeps(os.Environ()).Dirs
		}
	}
	where := "wherever it does that"
	if len(places) > 0 {
		where = strings.Join(places, ", ")
	}
	c.Warn("SECRET_WITH_AGENT", "omniagent kept the secret nowhere; %s keeps its own record of the conversation: %s",
		last.Agent, where)
}

// follow waits until a run that another process carries out is over, or waits for a person.
func follow(ctx context.Context, store run.Store, id string) (contract.Result, error) {
	r, err := store.Await(ctx, id)
	if err != nil {
		return contract.Result{Data: runDataOf(r), Effect: contract.Updated}, err
	}
	return answerOf(r)
}
