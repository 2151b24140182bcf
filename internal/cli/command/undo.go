package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/config"
)

// Shared by undo, redo, the commands of "snapshots", and whatever opens conversations.

const undoKey = "undo.snapshots"

// undoParam is the flag of every command that runs an agent.
func undoParam() contract.Param {
	return contract.Param{
		Name: "undo", Kind: contract.Enum, Enum: []string{"on", "off"},
		Help: "keep what undo needs; default: undo.snapshots",
	}
}

// undoFiles declares what a command that keeps snapshots writes, and more.
func undoFiles(more ...contract.FileEffect) []contract.FileEffect {
	return append([]contract.FileEffect{
		{Path: "~/.local/state/omniagent/undo", Type: "state", ClearableWith: "omniagent snapshots delete"},
		{Path: "~/.local/share/omniagent/snapshots", Type: "state"},
	}, more...)
}

// undoStore is where the snapshots are.
func undoStore(c *contract.Call) (undo.Store, error) {
	store := snapshotsOf(c.Paths, c.Config, c.Host.Lookup)
	if in := forkAround(c); in != nil {
		return undo.Store{}, fault.New(fault.Conflicting, "this is the fork %s, of which no snapshots are kept",
			in.Name).
			Hint("outside of it: omniagent fork delete %s --confirm-destructive", in.Name)
	}
	if store == nil {
		return undo.Store{}, fault.New(fault.NoHome, "there is no home directory, so no snapshots are kept").
			Hint("set HOME")
	}
	return *store, nil
}

// snapshotsOf returns where the snapshots are; nil: there is no home.
func snapshotsOf(paths contract.Paths, set *config.Set, lookup func(string) (string, bool)) *undo.Store {
	if paths.State == "" {
		return nil
	}
	home, _ := lookup("HOME")
	known := ""
	if paths.Data != "" {
		known = filepath.Join(paths.Data, "snapshots")
	}
	return &undo.Store{
		Known: known,
		Dir:   filepath.Join(paths.State, "undo"), Home: home, FileLimit: set.Int("undo.file_limit"),
		TotalLimit: set.Int("undo.total_limit"), IgnoredLimit: set.Int("undo.ignored_limit"),
	}
}

// snapshots returns where the turns of a call are kept; nil: they are not.
func snapshots(c *contract.Call) *undo.Store {
	word := cmp.Or(c.String("undo"), c.Config.String(undoKey))
	if word == "off" || forkAround(c) != nil {
		return nil
	}
	return snapshotsOf(c.Paths, c.Config, c.Host.Lookup)
}

// forkAround returns the fork in which a call is, or nil. What an agent does there is deleted with the fork.
func forkAround(c *contract.Call) *fork.Fork {
	if c.Paths.State == "" || c.Dir() == "" {
		return nil
	}
	return forksOf(c.Paths, c.Host.Lookup).Around(c.Dir())
}

// wallsState is the directory for the record of walls. A fork has one of its own: at the same paths are other files.
func wallsState(c *contract.Call) string {
	if f := forkAround(c); f != nil {
		return f.State()
	}
	return c.Paths.State
}

// ownFork returns the id and the directories of the fork in which a call is.
func ownFork(c *contract.Call) (id string, roots []string) {
	if f := forkAround(c); f != nil {
		return f.ID, f.Roots()
	}
	return "", nil
}

type undoTurn struct {
	ID        string                        `json:"id"`
	Kind      string                        `json:"kind" enum:"turn,undo,redo"`
	Session   *string                       `json:"session_id"`
	Turn      *int64                        `json:"turn" doc:"of the session"`
	Run       *string                       `json:"run_id"`
	Agent     string                        `json:"agent"`
	Workspace string                        `json:"workspace"`
	Began     time.Time                     `json:"began"`
	Ended     *time.Time                    `json:"ended" doc:"null: it is under way"`
	Files     *int                          `json:"files" doc:"that differ; null: not known before the turn is over"`
	Changed   contract.Foreigns[string]     `json:"changed" doc:"the first hundred of them"`
	Doubtful  int                           `json:"perhaps" doc:"how many more it has perhaps changed; undo keeps them"`
	Perhaps   contract.Foreigns[string]     `json:"perhaps_changed" doc:"the first hundred of them"`
	Of        *string                       `json:"of" doc:"the turn that an undo or redo took back"`
	Back      *string                       `json:"taken_back_by"`
	Late      bool                          `json:"late" doc:"it may have begun before the first snapshot was complete"`
	Abandoned bool                          `json:"abandoned" doc:"its process died, so undo asks for its name"`
	Gaps      contract.Foreigns[undoMissed] `json:"not_covered" doc:"the first hundred"`
}

