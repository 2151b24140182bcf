package safety

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/undo"
)

// UndoFor returns the undo function for a host, or nil if the call takes no snapshots. The function takes back the last
// turn in a directory, or that of one session if session is not empty. With redo it takes back the last undo. It
// returns a text for people.
func UndoFor(c *contract.Call) func(ctx context.Context, dir, session string, redo bool) (string, error) {
	takeBack := UndoOf(c)
	if takeBack == nil {
		return nil
	}
	return func(ctx context.Context, dir, session string, redo bool) (string, error) {
		return takeBack(ctx, undo.Request{Dir: dir, Session: session, Redo: redo})
	}
}

// UndoOf is UndoFor for a host that says more about the turn.
func UndoOf(c *contract.Call) func(context.Context, undo.Request) (string, error) {
	if stores.SnapshotsToKeep(c) == nil {
		return nil
	}
	return func(ctx context.Context, q undo.Request) (string, error) {
		store, err := stores.Snapshots(c)
		if err != nil {
			return "", err
		}
		out, err := store.Undo(ctx, q)
		if err != nil {
			return "", err
		}
		words := strings.Join(append([]string{undoWords(out, false)}, movedWords(out, false)...), "\n")
		if len(out.NotRestored) > 0 {
			words += "\nhint: " + keptHint(out, false, false, "the reasons stand above")
		}
		return words, nil
	}
}

// keptHint returns the hint about paths that an undo kept: the command that restores them too, or why no command does.
func keptHint(out undo.Outcome, takeOld, takeAll bool, why string) string {
	way, again := why, "omniagent undo "+out.Turn.ID
	old, all := again+" --take-old", again+" --take-all"
	if takeAll { // repeat the flags of this call
		old += " --take-all"
	}
	if takeOld {
		all += " --take-old"
	}
	kept := func(causes ...undo.Cause) bool {
		return slices.ContainsFunc(out.NotRestored, func(p undo.NotRestored) bool {
			return slices.Contains(causes, p.Cause)
		})
	}
	switch {
	case !takeAll && kept(undo.CauseUncertain):
		way = all + " takes back also what others may have changed"
	case !takeOld && kept(undo.CauseChangedSince):
		way = old + " restores what has changed since too"
	case kept(undo.CauseTemporary, undo.CauseChangedSince, undo.CauseUncertain):
		way = old + " restores them once the reasons are gone"
	}
	switch {
	case out.Undo.ID == "": // nothing was taken back
		return way
	case out.Undo.Kind == undo.OfRedo:
		return way + "; omniagent undo " + out.Undo.ID + " takes this redo back"
	}
	return way + "; omniagent redo takes this undo back"
}

