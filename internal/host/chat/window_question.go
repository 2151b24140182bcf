package chat

import (
	"cmp"
	"fmt"
	"time"

	"omniagent/internal/kit/text"
	"omniagent/internal/term/cells"
	"omniagent/internal/term/screen"
)

// mostWaiting limits the waiting lines that are shown.
const mostWaiting = 3

// mostInSight is how many lines of a question are visible on a usual screen.
const mostInSight = 16

// Ask implements View.
func (w *Window) Ask(q *Question) {
	w.locked(func() {
		w.picker = nil
		if w.question = q; q == nil {
			w.answered()
			return
		}
		w.asked++
		w.at = time.Now()
		lines := w.style.each(w.style.ask, w.ours("? "+q.Title))
		width := w.screen.Width()
		if w.o.Reader {
			width = 0
		}
		if len(q.Items) > 0 && !w.o.Reader {
			w.picker = &screen.Picker{Title: w.style.bold(">"), Items: q.Items}
			w.live.Input = w.picker.View(w.screen.Width())
		} else {
			lines = append(lines, q.rows(width)...)
		}
		if q.Change != nil {
			lines = append(lines, w.style.change(q.Change)...)
			w.agreed[q.call] = marksOf(q.Change)
		}
		if rows := len(lines); rows > mostInSight && w.picker == nil {
			note := fmt.Sprintf("%d lines are asked about: scroll up to see all of them", rows)
			lines = append(lines, w.style.ask(note))
		}
		if q.Why != "" {
			lines = append(lines, w.style.each(w.style.ask, w.ours(q.Why))...)
		}
		if w.o.Reader { // it does not read below the prompt
			lines = append(lines, clean(q.short())...)
		}
		w.part(lines...)
		if w.does != waiting {
			w.before, w.does, w.since = w.does, waiting, w.now()
		}
		w.call("a question")
		w.repaint()
	})
}

// answered removes the question, so that later keys do not answer it. The caller holds the lock.
func (w *Window) answered() {
	if w.question, w.picker = nil, nil; w.does == waiting {
		w.does = w.before
	}
	w.repaint()
}

// above returns the lines between the text and the prompt.
func (w *Window) above() []string {
	if w.o.Reader || !w.state.Busy {
		return nil
	}
	what := cmp.Or(w.does, "working")
	typed := w.state.Waiting
	if len(typed) > 0 {
		what += fmt.Sprintf(", %d waiting", len(typed))
	}
	const keys = " · Esc interrupts"
	took := w.now().Sub(w.began)
	if w.does == waiting {
		took = w.now().Sub(w.since)
	}
	line := screen.Working(what, took, w.state.Spent.Context) + keys
	if cells.Width(line) > w.screen.Width() {
		line = screen.Working(what, took, 0) + keys
	}
	if !w.style.on {
		line = cells.Plain(line)
	}
	return append(append(screen.Todos(w.tasks, mostTasks), w.waitingLines(typed)...), line)
}

// waitingLines returns the last waiting lines, and how to take back the last one.
func (w *Window) waitingLines(list []string) (lines []string) {
	const key = " · Up takes it back"
	for i, words := range list[max(len(list)-mostWaiting, 0):] {
		room, note := w.screen.Width(), ""
		if i == min(len(list), mostWaiting)-1 && w.picker == nil && !w.typing {
			note = key
		}
		words = "> " + text.OneLine(words, room)
		lines = append(lines, w.style.dim(cells.Cut(words, max(room-len(note), 8))+note))
	}
	return lines
}

// below returns the lines below the prompt, which say how to answer.
func (w *Window) below() []string {
	if w.question == nil || w.picker != nil {
		return nil
	}
	return w.style.each(w.style.ask, cells.Wrap(w.question.short(), w.screen.Width()))
}
