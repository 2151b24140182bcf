package chat

import (
	"context"
	"os"
	"strings"
	"time"

	"omniagent/internal/keys"
	"omniagent/internal/lineedit"
	"omniagent/internal/text"
)

// hand is the person's hands on the keys.
type hand struct {
	w      *Window
	ctx    context.Context
	typed  chan<- Input
	before int64     // questions shown when the first letter of the line was typed
	ctrlC  time.Time // Ctrl-C with nothing to interrupt
}

// key handles a key, and reports whether there may be more.
func (h *hand) key(k keys.Key) (more bool) {
	w := h.w
	switch {
	case k.Code == keys.Resize:
		columns, _ := w.term.Size()
		w.locked(func() {
			if w.answer != nil {
				w.answer.SetWidth(columns)
			}
		})
		w.screen.Resize()
		h.show()
		return true
	case k.Code == keys.Position:
		w.screen.Position(k.Row, k.Column)
		return true
	case k.Code == keys.Continue:
		w.screen.Restart()
		h.show()
		return true
	case h.picks(k), h.letter(k):
		return true
	case k.Is(keys.Escape) && h.busy():
		h.interrupt()
		return true
	case k == keys.C("g") && !w.editor.Empty():
		return h.send(Input{Steer: true})
	}
	if w.editor.Empty() {
		h.before = h.questions()
	}
	switch w.editor.Key(k) {
	case lineedit.Submit:
		return h.send(Input{})
	case lineedit.Interrupt:
		return h.stop()
	case lineedit.EndInput:
		return h.give(Input{Leave: true})
	case lineedit.Suspend:
		if err := w.aside(w.term.Suspend); err != nil {
			w.Notice("the terminal cannot be given back: " + err.Error())
		}
	case lineedit.Redraw:
		w.screen.Restart()
	}
	h.show()
	return true
}

// letter answers a question with one letter, and reports whether it did. What was being typed when the question
// came does not answer it.
func (h *hand) letter(k keys.Key) bool {
	if k.Code != keys.Text || k.Mod != 0 || !h.w.editor.Empty() {
		return false
	}
	h.w.mu.Lock()
	q, asked, at := h.w.question, h.w.asked, h.w.at
	h.w.mu.Unlock()
	if q == nil || len(k.Text) != 1 || !strings.Contains(q.Keys, k.Text) || time.Since(at) < settling {
		return false
	}
	h.w.locked(func() {
		h.w.say(h.w.style.bold("> " + k.Text))
		h.w.answered()
	})
	return h.give(Input{Text: k.Text, Asked: asked})
}

// picks hands a key to the list of which something is chosen, and reports whether there is one.
func (h *hand) picks(k keys.Key) bool {
	h.w.mu.Lock()
	q, picker, asked := h.w.question, h.w.picker, h.w.asked
	h.w.mu.Unlock()
	if picker == nil || k == keys.C("z") {
		return false
	}
	index, done := picker.Key(k)
	if !done {
		h.show()
		return true
	}
	answer := Input{Asked: asked}
	if index >= 0 {
		answer.Text = q.Items[index].Text
		h.w.locked(func() { h.w.say(h.w.style.bold("> " + text.Name(answer.Text))) })
	}
	h.w.locked(func() { h.w.picker = nil })
	h.show()
	return h.give(answer)
}

// show has the screen show the editor as it is now.
func (h *hand) show() {
	h.w.mu.Lock()
	picker := h.w.picker
	h.w.mu.Unlock()
	look := h.w.editor.View
	if picker != nil {
		look = picker.View
	}
	view := look(h.w.screen.Width())
	h.w.locked(func() {
		h.w.live.Input = view
		h.w.repaint()
	})
}

// send sends what was typed.
func (h *hand) send(in Input) bool {
	w := h.w
	in.Text, in.Asked = w.editor.Take(), h.before
	h.show()
	w.locked(func() {
		words := strings.TrimSpace(in.Text)
		waits := w.state.Busy && w.question == nil && !in.Steer && !isCommand(words)
		if words != "" && !waits { // one that waits is shown when its turn begins
			w.part(w.typedLines(in.Text)...)
		}
		if w.question != nil && in.Asked == w.asked && !isCommand(words) {
			w.answered()
		}
	})
	return h.give(in)
}

func (h *hand) give(in Input) bool {
	select {
	case h.typed <- in:
		return true
	case <-h.ctx.Done():
		return false
	}
}

// stop is Ctrl-C: it empties the line, or ends what runs, or, twice, leaves.
func (h *hand) stop() bool {
	switch {
	case !h.w.editor.Empty():
		h.w.editor.Set("")
		h.show()
	case h.busy(), h.opening():
		h.interrupt()
	case time.Since(h.ctrlC) < twice:
		return h.give(Input{Leave: true})
	default:
		h.ctrlC = time.Now()
		h.w.Notice("Ctrl-C again leaves.")
	}
	return true
}

func (h *hand) interrupt() {
	select {
	case h.w.o.Signals <- os.Interrupt:
	default: // there are several already
	}
}

func (h *hand) busy() bool {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.w.state.Busy
}

// opening reports whether there is no conversation yet. Ctrl-C then ends the call.
func (h *hand) opening() bool {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return !h.w.opened
}

func (h *hand) questions() int64 {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.w.asked
}
