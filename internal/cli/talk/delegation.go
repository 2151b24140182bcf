package talk

import (
	"cmp"
	"os"
	"slices"
	"sync"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/runs"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/host/mcp"
	"omniagent/internal/native/tool"
	"omniagent/internal/work/run"
)

// delegated returns the runner for work that the native agent delegates, or nil if it may not delegate: without a place
// for runs, or too many agents deep.
func delegated(o parts.Opener) tool.Agents {
	c, depth := o.Call, parts.DepthOf(o.Call)
	store, err := stores.Runs(c)
	if err != nil || depth >= mcp.MaxDepth {
		return nil
	}
	return run.Runner{
		Store:  store,
		Agents: sync.OnceValue(func() []string { return delegable(o) }),
		Limits: limitsOf(c),
		Owner: func(r *run.Run) run.Owner {
			own := o
			own.Others, own.Closed, own.Run = nil, true, r.ID
			own.Request.Ask, own.Request.Mode, own.Request.Patience = nil, true, 24*time.Hour
			owner := runs.OwnerOf(own, r)
			env := mcp.Deeper(os.Environ(), depth)
			owner.Spec = func(string) agent.Spec { return agent.Spec{Env: env} }
			if depth > 0 { // the run that waits for this one counts as one of run.parallel: a limit could block both
				owner.Parallel = 0
			}
			return owner
		},
	}
}

// delegable returns the installed agents that run may start, in the order of agents.allow.
func delegable(o parts.Opener) (names []string) {
	known, err := parts.KnownAgents(o.Call, o.Parts.Agents)
	if err != nil {
		o.Log("no work can be delegated: %v", err)
		return nil
	}
	list, order := stores.Allowlist(o.Call), o.Call.Config.List("agents.allow")
	for _, k := range known {
		if _, decided, err := list.Find(k.Name()); err != nil || !decided {
			continue // not on the list: save the search for its program
		}
		row, _ := k.Row(o.Call)
		if row.Allowed == "yes" && (len(order) == 0 || slices.Contains(order, k.Name())) {
			names = append(names, k.Name())
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(slices.Index(order, a), slices.Index(order, b))
	})
	return names
}

// limitsOf returns a task with the limits of the configuration.
func limitsOf(c *contract.Call) run.Task {
	return run.Task{
		Timeout: c.Config.Limit("run.timeout", "timeout"), Idle: c.Config.Duration("run.idle_timeout"),
		First: c.Config.Duration("run.first_output"), Retries: int(c.Config.Int("run.retries")),
	}
}
