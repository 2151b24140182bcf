package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"omniagent/internal/llm/model"
)

// View is a read-only snapshot of a session. It does not change when a writer appends.
type View struct {
	State State
	file  *os.File
	fold  *fold
	path  []int
}

// Show opens a view of a session.
func (s Store) Show(id string) (*View, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	f, err := s.open(id, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	v, err := viewOf(f, s.blobs(id))
	if err != nil {
		_ = f.Close()
		return nil, unreadable(s.file(id, journalEnding), err)
	}
	v.State.Begin.ID = cmp.Or(v.State.Begin.ID, id)
	return v, nil
}

func viewOf(f *os.File, blobs blobs) (*View, error) {
	j, err := readJournal(f, blobs)
	if err != nil {
		return nil, err
	}
	folded, err := foldAt(j, j.last())
	if err != nil {
		return nil, err
	}
	return &View{State: folded.state, file: f, fold: folded, path: j.path(j.last())}, nil
}

// Close closes the view.
func (v *View) Close() { _ = v.file.Close() }

// Info returns the Info of the session.
func (v *View) Info() Info { return Info{State: v.State, Size: v.fold.journal.size} }

// Last returns the number of the last record.
func (v *View) Last() int64 { return v.fold.journal.seq() }

// Messages returns the messages that the model would see now.
func (v *View) Messages() []model.Message {
	return plain(v.fold.messages())
}

// Check reads every record on every branch, and returns damaged lines, records, and files with the data of records.
func (v *View) Check(ctx context.Context) ([]Damaged, error) {
	j := v.fold.journal
	r := &Reader{file: share(v.file), blobs: j.blobs, from: 1}
	all := []Damaged{}
	for {
		e, err := r.Next(ctx)
		if err != nil && !errors.Is(err, io.EOF) {
			return all, err
		}
		d, damaged := e.Record.(Damaged)
		if err != nil || e.Number > j.seq()+1 || damaged && d.At >= j.end {
			break
		}
		if damaged && len(all) < mostDamage {
			all = append(all, d)
		}
	}
	if torn := j.size - j.end; torn > 0 {
		all = append(all, Damaged{j.end, int(torn), tornEnd})
	}
	return all, nil
}

// Entries iterates over the records of the conversation, including those that compactions removed from the model's
// view. It yields an error for an unreadable record, and continues.
func (v *View) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, i := range v.path {
			if v.fold.journal.places[i].kind == unknown {
				continue
			}
			if !yield(v.fold.journal.entry(i)) {
				return
			}
		}
	}
}

// withEvents iterates over the records of Entries, each after the earlier events as sent to hosts, also those of other
// branches.
func (v *View) withEvents() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		j := v.fold.journal
		r := &Reader{file: share(v.file), blobs: j.blobs, from: 1}
		next, err := r.Next(context.Background())
		until := func(number int64) bool {
			for ; err == nil && next.Number < number; next, err = r.Next(context.Background()) {
				if _, is := next.Record.(Logged); is && !yield(next, nil) {
					return false
				}
			}
			return true
		}
		for _, i := range v.path {
			if j.places[i].kind == unknown {
				continue
			}
			if !until(j.places[i].number) || !yield(j.entry(i)) {
				return
			}
		}
		until(j.seq() + 1)
	}
}

// Fork creates a session that begins with the records of another one, and locks it. If newID is empty, Fork chooses an
// id. The other session may be in use. The totals of both include the cost so far.
func (s Store) Fork(ctx context.Context, id, newID string) (*Session, error) {
	newID = cmp.Or(newID, NewID())
	if err := CheckID(newID); err != nil {
		return nil, err
	}
	v, err := s.Show(id)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	if v.State.Begin.Version > version {
		return nil, newer(v.State.Begin)
	}
	return s.create(ctx, newID, func(w io.Writer) error {
		b := v.State.Begin
		b.Version, b.ID, b.Created = version, newID, time.Now().UTC().Truncate(time.Millisecond)
		b.Forked, b.InFork = &Origin{ID: id, Record: v.State.Head}, s.fork
		if err := b.write(w); err != nil {
			return err
		}
		c := copying{
			w: w, from: v.fold.journal.blobs, to: s.blobs(newID), last: 1, moved: map[int64]int64{1: 1}, parent: 1,
		}
		return v.lines(ctx, c.put)
	})
}

// lines calls do for each line of the conversation, in the order of the file: its records, events, and unknown records.
func (v *View) lines(ctx context.Context, do func(e Entry, line []byte) error) error {
	ours := map[int64]bool{}
	for _, i := range v.path {
		ours[v.fold.journal.places[i].number] = true
	}
	j := v.fold.journal
	r := &Reader{file: share(v.file), blobs: j.blobs, from: 1}
	for {
		e, line, err := r.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if e.Number > j.seq() { // written after the view was opened
			return nil
		}
		if _, damaged := e.Record.(Damaged); damaged || line == nil {
			continue // the other session has lost it too
		}
		if k := e.Record.kind(); !ours[e.Number] && (!ours[e.Parent] || k.inTree() && k != unknown) {
			continue // on an abandoned branch
		}
		if err := do(e, line); err != nil {
			return err
		}
	}
}

// copying renumbers the records of a conversation, because the numbers in a journal must not have gaps.
type copying struct {
	w            io.Writer
	from, to     blobs
	last, parent int64
	moved        map[int64]int64
}

func (c *copying) put(e Entry, line []byte) error {
	if e.Number == 1 {
		return nil // the copy has its own Begin
	}
	h, _ := parseHead(line)
	body := line[min(h.data, len(line)):max(h.data, len(line)-1)]
	if compacted, is := e.Record.(Compacted); is && compacted.Keep != 0 || h.data == 0 {
		if is {
			compacted.Keep = c.moved[compacted.Keep]
			e.Record = compacted
		}
		var err error
		if body, err = bodyOf(nil, e.Record); err != nil {
			return err
		}
	}
	if len(body) > largestBody {
		var err error
		if body, err = c.to.put(body); err != nil {
			return err
		}
	} else if r, is := referenceOf(body); is {
		data, err := c.from.resolve(body)
		if err == nil {
			_, err = c.to.put(data)
		}
		if err != nil {
			return fmt.Errorf("the data of record %d, %s, cannot be copied: %w", e.Number, r.Blob, err)
		}
	}
	c.last++
	c.moved[e.Number] = c.last
	e.Number, e.Parent = c.last, c.parent
	if e.Record.kind().inTree() {
		c.parent = c.last
	}
	_, err := c.w.Write(e.append(nil, body))
	return err
}