type undoMissed struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func undoTurnOf(r undo.Record) undoTurn {
	t := undoTurn{
		ID: r.ID, Kind: string(r.Kind), Session: orNil(r.Session), Run: orNil(r.Run), Agent: r.Agent, Began: r.Began,
		Changed: r.Changed, Doubtful: r.Doubtful, Perhaps: r.Perhaps,
		Of: orNil(r.Undoes), Back: orNil(r.UndoneBy), Late: r.Late, Abandoned: r.Abandoned,
	}
	if len(r.Roots) > 0 {
		t.Workspace = r.Roots[0]
	}
	if r.Turn > 0 {
		t.Turn = &r.Turn
	}
	if !r.Ended.IsZero() {
		t.Ended, t.Files = &r.Ended, &r.Files
	}
	for _, g := range r.Gaps {
		t.Gaps = append(t.Gaps, undoMissed{g.Path, g.Reason})
	}
	return t
}

type undoData struct {
	Of       *undoTurn                     `json:"of" doc:"what was taken back; null: --list"`
	By       *string                       `json:"by" doc:"the undo itself; null: --list, --dry-run"`
	Restored contract.Foreigns[string]     `json:"restored" doc:"paths that are as before the turn again"`
	Kept     contract.Foreigns[undoMissed] `json:"kept" doc:"paths that are not, and why"`
	Resumed  bool                          `json:"resumed" doc:"an interrupted undo was completed; nothing else was done"`
	Turns    []undoTurn                    `json:"turns" doc:"with --list: the newest first"`

	list  bool   // it is a list
	words string // otherwise: what a person reads
}

func undoDataOf(out undo.Outcome, dryRun bool) undoData {
	d := undoData{
		Of: new(undoTurnOf(out.Turn)), By: orNil(out.Undo.ID), Restored: out.Restored, Resumed: out.Resumed,
		words: undoWords(out, dryRun),
	}
	for _, k := range out.Kept {
		d.Kept = append(d.Kept, undoMissed{k.Path, k.Reason})
	}
	return d
}

// ForPeople makes the lines fit the screen.
func (undoData) ForPeople() {}

// PlainText says what came of it, or shows the list.
func (d undoData) PlainText() string {
	if d.list {
		return undoTable(d.Turns)
	}
	return d.words + "\n"
}

// undoFor returns what takes back the last turn of a directory, or of one session in it, for a host; nil if it takes
// no snapshots.
func undoFor(c *contract.Call) func(ctx context.Context, dir, session string, redo bool) (string, error) {
	if snapshots(c) == nil {
		return nil
	}
	return func(ctx context.Context, dir, session string, redo bool) (string, error) {
		store, err := undoStore(c)
		if err != nil {
			return "", err
		}
		out, err := store.Undo(ctx, undo.Request{Dir: dir, Session: session, Redo: redo})
		if err != nil {
			return "", err
		}
		words := undoWords(out, false)
		if len(out.Kept) > 0 {
			words += "\nhint: " + keptHint(out, false, false, "the reasons stand above")
		}
		return words, nil
	}
}

