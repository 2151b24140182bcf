package command

import (
	"context"
	"fmt"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/text"
	"omniagent/internal/work/run"
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
	store, err := runStore(c)
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

// checkRuns tells what runs, and what waits for an answer.
func checkRuns(ctx context.Context, c *contract.Call) check {
	k := check{Name: "runs", OK: true}
	waiting, working := []string{}, 0
	for _, r := range liveRuns(ctx, c) {
		if r.Status == string(run.NeedsInput) {
			waiting = append(waiting, r.ID)
		} else {
			working++
		}
	}
	var parts []string
	if working > 0 {
		parts = append(parts, fmt.Sprintf("%d under way", working))
	}
	if len(waiting) > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting for an answer: %s", len(waiting), strings.Join(waiting, ", ")))
	}
	k.Detail = orNil(strings.Join(parts, ", "))
	return k
}
