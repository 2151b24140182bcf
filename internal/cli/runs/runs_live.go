package runs

import (
	"context"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/text"
)

// LiveRun describes a run that is not over.
type LiveRun struct {
	ID     string `json:"run_id"`
	Status string `json:"status"`
	Agent  string `json:"agent"`
	Cwd    string `json:"cwd"`
	Task   string `json:"task"`
	Asks   string `json:"question" doc:"that waits for an answer, or empty"`
	PID    *int   `json:"pid" doc:"the process that carries it out; null: none, it waits"`
}

// Live lists the runs that are not over. It also records the end of each run whose owner died while an
// agent worked.
func Live(ctx context.Context, c *contract.Call) (live []LiveRun) {
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
		row := LiveRun{
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
