package forks

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/walls/autorun"
	"omniagent/internal/walls/policy"
)

// Applied reports what happened to the changes of a fork.
type Applied struct {
	Name    string                        `json:"name"`
	Turn    *string                       `json:"turn" doc:"omniagent undo TURN takes it back; null: nothing was changed"`
	Files   contract.Foreigns[FileResult] `json:"files"`
	Commits int                           `json:"commits"`
	Branch  *string                       `json:"branch" doc:"that has them"`
	InPlace bool                          `json:"in_place" doc:"the branch is checked out"`
	Resumed bool                          `json:"resumed" doc:"an earlier call, whose process had died, was completed"`

	dryRun bool
	root   string // the directory of the workspace
}

// FileResult reports what happened to one path.
type FileResult struct {
	Path   string `json:"path"`
	Later  bool   `json:"runs_later" doc:"some program runs or obeys it later by itself, such as a hook"`
	Result string `json:"result" enum:"applied,merged,marked,kept" doc:"as in the fork; with the changes of both; with marks where they meet; as it was"`
	Reason string `json:"reason" doc:"why it is marked or kept"`
}

// AppliedOf returns the report of an attempt to merge a fork, or with dryRun what it would do.
func AppliedOf(f *fork.Fork, out fork.Outcome, dryRun bool) Applied {
	d := Applied{
		Name: f.Name, Turn: contract.OrNil(out.Turn), Commits: out.Commits, Branch: contract.OrNil(out.Branch),
		InPlace: out.InPlace,
		Resumed: out.Resumed, dryRun: dryRun, root: f.Workspace,
	}
	add := func(name, result, reason string, later bool) {
		path := filepath.Join(f.Workspace, filepath.FromSlash(name))
		d.Files = append(d.Files, FileResult{path, later || slices.Contains(out.Later, name), result, reason})
	}
	for _, k := range out.Conflicts {
		result := "kept"
		if k.Marked {
			result = "marked"
		}
		add(k.Path, result, k.Reason, k.Later)
	}
	for _, path := range out.Merged {
		add(path, "merged", "", false)
	}
	for _, path := range out.Applied {
		add(path, "applied", "", false)
	}
	return d
}

// Effect returns Updated if anything was merged, and Noop otherwise.
func (d Applied) Effect() contract.Effect {
	came := func(f FileResult) bool { return f.Result != "kept" }
	if d.Turn == nil && d.Branch == nil && !slices.ContainsFunc(d.Files, came) {
		return contract.Noop
	}
	return contract.Updated
}

// ForPeople makes the lines fit the screen.
func (Applied) ForPeople() {}

// PlainText returns the report for people.
func (d Applied) PlainText() string {
	verb := "Brought home"
	if d.dryRun {
		verb = "Would bring home"
	}
	var merged int
	var decide, later []string
	held := ""
	for _, f := range d.Files {
		came := true
		switch f.Result {
		case "merged":
			merged++
		case "marked", "kept":
			came = f.Result == "marked"
			decide = append(decide, "  "+shownIn(d.root, f.Path)+": "+text.Visible(f.Reason))
		}
		switch {
		case f.Later && came:
			later = append(later, shownIn(d.root, f.Path))
		case f.Later && held == "":
			held = shownIn(d.root, f.Path)
		}
	}
	first := verb + " " + text.Plural(len(d.Files)-len(decide), "path")
	if merged > 0 {
		first += fmt.Sprintf(", of which %d merged with changes of the workspace", merged)
	}
	lines := []string{first + "."}
	if d.Commits > 0 {
		lines = append(lines, fmt.Sprintf("%s on the branch %s.", text.Plural(d.Commits, "commit"), *d.Branch))
	}
	if len(decide) > 0 {
		lines = append(append(lines, "For you to decide:"), decide...)
	}
	if held != "" {
		lines = append(lines, "Files that are run later by themselves come home with --take, such as --take "+held+".")
	}
	if len(later) > 0 {
		lines = append(lines, "Run later by themselves: "+strings.Join(later, ", "))
	}
	if d.Turn != nil {
		lines = append(lines, "omniagent undo "+*d.Turn+" takes it back.")
	}
	return strings.Join(lines, "\n") + "\n"
}

func forkApply(p parts.Parts) *contract.Command {
	return Command(contract.Command{
		Path: "fork apply", Summary: "merge what a fork has changed into the workspace", Danger: contract.Mutating,
		Detail: "Changes of both are merged; where they meet, the file gets marks and is listed. Commits arrive " +
			"on the " +
			"branch if neither it nor\nthe index has moved, else as the branch fork/NAME. What is run later by " +
			"itself, such as a hook, stays in the fork\nunless --take names it; commits that have it " +
			"become the branch fork/NAME. See docs/forks.md.",
		DryRun: true, Reversible: true, Output: contract.TypeOf[Applied](), Volatile: []string{"turn"},
		Params:   []contract.Param{forkParam(), TakeFlag()},
		Files:    stores.UndoFiles(Files(), contract.FileEffect{Path: ".", Type: "state"}),
		Children: []contract.Subprocess{{Binary: "git", FixedArgs: []string{"update-ref"}}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "all of it is in the workspace; with --dry-run always"},
			{Code: contract.PartialFailure, When: "data.files says what is not", Changed: contract.Some},
			noFork(),
			{Code: contract.Conflict, When: "git is at work there, or this is the fork"},
		},
		Examples: []contract.Example{{Description: "All of it", Command: "omniagent fork apply try"}},
		Run: contract.WithStore(forkNamed, func(
			ctx context.Context, c *contract.Call, f *fork.Fork,
		) (contract.Result, error) {
			d, err := Apply(ctx, p, c, f)
			return contract.Result{
				Data: d, Effect: d.Effect(), Target: map[string]any{"fork": f.Name, "cwd": f.Workspace},
			}, err
		}),
	})
}

