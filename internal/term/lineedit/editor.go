// Package lineedit is the text that a person types: a buffer of several lines, the keys of readline, history and
// completion.
//
// An Editor takes keys and returns what they ask for; it reads and writes no terminal. It promises that the cursor is
// always between grapheme clusters, whatever the script; that a paste is one value, however large; that completion
// never blocks a key; and that View has rows for any width. What Enter, Ctrl-C and Ctrl-D mean is the host's decision.
// Control characters are shown by name, never sent to a terminal.
package lineedit

import (
	"slices"
	"strings"

	"omniagent/internal/kit/text"
	"omniagent/internal/term/cells"
	"omniagent/internal/term/keys"
)

// Action is what a key asks the host for.
type Action uint8

// The actions.
const (
	None      Action = iota // nothing: the key was handled; the View may have changed
	Submit                  // Enter: Take the text
	Interrupt               // Ctrl-C
	EndInput                // Ctrl-D in an empty buffer
	Suspend                 // Ctrl-Z
	Redraw                  // Ctrl-L
	Ignored                 // the key is not one of the editor's: Escape, Shift-Tab, a function key
)

// Options say how an Editor looks and what it knows.
type Options struct {
	Prompt   string // before the first line, such as "> "; it may have styles. Further lines are as far to the right
	Hint     string // shown in an empty buffer; not for a screen reader, for which it would be text
	History  *History
	Complete Source // nil: there is no completion
}

// Editor is the text that is being typed. Key and View belong to one goroutine.
type Editor struct {
	options Options
	buffer  []atom
	cursor  int // index of the atom before which it stands
	wanted  int // column that Up and Down keep; -1: none

	killed  []atom
	killing bool // the last key killed too: the next one appends
	undo    undo
	browse  browse
	search  *search

	completion completion
}

// atom is an element of the text that the cursor cannot enter: a cluster, or a folded paste.
type atom struct {
	text  string
	shown string // empty: as the text
}

// mostPasted is how many lines a paste may have to be shown as it is. A longer one is shown as its size.
const mostPasted = 12

// New returns an editor with an empty buffer.
func New(o Options) *Editor {
	e := &Editor{options: o, wanted: -1}
	e.completion.changed = make(chan struct{}, 1)
	return e
}

// Text returns the buffer.
func (e *Editor) Text() string { return join(e.buffer) }

// Empty reports whether there is no text.
func (e *Editor) Empty() bool { return len(e.buffer) == 0 }

// Searching reports whether a search in the history runs.
func (e *Editor) Searching() bool { return e.search != nil }

// Opened reports whether a search runs or a list of completions is shown, which Escape and Ctrl-G close.
func (e *Editor) Opened() bool {
	e.completion.mu.Lock()
	defer e.completion.mu.Unlock()
	return e.search != nil || len(e.completion.shown.Candidates) > 0
}

// Take returns the text, records it in the history and empties the buffer.
func (e *Editor) Take() string {
	text := e.Text()
	e.options.History.Add(text)
	e.Set("")
	e.undo = undo{}
	return text
}

// Set replaces the buffer and moves the cursor to its end.
func (e *Editor) Set(text string) {
	e.leave()
	e.undo.keep(e, false)
	e.buffer = e.atoms(text)
	e.cursor = len(e.buffer)
}

// Close ends a completion that still runs.
func (e *Editor) Close() { e.completion.close() }

// leave ends the search, the walk through the history and the completion.
func (e *Editor) leave() {
	e.search, e.browse, e.wanted, e.killing = nil, browse{}, -1, false
	e.completion.close()
}

// Key handles a key.
func (e *Editor) Key(k keys.Key) Action {
	if e.search != nil {
		if action, done := e.searchKey(k); done {
			return action
		}
	}
	killing, wanted := e.killing, e.wanted
	e.killing, e.wanted = false, -1
	before, cursor := len(e.buffer), e.cursor
	action := e.handle(k, killing, wanted)
	switch {
	case action == Ignored:
		e.killing, e.wanted = killing, wanted
	case k.Code == keys.Tab || action != None:
	case len(e.buffer) != before || e.cursor != cursor:
		e.complete()
	}
	return action
}

