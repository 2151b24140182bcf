package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/sys/workspace"
)

// Filter selects entries. Zero values match all.
type Filter struct {
	Since   time.Time
	Command string // this command, or one below it: "config" finds "config set" and "config.set"
	TraceID string

	Skipped *int // unless nil, counts lines that are not entries
}

func (f Filter) wants(e Entry) bool {
	if e.Timestamp.Before(f.Since) || f.TraceID != "" && e.TraceID != f.TraceID {
		return false
	}
	rest, ok := strings.CutPrefix(e.Command, f.Command)
	return ok && (f.Command == "" || rest == "" || rest[0] == ' ' || rest[0] == '.')
}

// maxLine is the longest line that is read. Ours stay far below it.
const maxLine = 1 << 20

// Entries yields the entries, oldest file first, each file in its own order. All files are opened before the first
// entry, so a rotation meanwhile neither hides nor repeats an entry. A file that cannot be read yields an error; the
// others follow. A missing log is empty.
func (l *Log) Entries(filter Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		files, failures := l.open()
		defer func() {
			for _, f := range files {
				_ = f.Close()
			}
		}()
		for _, err := range failures {
			if !yield(Entry{}, err) {
				return
			}
		}
		for _, f := range files {
			// Entries are not younger than the last change of their file; an hour allows for different clocks. The
			// current file is always read.
			if info, err := f.Stat(); err == nil && f.Name() != l.path &&
				info.ModTime().Add(time.Hour).Before(filter.Since) {
				continue
			}
			if !read(f, filter, yield) {
				return
			}
		}
	}
}

// open opens all files, the oldest first. It goes from the new to the old, as rotation moves them, so a file that is
// moved meanwhile is not missed but met again under its next number.
func (l *Log) open() (files []*os.File, failures []error) {
	var infos []os.FileInfo
	open := func(n int) {
		path := l.numbered(n)
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() {
			err = fault.New(fault.Unsafe, "%s is not a regular file", path).With("path", path)
		}
		var f *os.File
		if err == nil {
			f, err = os.Open(path)
		}
		if err == nil {
			info, err = f.Stat()
		}
		switch {
		case workspace.Absent(err): // HOME may be a file
		case err != nil:
			if f != nil {
				_ = f.Close()
			}
			failures = append(failures, unreadable(path, err))
		case slices.ContainsFunc(infos, func(known os.FileInfo) bool { return os.SameFile(known, info) }):
			_ = f.Close()
		default:
			files, infos = append(files, f), append(infos, info)
		}
	}
	open(0)
	next := 1
	for _, n := range l.numbers() {
		open(n)
		next = n + 1
	}
	for ; exists(l.numbered(next)); next++ { // moved since we listed them
		open(next)
	}
	slices.Reverse(files)
	return files, failures
}

// read yields the entries of one file. It returns false when the consumer has enough.
func read(f *os.File, filter Filter, yield func(Entry, error) bool) bool {
	in := lines.NewReader(f, maxLine)
	for in.Next() {
		e, ok := entryOf(in.Text)
		switch {
		case !in.Long && len(bytes.TrimSpace(in.Text)) == 0: // two writers healed the same torn line
		case in.Long || !ok:
			if filter.Skipped != nil {
				*filter.Skipped++
			}
		case filter.wants(e) && !yield(e, nil):
			return false
		}
	}
	if err := in.Err(); err != nil {
		return yield(Entry{}, unreadable(f.Name(), err))
	}
	return true
}

// entryOf reads a line. ok is false if it is not an entry.
func entryOf(line []byte) (e Entry, ok bool) {
	return e, json.Unmarshal(line, &e) == nil && !e.Timestamp.IsZero() && (e.Command != "" || e.PID != 0)
}

// Files returns the files of the log, the oldest first.
func (l *Log) Files() []string {
	var paths []string
	for _, n := range slices.Backward(l.numbers()) {
		paths = append(paths, l.numbered(n))
	}
	if exists(l.path) {
		paths = append(paths, l.path)
	}
	return paths
}

func unreadable(path string, err error) error {
	if known, is := errors.AsType[*fault.Fault](err); is {
		return known
	}
	return fault.New(codeOf(err), "the audit log %s cannot be read", path).With("path", path).Because(err)
}
