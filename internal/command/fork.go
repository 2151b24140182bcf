package command

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"omniagent/internal/autorun"
	"omniagent/internal/contract"
	"omniagent/internal/enclosure"
	"omniagent/internal/fault"
	"omniagent/internal/fork"
	"omniagent/internal/text"
	"omniagent/internal/undo"
)

// Shared by the commands of "fork", and by those that work in one.

// forkStore is where the forks are.
func forkStore(c *contract.Call) (fork.Store, error) {
	if c.Paths.State == "" {
		return fork.Store{}, fault.New(fault.NoHome, "there is no home directory, so no forks are kept").
			Hint("set HOME")
	}
	store := forksOf(c.Paths, c.Host.Lookup)
	store.Away = c.Away()
	return store, nil
}

func forksOf(paths contract.Paths, lookup func(string) (string, bool)) fork.Store {
	home, _ := lookup("HOME")
	snapshots := undo.Store{Dir: filepath.Join(paths.State, "undo"), Home: home}
	return fork.Store{
		Dir: filepath.Join(paths.State, "forks"), Root: snapshots.Root, Undone: snapshots.TakenBack,
	}
}

// newFork makes a fork of the workspace around a directory.
func newFork(ctx context.Context, c *contract.Call, dir string) (*fork.Fork, error) {
	store, err := forkStore(c)
	if err != nil {
		return nil, err
	}
	return store.Make(ctx, fork.Wanted{Dir: dir})
}

// forkNamed returns the fork that a call names.
func forkNamed(c *contract.Call) (*fork.Fork, error) {
	store, err := forkStore(c)
	if err != nil {
		return nil, err
	}
	return store.Open(c.String("id"))
}

// forkCommand adds what the commands share that answer with an envelope.
func forkCommand(c contract.Command) *contract.Command {
	c.Class, c.Version, c.Scopes, c.LooseConfig = contract.Envelope, "1.0.0", []string{}, true
	c.LongRunning, c.Timeout = true, 10*time.Minute
	c.Exits = append(c.Exits,
		contract.Exit{Code: contract.PreconditionFailed, When: "no home, or another process has it locked"},
		contract.Exit{Code: contract.PermissionDenied, When: "no access"},
	)
	return &c
}

func forkParam() contract.Param {
	return contract.Param{
		Name: "id", Kind: contract.Name, Position: 1, Required: true, MaxLen: 64, Help: "name of the fork",
	}
}

func forkFiles() contract.FileEffect {
	return contract.FileEffect{
		Path: "~/.local/state/omniagent/forks", Type: "state", ClearableWith: "omniagent fork delete",
	}
}

func noFork() contract.Exit { return contract.Exit{Code: contract.NotFound, When: "no such fork"} }

type forkListData struct {
	Forks contract.Rows[contract.Foreign[forkRow]] `json:"forks"`
}

type forkRow struct {
	Name      string     `json:"name"`
	Tier      string     `json:"tier"`
	Workspace string     `json:"workspace"`
	Made      time.Time  `json:"made"`
	Applied   *time.Time `json:"applied" doc:"the last time; null: never"`
	Running   []int      `json:"running" doc:"the processes that run something in it"`
	Bytes     int64      `json:"bytes"`
}

func forkList() *contract.Command {
	return forkCommand(contract.Command{
		Path: "fork list", Summary: "list the forks of all workspaces", Danger: contract.Safe,
		Output: contract.TypeOf[forkListData](), Volatile: []string{"forks"},
		List: &contract.List{
			Key: "forks", ID: "name", Order: "given",
			Columns: []string{"name", "tier", "made", "running", "bytes", "workspace"},
		},
		Exits:    []contract.Exit{{Code: contract.Success, When: "they are listed"}},
		Examples: []contract.Example{{Description: "All of them", Command: "omniagent fork list"}},
		Run: on(forkStore, func(_ context.Context, _ *contract.Call, store fork.Store) (contract.Result, error) {
			all, err := store.List()
			var rows []forkRow
			for _, f := range all {
				row := forkRow{
					Name: f.Name, Tier: string(f.Tier), Workspace: f.Workspace, Made: f.Made,
					Running: f.Running(), Bytes: f.Size(),
				}
				if !f.Applied.IsZero() {
					row.Applied = &f.Record.Applied
				}
				rows = append(rows, row)
			}
			return contract.Result{Data: forkListData{contract.ForeignRows(rows)}}, err
		}),
	})
}

