package command

import (
	"context"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/text"
)

// liveRun is a run that is not over.
type liveRun struct {
	ID     string `json:"run_id"`
	Status string `json:"status"`
	Agent  string `json:"agent"`
	Cwd    string `json:"cwd"`
	Task   string `json:"task"`
	Asks   string `json:"question" doc:"that waits for an answer, or empty"`
	PID    *int   `json:"pid" doc:"the process that carries it out; null: none, it waits"`
}

// liveRuns lists the runs that are not over. Looking settles those whose owner died.
func liveRuns(ctx context.Context, c *contract.Call) (live []liveRun) {
	store, err := stores.Runs(c)
	if err != nil {
		return nil
	}
	all, _, _ := store.List(ctx)
	for _, r := range all {
		if r.State.Terminal() {
			continue
		}
		d := runDataOf(r)
		row := liveRun{
			ID: r.ID, Status: d.Status, Agent: d.Agent, Cwd: r.Dir, Task: d.Summary.Why.Value,
			Asks: text.OneLine(asks(r), 300),
		}
		if by, alive := store.Owner(r.ID); alive {
			row.PID = &by.PID
		}
		live = append(live, row)
	}
	return live
}
