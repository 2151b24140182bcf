package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/workspace"
)

// Info describes a session in a list: the State without Todos and Damaged. Messages, Compactions and Title come from
// the last end of a turn, on any branch, and the records after it.
type Info struct {
	State
	Size int64 // of the journal
}

// Filter selects the sessions of a list. Zero values match everything.
type Filter struct {
	Dir      string // the project: matches sessions that ran in it or below it
	Provider string
	Agent    string // the driver's name
	Limit    int    // 0 for all
}

// List returns the sessions, most recently used first, and for each file that cannot be read an error with its name.
func (s Store) List(ctx context.Context, filter Filter) (all []Info, skipped []error, err error) {
	ids, err := s.ids()
	if err != nil {
		return nil, nil, err
	}
	all = []Info{}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		info, err := s.Info(id)
		switch {
		case errors.Is(err, fault.NotFoundCode): // it was deleted in the meantime
		case err != nil:
			skipped = append(skipped, err)
		case filter.passes(info):
			all = append(all, info)
		}
	}
	slices.SortStableFunc(all, func(a, b Info) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(a.Begin.ID, b.Begin.ID))
	})
	if filter.Limit > 0 {
		all = all[:min(filter.Limit, len(all))]
	}
	return all, skipped, nil
}

// Dropped reports whether a directory is outside the filter's directory.
func (f Filter) Dropped(dir string) bool {
	return f.Dir != "" && !pathname.Within(f.Dir, dir)
}

func (f Filter) passes(i Info) bool {
	return (f.Provider == "" || f.Provider == i.Provider) && (f.Agent == "" || f.Agent == i.Begin.AgentName()) &&
		!f.Dropped(i.Begin.Cwd)
}

// ids returns the names of the journals. A missing store is empty.
func (s Store) ids() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !workspace.Absent(err) {
		return nil, fault.New(codeOf(err), "the sessions in %s cannot be listed", s.dir).Because(err).Hint("look at %s",
			s.dir)
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), journalEnding); ok && CheckID(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// tail is the size of the end of a journal that a list reads at once. The end of a turn is seldom larger.
const tail = 32 << 10

// Info returns the Info of one session. It reads the first and the last lines, and the whole file only if those are not
// enough.
func (s Store) Info(id string) (Info, error) {
	f, err := s.open(id, os.O_RDONLY)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	size := int64(0)
	if stat, err := f.Stat(); err == nil {
		size = stat.Size()
	}
	state, ok := glance(f, size, s.blobs(id))
	if !ok {
		v, err := viewOf(f, s.blobs(id))
		if err != nil {
			return Info{}, unreadable(s.file(id, journalEnding), err)
		}
		state = v.State
	}
	if state.Begin.ID = id; state.Updated.IsZero() {
		state.Updated = state.Begin.Created
	}
	return Info{State: state, Size: size}, nil
}

// glance builds the state from the first record, the last end of a turn, and the records after it.
func glance(f io.ReaderAt, size int64, blobs blobs) (State, bool) {
	var s State
	first, ok := firstLine(f, size)
	if !ok {
		return s, false
	}
	e, err := decode(first)
	b, ok := e.Record.(Begin)
	if err != nil || !ok {
		return s, false
	}
	at := max(0, size-tail)
	end := make([]byte, size-at)
	if _, err := f.ReadAt(end, at); err != nil {
		return s, false
	}
	end = end[:bytes.LastIndexByte(end, '\n')+1] // without a torn line
	lines := bytes.SplitAfter(end, []byte{'\n'}) // the first one may be incomplete, and then has no head
	from := len(lines) - 1
	for ; from >= 0; from-- {
		if h, ok := parseHead(lines[from]); ok && h.kind == kindEnd {
			break
		}
	}
	if from < 0 {
		return s, false
	}
	adopting := 0
	for _, line := range lines[from:] {
		e, err := blobs.decode(line)
		if len(line) == 0 || err != nil {
			continue
		}
		if end, ok := e.Record.(End); ok {
			s.Total = end.Total
		} else {
			s.take(&e.Record, Total{})
		}
		switch r := e.Record.(type) {
		case Adopted:
			adopting = r.Messages
		case Message:
			adopting--
		}
		if s.Updated = e.Time; e.Record.kind().inTree() {
			s.Head = e.Number
		}
	}
	s.Begin, s.Todos = b, nil
	return s, adopting <= 0 // detecting an incomplete history takes a full read
}

// firstLine returns the first line, unless it is very long.
func firstLine(f io.ReaderAt, size int64) ([]byte, bool) {
	for _, length := range []int64{1 << 10, 64 << 10} {
		line := make([]byte, min(size, length))
		if _, err := f.ReadAt(line, 0); err != nil && !errors.Is(err, io.EOF) {
			return nil, false
		}
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			return line[:i], true
		}
	}
	return nil, false
}

