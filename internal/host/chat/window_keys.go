package chat

import (
	"context"
	"os"
	"strings"
	"time"

	"omniagent/internal/kit/text"
	"omniagent/internal/term/keys"
	"omniagent/internal/term/lineedit"
)

// hand handles the keys. Only Run uses it.
type hand struct {
	w      *Window
	queue  []Input     // input that the chat has not taken yet; keys must not wait for the chat
	before int64       // number of questions shown when the first letter of the line was typed
	alone  *time.Timer // fires when a letter has stayed the only one, and so is an answer
	ctrlC  time.Time   // the last Ctrl-C with nothing to interrupt
}

// Run implements View.
func (w *Window) Run(ctx context.Context, typed chan<- Input) {
	defer close(typed)
	defer w.editor.Close()
	ticks := time.NewTicker(w.second)
	defer ticks.Stop()
	counts := false
	h := hand{w: w, alone: time.NewTimer(reasons)}
	h.alone.Stop()
	h.show()
	for keys := w.term.Input(); keys != nil || len(h.queue) > 0; {
		var ticking <-chan time.Time
		if busy := w.glance().busy && !w.o.Reader; busy { // the figures of the turn change
			if !counts {
				ticks.Reset(w.second) // in step with the turn
			}
			ticking = ticks.C
		}
		counts = ticking != nil
		var out chan<- Input
		var first Input
		if len(h.queue) > 0 {
			out, first = typed, h.queue[0]
		}
		select {
		case k, more := <-keys:
			if more {
				h.key(k)
			} else {
				keys = nil
			}
		case out <- first:
			h.queue = h.queue[1:]
		case <-h.alone.C:
			h.letter()
		case <-w.editor.Changed():
			h.show()
		case <-w.stir: // a turn may have begun or ended
			h.drafts()
		case <-ticking:
			w.locked(w.ticked)
		case <-ctx.Done():
			return
		case <-w.closed:
			return
		}
	}
}

// key handles a key.
func (h *hand) key(k keys.Key) {
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
		return
	case k.Code == keys.Position:
		w.screen.Position(k.Row, k.Column)
		return
	case k.Code == keys.Continue:
		w.screen.Restart()
		h.show()
		return
	case h.picks(k):
		return
	case k.Is(keys.Escape) && w.glance().busy && !w.editor.Opened():
		h.interrupt()
		return
	case k == keys.C("g") && !w.editor.Empty() && !w.editor.Opened():
		h.send(Input{Steer: true})
		return
	}
	begins := w.editor.Empty() && !w.editor.Searching()
	if begins && k.Is(keys.Up) && w.glance().waits {
		h.give(Input{Back: true})
		return
	}
	if begins {
		h.before = w.glance().asked
	}
	h.alone.Stop()
	switch w.editor.Key(k) {
	case lineedit.Submit:
		h.send(Input{})
		return
	case lineedit.Interrupt:
		h.stop()
		return
	case lineedit.EndInput:
		h.give(Input{Leave: true})
		return
	case lineedit.Suspend:
		if err := w.aside(w.term.Suspend); err != nil {
			w.Notice("the terminal cannot be given back: " + err.Error())
		}
	case lineedit.Redraw:
		w.screen.Restart()
	}
	if begins && k.Code == keys.Text {
		h.begun()
	}
	h.show()
}

// begun starts the timer for a letter that may be an answer. It must stay the only letter for a while, because it may
// begin a reason. A letter that was typed just when the question appeared does not answer it.
func (h *hand) begun() {
	now, letter := h.w.glance(), h.w.editor.Text()
	settled := h.before == now.asked && time.Since(now.at) >= settling
	if now.question != nil && settled && len(letter) == 1 && strings.Contains(now.question.Keys, letter) {
		h.alone.Reset(reasons)
	}
}

// letter answers the question with the only letter that was typed.
func (h *hand) letter() {
	now, letter := h.w.glance(), h.w.editor.Text()
	if now.question == nil || now.asked != h.before {
		return
	}
	h.w.editor.Set("")
	h.show()
	h.w.locked(func() {
		h.w.say(h.w.style.bold("> " + letter))
		h.w.answered()
	})
	h.give(Input{Text: letter, Asked: now.asked})
}

// drafts inserts the lines that were given back before the text in the editor.
func (h *hand) drafts() {
	var lines []string
	h.w.locked(func() { lines, h.w.drafts = h.w.drafts, nil })
	for _, line := range lines {
		if !h.w.editor.Empty() {
			line += "\n" + h.w.editor.Text()
		}
		h.w.editor.Set(line)
	}
	if len(lines) > 0 {
		h.before = 0 // it is older than any open question, and answers none
		h.show()
	}
}

// picks passes a key to the list of items, and reports whether one is shown.
func (h *hand) picks(k keys.Key) bool {
	now := h.w.glance()
	if now.picker == nil || k == keys.C("z") {
		return false
	}
	index, done := now.picker.Key(k)
	if !done {
		h.show()
		return true
	}
	answer := Input{Asked: now.asked}
	if index >= 0 {
		answer.Text = now.question.Items[index].Text
		h.w.locked(func() { h.w.say(h.w.style.bold("> " + text.Name(answer.Text))) })
	}
	h.w.locked(func() { h.w.picker = nil })
	h.show()
	h.give(answer)
	return true
}

// show updates the editor on the screen.
func (h *hand) show() {
	look := h.w.editor.View
	if picker := h.w.glance().picker; picker != nil {
		look = picker.View
	}
	view, typing := look(h.w.screen.Width()), !h.w.editor.Empty() || h.w.editor.Searching()
	h.w.locked(func() {
		h.w.live.Input, h.w.typing = view, typing
		h.w.repaint()
	})
}

// send sends the text of the editor.
func (h *hand) send(in Input) {
	w := h.w
	in.Text, in.Asked = w.editor.Take(), h.before
	h.show()
	w.locked(func() {
		words := strings.TrimSpace(in.Text)
		asked := w.question != nil && in.Asked == w.asked
		waits := w.state.Busy && !asked && !in.Steer && !isCommand(words)
		if words != "" && !waits { // a waiting message is shown when its turn begins
			w.part(w.typedLines(in.Text)...)
		}
		if asked && !isCommand(words) {
			w.answered()
		}
	})
	h.give(in)
}

func (h *hand) give(in Input) { h.queue = append(h.queue, in) }

// stop handles Ctrl-C: it ends what runs, or else clears the line, or else, the second time, leaves.
func (h *hand) stop() {
	switch now := h.w.glance(); {
	case now.busy:
		h.interrupt()
	case !h.w.editor.Empty() || h.w.editor.Searching():
		h.w.editor.Set("")
		h.show()
	case !now.opened: // an interrupt ends the program
		h.interrupt()
	case time.Since(h.ctrlC) < twice:
		h.give(Input{Leave: true})
	default:
		h.ctrlC = time.Now()
		h.w.Notice("Ctrl-C again leaves.")
	}
}

func (h *hand) interrupt() {
	select {
	case h.w.o.Signals <- os.Interrupt:
	default: // enough are pending
	}
}
