package runs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/forks"
	"omniagent/internal/cli/parts"
	"omniagent/internal/kit/fault"
	"omniagent/internal/work/run"
)

// contestants parses a list such as claude,codex*2 into names, with repetitions.
func contestants(list string) (names []string, err error) {
	for word := range strings.SplitSeq(list, ",") {
		name, times, counted := strings.Cut(strings.TrimSpace(word), "*")
		n := 1
		if counted {
			if n, err = strconv.Atoi(times); err != nil || n < 1 {
				return nil, fault.New(fault.ArgError, "%q does not name a contestant: after * comes how many", word).
					Hint("--race claude,codex*2")
			}
		}
		if name == "" || len(names)+n > mostEntries {
			return nil, fault.New(fault.ArgError, "--race takes 1 to %d agents", mostEntries).
				Hint("--race claude,codex*2")
		}
		names = append(names, slices.Repeat([]string{name}, n)...)
	}
	return names, nil
}

// race lets several agents do one task, each in its own fork, and picks the winner.
func (p commands) race(ctx context.Context, c *contract.Call, store run.Store, task run.Task) (contract.Result, error) {
	self, err := parts.Executable()
	if err != nil {
		return contract.Result{}, err
	}
	began := time.Now()
	var entries []oneRun
	for i, name := range task.Agents {
		f, err := forks.New(ctx, c, c.Dir())
		if err != nil {
			for _, e := range entries {
				_, _ = e.fork.Delete(context.WithoutCancel(ctx)) // nothing ran in it
			}
			return contract.Result{}, err
		}
		entries = append(entries, oneRun{
			name: fmt.Sprintf("%d %s", i+1, name), agent: name, task: task.Text, fork: f,
		})
	}
	rows := several{c, store, self, len(entries)}.carryOut(ctx, entries)
	d := handedOver{runData: runDataOf(run.Record{Task: task, State: run.Failed, Created: began}), Runs: rows}
	best := winner(rows)
	if best < 0 {
		d.Summary.Next = append([]string{"omniagent runs list"}, nextForLosers(rows, -1)...)
		f := nonePassed(rows, "contestant")
		d.Status = statusOf(rows, f)
		return contract.Result{Data: d, Effect: contract.Created}, f
	}
	if r, err := store.Load(ctx, rows[best].ID); err == nil {
		d.runData = runDataOf(r)
	}
	d.Winner = &rows[best].ID
	d.Summary.Next = []string{"omniagent runs diff " + d.ID, "omniagent runs apply " + d.ID}
	d.Summary.Next = append(d.Summary.Next, nextForLosers(rows, best)...)
	return contract.Result{Data: d, Effect: contract.Created}, nil
}

// nextForLosers returns commands for the runs that did not win: those that answer a question, and one that deletes the
// forks of the others. It keeps the fork of a run that waits for an answer, which needs it.
func nextForLosers(rows []severalRow, best int) (commands []string) {
	words := ""
	for i, r := range rows {
		switch {
		case i == best:
		case r.Status == string(run.NeedsInput):
			commands = append(commands, r.answers...)
		case r.Fork != nil:
			words += " " + *r.Fork
		}
	}
	if words != "" {
		commands = append(commands, "omniagent fork delete"+words+" --confirm-destructive")
	}
	return commands
}

// winner returns the index of the best contestant that passed, or -1; see merit.
func winner(rows []severalRow) int {
	best := -1
	for i, r := range rows {
		if r.Passed && (best < 0 || slices.Compare(r.merit(), rows[best].merit()) < 0) {
			best = i
		}
	}
	return best
}

// merit returns the key by which those that passed are compared; less is better. Those that changed something come
// first, then those with fewer changed lines, fewer files and less time.
func (r severalRow) merit() []int64 {
	idle, files := int64(0), int64(0)
	if r.Files != nil {
		files = int64(*r.Files)
	}
	if files == 0 {
		idle = 1
	}
	return []int64{idle, int64(r.Added + r.Removed), files, r.Duration}
}
