package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
)

// The kinds of damage.
const (
	Changed   = "changed"   // the line has other bytes than its hash covers, or is not an entry at all
	Missing   = "missing"   // entries in front of the line were removed
	Truncated = "truncated" // the line, or the log, has lost its end
	Misplaced = "misplaced" // the line is there twice, or in another place
	Unchained = "unchained" // the line has no hash, and the chain had begun
)

// Place is a line of a file of the log. Line 0 is the file as a whole.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// Damage is a place where the chain is broken.
type Damage struct {
	Place
	Kind    string `json:"kind" enum:"changed,missing,truncated,misplaced,unchained"`
	Message string `json:"message"`
}

// Report is what Verify found.
type Report struct {
	Files    int      `json:"files"`
	Entries  int      `json:"entries" doc:"lines of the chain that are as they were written"`
	Before   int      `json:"before_chain" doc:"lines without a hash, which an older version wrote; nothing is known of them"`
	First    int64    `json:"first" doc:"number of the first entry; more than 1: the retention removed those before it"`
	Last     int64    `json:"last" doc:"number of the last entry"`
	Head     string   `json:"head" doc:"hash of the last entry"`
	Torn     []Place  `json:"torn" doc:"lines that a killed writer or a full disk left incomplete; no entry is missing"`
	Damage   []Damage `json:"damage" doc:"at most the first 100 places"`
	Damaged  int      `json:"damaged"`
	Complete bool     `json:"complete" doc:"the log has all entries up to the recorded head"`
}

const maxDamage = 100

// Verify reads the whole log and checks every line: its hash, its number, and that it follows the line before. It fails
// only if a file cannot be read. It refuses to guess what a damaged line has been.
func (l *Log) Verify(ctx context.Context) (Report, error) {
	held, err := l.lock() // so that the files and the head belong together
	if errors.Is(err, fault.LockHeld) {
		return Report{}, err
	}
	h, known := l.readHead()
	files, failures := l.open()
	sizes := make([]int64, len(files))
	for i, f := range files {
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			sizes[i] = info.Size()
		}
	}
	if held != nil {
		_ = held.Unlock()
	}
	if len(failures) > 0 {
		return Report{}, failures[0]
	}
	v := verifier{head: h, last: h.Removed, place: Place{File: l.path}}
	v.report = Report{Files: len(files), Torn: []Place{}, Damage: []Damage{}}
	for i, f := range files {
		if err := v.file(ctx, f, sizes[i]); err != nil {
			return Report{}, err
		}
	}
	v.end(l.headPath(), known)
	v.report.Last, v.report.Head = v.last.Seq, v.last.Hash
	return v.report, nil
}

type verifier struct {
	report Report
	head   head
	last   mark    // the last entry of the chain
	place  Place   // the current line
	torn   []Place // incomplete lines behind last
	lost   int     // damaged lines behind last, each of which may have been an entry
}

func (v *verifier) file(ctx context.Context, f *os.File, size int64) error {
	in := lines.NewReader(io.NewSectionReader(f, 0, size), maxLine)
	for v.place = (Place{f.Name(), 1}); in.Next(); v.place.Line++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		v.line(in.Text, in.Long)
	}
	if err := in.Err(); err != nil {
		return unreadable(f.Name(), err)
	}
	v.place.Line = max(1, v.place.Line-1)
	return nil
}

func (v *verifier) line(text []byte, long bool) {
	k, linked := linkOf(text)
	e, entry := entryOf(text)
	switch {
	case len(text) == 0 && !long: // writers of older versions healed the same torn line
	case !long && linked && k.intact(text):
		v.link(k)
	case covered(text) >= 0 || entry && e.Seq > 0:
		v.lost++
		v.damage(Changed, "the line has other bytes than its hash covers")
	case !long && entry:
		if v.last.Seq == 0 && v.lost == 0 {
			v.report.Before++
			return
		}
		v.lost++
		v.damage(Unchained, "the entry has no hash: an older version, a writer that waited for the lock in vain, "+
			"or a hand wrote it")
	case !long && isTorn(text):
		v.torn = append(v.torn, v.place)
	default:
		v.lost++
		v.damage(Changed, "the line is not an entry")
	}
}