// keptHint says what to do about what an undo has kept, or why where only the reasons help.
func keptHint(out undo.Outcome, takeOld, takeAll bool, why string) string {
	again := "omniagent undo " + out.Turn.ID + " --take-old restores them "
	way := why
	kept := func(causes ...undo.Cause) bool {
		return slices.ContainsFunc(out.Kept, func(k undo.Kept) bool { return slices.Contains(causes, k.Cause) })
	}
	switch {
	case !takeAll && kept(undo.Doubted):
		way = "omniagent undo " + out.Turn.ID + " --take-all takes back also what others may have changed"
	case !takeOld && kept(undo.ByHand):
		way = again + "too"
	case kept(undo.Passing, undo.ByHand, undo.Doubted):
		way = again + "once the reasons are gone"
	}
	switch {
	case out.Undo.ID == "": // nothing was taken back
		return way
	case out.Undo.Kind == undo.OfRedo:
		return way + "; omniagent undo " + out.Undo.ID + " takes this redo back"
	}
	return way + "; omniagent redo takes this undo back"
}

// undoWords say to a person what came of an undo, or what would come of it.
func undoWords(out undo.Outcome, dryRun bool) string {
	took, restored, kept := "Took back ", "Restored ", "Kept unchanged:"
	if out.Resumed {
		took = "Completed an interrupted undo of "
	}
	if dryRun {
		took, restored, kept = "Would take back ", "Would restore ", "Would keep unchanged:"
	}
	lines := []string{took + turnWords(out.Turn), restored + plural(len(out.Restored), "path") + ":"}
	switch {
	case len(out.Restored) > 0:
	case out.Resumed && !dryRun:
		lines[1] = restored + "nothing."
	default:
		lines = []string{took + "nothing of " + turnWords(out.Turn)}
	}
	files := slices.Clone(out.Restored)
	slices.SortStableFunc(files, func(a, b string) int { return inGit(a) - inGit(b) })
	for _, name := range files[:min(len(files), mostPathLines)] {
		line := "  " + text.Visible(name)
		if slices.Contains(out.Removed, name) {
			line += " (removed)"
		}
		lines = append(lines, line)
	}
	lines = append(lines, andMore(len(files))...)
	if len(out.Kept) > 0 {
		lines = append(lines, kept)
	}
	for _, k := range out.Kept[:min(len(out.Kept), mostPathLines)] {
		lines = append(lines, "  "+text.Visible(k.Path)+": "+text.Visible(k.Reason))
	}
	lines = append(lines, andMore(len(out.Kept))...)
	return strings.Join(lines, "\n")
}

// inGit is 1 for what git keeps for itself, which says less to a person than the files.
func inGit(path string) int {
	if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), ".git") {
		return 1
	}
	return 0
}

// turnWords name a turn to a person.
func turnWords(r undo.Record) string {
	words := map[undo.Kind]string{undo.OfTurn: "the turn", undo.OfUndo: "the undo", undo.OfRedo: "the redo"}[r.Kind]
	if r.Agent != "" {
		words += " of " + text.Visible(r.Agent)
	}
	return fmt.Sprintf("%s from %s (%s).", words, r.Began.Local().Format(undoTime), r.ID)
}

const undoTime = "2006-01-02 15:04"

// mostPathLines is how many paths undoWords names of each kind.
const mostPathLines = 10

func andMore(n int) []string {
	if n <= mostPathLines {
		return nil
	}
	return []string{fmt.Sprintf("  and %d more", n-mostPathLines)}
}

