// Package audit is the append-only log of calls: one line of JSON for each, including failed ones.
//
// It promises that a line is written in one piece, so that any number of processes may write at once; that rotation
// neither loses nor repeats an entry; that arguments are redacted and cut before they reach the disk; that a reader
// copes with anything in the file: torn, foreign and endless lines; and that a line that is removed, moved or changed
// is found, because each line carries a hash of itself and of the line before (see Verify). A hash has no secret: it
// shows damage, not a log that the same user wrote again.
//
// If the lock or a rotation fails, the hash and the rotation are left out, not the entry. The log does not sync: an
// entry survives the process, not a crash of the machine.
package audit

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
	"omniagent/internal/sys/workspace"
)

// Entry is one call. The order of the fields is the order in the line.
type Entry struct {
	Timestamp   time.Time `json:"timestamp"`
	RequestID   string    `json:"request_id"`
	TraceID     string    `json:"trace_id,omitempty"`
	Command     string    `json:"command"`
	Args        []string  `json:"args"`
	Cwd         string    `json:"cwd"`
	ExitCode    int       `json:"exit_code"`
	ErrorCode   string    `json:"error_code,omitempty"`
	DurationMS  int64     `json:"duration_ms"`
	Danger      string    `json:"danger"`
	Effect      string    `json:"effect,omitempty"`
	Reversible  bool      `json:"reversible"`
	Operator    string    `json:"operator"`
	InstanceID  string    `json:"instance_id,omitempty"`
	ToolVersion string    `json:"tool_version"`
	PID         int       `json:"pid"`
	Seq         int64     `json:"seq,omitempty"` // set by Write; 0: the entry is not part of the chain
}

// Options configure the log. Zero values mean the defaults; a negative one means no limit.
type Options struct {
	Path     string        // the current file; rotated ones are next to it: audit.jsonl, audit.1.jsonl …
	MaxBytes int64         // of one file; 100 MB
	Keep     int           // rotated files; 5
	MaxAge   time.Duration // 30 days
	Home     string        // never made by the log
}

const (
	defaultMaxBytes = 100_000_000
	defaultKeep     = 5
	defaultMaxAge   = 30 * 24 * time.Hour
)

// Log is the log. It may be used concurrently, and by several processes.
type Log struct {
	path     string
	home     string
	maxBytes int64
	keep     int
	maxAge   time.Duration
	now      func() time.Time
	tidied   sync.Once
}

// Open returns a Log without touching the disk.
func Open(o Options) *Log {
	return &Log{
		path: o.Path, home: o.Home, maxBytes: cmp.Or(o.MaxBytes, defaultMaxBytes), keep: cmp.Or(o.Keep, defaultKeep),
		maxAge: cmp.Or(o.MaxAge, defaultMaxAge), now: time.Now,
	}
}

// makeDir makes the directory of the log, but not the home directory that it may be in.
func (l *Log) makeDir() error {
	if pathname.Within(l.home, l.path) {
		if _, err := os.Stat(l.home); err != nil {
			return err
		}
	}
	return workspace.MkdirAll(filepath.Dir(l.path))
}

// Check reports whether an entry could be written now, as far as that can be known without writing. It creates the
// directory and nothing else, and costs a few system calls. Only Write notices a full disk.
func (l *Log) Check() error {
	if l.path == "" {
		return nowhere()
	}
	info, err := os.Stat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := l.makeDir(); err != nil {
			return unwritable(l.path, err)
		}
		return unwritable(l.path, writableDir(filepath.Dir(l.path)))
	case err != nil:
		return unwritable(l.path, err)
	case !info.Mode().IsRegular(): // opening a FIFO could block
		return fault.New(fault.Unsafe, "the audit log %s is not a regular file", l.path).With("path", l.path).
			Hint("Move it away, or set another path for the audit log.")
	}
	if !isLog(l.path) {
		return noLog(l.path)
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return unwritable(l.path, err)
	}
	return unwritable(l.path, f.Close())
}

