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

	from    int64 // the number of the first record to return
	order   order // checks the numbers
	at      int64 // where the next line begins
	start   int64 // where pending was read from; not after at
	pending []byte
	queue   []readItem // records of the line before at
	again   bool       // the line at at was damaged, and is read again
}

// readItem is a record of a line, or the damage found there.
type readItem struct {
	line   []byte // of the record; nil for damage
	number int64
	damage Damaged
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
		r.order.last, r.at = s.journal.places[i].number-1, s.journal.places[i].at
	}
	r.start = r.at
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
			first := r.queue[0]
			r.queue = r.queue[1:]
			if first.number < r.from {
				continue
			}
			return r.decoded(first), first.line, nil
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

// decoded returns the entry for a record. If the line is intact but its data is not, it returns Damaged.
func (r *Reader) decoded(first readItem) Entry {
	if first.line == nil {
		return Entry{Number: first.number, Record: first.damage}
	}
	e, err := r.blobs.decode(first.line)
	if err != nil {
		first.damage.Reason = err.Error()
		return Entry{Number: first.number, Parent: e.Parent, Time: e.Time, Record: first.damage}
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
	if k, ok := s.recent.get(wanted, r.at); ok {
		r.order, r.at = order{last: wanted}, k.at+int64(len(k.line))+1
		r.start, r.pending = r.at, r.pending[:0]
		r.queue = append(r.queue[:0],
			readItem{line: k.line, number: wanted, damage: Damaged{At: k.at, Size: len(k.line)}})
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

// read reads the next line from the file into the queue. end is the end of the last complete line; if it is -1, a line
// with a newline is complete. It returns io.EOF if there is no complete line yet.
func (r *Reader) read(end int64) error {
	line, size, err := r.line(end)
	if err != nil {
		return err
	}
	all := pieces(line)
	if !r.again && r.own == nil && (len(all) > 1 || len(all) == 1 && all[0].reason != "") {
		// its writer may have replaced a torn line while we were reading
		r.again, r.start, r.pending = true, r.at, r.pending[:0]
		return nil
	}
	r.again = false
	r.queue = r.queue[:0]
	for _, p := range all {
		damage := Damaged{r.at + int64(p.at), p.size, p.reason}
		if p.reason != "" {
			r.order.lost = true
			r.queue = append(r.queue, readItem{number: r.order.last + 1, damage: damage})
			continue
		}
		before := r.order.last + 1
		gap, ok := r.order.next(p.head.number)
		if gap != "" {
			r.queue = append(r.queue, readItem{number: before, damage: Damaged{damage.At, 0, gap}})
		}
		if !ok {
			damage.Reason = repeated
			r.queue = append(r.queue, readItem{number: before, damage: damage})
			continue
		}
		r.queue = append(r.queue, readItem{line: line[p.at : p.at+p.size], number: p.head.number, damage: damage})
	}
	if len(line) < size-1 { // the line is too long for a record
		r.order.lost = true
		r.queue = append(r.queue[:0], readItem{number: r.order.last + 1, damage: Damaged{r.at, size - 1, notARecord}})
	}
	r.at += int64(size)
	return nil
}

// line returns the line at r.at without its newline, and its size with the newline. If the line is longer than any
// record, it returns only the beginning.
func (r *Reader) line(end int64) (line []byte, size int, err error) {
	held := r.pending[min(r.at-r.start, int64(len(r.pending))):]
	for want := len(held) + chunk; ; want *= 2 {
		if i := bytes.IndexByte(held, '\n'); i >= 0 {
			return held[:i], i + 1, nil
		}
		if want > 2*longestLine {
			size, err := r.endless(end)
			return held, size, err
		}
		if end >= 0 {
			want = int(min(int64(want), end-r.at))
		}
		if want <= len(held) {
			return nil, 0, io.EOF
		}
		// Read an unfinished line again, because it may have been cut off since.
		if cap(r.pending) < want || cap(r.pending) > 8*chunk && want < 2*chunk {
			r.pending = make([]byte, want)
		}
		n, err := r.file.ReadAt(r.pending[:want], r.at)
		r.start, r.pending, held = r.at, r.pending[:n], r.pending[:n]
		if n < want && bytes.IndexByte(held, '\n') < 0 {
			r.pending = r.pending[:0]
			if err == nil || end >= 0 {
				err = io.EOF
			}
			return nil, 0, err
		}
	}
}

// endless returns the size of a line that is longer than any record.
func (r *Reader) endless(end int64) (int, error) {
	buffer := make([]byte, chunk)
	for at := r.at; ; {
		n, err := r.file.ReadAt(buffer, at)
		if i := bytes.IndexByte(buffer[:n], '\n'); i >= 0 {
			return int(at - r.at + int64(i) + 1), nil
		}
		if at += int64(n); err != nil || end >= 0 && at >= end {
			return 0, io.EOF
		}
	}
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
