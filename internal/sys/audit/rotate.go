package audit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/kit/lines"
)

// full reports whether a line of n bytes would make the current file too large.
func (l *Log) full(n int) bool {
	if l.maxBytes < 0 {
		return false
	}
	info, err := os.Stat(l.path)
	return err == nil && info.Mode().IsRegular() && info.Size() > 0 && info.Size()+int64(n) > l.maxBytes
}

// rotate moves each file one number up. The caller has the lock. A writer that could not get it and opened the file
// before it was moved adds its line to audit.1.jsonl, where readers find it as well.
//
// Errors are left to the next call. On Windows an open file cannot be moved.
func (l *Log) rotate(h *head) {
	// Stop at the first gap, which an interrupted rotation leaves.
	gap := 1
	for exists(l.numbered(gap)) {
		if !isLog(l.numbered(gap)) {
			return // a foreign file is in the way
		}
		gap++
	}
	for n := gap - 1; n >= 0; n-- {
		if os.Rename(l.numbered(n), l.numbered(n+1)) != nil {
			return
		}
	}
	l.prune(h)
}

// prune removes files beyond Keep or older than MaxAge, the oldest first: a file between others would leave a hole in
// the chain. The caller has the lock.
func (l *Log) prune(h *head) {
	oldest := l.now().Add(-l.maxAge)
	for _, n := range slices.Backward(l.numbers()) {
		path := l.numbered(n)
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || !isLog(path) {
			continue
		}
		beyond := l.keep >= 0 && n > l.keep || l.maxAge > 0 && info.ModTime().Before(oldest)
		if !beyond || l.remove(h, path) != nil {
			return
		}
	}
}

// tidy enforces MaxAge. Rotated files expire by the time of their last line. The current file may never grow to
// MaxBytes, so it is rotated when its first entry is half of MaxAge old: an entry is kept for MaxAge at least and half
// as long again at most. The caller has the lock.
func (l *Log) tidy(h *head) {
	if l.maxAge <= 0 {
		return
	}
	if first, ok := firstTime(l.path); ok && first.Before(l.now().Add(-l.maxAge/2)) {
		l.rotate(h)
	}
	l.prune(h)
}

// firstTime returns when the first entry of a file was written.
func firstTime(path string) (time.Time, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return time.Time{}, false
	}
	f, err := os.Open(path)
	if err != nil {
		return time.Time{}, false
	}
	defer f.Close()
	return firstEntry(lines.NewReader(f, maxLine))
}

func firstEntry(in *lines.Reader) (time.Time, bool) {
	for n := 0; n < 100 && in.Next(); n++ { // a torn or foreign line may come first
		var e Entry
		if json.Unmarshal(in.Text, &e) == nil && !e.Timestamp.IsZero() {
			return e.Timestamp, true
		}
	}
	return time.Time{}, false
}

// numbers returns the numbers of the rotated files, the newest first.
func (l *Log) numbers() []int {
	entries, err := os.ReadDir(filepath.Dir(l.path))
	if err != nil {
		return nil
	}
	ext := filepath.Ext(l.path)
	prefix := strings.TrimSuffix(filepath.Base(l.path), ext) + "."
	var numbers []int
	for _, entry := range entries {
		rest, begins := strings.CutPrefix(entry.Name(), prefix)
		middle, ends := strings.CutSuffix(rest, ext)
		if n, err := strconv.Atoi(middle); err == nil && begins && ends && n > 0 && strconv.Itoa(n) == middle {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
