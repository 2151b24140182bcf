package sandbox

import (
	"encoding/binary"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/workspace"
)

// A ledger is the pipe through which a supervisor reports to a Watcher outside which paths are written. Each entry is a
// single write:
//
//	kind, begin, what was there, what is there (for a move), length of path, path, length of new path, new path
//
// begin is when the supervisor began to make the call; 0 if the kernel makes it after the entry is written.
type ledger struct {
	mu   sync.Mutex
	to   int
	text []byte
}

// The kinds of entries.
const (
	entryWrote   = 'w'
	entryMoved   = 'm'
	entryUnseen  = 'x'
	entryHead    = 1 + 8 + 2*statusSize + 4
	statusSize   = 5 * 8
	longestEntry = entryHead + 2*unix.PathMax
)

// openLedger returns the ledger that an order names, or nil if it names none.
func (o *order) openLedger() *ledger {
	if o.Ledger == 0 {
		return nil
	}
	return &ledger{to: o.Ledger}
}

// add writes an entry. It waits for the reader, and drops the entry if the reader is gone.
func (l *ledger) add(kind byte, began time.Time, path, to string, was, is *unix.Stat_t) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := int64(0)
	if !began.IsZero() {
		at = began.UnixNano()
	}
	text := binary.LittleEndian.AppendUint64(append(l.text[:0], kind), uint64(at))
	text = appendStatus(appendStatus(text, was), is)
	text = binary.LittleEndian.AppendUint16(text, uint16(len(path)))
	text = append(text, path...)
	text = binary.LittleEndian.AppendUint16(text, uint16(len(to)))
	text = append(text, to...)
	l.text = text
	for len(text) > 0 {
		n, err := unix.Write(l.to, text)
		if err != nil && err != unix.EINTR {
			return
		}
		text = text[max(n, 0):]
	}
}

func appendStatus(text []byte, s *unix.Stat_t) []byte {
	for _, v := range [...]uint64{
		uint64(s.Mode), uint64(s.Size), uint64(s.Mtim.Nano()), uint64(s.Ctim.Nano()), s.Ino,
	} {
		text = binary.LittleEndian.AppendUint64(text, v)
	}
	return text
}

func statusFrom(text []byte) workspace.Status {
	v := func(i int) uint64 { return binary.LittleEndian.Uint64(text[8*i:]) }
	return workspace.Status{
		Mode: workspace.FileMode(uint32(v(0))), Size: int64(v(1)),
		Modified: int64(v(2)), Changed: int64(v(3)), Inode: v(4),
	}
}

// look returns the status of a file for the ledger. It is zero if nothing exists there, or without a ledger.
func (r *pathCall) look(s resolved) (is unix.Stat_t) {
	if r.ledger != nil && unix.Fstatat(s.dir, s.name, &is, unix.AT_SYMLINK_NOFOLLOW) != nil {
		is = unix.Stat_t{}
	}
	return is
}

// entered changes a file by act, and records that in the ledger.
func (r *pathCall) entered(s resolved, act func() error) error {
	was := r.look(s)
	err := act()
	if err == nil {
		r.ledger.add(entryWrote, r.began, s.path, "", &was, &unix.Stat_t{})
	}
	return err
}

// enteredMove moves a file by act, and records that in the ledger.
func (r *pathCall) enteredMove(from, to resolved, act func() error) error {
	is, was := r.look(from), r.look(to)
	err := act()
	if err == nil {
		r.ledger.add(entryMoved, r.began, from.path, to.path, &was, &is)
	}
	return err
}

// watcher returns the receiver of what a program writes, or nil. A trial has none.
func (w *Walls) watcher(trial bool) Watcher {
	if trial {
		return nil
	}
	return w.seen
}

// readLedger passes the entries of a stage on to a watcher.
type readLedger struct {
	from    *os.File
	theirs  *os.File
	watcher Watcher
	detach  func()
	mu      sync.Mutex // held while entries are passed on
	rest    []byte
	done    chan struct{}
}

// openLedger creates the pipe, and starts to read it.
func openLedger(w Watcher) (*readLedger, error) {
	var pair [2]int
	if err := unix.Pipe2(pair[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(pair[0], true)
	l := &readLedger{
		from: os.NewFile(uintptr(pair[0]), "ledger"), theirs: os.NewFile(uintptr(pair[1]), "ledger"), watcher: w,
		done: make(chan struct{}),
	}
	l.detach = w.Attach(l.delivered)
	go l.serve()
	return l, nil
}

func (l *readLedger) serve() {
	defer close(l.done)
	conn, err := l.from.SyscallConn()
	if err != nil {
		return
	}
	block := make([]byte, 64<<10)
	_ = conn.Read(func(fd uintptr) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for {
			n, err := unix.Read(int(fd), block)
			switch {
			case err == unix.EINTR:
			case err == unix.EAGAIN:
				return false
			case err != nil || n <= 0:
				return true
			default:
				l.take(block[:n])
			}
		}
	})
}

// delivered reports whether everything that was written has been passed on.
func (l *readLedger) delivered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		return true
	default:
	}
	conn, err := l.from.SyscallConn()
	if err != nil {
		return true
	}
	left := 0
	if err := conn.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil {
		return true
	}
	return left == 0
}

