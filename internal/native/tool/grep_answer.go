package tool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// grepAnswer collects the results of all files. It keeps no more than the answer can hold: it drops later paths, which
// are no longer searched.
type grepAnswer struct {
	failedFiles
	show  *grepShow
	mu    sync.Mutex
	files []grepFile
	size  int                    // bytes of all lines
	last  atomic.Pointer[string] // no path after this one can be in the answer
	more  bool
}

type grepFile struct {
	path  string
	lines []string
}

// beyond reports whether a path is too late for the answer.
func (a *grepAnswer) beyond(path string) bool {
	last := a.last.Load()
	return last != nil && path > *last
}

// add adds the results of a file.
func (a *grepAnswer) add(path string, found *grepLines) {
	if found.count == 0 {
		return
	}
	f := grepFile{path, found.lines}
	switch a.show.mode {
	case grepFiles:
		f.lines = []string{found.path}
	case grepCount:
		f.lines = []string{found.path + ":" + strconv.Itoa(found.count)}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.more = a.more || found.cut
	a.files = append(a.files, f)
	for _, line := range f.lines {
		a.size += len(line) + 1
	}
	const often = 4 // sort only once in so many additions
	if a.size > often*resultLimit || len(a.files) > a.show.offset+a.show.limit {
		a.prune()
	}
}

// prune drops the files after the last one that can be in the answer.
func (a *grepAnswer) prune() {
	slices.SortFunc(a.files, func(x, y grepFile) int { return strings.Compare(x.path, y.path) })
	lines, size := 0, 0
	a.size = 0
	for i, f := range a.files {
		for _, line := range f.lines {
			a.size += len(line) + 1
			if lines++; lines > a.show.offset {
				size += len(line) + 1
			}
		}
		if i+1 < len(a.files) && a.show.enough(lines, size) {
			clear(a.files[i+1:])
			a.files = a.files[:i+1]
			a.more = true
			a.last.Store(&f.path)
			return
		}
	}
}

// text returns the lines of the answer.
func (a *grepAnswer) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.files) == 0 {
		if a.show.mode == grepFiles {
			return "No files found"
		}
		return "No matches found"
	}
	a.prune()
	var b strings.Builder
	number := 0
	take := func(line string) bool {
		if number++; number <= a.show.offset {
			return true
		}
		if number > a.show.offset+a.show.limit || b.Len()+len(line)+1 > resultLimit {
			a.more = true
			return false
		}
		b.WriteString(line)
		b.WriteByte('\n')
		return true
	}
	context := a.show.mode == grepContent && a.show.before+a.show.after > 0
	for i, f := range a.files {
		if context && i > 0 && !take("--") {
			break
		}
		if slices.ContainsFunc(f.lines, func(line string) bool { return !take(line) }) {
			break
		}
	}
	if b.Len() == 0 && !a.more {
		return fmt.Sprintf("No lines beyond offset %d: the answer has %d", a.show.offset, number)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// notes returns remarks about the search.
func (a *grepAnswer) notes() string {
	text := a.failedFiles.notes()
	if a.more {
		text = "\n(there are more; a narrower pattern, path or glob, or an offset, shows them)" + text
	}
	return text
}
