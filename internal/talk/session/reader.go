package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/sys/workspace"
)

// Reader reads the records of a session in order, starting at any number. Any number of readers, in any process, get
// the same records. A slow reader does not delay the writer and needs no memory, because it reads from the file.
type Reader struct {
	own    *Session // the writer, if it is in this process
	file   *sharedFile
	blobs  blobs
	lock   string // the lock file of the writer, if follow is set
	follow bool   // wait for more at the end of the file

	from  int64 // the number of the first record to return
	order order // checks the numbers
	lines lineReader
	queue []item // what the line before lines.at contains
	again bool   // the line at lines.at was damaged, and is read again
}

// sharedFile is a file that a session and its readers use. The last user closes it, so that a file without a name can
// be read to its end.
type sharedFile struct {
	*os.File
	mu    sync.Mutex
	users int
}

func share(f *os.File) *sharedFile { return &sharedFile{File: f, users: 1} }

// use adds a user, unless the file is closed.
func (s *sharedFile) use() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		return false
	}
	s.users++
	return true
}

// leave removes a user.
func (s *sharedFile) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		return s.Close()
	}
	return nil
}

// Reader returns a reader of a session that this process has open. It begins with record number from, or with the first
// if from is below 1. Next waits for records until the session is closed, and returns io.EOF after the last one. The
// caller must close the reader.
func (s *Session) Reader(from int64) *Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Reader{own: s, blobs: s.journal.blobs, from: max(1, from)}
	if s.handle.use() {
		r.file = s.handle
	} else if f, err := s.store.open(s.id, os.O_RDONLY); err == nil && s.lock != nil {
		r.file = share(f)
	}
	if i := s.journal.index(r.from - 1); i >= 0 { // skip the records before it
		r.order.last = s.journal.places[i].number - 1
		r.lines.seek(s.journal.places[i].at)
	}
	return r
}

