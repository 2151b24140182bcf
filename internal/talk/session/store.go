package session

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/sys/workspace"
)

// Store is a directory of sessions. Several processes may use it at once.
type Store struct{ dir, fork string }

// Open returns a Store without touching the disk.
func Open(dir string) Store { return Store{dir: dir} }

// In returns the store for sessions that begin in a fork of the workspace, or with "" in the workspace itself.
func (s Store) In(fork string) Store { return Store{s.dir, fork} }

// Default returns the store of the native agent below a home directory.
func Default(home string) Store { return Open(filepath.Join(home, ".yume", "sessions")) }

// Dir returns the directory of the store.
func (s Store) Dir() string { return s.dir }

const (
	journalEnding    = ".jsonl"
	projectionEnding = ".json"
	lockEnding       = ".lock"
	longestID        = 128

	// lockWait allows for a writer that has just closed or died: a child that it was starting holds the lock until it
	// execs.
	lockWait = 200 * time.Millisecond
)

func (s Store) file(id, ending string) string { return filepath.Join(s.dir, id+ending) }

// NewID returns a new unique id.
func NewID() string {
	return "sess-" + ident.Hex(4)
}

// CheckID checks an id that a caller chose, because it becomes a file name.
func CheckID(id string) error {
	bad := strings.TrimFunc(id, func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
	})
	if id == "" || len(id) > longestID || bad != "" || id[0] == '.' {
		return fault.New(fault.ArgError, "invalid session id %.160q", id).
			Hint("an id has at most %d letters, digits, dots, dashes and underscores, and does not begin with a dot",
				longestID)
	}
	return nil
}

func notFound(id string) *fault.Fault {
	return fault.New(fault.NotFoundCode, "Session not found: %s", id).With("session_id", id).
		Hint("list what there is: omniagent session list")
}

// Create begins a session and locks it. If the id is empty, Create chooses one. If the id exists, it returns
// fault.AlreadyExists.
func (s Store) Create(ctx context.Context, b Begin) (*Session, error) {
	chosen := b.ID == ""
	b, err := s.completed(b)
	if err != nil {
		return nil, err
	}
	made, err := s.create(ctx, b.ID, b.write)
	if chosen && errors.Is(err, fault.AlreadyExists) {
		b.ID = ""
		return s.Create(ctx, b)
	}
	return made, err
}

// completed fills in the first record of a new session.
func (s Store) completed(b Begin) (Begin, error) {
	b.InFork = s.fork
	b.ID = cmp.Or(b.ID, NewID())
	if b.Created.IsZero() {
		b.Created = time.Now()
	}
	b.Version, b.Created = version, b.Created.UTC().Truncate(time.Millisecond)
	return b, CheckID(b.ID)
}

// write writes the first line of a journal.
func (b Begin) write(w io.Writer) error {
	line, err := Entry{Number: 1, Time: b.Created, Record: b}.line()
	if err == nil {
		_, err = w.Write(line)
	}
	return err
}

// Unlinked begins a session in a file without a name. It disappears when it is closed or this process dies.
func (s Store) Unlinked(b Begin) (*Session, error) {
	b, err := s.completed(b)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", ".omniagent-tmp-")
	if err != nil {
		return nil, fault.New(codeOf(err), "cannot create a file for the conversation").
			Because(err).Hint("set TMPDIR to a writable directory")
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, unwritable(f.Name(), err)
	}
	err = b.write(f)
	own := &Session{store: s, id: b.ID, file: f, handle: share(f), changed: make(chan struct{})}
	if err == nil {
		own.journal, err = readJournal(f, "")
	}
	if err == nil {
		err = own.load(own.journal.last())
	}
	if err != nil {
		_ = f.Close()
		return nil, unwritable(f.Name(), err)
	}
	return own, nil
}

// New begins a session for a conversation: on disk, or in a file without a name if keep is false. If the directory is
// not writable, warn gets the reason, and the session has no name, but the conversation can continue.
func (s Store) New(ctx context.Context, b Begin, keep bool, warn func(string, ...any)) (*Session, error) {
	if !keep {
		return s.Unlinked(b)
	}
	created, err := s.Create(ctx, b)
	if err == nil || errors.Is(err, fault.AlreadyExists) || errors.Is(err, fault.Conflicting) ||
		errors.Is(err, fault.ArgError) {
		return created, err
	}
	warn("nothing of the conversation is kept: %v", err)
	return s.Unlinked(b)
}

