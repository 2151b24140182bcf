package runs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/work/run"
)

func runsDiff() *contract.Command {
	return &contract.Command{
		Path: "runs diff", Summary: "print what a run has changed, or how two differ",
		Class: contract.Printout, Danger: contract.Safe, Version: "1.0.0", Scopes: []string{},
		LooseConfig: true,
		Params: []contract.Param{
			printedRun(),
			{Name: "other", Kind: contract.ID, Position: 2, MaxLen: 128, Help: "a run in another fork"},
			{Name: "json", Kind: contract.Bool, Help: "a line of JSON a file"},
			flags.Where(),
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is printed"},
			{Code: contract.GeneralError, When: "it cannot be read or written"},
			{Code: contract.ArgError, When: "wrong call"},
			{Code: contract.PreconditionFailed, When: "no home"},
			{Code: contract.NotFound, When: "no such run or fork, or it is not over"},
		},
		Examples: []contract.Example{{Description: "One of them", Command: "omniagent runs diff run-1a2b3c4d"}},
		Serve: func(ctx context.Context, c *contract.Call, _ <-chan os.Signal) (code int, err error) {
			store, err := stores.Runs(c)
			if err != nil {
				return 0, err
			}
			counted := &counter{to: c.Host.Stdout}
			out := contract.Printed(counted)
			defer func() {
				if err == nil && counted.n == 0 && !logNeverBegan(c, store) && c.Host.StdoutTerminal {
					parts.LogLine(c, "no file differs")
				}
			}()
			if c.Given("other") {
				return 0, printBetween(ctx, c, store, out)
			}
			logDoubtful(c, store)
			if !c.Bool("json") {
				return 0, store.Diff(ctx, c.String("id"), out)
			}
			dir, changes, err := store.Changes(ctx, c.String("id"))
			for _, f := range changes {
				if err == nil {
					err = printChange(out, dir, f)
				}
			}
			return 0, err
		},
	}
}

// counter is a writer that counts bytes.
type counter struct {
	to io.Writer
	n  int
}

func (w *counter) Write(b []byte) (n int, err error) {
	n, err = w.to.Write(b)
	w.n += n
	return n, err
}

// logNeverBegan logs that the run never began, if that is why nothing differs, and reports whether it did.
func logNeverBegan(c *contract.Call, store run.Store) bool {
	r, err := store.Peek(c.String("id"))
	if err != nil || c.Given("other") || !r.NeverBegan() {
		return false
	}
	parts.LogLine(c, "%s never began, so it has changed nothing", r.ID)
	return true
}

// logDoubtful logs the paths that others may have changed, which the output leaves out.
func logDoubtful(c *contract.Call, store run.Store) {
	r, err := store.Peek(c.String("id"))
	if err != nil || r.Result == nil || r.Result.Changed == nil || r.Result.Changed.Doubtful == 0 {
		return
	}
	doubts := r.Result.Changed
	names := []string{}
	for _, d := range doubts.Perhaps[:min(len(doubts.Perhaps), mostOfGit)] {
		names = append(names, d.Path)
	}
	more := ""
	if n := doubts.Doubtful - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	parts.LogLine(c, "perhaps changed by the run too, and not shown: %s%s", text.Visible(strings.Join(names, ", ")),
		more)
}

// printBetween prints the differences between the forks of two runs.
func printBetween(ctx context.Context, c *contract.Call, store run.Store, out io.Writer) error {
	var forks []*fork.Fork
	for _, name := range []string{"id", "other"} {
		r, err := store.Load(ctx, c.String(name))
		if err != nil {
			return err
		}
		f, err := forkOf(c, r)
		if err != nil {
			return err
		}
		chain, _ := chainOf(store, r) // as far as there are records
		if err := setAside(f, r.Dir, store, chain); err != nil {
			return err
		}
		forks = append(forks, f)
	}
	changes, err := fork.Between(ctx, forks[0], forks[1])
	for _, change := range changes {
		if err == nil && c.Bool("json") {
			err = printChange(out, forks[0].Workspace, snapshot.Change{
				Path: change.Path, Status: change.Status, Added: change.Added, Removed: change.Removed,
			})
		} else if err == nil {
			err = change.Patch(out)
		}
	}
	return err
}

// printChange prints a change as a line of JSON, with an absolute path.
func printChange(out io.Writer, dir string, f snapshot.Change) error {
	f.Path = strings.TrimSuffix(dir, "/") + "/" + f.Path
	line, err := text.Line(f)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
	}
	return err
}
