package runs

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/work/run"
)

// Shared by the commands of "runs".

func runParam() contract.Param {
	return contract.Param{
		Name: "id", Kind: contract.ID, Position: 1, Required: true, MaxLen: 128, Stdin: true, Help: "the run",
	}
}

// runsCommand adds the declarations that all of them share.
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
}

func runsList() *contract.Command {
	return runsCommand(contract.Command{
		Path: "runs list", Summary: "list the runs, the newest first", Danger: contract.Safe,
		Output: contract.TypeOf[runsData](), Volatile: []string{"runs"},
		List: &contract.List{
			Key: "runs", ID: "run_id", Order: "given",
			Columns: []string{"run_id", "status", "age", "cwd", "task", "question"},
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
		Run: contract.On(stores.Runs, func(
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
					d.Summary.Why.Value, text.OneLine(asks(r), 300),
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
		Run: contract.On(stores.Runs, cancelRuns),
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
		if err != nil { // the others are ended all the same
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
		Run: contract.On(stores.Runs, func(
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

// runsContinue declares the command that takes up a run without an owner: it is what --detach leaves behind.
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
		Run: contract.On(stores.Runs, func(
			ctx context.Context, c *contract.Call, store run.Store,
		) (contract.Result, error) {
			if c.DryRun() {
				r, err := store.Free(ctx, c.String("id"))
				return untried(r, contract.Updated), err
			}
			r, err := store.Acquire(ctx, c.String("id"))
			if err != nil {
				return contract.Result{}, err
			}
			startedWith(c, &r.Task)
			return p.carryOut(ctx, c, r)
		}),
	})
}

// validateAnswer refuses a first word that is neither the id of a run nor the whole answer.
func validateAnswer(c *contract.Call) []fault.Problem {
	id := c.String("id")
	if id == "" || run.IsID(id) || !c.Given("text") && !c.Bool("approve") {
		return nil
	}
	return []fault.Problem{
		contract.Wrong("id", fault.ArgError, id, "%q is not a run; omniagent runs list has them", id),
	}
}

// answer declares the command that answers the question of a run, which then goes on.
func (p commands) answer() *contract.Command {
	return p.runCommand(contract.Command{
		Path: "answer", Summary: "answer the question of a run, which then goes on",
		Detail: "It ends with the run's own exit code. A question is answered once; a later answer learns who " +
			"was first.",
		Params: append([]contract.Param{
			{
				Name: "id", Kind: contract.Text, Position: 1, MaxLen: maxTask, Stdin: true,
				Help: "the run; may be left out where one waits",
			},
			{Name: "text", Kind: contract.Text, Position: 2, MaxLen: maxTask, Help: "the answer"},
			{Name: "question", Kind: contract.Name, Help: "which one, where several are open"},
			{Name: "approve", Kind: contract.Bool, Help: "the tool may run"},
			{Name: "reject", Kind: contract.Bool, Help: "the tool may not run; the text says why"},
			{Name: "secret", Kind: contract.Text, Secret: true, Help: "the answer, which is kept nowhere"},
			{Name: "detach", Kind: contract.Bool, Help: "return at once; a process carries it out"},
		}, runStart()...),
		Rules:    []contract.Rule{{If: "approve", Not: []string{"reject"}}},
		Validate: validateAnswer,
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is done; with --detach, it goes on"},
			{Code: contract.NotFound, When: "no such run, question, or agent here"},
			{Code: contract.Unavailable, When: "the service does not answer", Changed: contract.Some},
		},
		Examples: []contract.Example{
			{Description: "A text, where one run waits", Command: "omniagent answer blue"},
			{Description: "A text, to one of several", Command: "omniagent answer run-1a2b3c4d blue"},
			{Description: "Let a tool run", Command: "omniagent answer run-1a2b3c4d --approve"},
		},
		Instead: inForkOfRun,
		Run:     contract.On(stores.Runs, p.runAnswer),
	})
}

// answerGiven returns the answer of a call.
func answerGiven(c *contract.Call) (a run.Answer, err error) {
	_, said := answered(c)
	a = run.Answer{Text: said, At: time.Now().UTC(), By: os.Getpid()}
	if a.Secret = givesSecret(c); a.Secret {
		if a.Text, err = c.Secret("secret"); err != nil {
			return a, err
		}
		if err = run.CheckSecret(c.String("id"), a.Text); err != nil {
			return a, err
		}
	}
	switch {
	case c.Bool("approve"):
		a.Option = run.Approve
	case c.Bool("reject"):
		a.Option = run.Reject
	case a.Text == "":
		return a, fault.New(fault.ArgError, "there is no answer").
			Hint("omniagent answer %s", strings.TrimSpace(c.String("id")+" 'TEXT'"))
	}
	return a, nil
}

func (p commands) runAnswer(ctx context.Context, c *contract.Call, store run.Store) (contract.Result, error) {
	a, err := answerGiven(c)
	if err != nil {
		return contract.Result{}, err
	}
	id, err := runMeant(ctx, c, store)
	if err != nil {
		return contract.Result{}, err
	}
	record, err := store.Load(ctx, id)
	if err == nil {
		err = tellMeant(ctx, c, record)
	}
	if err != nil {
		return contract.Result{}, err
	}
	asked, err := record.Meant(c.String("question"))
	if err != nil {
		return contract.Result{}, err
	}
	if a.Secret {
		defer func() { p.tellKeeper(ctx, c, store, record.ID) }()
	}
	_, alive := store.Owner(record.ID)
	alive = alive && record.State == run.NeedsInput && record.Socket != "" // without it, an earlier answer is under way
	if c.DryRun() {
		if _, err = record.Takes(asked, a); err == nil && !alive {
			_, err = store.Free(ctx, record.ID)
		}
		return untried(record, contract.Updated), err
	}
	late := func(err error) error { // another answer may have come meanwhile
		if now, look := store.Load(ctx, record.ID); look == nil {
			return now.Late(asked, err)
		}
		return err
	}
	if alive {
		q, err := record.Takes(asked, a)
		if err != nil {
			return contract.Result{}, late(err)
		}
		if err := store.Tell(ctx, record, asked, a); err != nil {
			return contract.Result{}, late(err)
		}
		if err := c.Begun(record.ID); err != nil {
			return contract.Result{}, err
		}
		return follow(ctx, c, store, record.ID, q.ID)
	}
	r, err := store.Acquire(ctx, record.ID)
	if err != nil {
		return contract.Result{}, late(err)
	}
	startedWith(c, &r.Task)
	if err := r.Answer(asked, a); err != nil {
		_ = r.Release()
		return contract.Result{}, err
	}
	if (r.Detached || c.Bool("detach")) && !a.Secret { // a secret does not leave this process
		result, err := p.leave(ctx, c, store, r)
		if err != nil || c.Bool("detach") {
			return result, err
		}
		return follow(ctx, c, store, record.ID)
	}
	return p.carryOut(ctx, c, r)
}

// tellKeeper tells the person where an agent that got a secret keeps its own record.
func (p commands) tellKeeper(ctx context.Context, c *contract.Call, store run.Store, id string) {
	r, err := store.Load(ctx, id)
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

// follow waits until a run that another process carries out is over, or waits for a person, who is asked at once on a
// terminal. told are questions that were just answered.
func follow(ctx context.Context, c *contract.Call, store run.Store, id string, told ...string) (contract.Result,
	error,
) {
	one := asker{c: c}
	for {
		r, err := store.Await(ctx, id, func(r run.Record) bool { return len(openBut(r, told)) > 0 })
		if err != nil {
			return contract.Result{Data: runDataOf(r), Effect: contract.Updated}, err
		}
		if r.State.Terminal() || r.Rests() {
			return answerOf(r)
		}
		q := openBut(r, told)[0]
		waits := fault.New(fault.NeedsInput, "the agent asks: %s", q.Text).HintAny(r.Answers())
		waits.Phase = fault.Execution
		if !c.Attended() {
			return contract.Result{Data: runDataOf(r), Effect: contract.Updated}, waits
		}
		a, ok := one.ask(ctx, q)
		if !ok {
			return contract.Result{Data: runDataOf(r), Effect: contract.Updated}, waits
		}
		if err := store.Tell(ctx, r, q.ID, a); err != nil {
			return contract.Result{Data: runDataOf(r), Effect: contract.Updated}, err
		}
		told = append(told, q.ID)
	}
}

// openBut returns the open questions of a run whose owner waits for an answer, without those that were answered here.
func openBut(r run.Record, told []string) []run.Question {
	if r.State != run.NeedsInput || r.Socket == "" {
		return nil
	}
	return slices.DeleteFunc(r.Open(), func(q run.Question) bool { return slices.Contains(told, q.ID) })
}