type forkDiffData struct {
	Name  string                           `json:"name"`
	Files contract.Foreigns[forkFile]      `json:"files"`
	Git   contract.Foreigns[forkOwn]       `json:"git" doc:"what only the repositories of the fork have"`
	Patch contract.Foreign[contract.Exact] `json:"patch" doc:"empty: without --patch"`

	root string // of the workspace
}

type forkFile struct {
	Path    string `json:"path"`
	Status  string `json:"status"`
	Added   *int   `json:"added" doc:"lines; null: not counted"`
	Removed *int   `json:"removed"`
	Meets   bool   `json:"changed_in_workspace" doc:"since the fork was made, too"`
}

type forkOwn struct {
	Repository string `json:"repository" doc:"the top of its working tree"`
	Ref        string `json:"ref" doc:"such as refs/heads/topic, refs/stash, or HEAD"`
	Commit     string `json:"commit"`
}

// ownOf returns what only the repositories of a fork have.
func ownOf(ctx context.Context, f *fork.Fork) (all []forkOwn, err error) {
	found, err := f.Owns(ctx)
	for _, o := range found {
		path := filepath.Join(f.Workspace, filepath.FromSlash(o.Repository))
		all = append(all, forkOwn{path, o.Ref, o.Commit})
	}
	return all, err
}

// shownIn is a file of a workspace as a person sees it.
func shownIn(root, path string) string {
	return text.Visible(strings.TrimPrefix(path, root+string(filepath.Separator)))
}

// Verbatim says that the patch is for git apply.
func (d forkDiffData) Verbatim() bool { return d.Patch.Value != "" }