// TakeFlag returns --take. It names files to merge although some program runs them later by itself, such as hooks.
func TakeFlag() contract.Param {
	return contract.Param{
		Name: "take", Kind: contract.Text, Value: "PATH", Repeat: true,
		Help: "bring this home too although it is run later by itself, such as a hook; . is all",
	}
}

// Apply merges the changes of a fork into the workspace. It refuses to do so inside a fork.
func Apply(ctx context.Context, p parts.Parts, c *contract.Call, f *fork.Fork) (Applied, error) {
	if in := stores.ForkAround(c); in != nil {
		return AppliedOf(f, fork.Outcome{}, c.DryRun()), fault.New(fault.Conflicting,
			"this is the fork %s, and changes are brought home outside of it", in.Name).
			Hint("in %s: omniagent fork apply %s", in.Workspace, f.Name)
	}
	if len(f.Running()) > 0 {
		c.Warn("FORK_IN_USE", "a program is at work in the fork: what it writes from now on is not brought home")
	}
	store, err := stores.Snapshots(c)
	if err != nil {
		return Applied{}, err
	}
	limits := LaterPolicy(p, c, f)
	out, err := f.Apply(ctx, store, fork.Request{DryRun: c.DryRun(), Take: c.Strings("take"), Policy: &limits})
	if told := undo.Sentence(out.Gaps); told != "" {
		c.Warn("UNDO", "%s", told)
	}
	if out.Rewrote {
		c.Warn("FORK_HISTORY", "the fork has dropped or replaced commits of your branch, so that stays where it is; "+
			"the fork's is the branch %s", out.Branch)
	}
	warnHeld(c, out)
	if err == nil && !c.DryRun() {
		warnOwn(ctx, c, f)
	}
	if err == nil && len(out.Conflicts) > 0 && !c.DryRun() {
		err = fault.New(fault.PartialFailure, "not as in the fork: %s", text.Plural(len(out.Conflicts), "path")).
			Hint("settle what data.files names%s%s", orTake(out), orUndo(out.Turn))
	}
	return AppliedOf(f, out, c.DryRun()), err
}

// LaterPolicy returns the policy that says which files of a fork's workspace are run later by themselves.
func LaterPolicy(p parts.Parts, c *contract.Call, f *fork.Fork) autorun.Policy {
	home, _ := c.Host.Lookup("HOME")
	return policy.Later(f.Workspace, p.Guarded(c), home, c.Host.Lookup)
}

// warnOwn warns of commits that only the repositories of a fork have: deleting the fork loses them.
func warnOwn(ctx context.Context, c *contract.Call, f *fork.Fork) {
	own, err := f.Owns(ctx)
	if err != nil || len(own) == 0 {
		return
	}
	first, more := own[0].Ref, ""
	if own[0].Repository != "." {
		first += " of " + own[0].Repository
	}
	if len(own) > 1 {
		more = fmt.Sprintf(" and %d more", len(own)-1)
	}
	c.Warn("FORK_OWN", "commits of %s%s stay in the fork; omniagent fork diff %s lists them", text.Visible(first), more,
		f.Name)
}

// warnHeld warns that commits did not move the branch because they have files that are run later by themselves.
func warnHeld(c *contract.Call, out fork.Outcome) {
	var later []string
	for _, k := range out.Conflicts {
		if k.Later {
			later = append(later, k.Path)
		}
	}
	if out.Held == "" || len(later) == 0 {
		return
	}
	path, more := text.Visible(text.Shell(later[0])), ""
	if len(later) > 1 {
		more = fmt.Sprintf(" and keeps back %d more", len(later)-1)
	}
	c.Warn("FORK_HELD", "commits stay on the branch %s, because they have files that are run later by themselves; "+
		"git diff HEAD...%s -- %s shows one, and --take %s takes it%s", out.Held, out.Held, path, path, more)
}

// orTake returns the part of the hint about --take, if files were kept because they are run later by themselves.
func orTake(out fork.Outcome) string {
	if !slices.ContainsFunc(out.Conflicts, func(c fork.Conflict) bool { return c.Later }) {
		return ""
	}
	return ", bring home what is run later by itself with --take PATH"
}

// orUndo returns the part of the hint about omniagent undo, if a turn was recorded.
func orUndo(turn string) string {
	if turn == "" {
		return ""
	}
	return ", or: omniagent undo " + turn
}