// undoCommand adds the declarations shared by undo and redo.
func undoCommand(c contract.Command) *contract.Command {
	c.Class, c.Version, c.Scopes, c.Danger = contract.Envelope, "1.0.0", []string{}, contract.Mutating
	c.DryRun, c.Reversible, c.LooseConfig = true, true, true
	c.LongRunning, c.Timeout = true, 10*time.Minute // a large tree on a slow disk
	c.Output, c.Volatile = contract.TypeOf[undoData](), []string{"by"}
	c.Files = stores.UndoFiles(contract.FileEffect{Path: ".", Type: "state"})
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
			{
				Name: "run", Kind: contract.ID, MaxLen: 128,
				Help: "the last one of this run, or the last that brought its fork home",
			},
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

// whyNothing returns a fault that says why nothing of a run can be taken back in a directory. It returns nil if the run
// is not known or worked elsewhere.
func whyNothing(c *contract.Call, undos undo.Store, q undo.Request) error {
	store, err := stores.Runs(c)
	if err != nil {
		return nil
	}
	r, err := store.Peek(q.Run)
	if err != nil || !pathname.Within(r.Dir, q.Dir) {
		return nil
	}
	f := fault.New(fault.NotFoundCode, "there is nothing to take back of %s", q.Run)
	turns, _ := undos.List(q.Dir)
	last := slices.IndexFunc(turns, func(t undo.Record) bool { return t.Kind == undo.OfUndo && t.UndoneBy == "" })
	for _, t := range turns {
		switch {
		case !q.Fits(t) || t.UndoneBy == "":
			continue
		case last >= 0 && turns[last].ID == t.UndoneBy:
			f.Hint("omniagent redo takes that back")
		default:
			f.Hint("omniagent undo %s takes that back", t.UndoneBy)
		}
		f.Message += ": it was taken back"
		return f
	}
	if r.Fork != "" {
		f.Message += ": it worked in the fork " + r.Fork + ", and no turn that is on record brought it home"
		return f.Hint("omniagent runs apply %s brings it home", q.Run)
	}
	f.Message += ": it changed nothing that undo covers, or kept no snapshot"
	return f.Hint("omniagent runs show %s", q.Run)
}

// forkOf returns the ID of the fork in which a run worked, or "".
func forkOf(c *contract.Call, id string) string {
	store, err := stores.Runs(c)
	if err != nil || id == "" {
		return ""
	}
	r, err := store.Peek(id)
	if err != nil {
		return ""
	}
	return r.ForkID
}

func takeBack(ctx context.Context, c *contract.Call, q undo.Request) (contract.Result, error) {
	store, err := stores.Snapshots(c)
	if err != nil {
		return contract.Result{}, err
	}
	q.Dir, q.TakeOld, q.TakeAll, q.DryRun = c.Dir(), c.Bool("take-old"), c.Bool("take-all"), c.DryRun()
	gone := q.Dir == "" // the directory was removed, perhaps by the turn, but PWD still has its path
	if gone {
		if q.Dir, _ = c.Host.Lookup("PWD"); q.Dir == "" {
			return contract.Result{}, contract.CwdRemoved().
				Hint("mkdir -p DIRECTORY && omniagent undo --cwd DIRECTORY, with the name that it had")
		}
	}
	q.Fork = forkOf(c, q.Run)
	if c.Bool("list") {
		return undoList(store, q)
	}
	if c.Attended() && !c.Bool("keep-mine") && !(q.TakeOld && q.TakeAll) && !q.DryRun {
		if q.Overwrite, err = askAbout(ctx, c, store, q); err != nil {
			return contract.Result{}, err
		}
	}
	out, err := store.Undo(ctx, q)
	switch {
	case gone && errors.Is(err, fault.NotFoundCode):
		err = contract.CwdRemoved()
	case q.Run != "" && errors.Is(err, fault.NotFoundCode):
		if why := whyNothing(c, store, q); why != nil {
			err = why
		}
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
	for _, line := range movedWords(out, q.DryRun) {
		c.Warn("BRANCH_MOVED", "%s", line)
	}
	if q.Run != "" && out.Undo.ID != "" {
		warnOfEarlier(c, store, q, out.Turn.ID)
	}
	if len(out.NotRestored) > 0 && !q.DryRun {
		return result, fault.New(fault.PartialFailure, "not restored: %s", text.Plural(len(out.NotRestored), "path")).
			With("turn", out.Turn.ID).Hint("%s", keptHint(out, q.TakeOld, q.TakeAll, "data.kept says why"))
	}
	return result, nil
}

// warnOfEarlier warns if the run also changed files in an earlier turn, for example before it waited for an answer.
// undone is the turn that was taken back.
func warnOfEarlier(c *contract.Call, store undo.Store, q undo.Request, undone string) {
	all, err := store.List(q.Dir)
	earlier := slices.ContainsFunc(all, func(r undo.Record) bool {
		return q.Fits(r) && r.ID != undone && r.Kind == undo.OfTurn && r.UndoneBy == "" && r.Files > 0
	})
	if err == nil && earlier {
		c.Warn("EARLIER_TURN",
			"what an earlier turn of the run has changed is still there; the same command takes it back")
	}
}

// askAbout asks a person about each path that was changed after the turn, or that something else may have changed
// during it. It returns the paths to restore.
func askAbout(ctx context.Context, c *contract.Call, store undo.Store, q undo.Request) (chosen []string, err error) {
	q.DryRun = true
	out, err := store.Undo(ctx, q)
	if err != nil || out.Resumed {
		return nil, nil // Undo reports the error, or completes an earlier undo without questions
	}
	for _, k := range out.NotRestored {
		if k.Cause != undo.CauseChangedSince && k.Cause != undo.CauseUncertain {
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

// undoList lists the turns that a request selects.
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