// PlainText shows the patch, or the files.
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
		if f.Meets {
			note = "changed in the workspace too"
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
	return forkCommand(contract.Command{
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
		Run: on(forkNamed, func(ctx context.Context, c *contract.Call, f *fork.Fork) (contract.Result, error) {
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

type forkApplied struct {
	Name    string                        `json:"name"`
	Turn    *string                       `json:"turn" doc:"omniagent undo takes it back; null: nothing was changed"`
	Files   contract.Foreigns[forkResult] `json:"files"`
	Commits int                           `json:"commits"`
	Branch  *string                       `json:"branch" doc:"that has them"`
	InPlace bool                          `json:"in_place" doc:"the branch is checked out"`
	Resumed bool                          `json:"resumed" doc:"an earlier call, whose process had died, was completed"`

	dryRun bool
	root   string // of the workspace
}

type forkResult struct {
	Path   string `json:"path"`
	Later  bool   `json:"runs_later" doc:"some program runs or obeys it later by itself, such as a hook"`
	Result string `json:"result" enum:"applied,merged,marked,kept" doc:"as in the fork; with the changes of both; with marks where they meet; as it was"`
	Reason string `json:"reason" doc:"why it is marked or kept"`
}

func forkAppliedOf(f *fork.Fork, out fork.Outcome, dryRun bool) forkApplied {
	d := forkApplied{
		Name: f.Name, Turn: orNil(out.Turn), Commits: out.Commits, Branch: orNil(out.Branch), InPlace: out.InPlace,
		Resumed: out.Resumed, dryRun: dryRun, root: f.Workspace,
	}
	add := func(name, result, reason string, later bool) {
		path := filepath.Join(f.Workspace, filepath.FromSlash(name))
		d.Files = append(d.Files, forkResult{path, later || slices.Contains(out.Later, name), result, reason})
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

// effect says whether anything came home.
func (d forkApplied) effect() contract.Effect {
	came := func(f forkResult) bool { return f.Result != "kept" }
	if d.Turn == nil && d.Branch == nil && !slices.ContainsFunc(d.Files, came) {
		return contract.Noop
	}
	return contract.Updated
}

// ForPeople makes the lines fit the screen.
func (forkApplied) ForPeople() {}

// PlainText says what came of it.
func (d forkApplied) PlainText() string {
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
	first := verb + " " + plural(len(d.Files)-len(decide), "path")
	if merged > 0 {
		first += fmt.Sprintf(", of which %d merged with changes of the workspace", merged)
	}
	lines := []string{first + "."}
	if d.Commits > 0 {
		lines = append(lines, fmt.Sprintf("%s on the branch %s.", plural(d.Commits, "commit"), *d.Branch))
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
		lines = append(lines, "omniagent undo takes it back.")
	}
	return strings.Join(lines, "\n") + "\n"
}

func (p Parts) forkApply() *contract.Command {
	return forkCommand(contract.Command{
		Path: "fork apply", Summary: "merge what a fork has changed into the workspace", Danger: contract.Mutating,
		Detail: "Changes of both are merged; where they meet, the file gets marks and is listed. Commits arrive " +
			"on the " +
			"branch if neither it nor\nthe index has moved, else as the branch fork/NAME. What is run later by " +
			"itself, such as a hook, stays in the fork\nunless --take names it; commits that have it " +
			"become the branch fork/NAME. See docs/forks.md.",
		DryRun: true, Reversible: true, Output: contract.TypeOf[forkApplied](), Volatile: []string{"turn"},
		Params:   []contract.Param{forkParam(), takeParam()},
		Files:    []contract.FileEffect{forkFiles(), undoFiles(), {Path: ".", Type: "state"}},
		Children: []contract.Subprocess{{Binary: "git", FixedArgs: []string{"update-ref"}}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "all of it is in the workspace"},
			{Code: contract.PartialFailure, When: "data.files says what is not", Changed: contract.Some},
			noFork(),
			{Code: contract.Conflict, When: "git is at work there, or this is the fork"},
		},
		Examples: []contract.Example{{Description: "All of it", Command: "omniagent fork apply try"}},
		Run: on(forkNamed, func(ctx context.Context, c *contract.Call, f *fork.Fork) (contract.Result, error) {
			d, err := p.bringHome(ctx, c, f)
			return contract.Result{
				Data: d, Effect: d.effect(), Target: map[string]any{"fork": f.Name, "cwd": f.Workspace},
			}, err
		}),
	})
}

// takeParam names what comes home although it is run later by itself.
func takeParam() contract.Param {
	return contract.Param{
		Name: "take", Kind: contract.Text, Value: "PATH", Repeat: true,
		Help: "bring this home too although it is run later by itself, such as a hook; . is all",
	}
}

// bringHome merges what a fork has changed into the workspace.
func (p Parts) bringHome(ctx context.Context, c *contract.Call, f *fork.Fork) (forkApplied, error) {
	if in := forkAround(c); in != nil {
		return forkAppliedOf(f, fork.Outcome{}, c.DryRun()), fault.New(fault.Conflicting,
			"this is the fork %s, and changes are brought home outside of it", in.Name).
			Hint("in %s: omniagent fork apply %s", in.Workspace, f.Name)
	}
	if len(f.Running()) > 0 {
		c.Warn("FORK_IN_USE", "a program is at work in the fork: what it writes from now on is not brought home")
	}
	store, err := undoStore(c)
	if err != nil {
		return forkApplied{}, err
	}
	policy := p.later(c, f)
	out, err := f.Apply(ctx, store, fork.Request{DryRun: c.DryRun(), Take: c.Strings("take"), Policy: &policy})
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
		err = fault.New(fault.PartialFailure, "not as in the fork: %s", plural(len(out.Conflicts), "path")).
			Hint("settle what data.files names%s%s", orTake(out), orUndo(out.Turn))
	}
	return forkAppliedOf(f, out, c.DryRun()), err
}

// later returns the policy of a fork's workspace about what is run later by itself.
func (p Parts) later(c *contract.Call, f *fork.Fork) autorun.Policy {
	home, _ := c.Host.Lookup("HOME")
	return enclosure.Later(f.Workspace, p.guarded(c), home, c.Host.Lookup)
}

// warnOwn says what only the repositories of a fork have, since it goes when the fork is deleted.
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

// warnHeld says why commits have not moved the branch.
func warnHeld(c *contract.Call, out fork.Outcome) {
	at := slices.IndexFunc(out.Conflicts, func(k fork.Conflict) bool { return k.Later })
	if out.Held == "" || at < 0 {
		return
	}
	path := text.Visible(text.Shell(out.Conflicts[at].Path))
	c.Warn("FORK_HELD", "commits stay on the branch %s, because they have files that are run later by themselves; "+
		"git diff HEAD...%s -- %s shows one, and --take %s takes it", out.Held, out.Held, path, path)
}

// orTake is how what is run later by itself comes home.
func orTake(out fork.Outcome) string {
	if !slices.ContainsFunc(out.Conflicts, func(c fork.Conflict) bool { return c.Later }) {
		return ""
	}
	return ", bring home what is run later by itself with --take PATH"
}

// orUndo is the other way to go on where a turn was recorded.
func orUndo(turn string) string {
	if turn == "" {
		return ""
	}
	return ", or: omniagent undo " + turn
}

type forkDeleted struct {
	Forks []forkGone `json:"forks"`
	Bytes int64      `json:"bytes_freed"`
}

type forkGone struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes_freed"`
}

func forkDelete() *contract.Command {
	several := forkParam()
	several.Variadic, several.Help = true, "names of forks"
	return forkCommand(contract.Command{
		Path: "fork delete", Summary: "delete these forks and all changes not yet applied",
		Danger: contract.Destructive, DryRun: true,
		Output: contract.TypeOf[forkDeleted](), Volatile: []string{"bytes_freed"}, Params: []contract.Param{several},
		Files: []contract.FileEffect{forkFiles()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "they are deleted"},
			noFork(),
			{Code: contract.Conflict, When: "programs run in one of them", Changed: contract.Some},
		},
		Examples: []contract.Example{
			{Description: "Throw it away", Command: "omniagent fork delete try --confirm-destructive"},
		},
		Run: on(forkStore, deleteForks),
	})
}

// deleteForks deletes nothing if one of the names is wrong, or programs run in one of the forks.
func deleteForks(ctx context.Context, c *contract.Call, store fork.Store) (_ contract.Result, err error) {
	var all []*fork.Fork
	for _, name := range c.Strings("id") {
		f, err := store.Open(name)
		if err == nil {
			err = f.Idle()
		}
		if err != nil {
			return contract.Result{}, err
		}
		if !slices.ContainsFunc(all, func(o *fork.Fork) bool { return o.ID == f.ID }) {
			all = append(all, f)
		}
	}
	d, affected := forkDeleted{}, []any{}
	for _, f := range all {
		one := forkGone{f.Name, f.Size()}
		var changed, git []string
		if changes, err := f.Changes(ctx); err == nil { // the workspace may be gone
			for _, change := range changes {
				changed = append(changed, change.Path)
			}
		}
		if own, err := ownOf(ctx, f); err == nil {
			for _, o := range own {
				git = append(git, o.Ref+" "+o.Commit+" of "+shownIn(f.Workspace, o.Repository))
			}
		}
		affected = append(affected, map[string]any{
			"fork": f.Name, "changed": changed[:min(len(changed), 100)], "git": git[:min(len(git), 100)],
			"bytes": one.Bytes,
		})
		if !c.DryRun() {
			if one.Bytes, err = f.Delete(ctx); err != nil {
				break
			}
		}
		d.Forks, d.Bytes = append(d.Forks, one), d.Bytes+one.Bytes
	}
	return contract.Result{
		Data: d, Effect: contract.Deleted, Target: map[string]any{"forks": affected, "bytes": d.Bytes},
	}, err
}
