package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"omniagent/internal/event"
	"os"
	"time"
)

// Reader reads the records of a session one after the other, from any number on. Any number of readers, in any process, get the same records. One
// that is slow costs neither the writer nor memory: it reads from the file.
type Reader struct {
	own    *Session // the writer, where it is in this process
	left   bool     // own may close its file as far as this reader goes
	file   *os.File // otherwise
	follow bool     // wait for more at the end of the file

	next    int64  // the number of the record to return next
	at      int64  // where that record begins, or one before it
	pending []byte // read from the file at the offset at
}

// Reader returns a reader of a session that is open for writing here. It begins with the record of that number; below 1 it begins with the first.
// Its Next waits for records until the session is closed, and behind the last one returns io.EOF.
func (s *Session) Reader(from int64) *Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers++
	return &Reader{own: s, next: max(1, from)}
}

// Reader returns a reader of a session on disk. With follow, its Next waits at the end for what another process appends; else it returns io.EOF there.
func (s Store) Reader(id string, from int64, follow bool) (*Reader, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	f, err := s.open(id, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return &Reader{file: f, follow: follow, next: max(1, from)}, nil
}

// Close ends the reader.
func (r *Reader) Close() error {
	if r.own != nil {
		return r.leave()
	}
	return r.file.Close()
}

// leave says that this reader needs the writer's file no more. The last one closes it when the writer is closed.
func (r *Reader) leave() error {
	s := r.own
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.left {
		return nil
	}
	r.left = true
	if s.readers--; s.reading != nil && s.readers == 0 {
		return s.reading.Close()
	}
	return nil
}

// Next returns the next record. A line that is no record comes as Damaged, with the number that a record in its place would have at least.
func (r *Reader) Next(ctx context.Context) (Entry, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Entry{}, err
		}
		var file io.ReaderAt = r.file
		end := int64(-1)
		var changed <-chan struct{}
		over := !r.follow
		if r.own != nil {
			var e Entry
			var found bool
			if e, file, end, changed, over, found = r.own.ahead(r); found {
				return e, nil
			}
		}
		e, err := r.read(file, end)
		if err == nil || !errors.Is(err, io.EOF) {
			return e, err
		}
		if over {
			if r.own != nil {
				_ = r.leave()
			}
			return Entry{}, io.EOF
		}
		if err := wait(ctx, changed); err != nil {
			return Entry{}, err
		}
	}
}

// lookAgain is how often a file that another process writes is looked at.
const lookAgain = 50 * time.Millisecond

func wait(ctx context.Context, changed <-chan struct{}) error {
	var soon <-chan time.Time
	if changed == nil {
		soon = time.After(lookAgain)
	}
	select {
	case <-changed:
	case <-soon:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// ahead returns the record that r wants next, where it is in memory. Otherwise it returns the file, where its last record ends, and what to wait for.
func (s *Session) ahead(r *Reader) (e Entry, file io.ReaderAt, end int64, changed <-chan struct{}, over, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, at, ok := s.recent.get(r.next); ok {
		r.next, r.at, r.pending = e.Number+1, at, nil
		return e, nil, 0, nil, false, true
	}
	return Entry{}, s.journal.file, s.journal.end, s.changed, s.over, false
}

// wake wakes readers. It is called with the lock.
func (s *Session) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// read reads the next record from the file. end is where the last whole record ends; -1: a line that has its newline is whole. io.EOF: there is none yet.
func (r *Reader) read(file io.ReaderAt, end int64) (Entry, error) {
	for {
		line, err := r.line(file, end)
		if err != nil {
			return Entry{}, err
		}
		if h, ok := parseHead(line); ok && h.number < r.next {
			r.skip(len(line) + 1)
			continue
		}
		e, err := decode(line)
		at := r.at
		r.skip(len(line) + 1)
		switch {
		case err != nil && len(bytes.TrimSpace(line)) == 0:
		case err != nil:
			return Entry{Number: r.next, Record: Damaged{at, len(line)}}, nil
		case e.Number >= r.next:
			r.next = e.Number + 1
			return e, nil
		}
	}
}

func (r *Reader) skip(n int) {
	r.at += int64(n)
	if r.pending = r.pending[n:]; len(r.pending) == 0 {
		r.pending = nil // the next piece is read into memory of its own: entries refer to this one
	}
}

// line is the line at r.at, without its newline.
func (r *Reader) line(file io.ReaderAt, end int64) ([]byte, error) {
	for {
		if i := bytes.IndexByte(r.pending, '\n'); i >= 0 {
			return r.pending[:i], nil
		}
		from := r.at + int64(len(r.pending))
		size := max(chunk, len(r.pending)) // of a long line twice as much each time
		if end >= 0 {
			size = int(min(int64(size), end-from))
		}
		if size <= 0 {
			return nil, io.EOF
		}
		more := make([]byte, len(r.pending)+size)
		n, err := file.ReadAt(more[copy(more, r.pending):], from)
		if r.pending = more[:len(r.pending)+n]; n > 0 {
			continue
		}
		if err == nil {
			err = io.EOF
		}
		return nil, err
	}
}

// recent holds the last records of a session in memory, up to a limit: readers that keep up need not read the file.
type recent struct {
	entries []kept
	size    int
}

type kept struct {
	entry Entry
	end   int64 // where the next record begins
	size  int
}

// The limits of recent.
const (
	mostRecent    = 256
	recentBytes   = 256 << 10
	largestRecent = 64 << 10
)

func (r *recent) add(e Entry, at int64, size int) {
	if size > largestRecent {
		clear(r.entries)
		r.entries, r.size = r.entries[:0], 0 // they have to follow one another
		return
	}
	for len(r.entries) > 0 && (len(r.entries) >= mostRecent || r.size+size > recentBytes) {
		r.size -= r.entries[0].size
		r.entries[0] = kept{}
		r.entries = r.entries[1:]
	}
	r.entries, r.size = append(r.entries, kept{e, at + int64(size), size}), r.size+size
}

// get is the record of that number, and where the next one begins.
func (r *recent) get(number int64) (Entry, int64, bool) {
	if len(r.entries) == 0 {
		return Entry{}, 0, false
	}
	i := number - r.entries[0].entry.Number
	if i < 0 || i >= int64(len(r.entries)) || r.entries[i].entry.Number != number {
		return Entry{}, 0, false
	}
	return r.entries[i].entry, r.entries[i].end, true
}

// Last is the number of the last record.
func (s *Session) Last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.seq
}

// Event is the event that a record has; nil: it has none.
func (e Entry) Event() *event.Event { return eventOf(e.Record) }