// create creates a journal atomically: it appears with all records that write adds, or not at all.
func (s Store) create(ctx context.Context, id string, write func(io.Writer) error) (*Session, error) {
	if err := workspace.MkdirAll(s.dir); err != nil {
		return nil, err
	}
	held, err := workspace.Lock(ctx, s.file(id, lockEnding), lockWait)
	if errors.Is(err, fault.LockHeld) && s.Has(id) {
		return nil, IDTaken(id)
	}
	if err != nil {
		return nil, lockedBy(id, err) // if the lock is held, another process is creating it
	}
	path := s.file(id, journalEnding)
	if s.Has(id) {
		_ = held.Unlock()
		return nil, IDTaken(id)
	}
	if err := s.put(path, write); err != nil {
		_ = s.removeBlobs(id)
		_ = held.Unlock()
		return nil, unwritable(path, err)
	}
	own, err := s.openLocked(id, held)
	if err != nil {
		return nil, err
	}
	own.stale = true // there is no projection yet
	return own, nil
}

// IDTaken returns the error for a session id that already exists.
func IDTaken(id string) error {
	return fault.New(fault.AlreadyExists, "the session %s exists already", id).With("session_id", id).
		Hint("resume it, or choose another id")
}

// Has reports whether an id is taken. A projection that another program left with that name counts too, so that it is
// not overwritten.
func (s Store) Has(id string) bool {
	for _, ending := range []string{journalEnding, projectionEnding} {
		if _, err := os.Lstat(s.file(id, ending)); !workspace.Absent(err) {
			return true
		}
	}
	return false
}

// put writes a file with a temporary name and renames it. workspace.WriteFile removes the leftovers of a killed
// process.
func (s Store) put(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(s.dir, ".omniagent-tmp-")
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, chunk)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Resume opens an existing session for writing and locks it; fault.Conflicting names the process that has it open. If
// the writer was killed and the last line is torn, Resume cuts it off, and State.Damage says so.
func (s Store) Resume(ctx context.Context, id string) (*Session, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	// Check this first, so that a missing session gets no lock file.
	if _, err := os.Lstat(s.file(id, journalEnding)); workspace.Absent(err) {
		return nil, s.missing(id)
	}
	held, err := workspace.Lock(ctx, s.file(id, lockEnding), lockWait)
	if err != nil {
		return nil, lockedBy(id, err)
	}
	return s.openLocked(id, held)
}

// openLocked reads a session whose lock we hold.
func (s Store) openLocked(id string, lock *workspace.FileLock) (_ *Session, err error) {
	own := &Session{store: s, id: id, lock: lock, changed: make(chan struct{})}
	defer func() {
		if err != nil {
			_ = own.abandon()
		}
	}()
	if own.file, err = s.open(id, os.O_RDWR|os.O_APPEND); err != nil {
		return nil, err
	}
	own.handle = share(own.file)
	if own.journal, err = readJournal(own.file, s.blobs(id)); err == nil {
		err = own.journal.writable()
	}
	if err == nil {
		err = own.heal()
	}
	if err != nil {
		return nil, unreadable(s.file(id, journalEnding), err)
	}
	if err := s.noLink(id); err != nil {
		return nil, err
	}
	return own, own.load(own.journal.last())
}

// missing returns the error for a missing journal. Other programs may leave a projection without one.
func (s Store) missing(id string) error {
	f := notFound(id)
	if file := s.file(id, projectionEnding); s.noLink(id) == nil {
		if _, err := os.Lstat(file); err == nil {
			f.Hint("it has a history but no journal: begin a session with --history-file %s", file)
		}
	}
	return f
}

// Path returns the path of a session's journal.
func (s Store) Path(id string) string { return s.file(id, journalEnding) }

// Writer returns the process that has a session open.
func (s Store) Writer(id string) (by workspace.Holder, open bool) {
	return workspace.HolderOf(s.file(id, lockEnding))
}

// File is one of the files of a session.
type File struct {
	Path string
	Size int64
}