// handle does what a key asks for.
//
// Long because it is one table.
func (e *Editor) handle(k keys.Key, killing bool, wanted int) Action {
	if k.Code == keys.Text && k.Mod != 0 {
		return e.handleLetter(k, killing)
	}
	word := k.Mod&(keys.Alt|keys.Ctrl) != 0
	switch k.Code {
	case keys.Text:
		e.insert(k.Text)
	case keys.Paste:
		e.paste(k.Text)
	case keys.Enter:
		return e.enter(k)
	case keys.Tab:
		return e.tab(k.Mod&keys.Shift != 0)
	case keys.Backspace:
		if word {
			e.kill(e.wordLeft(isWord), e.cursor, killing)
		} else {
			e.remove(e.cursor-1, e.cursor)
		}
	case keys.Delete:
		if word {
			e.kill(e.cursor, e.wordRight(), killing)
		} else {
			e.remove(e.cursor, e.cursor+1)
		}
	case keys.Left:
		if word {
			e.cursor = e.wordLeft(isWord)
		} else {
			e.cursor--
		}
	case keys.Right:
		if word {
			e.cursor = e.wordRight()
		} else {
			e.cursor++
		}
	case keys.Home:
		e.cursor = e.lineStart(e.cursor)
		if word {
			e.cursor = 0
		}
	case keys.End:
		e.cursor = e.lineEnd(e.cursor)
		if word {
			e.cursor = len(e.buffer)
		}
	case keys.Up:
		e.vertical(-1, wanted)
	case keys.Down:
		e.vertical(1, wanted)
	case keys.Escape:
		if e.completion.close() {
			return None
		}
		return Ignored
	case keys.FocusIn, keys.FocusOut, keys.Unknown:
	default:
		return Ignored
	}
	e.cursor = min(max(e.cursor, 0), len(e.buffer))
	return None
}

// handleLetter handles a character with Ctrl or Alt.
//
// Long because it is one table.
func (e *Editor) handleLetter(k keys.Key, killing bool) Action {
	switch k {
	case keys.C("a"):
		e.cursor = e.lineStart(e.cursor)
	case keys.C("e"):
		e.cursor = e.lineEnd(e.cursor)
	case keys.C("b"):
		e.cursor = max(e.cursor-1, 0)
	case keys.C("f"):
		e.cursor = min(e.cursor+1, len(e.buffer))
	case keys.C("p"):
		e.vertical(-1, -1)
	case keys.C("n"):
		e.vertical(1, -1)
	case keys.C("k"):
		end := e.lineEnd(e.cursor)
		if end == e.cursor {
			end = min(end+1, len(e.buffer)) // at the end of a line: the newline
		}
		e.kill(e.cursor, end, killing)
	case keys.C("u"):
		e.kill(e.lineStart(e.cursor), e.cursor, killing)
	case keys.C("w"):
		e.kill(e.wordLeft(notSpace), e.cursor, killing)
	case keys.A("b"):
		e.cursor = e.wordLeft(isWord)
	case keys.A("f"):
		e.cursor = e.wordRight()
	case keys.A("d"):
		e.kill(e.cursor, e.wordRight(), killing)
	case keys.A("<"):
		e.cursor = 0
	case keys.A(">"):
		e.cursor = len(e.buffer)
	case keys.C("y"):
		e.insertAtoms(e.killed, false)
	case keys.C("t"):
		e.transpose()
	case keys.C("h"):
		e.remove(e.cursor-1, e.cursor)
	case keys.C("d"):
		if e.Empty() {
			return EndInput
		}
		e.remove(e.cursor, e.cursor+1)
	case keys.C("j"):
		e.insertAtoms([]atom{{text: "\n"}}, false)
	case keys.C("m"):
		return e.enter(keys.Key{Code: keys.Enter})
	case keys.C("_"), keys.A("u"):
		e.undo.back(e)
	case keys.C("r"):
		e.startSearch()
	case keys.C("c"):
		e.completion.close()
		return Interrupt
	case keys.C("z"):
		return Suspend
	case keys.C("l"):
		return Redraw
	case keys.C("g"):
		if !e.completion.close() {
			return Ignored
		}
	default:
		return Ignored
	}
	return None
}

