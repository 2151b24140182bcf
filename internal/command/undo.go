package command

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/config"
	"omniagent/internal/contract"
	"omniagent/internal/fault"
	"omniagent/internal/undo"
)

// Shared by undo, redo, the commands of "snapshots", and whatever opens conversations.

const undoKey = "undo.snapshots"

// undoParam is the flag of every command that runs an agent.
func undoParam() contract.Param {
	return contract.Param{
		Name: "undo", Kind: contract.Enum, Enum: []string{"on", "off"},
		Help: "whether omniagent undo can take its turns back; default: undo.snapshots",
	}
}

func undoFiles() contract.FileEffect {
	return contract.FileEffect{
		Path: "~/.local/state/omniagent/undo", Type: "state", ClearableWith: "omniagent snapshots delete",
	}
}

// undoStore is where the snapshots are.
func undoStore(c *contract.Call) (undo.Store, error) {
	store := snapshotsOf(c.Paths, c.Config, c.Host.Lookup)
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
	return &undo.Store{
		Dir: filepath.Join(paths.State, "undo"), Home: home, FileLimit: set.Int("undo.file_limit"),
		TotalLimit: set.Int("undo.total_limit"), IgnoredLimit: set.Int("undo.ignored_limit"),
	}
}

// snapshots returns where the turns of a call are kept; nil: they are not.
func snapshots(c *contract.Call) *undo.Store {
	word := c.String("undo")
	if word == "" {
		word = c.Config.String(undoKey)
	}
	if word == "off" {
		return nil
	}
	return snapshotsOf(c.Paths, c.Config, c.Host.Lookup)
}

type undoTurn struct {
	ID        string                         `json:"id"`
	Kind      string                         `json:"kind" enum:"turn,undo,redo"`
	Session   *string                        `json:"session_id"`
	Turn      *int64                         `json:"turn" doc:"of the session"`
	Run       *string                        `json:"run_id"`
	Agent     string                         `json:"agent"`
	Workspace string                         `json:"workspace"`
	Began     time.Time                      `json:"began"`
	Ended     *time.Time                     `json:"ended" doc:"null: it is under way"`
	Files     int                            `json:"files" doc:"that differ"`
	Changed   []contract.Foreign[string]     `json:"changed" doc:"the first hundred of them"`
	Of        *string                        `json:"of" doc:"the turn that an undo or redo took back"`
	Back      *string                        `json:"taken_back_by"`
	Late      bool                           `json:"late" doc:"the agent may have changed something before the first snapshot was complete"`
	Abandoned bool                           `json:"abandoned" doc:"its process died, so later changes count as its own"`
	Gaps      []contract.Foreign[undoMissed] `json:"not_covered" doc:"the first hundred"`
}

type undoMissed struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func undoTurnOf(r undo.Record) undoTurn {
	t := undoTurn{
		ID: r.ID, Kind: string(r.Kind), Session: orNil(r.Session), Run: orNil(r.Run), Agent: r.Agent, Began: r.Began,
		Files: r.Files, Changed: foreign(r.Changed), Of: orNil(r.Of), Back: orNil(r.Back), Late: r.Late,
		Abandoned: r.Abandoned, Gaps: foreign[undoMissed](nil),
	}
	if len(r.Roots) > 0 {
		t.Workspace = r.Roots[0]
	}
	if r.Turn > 0 {
		t.Turn = &r.Turn
	}
	if !r.Ended.IsZero() {
		t.Ended = &r.Ended
	}
	for _, g := range r.Gaps {
		t.Gaps = append(t.Gaps, contract.Foreign[undoMissed]{Value: undoMissed{g.Path, g.Reason}})
	}
	return t
}

type undoData struct {
	Of       *undoTurn                      `json:"of" doc:"what was taken back; null: --list"`
	By       *string                        `json:"by" doc:"the undo itself, which can be taken back; null: --list, --dry-run"`
	Restored []contract.Foreign[string]     `json:"restored" doc:"paths that are as before the turn again"`
	Kept     []contract.Foreign[undoMissed] `json:"kept" doc:"paths that are not, and why"`
	Resumed  bool                           `json:"resumed" doc:"an earlier undo, whose process had died, was completed; nothing else was done"`
	Turns    []undoTurn                     `json:"turns" doc:"with --list: the newest first"`
}