// Reader returns a reader of a session on disk. With follow, Next waits at the end for records from another process
// until the session has no writer or is deleted; otherwise it returns io.EOF there.
func (s Store) Reader(id string, from int64, follow bool) (*Reader, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	f, err := s.open(id, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return &Reader{
		file: share(f), blobs: s.blobs(id), lock: s.file(id, lockEnding), follow: follow, from: max(1, from),
	}, nil
}

// Close closes the reader.
func (r *Reader) Close() error {
	file := r.file
	if r.file = nil; file == nil {
		return nil
	}
	return file.leave()
}

// Next returns the next record. Damage is returned as Damaged, with the number that the record would have.
func (r *Reader) Next(ctx context.Context) (Entry, error) {
	e, _, err := r.next(ctx)
	return e, err
}

// next also returns the line of a record. It is valid until the next call.
//
//	queue has records ─▶ return the first
//	queue is empty ────▶ read a line ─┬─ there is one ─▶ queue
//	                                  └─ end of file ──┬─ not followed, or the writer is gone ─▶ io.EOF
//	                                                   └─ otherwise ─▶ wait ─▶ read a line
func (r *Reader) next(ctx context.Context) (Entry, []byte, error) {
	idle, gone := time.Now(), false
	for {
		if err := ctx.Err(); err != nil {
			return Entry{}, nil, err
		}
		if len(r.queue) > 0 {
			next := r.queue[0]
			r.queue = r.queue[1:]
			if next.number < r.from {
				continue
			}
			return r.decoded(next), next.line, nil
		}
		if r.file == nil {
			return Entry{}, nil, io.EOF
		}
		end := int64(-1)
		var changed <-chan struct{}
		over := !r.follow
		if r.own != nil {
			var found bool
			if end, changed, over, found = r.own.ahead(r); found {
				continue
			}
		}
		err := r.read(end)
		switch {
		case err == nil:
			idle, gone = time.Now(), false
		case !errors.Is(err, io.EOF):
			return Entry{}, nil, err
		case over || gone:
			return Entry{}, nil, io.EOF
		case r.own == nil && time.Since(idle) > lookForWriter:
			idle, gone = time.Now(), r.writerGone() // there may still be last records to read
		default:
			if err := wait(ctx, changed); err != nil {
				return Entry{}, nil, err
			}
		}
	}
}

// decoded returns the entry for an item. If the line is intact but its data is not, it returns Damaged.
func (r *Reader) decoded(i item) Entry {
	if i.line == nil {
		return Entry{Number: i.number, Record: i.damage()}
	}
	e, err := r.blobs.decode(i.line)
	if err != nil {
		i.reason = err.Error()
		return Entry{Number: i.number, Parent: e.Parent, Time: e.Time, Record: i.damage()}
	}
	return e
}

const (
	// lookAgain is how often a file that another process writes is polled.
	lookAgain = 50 * time.Millisecond
	// lookForWriter is how often a reader checks whether the writer still exists.
	lookForWriter = 250 * time.Millisecond
)

// writerGone reports whether the session has lost its writer.
func (r *Reader) writerGone() bool {
	if _, held := workspace.HolderOf(r.lock); !held {
		return true
	}
	ours, err := r.file.Stat()
	there, missing := os.Lstat(r.file.Name())
	return err != nil || missing != nil || !os.SameFile(ours, there) // deleted, and replaced by another
}

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

// ahead gives r its next record if that is in memory. Otherwise it returns the end of the last record in the file, and
// a channel to wait on.
func (s *Session) ahead(r *Reader) (end int64, changed <-chan struct{}, over, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := max(r.from, r.order.last+1)
	if k, ok := s.recent.get(wanted, r.lines.at); ok {
		r.order = order{last: wanted}
		r.lines.seek(k.at + int64(len(k.line)) + 1)
		r.queue = append(r.queue[:0],
			item{recordAt: recordAt{number: wanted, at: k.at, size: len(k.line)}, line: k.line})
		return 0, nil, false, true
	}
	s.hasWaiter = true
	return s.journal.end, s.changed, s.over, false
}

// wake wakes the readers. The caller holds the lock.
func (s *Session) wake() {
	if s.hasWaiter {
		s.hasWaiter = false
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// read reads the next line from the file into the queue. For end, and io.EOF, see lineReader.
func (r *Reader) read(end int64) error {
	line, size, err := r.lines.line(r.file, end)
	if err != nil {
		return err
	}
	r.queue = r.queue[:0]
	if len(line) < size-1 { // the line is too long for a record
		r.order.lost = true
		long := recordAt{number: r.order.last + 1, at: r.lines.at, size: size - 1}
		r.queue = append(r.queue, item{recordAt: long, reason: notARecord})
	} else {
		all := pieces(line)
		if !r.again && r.own == nil && (len(all) > 1 || len(all) == 1 && all[0].reason != "") {
			// its writer may have replaced a torn line while we were reading
			r.again = true
			r.lines.seek(r.lines.at)
			return nil
		}
		r.order.divide(line, all, r.lines.at, func(i item) { r.queue = append(r.queue, i) })
	}
	r.again = false
	r.lines.at += int64(size)
	return nil
}

// recent holds the last lines of a session in memory, up to a limit, so that fast readers need not read the file.
type recent struct {
	entries []cachedLine
	size    int
}

type cachedLine struct {
	number int64
	at     int64  // offset in the file
	line   []byte // without its newline
}

// The limits of recent.
const (
	mostRecent    = 1024
	recentBytes   = 256 << 10
	largestRecent = 64 << 10
)

func (r *recent) add(number, at int64, line []byte) {
	if len(line) > largestRecent {
		clear(r.entries)
		r.entries, r.size = r.entries[:0], 0 // entries must be consecutive
		return
	}
	for len(r.entries) > 0 && (len(r.entries) >= mostRecent || r.size+len(line) > recentBytes) {
		r.size -= len(r.entries[0].line)
		r.entries[0] = cachedLine{}
		r.entries = r.entries[1:]
	}
	r.entries, r.size = append(r.entries, cachedLine{number, at, bytes.Clone(line)}), r.size+len(line)
}

// get returns a record for a reader that has read up to offset at. Bytes between at and the first record in memory must
// be read from the file, because they may be damaged.
func (r *recent) get(number, at int64) (cachedLine, bool) {
	if len(r.entries) == 0 {
		return cachedLine{}, false
	}
	i := number - r.entries[0].number
	if i < 0 || i >= int64(len(r.entries)) || i == 0 && r.entries[0].at != at {
		return cachedLine{}, false
	}
	return r.entries[i], true
}

// Last returns the number of the last record.
func (s *Session) Last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.seq()
}

// Event returns the event in a record, or nil.
func (e Entry) Event() *event.Event { return eventOf(e.Record) }