// undoTable shows turns to a person, the newest first.
func undoTable(turns []undoTurn) string {
	if len(turns) == 0 {
		return "There is no turn to take back.\n"
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TURN\tBEGAN\tAGENT\tFILES\tWHAT")
	for _, t := range turns {
		files := "-"
		if t.Files != nil {
			files = strconv.Itoa(*t.Files)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.ID, t.Began.Local().Format(undoTime), t.Agent, files, undoNote(t))
	}
	_ = w.Flush() // into memory
	return b.String()
}

// undoNote is what a person should know of a turn: what became of it, and its first files.
func undoNote(t undoTurn) string {
	var parts []string
	add := func(is bool, part string) {
		if is {
			parts = append(parts, part)
		}
	}
	add(t.Ended == nil && !t.Abandoned, "under way")
	add(t.Kind == string(undo.OfUndo), "an undo")
	add(t.Kind == string(undo.OfRedo), "a redo")
	add(t.Back != nil, "taken back")
	add(t.Abandoned, "its process died")
	add(t.Late, "its first changes may be missing")
	add(len(t.Gaps) > 0, plural(len(t.Gaps), "path")+" not covered")
	var names []string
	for _, name := range t.Changed[:min(len(t.Changed), mostNamedFiles)] {
		names = append(names, text.Visible(name))
	}
	if len(t.Changed) > mostNamedFiles {
		names = append(names, "…")
	}
	add(len(names) > 0, strings.Join(names, ", "))
	add(t.Doubtful > 0, "and perhaps "+plural(t.Doubtful, "path")+" that others may have changed")
	return strings.Join(parts, "; ")
}

const mostNamedFiles = 3

// undoCommand adds what undo and redo share.
func undoCommand(c contract.Command) *contract.Command {
	c.Class, c.Version, c.Scopes, c.Danger = contract.Envelope, "1.0.0", []string{}, contract.Mutating
	c.DryRun, c.Reversible, c.LooseConfig = true, true, true
	c.LongRunning, c.Timeout = true, 10*time.Minute // a large tree on a slow disk
	c.Output, c.Volatile = contract.TypeOf[undoData](), []string{"by"}
	c.Files = undoFiles(contract.FileEffect{Path: ".", Type: "state"})
	c.Params = append(c.Params,
		contract.Param{Name: "list", Kind: contract.Bool, Help: "list the turns of this workspace and change nothing"},
		contract.Param{
			Name: "keep-mine", Kind: contract.Bool, Help: "keep what was changed after the turn; the default",
		},
		contract.Param{Name: "take-old", Kind: contract.Bool, Help: "restore also what was changed after the turn"},
		contract.Param{
			Name: "take-all", Kind: contract.Bool, Help: "take back also what others may have changed during the turn",
		},
	)
	c.Rules = append(c.Rules,
		contract.Rule{If: "keep-mine", Not: []string{"take-old"}},
		contract.Rule{If: "list", Not: []string{"keep-mine", "take-old", "take-all"}})
	c.Exits = []contract.Exit{
		{Code: contract.Success, When: "everything is as before the turn, or the turns are listed"},
		{Code: contract.PartialFailure, When: "some paths are not; data.kept names them", Changed: contract.Some},
		{Code: contract.NotFound, When: "there is nothing to take back"},
		{
			Code: contract.Conflict,
			When: "a turn there is not over; it is taken back already; the name fits several; or its " +
				"process died, and it was not named",
		},
		{Code: contract.PreconditionFailed, When: "no home"},
		{Code: contract.PermissionDenied, When: "no access"},
	}
	return &c
}

func undoLast() *contract.Command {
	return undoCommand(contract.Command{
		Path: "undo", Summary: "take back the last turn of an agent that changed this workspace",
		Detail: "Files, modes, links, directories and the state of git become what they were before the turn, " +
			"also after " +
			"git reset --hard,\ngit clean or git gc. What was changed after the turn is kept. See docs/undo.md.",
		Params: []contract.Param{
			{
				Name: "turn", Kind: contract.ID, Position: 1, MaxLen: 128, Stdin: true,
				Help: "another one, as --list names it",
			},
			{Name: "session", Kind: contract.ID, MaxLen: 128, Help: "the last one of this session"},
			{Name: "run", Kind: contract.ID, MaxLen: 128, Help: "the last one of this run"},
		},
		Examples: []contract.Example{
			{Description: "The last turn", Command: "omniagent undo"},
			{Description: "What it would do", Command: "omniagent undo --dry-run"},
			{Description: "What can be taken back", Command: "omniagent undo --list"},
		},
		Run: func(ctx context.Context, c *contract.Call) (contract.Result, error) {
			return takeBack(ctx, c, undo.Request{
				ID: c.String("turn"), Session: c.String("session"), Run: c.String("run"),
			})
		},
	})
}

func redoLast() *contract.Command {
	return undoCommand(contract.Command{
		Path: "redo", Summary: "take back the last undo in this workspace",
		Examples: []contract.Example{{Description: "If the undo was a mistake", Command: "omniagent redo"}},
		Run: func(ctx context.Context, c *contract.Call) (contract.Result, error) {
			return takeBack(ctx, c, undo.Request{Redo: true})
		},
	})
}

func takeBack(ctx context.Context, c *contract.Call, q undo.Request) (contract.Result, error) {
	store, err := undoStore(c)
	if err != nil {
		return contract.Result{}, err
	}
	q.Dir, q.TakeOld, q.TakeAll, q.DryRun = c.Dir(), c.Bool("take-old"), c.Bool("take-all"), c.DryRun()
	gone := q.Dir == "" // it was removed, perhaps by the turn: the shell still knows its name
	if gone {
		if q.Dir, _ = c.Host.Lookup("PWD"); q.Dir == "" {
			return contract.Result{}, contract.Gone().
				Hint("mkdir -p DIRECTORY && omniagent undo --cwd DIRECTORY, with the name that it had")
		}
	}
	if c.Bool("list") {
		return undoList(store, q)
	}
	if c.Attended() && !c.Bool("keep-mine") && !(q.TakeOld && q.TakeAll) && !q.DryRun {
		if q.Overwrite, err = askAbout(ctx, c, store, q); err != nil {
			return contract.Result{}, err
		}
	}
	out, err := store.Undo(ctx, q)
	if gone && errors.Is(err, fault.NotFoundCode) {
		err = contract.Gone()
	}
	if err != nil {
		return contract.Result{}, err
	}
	result := contract.Result{
		Data: undoDataOf(out, q.DryRun), Effect: contract.Updated,
		Target: map[string]any{"turn": out.Turn.ID, "cwd": q.Dir},
	}
	if out.Undo.ID == "" && !q.DryRun {
		result.Effect = contract.Noop
	}
	if q.Run != "" && out.Undo.ID != "" {
		warnOfEarlier(c, store, q, out.Turn.ID)
	}
	if len(out.Kept) > 0 && !q.DryRun {
		return result, fault.New(fault.PartialFailure, "not restored: %s", plural(len(out.Kept), "path")).
			With("turn", out.Turn.ID).Hint("%s", keptHint(out, q.TakeOld, q.TakeAll, "data.kept says why"))
	}
	return result, nil
}

// warnOfEarlier says that a run has changed files in an earlier turn too, as one that waited for an answer may have.
func warnOfEarlier(c *contract.Call, store undo.Store, q undo.Request, taken string) {
	all, err := store.List(q.Dir)
	earlier := slices.ContainsFunc(all, func(r undo.Record) bool {
		return r.Run == q.Run && r.ID != taken && r.Kind == undo.OfTurn && r.UndoneBy == "" && r.Files > 0
	})
	if err == nil && earlier {
		c.Warn("EARLIER_TURN",
			"what an earlier turn of the run has changed is still there; the same command takes it back")
	}
}

// askAbout asks a person about each path that was changed after the turn, or perhaps not by it, and returns those to
// restore.
func askAbout(ctx context.Context, c *contract.Call, store undo.Store, q undo.Request) (chosen []string, err error) {
	q.DryRun = true
	out, err := store.Undo(ctx, q)
	if err != nil || out.Resumed {
		return nil, nil // Undo says it, or completes what was decided before
	}
	for _, k := range out.Kept {
		if k.Cause != undo.ByHand && k.Cause != undo.Doubted {
			continue
		}
		do := "restore"
		if k.Removes {
			do = "remove"
		}
		yes, err := c.Agree(ctx, text.Visible(k.Path)+": "+text.Visible(k.Reason)+"; "+do+" it all the same")
		if err != nil {
			return nil, err
		}
		if yes {
			chosen = append(chosen, k.Path)
		}
	}
	return chosen, nil
}

// undoList lists the turns that a request names.
func undoList(store undo.Store, q undo.Request) (contract.Result, error) {
	records, err := store.List(q.Dir)
	d := undoData{list: true}
	for _, r := range records {
		if q.Fits(r) && (!q.Redo || r.Kind == undo.OfUndo) {
			d.Turns = append(d.Turns, undoTurnOf(r))
		}
	}
	return contract.Result{Data: d, Effect: contract.Noop}, err
}
