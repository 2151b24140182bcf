package safety

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/undo"
)

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
	Abandoned bool                          `json:"abandoned" doc:"its process died, so undo asks for its name, and keeps what its recorded calls do not explain"`
	Gaps      contract.Foreigns[undoMissed] `json:"not_covered" doc:"the first hundred"`
}

type undoMissed struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func undoTurnOf(r undo.Record) undoTurn {
	t := undoTurn{
		ID: r.ID, Kind: string(r.Kind), Session: contract.OrNil(r.Session), Run: contract.OrNil(r.Run), Agent: r.Agent,
		Began:   r.Began,
		Changed: r.Changed, Doubtful: r.Doubtful, Perhaps: r.Possible,
		Of: contract.OrNil(r.Undoes), Back: contract.OrNil(r.UndoneBy), Late: r.Late, Abandoned: r.Abandoned,
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

	list  bool   // the result of --list
	words string // otherwise the text for people
}

func undoDataOf(out undo.Outcome, dryRun bool) undoData {
	d := undoData{
		Of: new(undoTurnOf(out.Turn)), By: contract.OrNil(out.Undo.ID), Restored: out.Restored, Resumed: out.Resumed,
		words: undoWords(out, dryRun),
	}
	for _, k := range out.NotRestored {
		d.Kept = append(d.Kept, undoMissed{k.Path, k.Reason})
	}
	return d
}

// ForPeople makes the lines fit the screen.
func (undoData) ForPeople() {}

// PlainText returns the report for people, or the list.
func (d undoData) PlainText() string {
	if d.list {
		return undoTable(d.Turns)
	}
	return d.words + "\n"
}

// undoWords returns a report for people of what an undo did, or would do.
func undoWords(out undo.Outcome, dryRun bool) string {
	took, restored, kept := "Took back ", "Restored ", "Kept unchanged:"
	if out.Resumed {
		took = "Completed an interrupted undo of "
	}
	if dryRun {
		took, restored, kept = "Would take back ", "Would restore ", "Would keep unchanged:"
	}
	lines := []string{took + turnWords(out.Turn), restored + text.Plural(len(out.Restored), "path") + ":"}
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
	if len(out.NotRestored) > 0 {
		lines = append(lines, kept)
	}
	for _, k := range out.NotRestored[:min(len(out.NotRestored), mostPathLines)] {
		lines = append(lines, "  "+text.Visible(k.Path)+": "+text.Visible(k.Reason))
	}
	lines = append(lines, andMore(len(out.NotRestored))...)
	return strings.Join(lines, "\n")
}

// movedWords returns a line for each branch that was moved back although it was no longer where the turn had left it.
func movedWords(out undo.Outcome, dryRun bool) (lines []string) {
	short := func(hash string) string { return text.Cut(text.Visible(hash), 12) }
	for _, m := range out.Moved {
		went, where := "is", short(m.To)
		if dryRun {
			went = "would be"
		}
		if m.To == "" {
			where = "gone"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s again; it was %s, which is not where the turn left it.",
			text.Visible(m.Branch), went, where, short(m.From)))
	}
	return lines
}

// inGit returns 1 for a path in a git directory and 0 for any other, so that people see their files first.
func inGit(path string) int {
	if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), ".git") {
		return 1
	}
	return 0
}

// turnWords describes a turn for people.
func turnWords(r undo.Record) string {
	words := map[undo.Kind]string{undo.OfTurn: "the turn", undo.OfUndo: "the undo", undo.OfRedo: "the redo"}[r.Kind]
	if r.Agent != "" {
		words += " of " + text.Visible(r.Agent)
	}
	return fmt.Sprintf("%s from %s (%s).", words, r.Began.Local().Format(undoTime), r.ID)
}

const undoTime = "2006-01-02 15:04"

// mostPathLines limits the paths that undoWords names in each of its lists.
const mostPathLines = 10

func andMore(n int) []string {
	if n <= mostPathLines {
		return nil
	}
	return []string{fmt.Sprintf("  and %d more", n-mostPathLines)}
}

// undoTable returns a table of turns for people, in the given order.
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

// undoNote returns the last column of undoTable: the state of a turn, and its first files.
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
	add(t.Abandoned && t.Ended == nil, "undo keeps what its recorded calls do not explain")
	add(t.Late, "its first changes may be missing")
	add(len(t.Gaps) > 0, text.Plural(len(t.Gaps), "path")+" not covered")
	var names []string
	for _, name := range t.Changed[:min(len(t.Changed), mostNamedFiles)] {
		names = append(names, text.Visible(name))
	}
	if len(t.Changed) > mostNamedFiles {
		names = append(names, "…")
	}
	add(len(names) > 0, strings.Join(names, ", "))
	add(t.Doubtful > 0, "and perhaps "+text.Plural(t.Doubtful, "path")+" that others may have changed")
	return strings.Join(parts, "; ")
}

const mostNamedFiles = 3
