package forks

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/fork"
)

type forkDiffData struct {
	Name  string                           `json:"name"`
	Files contract.Foreigns[forkFile]      `json:"files"`
	Git   contract.Foreigns[forkOwn]       `json:"git" doc:"what only the repositories of the fork have"`
	Patch contract.Foreign[contract.Exact] `json:"patch" doc:"empty: without --patch"`

	root string // the directory of the workspace
}

type forkFile struct {
	Path    string `json:"path"`
	Status  string `json:"status"`
	Added   *int   `json:"added" doc:"lines; null: not counted"`
	Removed *int   `json:"removed"`
	Meets   bool   `json:"changed_in_workspace" doc:"since the fork was made, too"`
	Arrived bool   `json:"same_in_workspace" doc:"the workspace has the same"`
}

type forkOwn struct {
	Repository string `json:"repository" doc:"the top of its working tree"`
	Ref        string `json:"ref" doc:"such as refs/heads/topic, refs/stash, or HEAD"`
	Commit     string `json:"commit"`
}

// ownOf returns the refs whose commits only the repositories of a fork have.
func ownOf(ctx context.Context, f *fork.Fork) (all []forkOwn, err error) {
	found, err := f.Owns(ctx)
	for _, o := range found {
		path := filepath.Join(f.Workspace, filepath.FromSlash(o.Repository))
		all = append(all, forkOwn{path, o.Ref, o.Commit})
	}
	return all, err
}

// shownIn returns a path relative to the workspace, for people.
func shownIn(root, path string) string {
	return text.Visible(strings.TrimPrefix(path, root+string(filepath.Separator)))
}

// Verbatim reports whether the result is a patch, which git apply needs unchanged.
func (d forkDiffData) Verbatim() bool { return d.Patch.Value != "" }

// PlainText returns the patch with --patch, and a list of the files without.
func (d forkDiffData) PlainText() string {
	if d.Patch.Value != "" {
		return string(d.Patch.Value)
	}
	if len(d.Files)+len(d.Git) == 0 {
		return "The fork is as the workspace was.\n"
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range d.Files {
		lines, note := "", ""
		if f.Added != nil {
			lines = fmt.Sprintf("+%d -%d", *f.Added, *f.Removed)
		}
		switch {
		case f.Meets:
			note = "changed in the workspace too"
		case f.Arrived:
			note = "the same in the workspace"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Status, shownIn(d.root, f.Path), lines, note)
	}
	_ = w.Flush() // into memory
	for _, o := range d.Git {
		fmt.Fprintf(&b, "only in the fork: %s %s of %s\n", text.Visible(o.Ref), o.Commit[:12],
			shownIn(d.root, o.Repository))
	}
	return b.String()
}

func forkDiff() *contract.Command {
	return Command(contract.Command{
		Path: "fork diff", Summary: "show what a fork has changed", Danger: contract.Safe,
		Output: contract.TypeOf[forkDiffData](), Volatile: []string{"files", "git", "patch"},
		Params: []contract.Param{
			forkParam(), {Name: "patch", Kind: contract.Bool, Help: "line by line"},
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is shown"},
			noFork(),
		},
		Examples: []contract.Example{{Description: "Line by line", Command: "omniagent fork diff try --patch"}},
		Run: contract.WithStore(forkNamed, func(
			ctx context.Context, c *contract.Call, f *fork.Fork,
		) (contract.Result, error) {
			changes, err := f.Changes(ctx)
			if err != nil {
				return contract.Result{}, err
			}
			d := forkDiffData{Name: f.Name, root: f.Workspace}
			if d.Git, err = ownOf(ctx, f); err != nil {
				return contract.Result{}, err
			}
			var patch strings.Builder
			for _, change := range changes {
				path := filepath.Join(f.Workspace, filepath.FromSlash(change.Path))
				d.Files = append(d.Files, forkFile{
					path, string(change.Status), change.Added, change.Removed, change.Meets,
					change.Arrived,
				})
				if err := change.Patch(&patch); err != nil {
					return contract.Result{}, err
				}
			}
			if c.Bool("patch") {
				d.Patch.Value = contract.Exact(patch.String())
			}
			return contract.Result{Data: d}, nil
		}),
	})
}