// Hit is a session that contains the text searched for.
type Hit struct {
	Info
	Found   int    // number of messages that contain it; 0 if only the title does
	Record  int64  // of the first match
	Role    string // of the first match
	Snippet string // the text and its surroundings, in one line
}

// Search finds the sessions whose title or messages contain a text, ignoring case. Messages that a compaction removed
// from the model's view are searched too.
func (s Store) Search(ctx context.Context, wanted string, filter Filter) (hits []Hit, skipped []error, err error) {
	wanted = strings.ToLower(wanted)
	if strings.TrimSpace(wanted) == "" {
		return nil, nil, fault.New(fault.ArgError, "the text to search for is empty").Hint("give a text")
	}
	page, skipped, err := s.List(ctx, filter)
	if err != nil {
		return nil, nil, err
	}
	for _, info := range page {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		hit := Hit{Info: info}
		if err := s.searchIn(ctx, &hit, wanted); err != nil {
			skipped = append(skipped, err)
			continue
		}
		if hit.Found > 0 || strings.Contains(strings.ToLower(info.Title), wanted) {
			hits = append(hits, hit)
		}
	}
	return hits, skipped, nil
}

func (s Store) searchIn(ctx context.Context, hit *Hit, wanted string) error {
	v, err := s.Show(hit.Begin.ID)
	if errors.Is(err, fault.NotFoundCode) {
		return nil
	}
	if err != nil {
		return err
	}
	defer v.Close()
	plain := []byte(plainest(wanted))
	for _, i := range v.path {
		if v.fold.journal.places[i].kind != kindMessage {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := v.fold.journal.raw(v.fold.journal.places[i])
		if err != nil {
			return err
		}
		if !bytes.Contains(bytes.ToLower(line), plain) && !bytes.Contains(line, []byte(blobHead)) {
			continue // most lines need not be decoded
		}
		e, err := v.fold.journal.blobs.decode(line)
		if err != nil {
			continue
		}
		m := e.Record.(Message)
		for _, b := range m.Blocks {
			if addedByHost(b) { // the person did not write it
				continue
			}
			if at := strings.Index(strings.ToLower(b.Text), wanted); at >= 0 {
				if hit.Found++; hit.Found == 1 {
					hit.Record, hit.Role = e.Number, string(m.Role)
					hit.Snippet = Snippet(b.Text, at, len(wanted))
				}
				break
			}
		}
	}
	return nil
}

// plainest returns the longest piece of a text that JSON leaves unescaped.
func plainest(wanted string) string {
	longest := ""
	for piece := range strings.FieldsFuncSeq(wanted, func(r rune) bool {
		return r < 0x20 || strings.ContainsRune("\"\\\u2028\u2029\uFFFD", r) || text.IsControl(r)
	}) {
		if len(piece) > len(longest) {
			longest = piece
		}
	}
	return longest
}

const around = 40

// Snippet cuts a match out of its text. at and length refer to the lower-case form of the text. If that has another
// length, Snippet cuts out of that form.
func Snippet(whole string, at, length int) string {
	if lower := strings.ToLower(whole); len(lower) != len(whole) {
		whole = lower
	}
	from, to := max(0, at-around), min(len(whole), at+length+around)
	cut := strings.ToValidUTF8(whole[from:to], "")
	clean := text.Flat(cut)
	if from > 0 {
		clean = "…" + clean
	}
	if to < len(whole) {
		clean += "…"
	}
	return clean
}