// take passes on the entries that are complete.
func (l *readLedger) take(text []byte) {
	text = append(l.rest, text...)
	for {
		e, size, ok := parseEntry(text)
		if !ok {
			break
		}
		text = text[size:]
		switch e.kind {
		case entryWrote:
			l.watcher.Wrote(e.path, e.was, e.began)
		case entryMoved:
			l.watcher.Moved(e.path, e.to, e.is, e.was, e.began)
		default:
			l.watcher.Unseen(e.path)
		}
	}
	l.rest = append(l.rest[:0:0], text...)
}

// ledgerEntry is one entry of a ledger.
type ledgerEntry struct {
	kind     byte
	began    time.Time // zero: the kernel makes the call afterwards
	path, to string
	was, is  workspace.Status
}

func parseEntry(text []byte) (e ledgerEntry, size int, ok bool) {
	if len(text) < entryHead {
		return e, 0, false
	}
	e.kind = text[0]
	if at := binary.LittleEndian.Uint64(text[1:]); at != 0 {
		e.began = time.Unix(0, int64(at))
	}
	e.was, e.is = statusFrom(text[9:]), statusFrom(text[9+statusSize:])
	size = 9 + 2*statusSize
	for _, path := range []*string{&e.path, &e.to} {
		if len(text) < size+2 {
			return e, 0, false
		}
		n := int(binary.LittleEndian.Uint16(text[size:]))
		if size += 2; len(text) < size+n {
			return e, 0, false
		}
		*path = string(text[size : size+n])
		size += n
	}
	return e, size, true
}

// close stops reading when no process of the stage is left.
func (l *readLedger) close() {
	_ = l.theirs.Close()
	select {
	case <-l.done:
	case <-time.After(time.Second): // a process outside has the other end open
	}
	_ = l.from.Close()
	l.detach()
}

// enter records a call that the kernel is about to make for a program whose writes are only observed. It leaves out
// calls that will fail because of what exists.
func (r *pathCall) enter(n *notification) {
	d, known := changeOf(n.number, n.args)
	if n.number == unix.SYS_OPENAT2 {
		d, known = r.opening2(n.args)
	}
	if !known {
		return
	}
	switch flags := int(d.flags); d.act {
	case marks:
		r.seeMark(d)
	case moves:
		from, err := r.resolveFirst(d, never)
		if err != nil {
			return
		}
		defer from.close()
		to, err := r.second(d)
		if err != nil {
			return
		}
		defer to.close()
		is, was := r.look(from), r.look(to)
		switch {
		case is.Mode == 0 || was.Mode != 0 && flags&unix.RENAME_NOREPLACE != 0:
		case flags&unix.RENAME_EXCHANGE != 0:
			r.ledger.add(entryWrote, r.began, from.path, "", &is, &unix.Stat_t{})
			r.ledger.add(entryWrote, r.began, to.path, "", &was, &unix.Stat_t{})
		default:
			r.ledger.add(entryMoved, r.began, from.path, to.path, &was, &is)
		}
	case makesLink, makesName:
		if to, err := r.second(d); err == nil {
			defer to.close()
			r.writes(to, true, false)
		}
	case makesDirectory, makesNode:
		if s, err := r.resolveFirst(d, never); err == nil {
			defer s.close()
			r.writes(s, true, false)
		}
	case removes:
		if s, err := r.resolveFirst(d, never); err == nil {
			defer s.close()
			r.writes(s, false, true)
		}
	case truncates:
		if s, err := r.resolveFirst(d, always); err == nil {
			defer s.close()
			r.writes(s, false, true)
		}
	case opensFile:
		if flags&writing == 0 || flags&(unix.O_PATH|unix.O_TMPFILE&^unix.O_DIRECTORY) != 0 {
			return
		}
		exclusive := flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL
		if s, err := r.resolveFirst(d, followed(flags&unix.O_NOFOLLOW == 0 && !exclusive)); err == nil {
			defer s.close()
			r.writes(s, exclusive, flags&unix.O_CREAT == 0)
		}
	}
}

// resolveFirst resolves the first path of a call.
func (r *pathCall) resolveFirst(d change, follow following) (resolved, error) {
	path, err := r.text(d.paths[0])
	if err != nil {
		return resolved{}, err
	}
	s, err := r.resolve(d.dirs[0], path, follow)
	if err == nil && s.own >= 0 { // a descriptor of the caller: the path is that of the open file
		fd, path, err := r.held(s.own)
		if err != nil {
			return resolved{}, err
		}
		_ = unix.Close(fd)
		return r.resolve(here, path, never)
	}
	return s, err
}

// writes records a change of a file, unless the call fails because the file exists, or because it does not.
func (r *pathCall) writes(s resolved, needsNone, needsSome bool) {
	was := r.look(s)
	if s.name == "." || was.Mode != 0 && needsNone || was.Mode == 0 && needsSome {
		return
	}
	r.ledger.add(entryWrote, r.began, s.path, "", &was, &unix.Stat_t{})
}

// opening2 returns what a call of openat2 asks for.
func (r *pathCall) opening2(a [6]uint64) (change, bool) {
	raw, err := r.bytes(a[2], 8)
	if err != nil {
		return change{}, false
	}
	return change{
		act: opensFile, dirs: [2]int32{int32(uint32(a[0]))}, paths: [2]uint64{a[1]},
		flags: binary.NativeEndian.Uint64(raw) & 0xffffffff,
	}, true
}
