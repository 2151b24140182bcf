package runs

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/forks"
	"omniagent/internal/kit/fault"
	"omniagent/internal/work/run"
)

// contestants reads a list such as claude,codex*2.
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

// race lets agents do one task, each in a fork of its own, and says who did it best.
func (p commands) race(ctx context.Context, c *contract.Call, store run.Store, task run.Task) (contract.Result, error) {
	self, err := os.Executable()
	if err != nil {
		return contract.Result{}, fault.New(fault.Internal, "this program cannot be found").Because(err)
	}
	began := time.Now()
	var entries []oneRun
	for i, name := range task.Agents {
		f, err := forks.New(ctx, c, c.Dir())
		if err != nil {
			for _, e := range entries {
				_, _ = e.fork.Delete(context.WithoutCancel(ctx)) // nobody worked in it
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
		d.Summary.Next = append([]string{"omniagent runs list"}, leftTo(rows, -1)...)
		f := lost(rows, "contestant")
		d.Status = statusOf(rows, f)
		return contract.Result{Data: d, Effect: contract.Created}, f
	}
	if r, err := store.Load(ctx, rows[best].ID); err == nil {
		d.runData = runDataOf(r)
	}
	d.Winner = &rows[best].ID
	d.Summary.Next = []string{"omniagent runs diff " + d.ID, "omniagent runs apply " + d.ID}
	d.Summary.Next = append(d.Summary.Next, leftTo(rows, best)...)
	return contract.Result{Data: d, Effect: contract.Created}, nil
}

// leftTo returns the commands about those that have not won: that answers a question, and that deletes the forks of the
// others. Who waits for an answer goes on in its fork.
func leftTo(rows []severalRow, best int) (commands []string) {
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

// winner returns the contestant that passed with the fewest changed lines; -1: none has. One that has changed nothing
// is behind all that have changed something. With as many lines it is the one with fewer files, or else the faster one.
func winner(rows []severalRow) int {
	best := -1
	for i, r := range rows {
		if r.Passed && (best < 0 || slices.Compare(r.merit(), rows[best].merit()) < 0) {
			best = i
		}
	}
	return best
}

// merit orders those that passed, the best first.
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