// Files returns the files that Delete removes.
func (s Store) Files(id string) ([]File, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	var files []File
	for _, ending := range []string{journalEnding, projectionEnding} {
		info, err := os.Lstat(s.file(id, ending))
		switch {
		case err == nil:
			files = append(files, File{s.file(id, ending), info.Size()})
		case !workspace.Absent(err):
			return nil, unreadable(s.file(id, ending), err)
		case ending == journalEnding:
			return nil, s.missing(id)
		}
	}
	if info, err := os.Lstat(string(s.blobs(id))); err == nil && info.IsDir() {
		files = append(files, File{string(s.blobs(id)), s.blobs(id).size()})
	}
	return files, nil
}

// Delete removes a session permanently. It returns fault.Conflicting if a process has it open.
func (s Store) Delete(ctx context.Context, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	if _, err := os.Lstat(s.file(id, journalEnding)); workspace.Absent(err) {
		return s.missing(id)
	}
	held, err := workspace.Lock(ctx, s.file(id, lockEnding), lockWait)
	if err != nil {
		return lockedBy(id, err)
	}
	defer func() { _ = held.Unlock() }()
	// Remove the journal last, so that a failed deletion can be repeated.
	for _, ending := range []string{projectionEnding, journalEnding} {
		if err := os.Remove(s.file(id, ending)); err != nil && !workspace.Absent(err) {
			return fault.New(codeOf(err), "the session %s cannot be deleted", id).Because(err).Hint("make %s writable",
				s.dir)
		}
	}
	if err := s.removeBlobs(id); err != nil { // nothing refers to them now
		return err
	}
	_ = os.Remove(s.file(id, lockEnding)) // while we hold it; a waiting process tries again
	return nil
}

// removeBlobs removes the bodies that did not fit into the journal. It follows no links.
func (s Store) removeBlobs(id string) error {
	dir := string(s.blobs(id))
	info, err := os.Lstat(dir)
	if workspace.Absent(err) || err == nil && !info.IsDir() {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return fault.New(codeOf(err), "the session %s cannot be deleted", id).Because(err).Hint("remove %s", dir)
	}
	return nil
}

// open opens a journal. It refuses everything but a regular file, such as links, and pipes, which could block.
func (s Store) open(id string, flags int) (*os.File, error) {
	path := s.file(id, journalEnding)
	info, err := os.Lstat(path)
	if workspace.Absent(err) {
		return nil, s.missing(id)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, noFile(path)
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, unreadable(path, err)
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(info, now) {
		err = noFile(path)
	}
	if err != nil {
		_ = f.Close()
		return nil, unreadable(path, err)
	}
	return f, nil
}

// noLink rejects a projection that is not a regular file, such as a symlink.
func (s Store) noLink(id string) error {
	path := s.file(id, projectionEnding)
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return noFile(path)
	}
	return nil
}

func noFile(path string) *fault.Fault {
	return fault.New(fault.Unsafe, "%s is not a file", path).With("path", path).Hint("move it away")
}

func lockedBy(id string, err error) error {
	f, is := errors.AsType[*fault.Fault](err)
	if !is || f.Code != fault.LockHeld {
		return err
	}
	by := fault.New(fault.Conflicting, "another process has the session %s open", id).With("session_id", id).
		Hint("wait until it has ended, or fork the session: omniagent session fork %s", id)
	if pid, ok := f.Detail["holder_pid"].(int); ok {
		by.Message = fmt.Sprintf("process %d has the session %s open", pid, id)
		if since, ok := f.Detail["holder_since"].(string); ok {
			by.Message += " since " + since
		}
	}
	for name, value := range f.Detail {
		by.With(name, value)
	}
	return by
}

func unreadable(path string, err error) error {
	return fileFault(path, "used", err, "look at the file, or delete the session")
}

func unwritable(path string, err error) error {
	return fileFault(path, "written", err, "make room, and "+filepath.Dir(path)+" writable")
}

// fileFault converts an error to a fault about a file of a session, unless it is a fault.
func fileFault(path, verb string, err error, hint string) error {
	if _, known := errors.AsType[*fault.Fault](err); err == nil || known {
		return err
	}
	return fault.New(codeOf(err), "the session file %s cannot be %s", path, verb).With("path", path).Because(err).
		Hint("%s", hint)
}

func codeOf(err error) fault.Code {
	var path *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fault.DiskFull
	case errors.Is(err, fs.ErrPermission):
		return fault.PermissionDenied
	case errors.Is(err, fs.ErrNotExist):
		return fault.FileMissing
	case errors.As(err, &path):
		return fault.Internal
	}
	return fault.Unsafe // readable, but not a plain file
}