// isTorn reports whether a line is the beginning of an entry.
func isTorn(line []byte) bool {
	return !json.Valid(line) &&
		(bytes.HasPrefix(line, []byte(entryStart)) || bytes.HasPrefix([]byte(entryStart), line))
}

// link checks an intact line against the one before it.
func (v *verifier) link(k link) {
	first := v.report.First == 0
	switch missing := k.Seq - v.last.Seq - 1; {
	case first && missing < 0: // the retention was interrupted between its record and the removal
	case missing < 0 && k.Seq == v.last.Seq && k.Hash == v.last.Hash:
		v.damage(Misplaced, fmt.Sprintf("entry %d is there twice", k.Seq))
		return
	case missing < 0:
		v.damage(Misplaced, fmt.Sprintf("entry %d stands behind entry %d", k.Seq, v.last.Seq))
		return
	case missing > 0:
		v.gap(missing, Missing, "in front of this line")
	case k.Prev != v.last.Hash:
		v.damage(Missing, fmt.Sprintf("the line does not follow the entry %d that stands in front of it", v.last.Seq))
	}
	if first {
		v.report.First = k.Seq
	}
	v.report.Torn = append(v.report.Torn, v.torn...)
	v.torn, v.lost, v.last = nil, 0, k.mark
	v.report.Entries++
	if k.Seq == v.head.Last.Seq && k.Hash != v.head.Last.Hash {
		v.damage(Changed, fmt.Sprintf("entry %d is not the one that the head file recorded", k.Seq))
	}
}

// gap reports missing entries: those that became damaged lines, and those that were removed.
func (v *verifier) gap(missing int64, kind, where string) {
	here := v.place
	for _, v.place = range v.torn {
		v.lost++
		v.damage(Truncated, "the line has lost its end")
	}
	v.place = here
	if missing -= int64(v.lost); missing > 0 {
		v.damage(kind, fmt.Sprintf("%s missing %s", entries(v.last.Seq+1, missing, v.lost), where))
	}
	v.torn = nil
}

// entries describes missing entries from a number on. As many as damaged lie among them.
func entries(from, missing int64, damaged int) string {
	switch last := from + missing + int64(damaged) - 1; {
	case from == last:
		return fmt.Sprintf("entry %d is", from)
	case damaged == 0:
		return fmt.Sprintf("the entries %d to %d are", from, last)
	default:
		return fmt.Sprintf("%d of the entries %d to %d are", missing, from, last)
	}
}

// end compares the last entry with the head.
func (v *verifier) end(path string, known bool) {
	missing := v.head.Last.Seq - v.last.Seq
	v.report.Complete = known && missing <= 0
	switch {
	case !known && v.last.Seq > 0:
		v.place = Place{File: path}
		v.damage(Truncated, "the head file is missing or damaged, so nothing shows whether the log is complete")
	case missing > 0:
		v.gap(missing, Truncated, "behind this line")
	}
	v.report.Torn = append(v.report.Torn, v.torn...)
}

func (v *verifier) damage(kind, message string) {
	if v.report.Damaged++; len(v.report.Damage) < maxDamage {
		v.report.Damage = append(v.report.Damage, Damage{v.place, kind, message})
	}
}

// Fault returns the first damage as a failure, or nil.
func (r Report) Fault() error {
	if r.Damaged == 0 {
		return nil
	}
	d := r.Damage[0]
	at := d.File
	if d.Line > 0 {
		at = fmt.Sprintf("%s:%d", d.File, d.Line)
	}
	f := fault.New(fault.AuditDamaged, "the audit log is damaged at %s: %s", at, d.Message).
		With("file", d.File).With("line", d.Line).With("damaged", r.Damaged)
	if r.Damaged > 1 {
		f.Message += fmt.Sprintf(" (and %d other places; see damage[])", r.Damaged-1)
	}
	return f.Hint("compare it with a backup; to begin a new chain, move every file of the log away, with its .head")
}
