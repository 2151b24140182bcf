package fsapi

import (
	"errors"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"omniagent/internal/sys/workspace"
)

// largest is the size of the largest file that is read or edited.
const largest = 64 << 20

// Window is a part of a text. The zero value is all of it.
type Window struct {
	Start, End int // lines, from 1, both included; End 0 or less: to the last one
	MaxBytes   int // 0: any number; a character is never cut
}

// of returns the part of a text.
func (w Window) of(text string) string {
	if w.Start > 1 || w.End > 0 {
		lines := strings.Split(text, "\n")
		start, end := max(w.Start-1, 0), len(lines)
		if w.End > 0 {
			end = min(w.End, end)
		}
		if start >= end {
			return ""
		}
		text = strings.Join(lines[start:end], "\n")
	}
	if w.MaxBytes <= 0 || len(text) <= w.MaxBytes {
		return text
	}
	end := w.MaxBytes
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// ReadFile returns a part of a text. It refuses a file that has other bytes than text.
func (l *Local) ReadFile(path string, w Window) (string, error) {
	name, err := l.name(path)
	if err != nil {
		return "", err
	}
	data, err := l.files.ReadFile(name, largest)
	if err != nil {
		return "", explained(path, err)
	}
	if strings.IndexByte(string(data[:min(len(data), 8<<10)]), 0) >= 0 {
		return "", &Error{Code: IOError, Message: "File is not text", Path: path}
	}
	return w.of(strings.ToValidUTF8(string(data), "\uFFFD")), nil
}

// Mode is how WriteFile treats what is there.
type Mode string

// The modes.
const (
	Overwrite Mode = "overwrite"
	Append    Mode = "append"
)

// Change is what became of a file.
type Change struct {
	Path string  // absolute
	Old  *string // nil: there was no file
	New  string
	Hits int // places that an edit changed
}

// WriteFile writes a file, atomically. An empty mode is Overwrite.
func (l *Local) WriteFile(path, content string, mode Mode) (Change, error) {
	if mode != "" && mode != Overwrite && mode != Append {
		return Change{}, &Error{Code: InvalidPath, Message: "mode is overwrite or append"}
	}
	return l.replace(path, true, func(old string) (string, int, error) {
		if mode == Append {
			content = old + content
		}
		return content, 1, nil
	})
}

// replace writes what edit makes of a text. A file that another program changes meanwhile is left as it is.
func (l *Local) replace(path string, create bool, edit func(old string) (string, int, error)) (c Change, err error) {
	name, err := l.name(path)
	if err != nil {
		return c, err
	}
	if c.Path, err = l.Resolve(path); err != nil {
		return c, err
	}
	data, print, err := l.files.Load(name, largest)
	switch err := explainedUnless(path, err); {
	case err == nil:
		old := string(data)
		c.Old = &old
	case !create || !errors.Is(err, NotFound):
		return c, err
	}
	if c.New, c.Hits, err = edit(string(data)); err != nil || c.Hits == 0 {
		return c, err
	}
	target, err := l.files.Resolve(name)
	if err == nil {
		err = l.files.Replace(name, []byte(c.New), workspace.ReplaceOptions{Expect: &print, Target: target})
	}
	c.Path = filepath.Clean(c.Path)
	return c, explainedUnless(path, err)
}

func explainedUnless(path string, err error) error {
	if err == nil {
		return nil
	}
	return explained(path, err)
}

// Edit is one change of a text. Lines count from 0.
type Edit struct {
	Action string // insert, replace or delete_range

	After   int    // insert: the line behind which NewText becomes a line; below 0: before the first
	NewText string //

	Find, Replace string // replace: the first place with this text

	Start, End int // delete_range: the first line, and the first that stays
}

// The actions.
const (
	Insert      = "insert"
	Replace     = "replace"
	DeleteRange = "delete_range"
)

// EditText changes a text. Change.Hits is 0 if the text to replace was not found, and the file is as it was.
func (l *Local) EditText(path string, e Edit) (Change, error) { return l.replace(path, false, e.Apply) }

// Apply returns the changed text, and how many places of it changed.
func (e Edit) Apply(text string) (string, int, error) {
	switch e.Action {
	case Replace:
		i := strings.Index(text, e.Find)
		if i < 0 {
			return text, 0, nil
		}
		return text[:i] + e.Replace + text[i+len(e.Find):], 1, nil
	case Insert:
		lines := strings.Split(text, "\n")
		at := min(max(e.After, -1), len(lines)-1) + 1
		lines = append(lines[:at:at], append([]string{e.NewText}, lines[at:]...)...)
		return strings.Join(lines, "\n"), 1, nil
	case DeleteRange:
		lines := strings.Split(text, "\n")
		end := min(e.End, len(lines))
		if e.Start < 0 || e.End < e.Start {
			return text, 0, &Error{Code: InvalidPath, Message: "Invalid delete range"}
		}
		start := min(e.Start, end)
		return strings.Join(append(lines[:start:start], lines[end:]...), "\n"), 1, nil
	}
	return text, 0, &Error{Code: InvalidPath, Message: "action is insert, replace or delete_range"}
}
