package runs

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/work/run"
)

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
		Run:     contract.WithStore(stores.Runs, p.runAnswer),
	})
}

// answerGiven returns the answer that a call of answer gives.
func answerGiven(c *contract.Call) (a run.Answer, err error) {
	_, words := answerArgs(c)
	a = run.Answer{Text: words, At: time.Now().UTC(), By: os.Getpid()}
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
	id, err := targetRun(ctx, c, store)
	if err != nil {
		return contract.Result{}, err
	}
	record, err := store.Load(ctx, id)
	if err == nil {
		err = confirmRun(ctx, c, record)
	}
	if err != nil {
		return contract.Result{}, err
	}
	asked, err := record.QuestionFor(c.String("question"))
	if err != nil {
		return contract.Result{}, err
	}
	if a.Secret {
		defer func() { p.warnKeeper(ctx, c, store, record.ID) }()
	}
	_, alive := store.Owner(record.ID)
	// without a socket, the owner works on an earlier answer
	alive = alive && record.State == run.NeedsInput && record.Socket != ""
	if c.DryRun() {
		if _, err = record.Takes(asked, a); err == nil && !alive {
			_, err = store.Free(ctx, record.ID)
		}
		return dryRunResult(record, contract.Updated), err
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
	keepFlags(c, &r.Task)
	if err := r.Answer(asked, a); err != nil {
		_ = r.Release()
		return contract.Result{}, err
	}
	if (r.Detached || c.Bool("detach")) && !a.Secret { // a secret stays in this process
		result, err := leave(ctx, c, store, r)
		if err != nil || c.Bool("detach") {
			return result, err
		}
		return follow(ctx, c, store, record.ID)
	}
	return p.carryOut(ctx, c, r)
}

// warnKeeper warns that the agent that got a secret may have it in its own record, and says where that is.
func (p commands) warnKeeper(ctx context.Context, c *contract.Call, store run.Store, id string) {
	r, err := store.Load(ctx, id)
	if err != nil || len(r.Attempts) == 0 || c.DryRun() {
		return
	}
	last := r.Attempts[len(r.Attempts)-1]
	places := last.Records
	if d, known := agent.Find(p.Agents, last.Agent); known {
		if d.Describe().BuiltIn {
			return // the native agent has no other record than ours
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

// follow waits for a run that another process carries out. It returns when the run is over or waits for a person. On a
// terminal it asks the person instead. answered has the ids of questions that were just answered.
func follow(ctx context.Context, c *contract.Call, store run.Store, id string, answered ...string) (contract.Result,
	error,
) {
	one := asker{c: c}
	for {
		r, err := store.Await(ctx, id, func(r run.Record) bool { return len(openExcept(r, answered)) > 0 })
		if err != nil {
			return contract.Result{Data: runDataOf(r), Effect: contract.Updated}, err
		}
		if r.State.Terminal() || r.WaitsForPerson() {
			return answerOf(r)
		}
		q := openExcept(r, answered)[0]
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
		answered = append(answered, q.ID)
	}
}

// openExcept returns the open questions of a run whose owner waits for an answer, except those that were just answered.
func openExcept(r run.Record, answered []string) []run.Question {
	if r.State != run.NeedsInput || r.Socket == "" {
		return nil
	}
	return slices.DeleteFunc(r.Open(), func(q run.Question) bool { return slices.Contains(answered, q.ID) })
}

// answerArgs returns the run that omniagent answer names, or "", and the text of the answer. A single word that cannot
// be the id of a run is the text.
func answerArgs(c *contract.Call) (id, answer string) {
	id, answer = c.String("id"), c.String("text")
	if id != "" && answer == "" && !run.IsID(id) {
		return "", id
	}
	return id, answer
}

// targetRun returns the id of the run that a call is about. A call of answer need not name it if only one run waits.
func targetRun(ctx context.Context, c *contract.Call, store run.Store) (id string, err error) {
	if c.Command.Path != "answer" {
		return c.String("id"), nil
	}
	if id, _ = answerArgs(c); id == "" {
		return onlyWaiting(ctx, c, store)
	}
	return id, nil
}

// onlyWaiting returns the run that waits for an answer, if it is the only one, or the only one in this directory.
func onlyWaiting(ctx context.Context, c *contract.Call, store run.Store) (id string, err error) {
	all, _, err := store.List(ctx)
	if err != nil {
		return "", err
	}
	waiting := slices.DeleteFunc(all, func(r run.Record) bool { return r.State != run.NeedsInput })
	here := func(r run.Record) bool { return r.Dir == c.Dir() }
	if i := slices.IndexFunc(waiting, here); i >= 0 && !slices.ContainsFunc(waiting[i+1:], here) {
		waiting = waiting[i : i+1]
	}
	switch len(waiting) {
	case 0:
		return "", fault.New(fault.NotFoundCode, "no run waits for an answer").Hint("omniagent runs list")
	case 1:
		return waiting[0].ID, nil
	}
	f := fault.New(fault.ArgError, "%d runs wait for an answer", len(waiting)).
		Hint("omniagent runs list --status needs_input")
	ids := make([]string, 0, len(waiting))
	for _, r := range waiting {
		ids = append(ids, r.ID)
		f.Ways = append(append(f.Ways, r.Answers()...),
			fmt.Sprintf("    %s: %s", text.Name(r.Dir), text.OneLine(asks(r), 100)))
	}
	return "", f.With("runs", ids)
}

// confirmRun logs which run an answer is for, if the call names none. If it is a run of another directory, it asks a
// person for confirmation.
func confirmRun(ctx context.Context, c *contract.Call, r run.Record) error {
	if id, _ := answerArgs(c); id != "" {
		return nil
	}
	where := ""
	if r.Dir != c.Dir() {
		where = " in " + text.Name(r.Dir)
	}
	question := text.OneLine(asks(r), 200)
	c.Log("%s%s asks: %s", r.ID, where, question)
	if where == "" || !c.Attended() || c.DryRun() {
		return nil
	}
	for _, q := range r.Open() {
		showInput(c, q, question)
	}
	yes, err := c.Agree(ctx, "Answer it")
	if err == nil && !yes {
		err = fault.New(fault.ConfirmationRequired, "nothing was answered").
			Hint("omniagent answer %s", r.ID+" 'TEXT'")
	}
	return err
}

// asks returns the text of the open question of a run, or "".
func asks(r run.Record) string {
	if open := r.Open(); r.State == run.NeedsInput && len(open) > 0 {
		return open[0].Text
	}
	return ""
}
