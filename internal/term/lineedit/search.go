package lineedit

import (
	"strings"

	"omniagent/internal/kit/text"
	"omniagent/internal/term/cells"
	"omniagent/internal/term/keys"
)

// search is a search in the history, as Ctrl-R begins it.
type search struct {
	editor *Editor
	query  string
	at     int // index of the entry that was found; the number of entries: none yet
	failed bool
	before snapshot // what was typed
}

func (e *Editor) startSearch() {
	h := e.options.History
	if h == nil {
		return
	}
	e.completion.close()
	e.search = &search{editor: e, at: len(h.entries), before: snapshot{e.buffer, e.cursor}}
}

// searchKey handles a key while a search runs. done is false if the search has ended and the editor has to handle the
// key.
func (e *Editor) searchKey(k keys.Key) (action Action, done bool) {
	s := e.search
	switch {
	case k.Code == keys.Text && k.Mod == 0:
		s.query += k.Text
		s.look(0)
	case k.Code == keys.Paste:
		s.query += text.OneLine(k.Text, 200)
		s.look(0)
	case k.Is(keys.Backspace), k == keys.C("h"):
		list := split(s.query)
		s.query = join(list[:max(len(list)-1, 0)])
		s.at = len(e.options.History.entries)
		s.look(0)
	case k == keys.C("r"), k.Is(keys.Up):
		s.look(-1)
	case k == keys.C("s"), k.Is(keys.Down):
		s.look(1)
	case k == keys.C("g"), k == keys.C("c"), k.Is(keys.Escape):
		e.buffer, e.cursor, e.search = s.before.buffer, s.before.cursor, nil
	case k.Code == keys.FocusIn, k.Code == keys.FocusOut, k.Code == keys.Unknown, k.Code >= keys.Position:
		return Ignored, true
	default:
		s.accept()
		// Enter takes the entry and does not send it: a message cannot be taken back.
		return None, k.Is(keys.Enter) || k.Is(keys.Tab)
	}
	return None, true
}

// look finds the next entry in a direction; with 0 the one that is shown may stay.
func (s *search) look(by int) {
	entries := s.editor.options.History.entries
	at, step := s.at+by, by
	if by == 0 {
		step = -1
		at = min(at, len(entries)-1)
	}
	for ; at >= 0 && at < len(entries); at += step {
		if strings.Contains(strings.ToLower(entries[at]), strings.ToLower(s.query)) {
			s.at, s.failed = at, false
			return
		}
	}
	s.failed = true
}

// accept makes the entry the buffer.
func (s *search) accept() {
	e := s.editor
	e.search = nil
	if entries := e.options.History.entries; s.at < len(entries) {
		e.undo.keep(e, false)
		e.buffer = split(entries[s.at])
		e.cursor = len(e.buffer)
	}
}

// view returns what is shown in place of the prompt and the buffer.
func (s *search) view() (prompt string, list []atom, cursor int) {
	words := "search: "
	if s.failed {
		words = "not found: "
	}
	prompt = cells.Faint.Of(words) + text.Name(s.query) + cells.Faint.Of(" → ")
	if entries := s.editor.options.History.entries; s.at < len(entries) && s.query != "" {
		list = split(entries[s.at])
	}
	return prompt, list, len(list)
}
