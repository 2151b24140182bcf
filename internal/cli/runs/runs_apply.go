package runs

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/forks"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/fork"
	"omniagent/internal/work/run"
)

// The values of --as: how to apply the changes of a run.
const (
	asInPlace = "in-place"
	asBranch  = "branch"
	asPatch   = "patch"
)

type runApplied struct {
	forks.Applied
	ID    string                           `json:"run_id"`
	Patch contract.Foreign[contract.Exact] `json:"patch" doc:"empty: without --as patch"`

	branch string // the branch that a dry run would make
}

// PlainText returns the patch, or the report for people.
func (d runApplied) PlainText() string {
	switch {
	case d.Patch.Value != "":
		return string(d.Patch.Value)
	case d.branch != "":
		return fmt.Sprintf("Would make the branch %s, or one with a number after that, with %s.\n", d.branch,
			text.Plural(len(d.Files), "path"))
	case d.Branch != nil && !d.InPlace && d.Turn == nil && len(d.Files) == 0:
		return fmt.Sprintf("The branch %s has it, with %s that was not there before.\n", *d.Branch,
			text.Plural(d.Commits, "commit"))
	}
	return d.Applied.PlainText()
}

// Verbatim reports whether the result is a patch, which git apply needs unchanged.
func (d runApplied) Verbatim() bool { return d.Patch.Value != "" }

func (p commands) runsApply() *contract.Command {
	return forks.Command(contract.Command{
		Path: "runs apply", Summary: "bring home what a run did in its fork", Danger: contract.Mutating,
		Detail: "It does what fork apply does. With --as branch, or patch, the files here stay as they are. See " +
			"docs/races.md.",
		DryRun: true, Reversible: true, Output: contract.TypeOf[runApplied](), Volatile: []string{"turn", "patch"},
		Params: []contract.Param{
			runParam(),
			{
				Name: "as", Kind: contract.Enum, Default: asInPlace, Enum: []string{asInPlace, asBranch, asPatch},
				Help: "how",
			},
			forks.TakeFlag(),
		},
		Files:    stores.UndoFiles(forks.Files(), contract.FileEffect{Path: ".", Type: "state"}),
		Children: []contract.Subprocess{{Binary: "git", FixedArgs: []string{"update-ref"}}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "all of it is here; with --dry-run always"},
			{Code: contract.PartialFailure, When: "see data.files", Changed: contract.Some},
			{Code: contract.NotFound, When: "no such run or fork"},
			{Code: contract.Conflict, When: "git is at work there, or this is the fork"},
		},
		Examples: []contract.Example{
			{Description: "The winner", Command: "omniagent runs apply run-1a2b3c4d"},
			{
				Description: "As a patch",
				Command:     "omniagent runs apply run-1a2b3c4d --as patch --output plain",
			},
		},
		Run: contract.WithStore(stores.Runs, p.applyRun),
	})
}

func (p commands) applyRun(ctx context.Context, c *contract.Call, runs run.Store) (contract.Result, error) {
	r, err := runs.Load(ctx, c.String("id"))
	if err != nil {
		return contract.Result{}, err
	}
	f, err := forkOf(c, r)
	if err != nil {
		return contract.Result{}, err
	}
	chain, err := chainOf(runs, r)
	if err != nil && c.String("as") == asPatch {
		return contract.Result{}, err
	}
	if err := setAside(f, r.Dir, runs, chain); err != nil {
		return contract.Result{}, err
	}
	d := runApplied{ID: r.ID, Applied: forks.AppliedOf(f, fork.Outcome{}, c.DryRun())}
	switch c.String("as") {
	case asPatch:
		patch, errPatch := patchOf(ctx, runs, chain)
		d.Patch.Value, err = contract.Exact(patch), errPatch
	case asBranch:
		if c.DryRun() {
			err = d.foresee(ctx, c, f)
			break
		}
		branch, count, errBranch := f.Branch(ctx, text.OneLine(r.Text, 72)+"\n\nRun "+r.ID+" of "+
			runDataOf(r).Agent+".\n")
		d.Branch, d.Commits, err = contract.OrNil(branch), count, errBranch
		if changes, errChanges := f.Changes(ctx); err == nil && errChanges == nil {
			warnLeftOut(c, f.LeftOut(changes))
			if late := f.RunsLater(ctx, forks.LaterPolicy(p.Parts, c, f), changes); len(late) > 0 {
				c.Warn("RUNS_LATER", "the branch has what is run later by itself once it is checked out: %s",
					text.Visible(strings.Join(late, ", ")))
			}
		}
	default:
		d.Applied, err = forks.Apply(ctx, p.Parts, c, f)
	}
	return contract.Result{
		Data: d, Effect: d.Effect(), Target: map[string]any{"run": r.ID, "fork": f.Name, "cwd": f.Workspace},
	}, err
}