// isLog reports whether a file may be appended to, moved and removed: it is missing, empty, or has an entry among its
// first lines. It checks one open file, because another process may be rotating meanwhile.
func isLog(path string) bool {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil || !info.Mode().IsRegular() { // opening a FIFO could block
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	start := make([]byte, len(entryStart))
	if n, _ := io.ReadFull(f, start); n == 0 || string(start) == entryStart {
		return true
	}
	_, err = f.Seek(0, io.SeekStart)
	_, ours := firstEntry(lines.NewReader(f, maxLine))
	return err == nil && ours
}

// entryStart is the beginning of every entry, even a torn one.
const entryStart = `{"timestamp":"`

func noLog(path string) error {
	return fault.New(fault.Unsafe, "%s is a file, but no audit log; it is left alone", path).With("path", path).
		Hint("set another path for the audit log")
}

// Write appends the entry, redacted and cut to size. The timestamp becomes UTC; a missing one becomes now. The first
// Write of a Log also removes what is older than MaxAge.
func (l *Log) Write(e Entry) error {
	if l.path == "" {
		return nowhere()
	}
	line, err := l.line(e)
	if err != nil {
		return err
	}
	if !isLog(l.path) {
		return noLog(l.path)
	}
	held, err := l.lock()
	if err != nil {
		return unwritable(l.path, workspace.Append(l.path, line, 0o600))
	}
	defer func() { _ = held.Unlock() }()
	h := l.head()
	l.tidied.Do(func() { l.tidy(&h) })
	if l.full(len(line) + linkSize) {
		l.rotate(&h)
	}
	line, h.Last = h.Last.chained(line)
	if err := workspace.Append(l.path, line, 0o600); err != nil {
		return unwritable(l.path, err)
	}
	_ = l.writeHead(h) // the entry is written; the next writer finds it
	return nil
}

// A writer waits while the lock goes from one to the next. It writes outside the chain once one writer has had the lock
// for heldTooLong, or somebody has it who is not a writer: a stopped process may hold it for ever.
const (
	lockWait    = 500 * time.Millisecond // of each try
	lockTries   = 40
	heldTooLong = 5 * time.Second
)

// lock takes the lock of all writers, and creates the directory if necessary.
func (l *Log) lock() (held *workspace.FileLock, err error) {
	unknown := 0
	for range lockTries {
		held, err = workspace.Lock(context.Background(), l.path+".lock", lockWait)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := l.makeDir(); err != nil {
				return nil, unwritable(l.path, err)
			}
			continue
		case !errors.Is(err, fault.LockHeld):
			return held, err
		}
		age, known := fault.Of(err).Detail["holder_age_ms"].(int64)
		if unknown++; known {
			unknown = 0
		}
		if age >= heldTooLong.Milliseconds() || unknown > 1 {
			break
		}
	}
	return held, err
}

// These limits keep an entry small enough for one write that no file system splits, and keep huge command lines out of
// the log.
const (
	maxArg   = 4 << 10
	maxArgs  = 16 << 10
	maxField = 4 << 10
	argCost  = 3 // quotation marks and comma
)

func (l *Log) line(e Entry) ([]byte, error) {
	if e.Timestamp.IsZero() {
		e.Timestamp = l.now()
	}
	// Without the monotonic clock, and in a year that RFC 3339 can represent.
	if e.Timestamp = e.Timestamp.UTC().Round(0); e.Timestamp.Year() < 0 || e.Timestamp.Year() > 9999 {
		e.Timestamp = l.now().UTC().Round(0)
	}
	for _, field := range []*string{
		&e.RequestID, &e.TraceID, &e.Command, &e.Cwd, &e.ErrorCode, &e.Danger, &e.Effect,
		&e.Operator, &e.InstanceID, &e.ToolVersion,
	} {
		*field = cut(redact.String(*field), maxField)
	}
	e.Args, e.Seq = limit(redact.Args(e.Args)), 0
	line, err := text.JSON(e)
	if err != nil {
		return nil, fault.New(fault.Internal, "the audit entry cannot be encoded").Because(err)
	}
	return line, nil
}

// limit cuts the arguments to size. They are redacted already, because a secret that was cut in two would not be
// recognised.
func limit(args []string) []string {
	total := 0
	for i := range args {
		args[i] = cut(args[i], maxArg)
		if total+len(args[i])+argCost > maxArgs {
			return append(args[:i:i], "…[+"+strconv.Itoa(len(args)-i)+" arguments]")
		}
		total += len(args[i]) + argCost
	}
	return args
}

// cut shortens s to at most n bytes, including a mark that says by how much.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const room = len("…[+9223372036854775807 bytes]")
	end := n - room
	for back := 0; back < utf8.UTFMax && end > 0 && !utf8.RuneStart(s[end]); back++ {
		end--
	}
	return s[:end] + "…[+" + strconv.Itoa(len(s)-end) + " bytes]"
}

// unwritable gives an error an actionable hint. It keeps the code of a fault.
func unwritable(path string, err error) error {
	if err == nil {
		return nil
	}
	known, is := errors.AsType[*fault.Fault](err)
	if !is {
		known = fault.New(codeOf(err), "the audit log %s cannot be written", path).With("path", path).Because(err)
	}
	if known.Suggestion == "" {
		known.Hint("Make %s writable, or set another path for the audit log.", filepath.Dir(path))
	}
	return known
}

func nowhere() error {
	return fault.New(fault.NoHome, "there is no path for the audit log").Hint("Set HOME, or a path for the audit log.")
}

func codeOf(err error) fault.Code {
	switch {
	case errors.Is(err, fs.ErrPermission), readOnly(err):
		return fault.PermissionDenied
	case errors.Is(err, fs.ErrNotExist):
		return fault.FileMissing
	}
	return fault.Internal
}

// numbered returns the path of the n-th rotated file; 0 is the current one.
func (l *Log) numbered(n int) string {
	if n == 0 {
		return l.path
	}
	ext := filepath.Ext(l.path)
	return strings.TrimSuffix(l.path, ext) + "." + strconv.Itoa(n) + ext
}