func undoDataOf(out undo.Outcome) undoData {
	of := undoTurnOf(out.Of)
	d := undoData{
		Of: &of, By: orNil(out.By.ID), Restored: foreign(out.Restored), Kept: foreign[undoMissed](nil),
		Resumed: out.Resumed, Turns: []undoTurn{},
	}
	for _, k := range out.Kept {
		d.Kept = append(d.Kept, contract.Foreign[undoMissed]{Value: undoMissed{k.Path, k.Reason}})
	}
	return d
}

// undoWords say to a person what came of an undo.
func undoWords(out undo.Outcome) string {
	lines := []string{fmt.Sprintf("%d paths are as they were before.", len(out.Restored))}
	if out.Resumed {
		lines[0] = "An undo that was interrupted is complete: " + lines[0]
	}
	for _, k := range out.Kept[:min(len(out.Kept), mostKeptLines)] {
		lines = append(lines, k.Path+" stays: "+k.Reason)
	}
	if more := len(out.Kept) - mostKeptLines; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// mostKeptLines is how many paths undoWords names that stay.
const mostKeptLines = 10

// undoCommand adds what undo and redo share.
func undoCommand(c contract.Command) *contract.Command {
	c.Class, c.Version, c.Scopes, c.Danger = contract.Envelope, "1.0.0", []string{}, contract.Mutating
	c.DryRun, c.Reversible, c.LooseConfig = true, true, true
	c.LongRunning, c.Timeout = true, 10*time.Minute // a large tree on a slow disk
	c.Output, c.Volatile = contract.TypeOf[undoData](), []string{"by"}
	c.Files = []contract.FileEffect{undoFiles(), {Path: ".", Type: "state"}}
	c.Params = append(c.Params,
		contract.Param{Name: "list", Kind: contract.Bool, Help: "only list the turns of this workspace"},
		contract.Param{
			Name: "keep-mine", Kind: contract.Bool,
			Help: "what was changed after the turn stays; the default",
		},
		contract.Param{Name: "take-old", Kind: contract.Bool, Help: "what was changed after the turn is restored too"},
	)
	c.Rules = append(c.Rules, contract.Rule{If: "keep-mine", Not: []string{"take-old"}})
	c.Exits = []contract.Exit{
		{Code: contract.Success, When: "everything is as before the turn, or the turns are listed"},
		{Code: contract.PartialFailure, When: "some paths are not; data.kept names them", Changed: contract.Some},
		{Code: contract.NotFound, When: "there is nothing to take back"},
		{Code: contract.Conflict, When: "an agent is at work there, or it is taken back already"},
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
			"git reset --hard,\ngit clean or git gc. What was changed after the turn stays. See docs/undo.md.",
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
			return takeBack(ctx, c, undo.Wish{ID: c.String("turn"), Session: c.String("session"), Run: c.String("run")})
		},
	})
}

func redoLast() *contract.Command {
	return undoCommand(contract.Command{
		Path: "redo", Summary: "take back the last undo in this workspace",
		Examples: []contract.Example{{Description: "After an undo too many", Command: "omniagent redo"}},
		Run: func(ctx context.Context, c *contract.Call) (contract.Result, error) {
			return takeBack(ctx, c, undo.Wish{Redo: true})
		},
	})
}

func takeBack(ctx context.Context, c *contract.Call, w undo.Wish) (contract.Result, error) {
	store, err := undoStore(c)
	if err != nil {
		return contract.Result{}, err
	}
	w.Dir, w.TakeOld, w.Dry = c.Dir(), c.Bool("take-old"), c.DryRun()
	if c.Bool("list") {
		records, err := store.List(w.Dir)
		d := undoData{Restored: foreign[string](nil), Kept: foreign[undoMissed](nil), Turns: []undoTurn{}}
		for _, r := range records {
			d.Turns = append(d.Turns, undoTurnOf(r))
		}
		return contract.Result{Data: d, Effect: contract.Noop}, err
	}
	out, err := store.Back(ctx, w)
	if err != nil {
		return contract.Result{}, err
	}
	result := contract.Result{
		Data: undoDataOf(out), Effect: contract.Updated, Target: map[string]any{"turn": out.Of.ID, "cwd": w.Dir},
	}
	if len(out.Kept) > 0 && !w.Dry {
		return result, fault.New(fault.PartialFailure, "%d paths are not as they were before the turn", len(out.Kept)).
			With("turn",
				out.Of.ID).Hint("data.kept names them; --take-old after omniagent redo restores those that you changed")
	}
	return result, nil
}