// enter submits, or begins a new line with a modifier or behind a backslash at the end.
func (e *Editor) enter(k keys.Key) Action {
	last := len(e.buffer) - 1
	switch {
	case k.Mod != 0:
		e.insertAtoms([]atom{{text: "\n"}}, false)
	case last >= 0 && e.cursor == last+1 && e.buffer[last].text == `\`:
		e.undo.keep(e, false)
		e.buffer[last] = atom{text: "\n"}
	default:
		e.completion.close()
		return Submit
	}
	return None
}

// insert inserts typed text.
func (e *Editor) insert(s string) { e.insertAtoms(split(s), true) }

// paste inserts a paste: folded, if it is long.
func (e *Editor) paste(s string) {
	if lines := linesIn(s); lines > mostPasted {
		e.insertAtoms([]atom{{text: s, shown: folded(s, lines)}}, false)
		return
	}
	e.insertAtoms(e.atoms(s), false)
}

// atoms splits a text into its clusters. What has very many is folded.
func (e *Editor) atoms(s string) []atom {
	if len(s) > 200*mostPasted {
		return []atom{{text: s, shown: folded(s, linesIn(s))}}
	}
	return split(s)
}

func linesIn(s string) int { return strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1 }

// insertAtoms inserts atoms before the cursor. The first cluster may join the one before it, such as an accent.
func (e *Editor) insertAtoms(list []atom, typed bool) {
	if len(list) == 0 {
		return
	}
	e.undo.keep(e, typed)
	from, to := e.cursor, e.cursor
	if from > 0 && e.buffer[from-1].shown == "" {
		if both := split(e.buffer[from-1].text + list[0].text); len(both) < 2 {
			from--
			list = append(both, list[1:]...)
		}
	}
	e.buffer = slices.Replace(e.buffer, from, to, list...)
	e.cursor = from + len(list)
}

// remove removes atoms.
func (e *Editor) remove(from, to int) {
	if from, to = max(from, 0), min(to, len(e.buffer)); from >= to {
		return
	}
	e.undo.keep(e, false)
	e.buffer = slices.Delete(e.buffer, from, to)
	e.cursor = from
}

// kill removes atoms and keeps them for Ctrl-Y. What several keys in a row kill is kept together.
func (e *Editor) kill(from, to int, again bool) {
	e.killing = true
	if from >= to {
		return
	}
	piece := slices.Clone(e.buffer[from:to])
	switch {
	case !again:
		e.killed = piece
	case from == e.cursor:
		e.killed = append(e.killed, piece...)
	default:
		e.killed = append(piece, e.killed...)
	}
	e.remove(from, to)
}

// transpose exchanges the clusters around the cursor.
func (e *Editor) transpose() {
	at := min(e.cursor, len(e.buffer)-1)
	if at < 1 {
		return
	}
	e.undo.keep(e, false)
	e.buffer[at-1], e.buffer[at] = e.buffer[at], e.buffer[at-1]
	e.cursor = at + 1
}

// split makes atoms of a text, one a cluster.
func split(s string) []atom {
	var list []atom
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	for s != "" {
		piece, rest, width := cells.First(s)
		a := atom{text: piece}
		if piece != "\n" && piece != "\t" && (width == 0 || cells.IsStyle(piece)) {
			a.shown = text.Name(piece)
		}
		list, s = append(list, a), rest
	}
	return list
}

func join(list []atom) string {
	var b strings.Builder
	for _, a := range list {
		b.WriteString(a.text)
	}
	return b.String()
}

// snapshot is a buffer that undo can bring back.
type snapshot struct {
	buffer []atom
	cursor int
}

const (
	mostUndo      = 200
	mostUndoAtoms = 100_000 // of all buffers together
)

// undo has earlier buffers.
type undo struct {
	kept  []snapshot
	atoms int  // in kept
	typed bool // the last change was typed text: the next belongs to it
}

// keep records the buffer before it changes.
func (u *undo) keep(e *Editor, typed bool) {
	if typed && u.typed {
		return
	}
	u.typed = typed
	u.kept = append(u.kept, snapshot{slices.Clone(e.buffer), e.cursor})
	u.atoms += len(e.buffer)
	for len(u.kept) > mostUndo || u.atoms > mostUndoAtoms && len(u.kept) > 1 {
		u.atoms -= len(u.kept[0].buffer)
		u.kept = slices.Delete(u.kept, 0, 1)
	}
}

// back brings the last buffer back.
func (u *undo) back(e *Editor) {
	last := len(u.kept) - 1
	if last < 0 {
		return
	}
	e.buffer, e.cursor = u.kept[last].buffer, u.kept[last].cursor
	u.kept, u.typed = u.kept[:last], false
}
