package session

import (
	"context"
	"io"
	"iter"
	"os"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/model"
)

// View is a session as somebody looks at it who does not write it. The writer may be at work meanwhile: a view stays as it was.
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
	v, err := viewOf(f)
	if err != nil {
		_ = f.Close()
		return nil, unreadable(s.file(id, journalEnding), err)
	}
	if v.State.Begin.ID == "" {
		v.State.Begin.ID = id
	}
	return v, nil
}

func viewOf(f *os.File) (*View, error) {
	j, err := readJournal(f)
	if err != nil {
		return nil, err
	}
	folded, err := foldAt(j, j.last())
	if err != nil {
		return nil, err
	}
	return &View{State: folded.state, file: f, fold: folded, path: j.path(j.last())}, nil
}

// Close ends the view.
func (v *View) Close() { _ = v.file.Close() }

// Info is what a list tells of it, and more.
func (v *View) Info() Info { return Info{State: v.State, Size: v.fold.journal.size} }

// Messages is what the model would see now.
func (v *View) Messages() []model.Message {
	return plain(v.fold.messages())
}

// Entries are the records that the conversation consists of, the first one first, whatever was put aside by compactions among them. One
// that cannot be read comes as an error; the others follow.
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

// Fork makes a session that begins with all that another one is, and locks it. An empty newID is chosen. The other may be in use. What
// the conversation has cost until there is part of the totals of both.
func (s Store) Fork(ctx context.Context, id, newID string) (*Session, error) {
	if newID == "" {
		newID = NewID()
	}
	if err := CheckID(newID); err != nil {
		return nil, err
	}
	v, err := s.Show(id)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	return s.begin(ctx, newID, func(w io.Writer) error {
		b := v.State.Begin
		b.Version, b.ID, b.Created = version, newID, time.Now().UTC().Truncate(time.Millisecond)
		b.Forked = &Origin{ID: id, Record: v.State.Head}
		line, err := Entry{Number: 1, Time: b.Created, Record: b}.line()
		if err != nil {
			return fault.New(fault.Internal, "the session %s cannot be forked", id).Because(err)
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		return v.copyTo(w)
	})
}

// copyTo writes the records that the conversation consists of, but for the first, with new numbers: those of a journal have no gaps.
func (v *View) copyTo(w io.Writer) error {
	last, moved := int64(1), map[int64]int64{1: 1}
	for _, i := range v.path {
		if v.fold.journal.places[i].number == 1 {
			continue // its own begin
		}
		line, err := v.fold.journal.raw(i)
		if err != nil {
			return err
		}
		e, err := decode(line)
		if err != nil {
			continue // it is lost in the other session as well
		}
		moved[e.Number] = last + 1
		e.Number, e.Parent = last+1, last
		if c, is := e.Record.(Compacted); is && c.Keep != 0 {
			c.Keep = moved[c.Keep]
			e.Record = c
		}
		last++
		if line, err = e.line(); err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}
