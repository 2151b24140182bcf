package lineedit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// History is the list of texts that were typed, in this conversation and in earlier ones. Its methods accept nil, a
// history that keeps nothing. Only the goroutine of its Editor may use it.
type History struct {
	path    string
	mask    func(string) string
	entries []string // the oldest first
}

const (
	mostEntries = 2000
	mostBytes   = 1 << 20 // of the file; beyond it the older half is dropped
	mostEntry   = 64 << 10
	lockWait    = 200 * time.Millisecond
)

// historyLine is a line of the history file.
type historyLine struct {
	Text string `json:"text"`
}

// OpenHistory reads a history. The file need not exist; an empty path is a history that is not kept. mask removes
// secrets from a text before it is written; nil: there are none. A line that cannot be read is ignored.
func OpenHistory(path string, mask func(string) string) (*History, error) {
	h := &History{path: path, mask: mask}
	if path == "" {
		return h, nil
	}
	data, err := workspace.ReadFile(path, 4*mostBytes)
	if errors.Is(err, fault.FileMissing) {
		return h, nil
	}
	h.entries = parse(data)
	return h, err
}

func parse(data []byte) []string {
	var list []string
	for line := range bytes.Lines(data) {
		var e historyLine
		if json.Unmarshal(line, &e) == nil && e.Text != "" {
			list = append(list, e.Text)
		}
	}
	return list[max(len(list)-mostEntries, 0):]
}

// Add records a text. It is not recorded if it is empty or the same as the last, and only for this conversation if it
// is very long or cannot be written.
func (h *History) Add(text string) {
	if h == nil || strings.TrimSpace(text) == "" {
		return
	}
	if n := len(h.entries); n > 0 && h.entries[n-1] == text {
		return
	}
	if h.entries = append(h.entries, text); len(h.entries) > mostEntries {
		h.entries = h.entries[1:]
	}
	if h.path == "" || len(text) > mostEntry {
		return
	}
	if h.mask != nil {
		text = h.mask(text)
	}
	_ = h.append(text)
}

// append writes an entry, and shortens the file if it is too long. Other conversations write too, so it holds a lock.
func (h *History) append(text string) error {
	line, err := json.Marshal(historyLine{text})
	if err != nil {
		return err
	}
	if err := workspace.MkdirAll(filepath.Dir(h.path)); err != nil {
		return err
	}
	lock, err := workspace.Lock(context.Background(), h.path+".lock", lockWait)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	if err := workspace.Append(h.path, append(line, '\n'), 0o600); err != nil {
		return err
	}
	if _, err = workspace.ReadFile(h.path, mostBytes); !errors.Is(err, fault.FieldTooLarge) {
		return err
	}
	data, err := workspace.ReadFile(h.path, 4*mostBytes)
	if err != nil {
		return err
	}
	half := data[len(data)-mostBytes/2:]
	half = half[bytes.IndexByte(half, '\n')+1:]
	return workspace.WriteFile(h.path, half, 0o600)
}

// browse is a walk through the history with Up and Down.
type browse struct {
	active bool
	at     int    // index of the entry that is shown; the number of entries: what was typed
	prefix string // entries begin with it
	typed  []atom
}

// text returns what is shown.
func (b browse) text(h *History) string {
	if b.at < len(h.entries) {
		return h.entries[b.at]
	}
	return join(b.typed)
}

// fromHistory shows the entry before or after, of those that begin as what was typed before the cursor.
func (e *Editor) fromHistory(by int) {
	h := e.options.History
	if h == nil {
		return
	}
	b := e.browse
	if !b.active || e.Text() != b.text(h) { // the first key, or the entry was edited
		b = browse{true, len(h.entries), join(e.buffer[:e.cursor]), slices.Clone(e.buffer)}
	}
	for at := b.at + by; at >= 0 && at <= len(h.entries); at += by {
		if at < len(h.entries) && (!strings.HasPrefix(h.entries[at], b.prefix) || h.entries[at] == e.Text()) {
			continue
		}
		e.undo.keep(e, false)
		if b.at = at; at == len(h.entries) {
			e.buffer = slices.Clone(b.typed)
		} else {
			e.buffer = e.atoms(h.entries[at])
		}
		e.cursor = len(e.buffer)
		break
	}
	e.browse = b
}