// foresee lists the uncommitted changes that a branch would get, besides the commits of the fork.
func (d *runApplied) foresee(ctx context.Context, c *contract.Call, f *fork.Fork) error {
	changes, err := f.Changes(ctx)
	left := f.LeftOut(changes)
	warnLeftOut(c, left)
	for _, change := range changes {
		if slices.Contains(left, change.Path) {
			continue
		}
		path := filepath.Join(f.Workspace, filepath.FromSlash(change.Path))
		d.Files = append(d.Files, forks.FileResult{Path: path, Result: "applied"})
	}
	d.branch = f.BranchName()
	return err
}

// warnLeftOut warns of changed paths that a branch does not get.
func warnLeftOut(c *contract.Call, names []string) {
	if len(names) > 0 {
		c.Warn("FORK_NESTED", "the branch does not have %s of nested repositories, such as %s",
			text.Plural(len(names), "path"), text.Visible(names[0]))
	}
}

// forkOf returns the fork in which a run worked.
func forkOf(c *contract.Call, r run.Record) (*fork.Fork, error) {
	if r.Fork == "" {
		return nil, fault.New(fault.NotFoundCode, "%s worked in no fork, but in %s itself", r.ID, r.Dir).
			With("run_id", r.ID).Hint("omniagent runs diff %s; omniagent undo --run %s", r.ID, r.ID)
	}
	store, err := stores.Forks(c)
	if err != nil {
		return nil, err
	}
	f, err := store.Open(r.Fork)
	if err == nil {
		err = checkForkOf(f, r)
	} else if fault.Of(err).Code == fault.NotFoundCode {
		err = fault.New(fault.NotFoundCode, "the fork %s of %s was deleted", r.Fork, r.ID).
			With("run_id", r.ID).Hint("omniagent runs diff %s", r.ID)
	}
	return f, err
}

// checkForkOf returns a fault unless the run worked in this fork, because a later fork may have its name. A record of
// an earlier version has no id of the fork, so its directory and time decide.
func checkForkOf(f *fork.Fork, r run.Record) error {
	if r.ForkID == f.ID || r.ForkID == "" && f.Covers(r.Dir) && !f.Made.After(r.Created) {
		return nil
	}
	return fault.New(fault.NotFoundCode, "the fork of %s was deleted; %s is another one now, of %s", r.ID, f.Name,
		f.Workspace).With("run_id", r.ID).Hint("omniagent runs diff %s", r.ID)
}

// chainOf returns the runs in one fork that r continues, the oldest first and r last. If the record of one is gone, it
// returns the later ones and an error.
func chainOf(runs run.Store, r run.Record) (chain []run.Record, err error) {
	for chain = []run.Record{r}; r.Of != ""; {
		before, errPeek := runs.Peek(r.Of)
		if errPeek != nil {
			err = fault.New(fault.NotFoundCode, "%s goes on where %s ended, whose record is gone", r.ID, r.Of).
				Because(errPeek).Hint("omniagent runs apply %s", r.ID)
			break
		}
		if before.Fork != r.Fork || before.ForkID != r.ForkID {
			break
		}
		chain, r = append(chain, before), before
	}
	slices.Reverse(chain)
	return chain, err
}

// setAside makes a fork ignore what the checks of the runs have changed. dir is the directory of the runs.
func setAside(f *fork.Fork, dir string, runs run.Store, chain []run.Record) error {
	all, err := runs.Aside(chain)
	rel, within := pathname.In(f.Place(f.Workspace), dir)
	if err != nil || !within {
		return err
	}
	versions := map[string]fork.Version{}
	for name, v := range all {
		versions[path.Join(filepath.ToSlash(rel), name)] = v
	}
	f.SetAside(versions)
	return nil
}

// patchOf returns the patches of runs, one after the other.
func patchOf(ctx context.Context, runs run.Store, chain []run.Record) (string, error) {
	var patch strings.Builder
	for _, each := range chain {
		if err := runs.Diff(ctx, each.ID, &patch); err != nil {
			return "", err
		}
	}
	return patch.String(), nil
}
