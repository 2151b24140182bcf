package runs

import (
	"context"
	"fmt"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/work/run"
)

// runStatus is a small result, for programs that poll.
type runStatus struct {
	ID       string `json:"run_id"`
	Status   string `json:"status"`
	Reason   string `json:"reason"`
	Waits    string `json:"waits_for" doc:"of a queued run: what it waits for, and its place; else empty"`
	Terminal bool   `json:"terminal" doc:"it is over"`
}

func (d runStatus) PlainText() string {
	return fmt.Sprintf("%s: %s\n", d.ID, d.words())
}

func (d runStatus) words() string {
	words := endWords(d.Status, d.Reason)
	if d.Waits != "" {
		words += ", " + d.Waits
	}
	return words
}

func runsStatus() *contract.Command {
	return runsCommand(contract.Command{
		Path: "runs status", Summary: "report the state of a run by its exit code", Danger: contract.Safe,
		Output: contract.TypeOf[runStatus](),
		Params: []contract.Param{runParam()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it has succeeded"},
			{Code: contract.PartialFailure, When: "it waits for its turn, or works", Changed: contract.None},
			{Code: contract.PreconditionFailed, When: "it needs an answer, has not succeeded, or there is no home"},
		},
		Examples: []contract.Example{
			{Description: "Whether it is done", Command: "omniagent runs status run-1a2b3c4d"},
		},
		Run: contract.WithStore(stores.Runs, func(
			ctx context.Context, c *contract.Call, store run.Store,
		) (contract.Result, error) {
			r, err := store.Load(ctx, c.String("id"))
			if err != nil {
				return contract.Result{}, err
			}
			all := runDataOf(r)
			d := runStatus{r.ID, all.Status, all.Reason, waitsFor(store, r), r.State.Terminal()}
			out := contract.Result{Data: d}
			switch {
			case r.State == run.Succeeded:
				return out, nil
			case r.State == run.NeedsInput:
				return out, fault.New(fault.NeedsInput, "%s waits for an answer", r.ID).HintAny(r.Answers())
			case r.State.Terminal():
				return out, fault.New(fault.RunNotSucceeded, "%s is over: %s", r.ID, d.words()).
					Hint("omniagent runs show %s", r.ID)
			}
			return out, fault.New(fault.RunNotOver, "%s is not over: %s", r.ID, d.words()).
				Hint("omniagent runs watch %s ends with it", r.ID)
		}),
	})
}
