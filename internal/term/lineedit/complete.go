package lineedit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"omniagent/internal/kit/text"
	"omniagent/internal/term/cells"
)

// Candidate is one way to complete the text.
type Candidate struct {
	Text        string // replaces what was typed from Offer.From on
	Description string // shown to the right; may be empty
}

// Offer is what a source has found so far.
type Offer struct {
	From       int // where the candidates begin, in bytes of the text before the cursor
	Candidates []Candidate
}

// Source looks for candidates, given the text before the cursor. It runs in a goroutine of its own and calls offer as
// often as it knows more; each offer replaces the one before. ctx ends as soon as a key changes the text, and after
// two seconds.
type Source func(ctx context.Context, before string, offer func(Offer))

const patience = 2 * time.Second

// completion is a search for candidates, and the list that is shown.
type completion struct {
	changed chan struct{}
	cancel  context.CancelFunc

	mu     sync.Mutex
	runs   bool // the search
	number int  // of the search; an offer of an earlier one is dropped
	offer  Offer
	fresh  bool // a new offer has come

	shown  Offer  // what the keys work on
	stale  bool   // shown belongs to an earlier text
	chosen int    // index in shown; -1: none
	before string // the text before the cursor when the search began
	end    int    // atom behind the candidate that Tab has inserted; 0: none
	wanted bool   // Tab was pressed before there were candidates
}

// Changed returns a channel that receives a value when the candidates differ from those of the last View.
func (e *Editor) Changed() <-chan struct{} { return e.completion.changed }

// close ends the search and removes the list. It reports whether there was a list.
func (c *completion) close() bool {
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
	c.mu.Lock()
	c.number++
	c.offer, c.fresh, c.runs = Offer{}, false, false
	c.mu.Unlock()
	shown := len(c.shown.Candidates) > 0
	c.shown, c.chosen, c.end, c.wanted = Offer{}, -1, 0, false
	return shown
}

// complete begins a search for candidates at the cursor.
func (e *Editor) complete() {
	c := &e.completion
	keep := c.shown
	c.close()
	source := e.options.Complete
	if source == nil || e.cursor == 0 {
		return
	}
	c.shown, c.stale = keep, true // until the next offer, so that the list does not flicker
	c.before = join(e.buffer[:e.cursor])
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c.cancel = cancel
	c.mu.Lock()
	c.runs = true
	c.mu.Unlock()
	number, before := c.number, c.before
	offer := func(o Offer) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.number != number || o.From < 0 || o.From > len(before) {
			return
		}
		c.offer, c.fresh = o, true
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
	go func() {
		defer cancel()
		found := false
		source(ctx, before, func(o Offer) {
			found = true
			offer(o)
		})
		if !found {
			offer(Offer{})
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.runs = c.runs && c.number != number
	}()
}

// refresh takes the newest offer.
func (c *completion) refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fresh && c.end == 0 {
		c.shown, c.chosen, c.stale = c.offer, -1, false
	}
	c.fresh = false
}

// tab inserts the next candidate, or the previous one.
func (e *Editor) tab(back bool) Action {
	c := &e.completion
	c.refresh()
	n := len(c.shown.Candidates)
	if c.stale && n > 0 { // the next offer is on its way
		c.wanted = !back
		return None
	}
	if n == 0 {
		if back {
			return Ignored
		}
		c.mu.Lock()
		runs := c.runs
		c.mu.Unlock()
		if !runs {
			e.complete()
		}
		c.wanted = true
		return None
	}
	from := len(split(c.before[:c.shown.From]))
	if c.end == 0 {
		e.undo.keep(e, false)
		c.end, c.chosen = len(split(c.before)), -1
	}
	if back {
		c.chosen = (max(c.chosen, 0) + n - 1) % n
	} else {
		c.chosen = (c.chosen + 1) % n
	}
	list := split(c.shown.Candidates[c.chosen].Text)
	if c.end > len(e.buffer) || from > c.end {
		return None
	}
	e.buffer = slices.Replace(e.buffer, from, c.end, list...)
	c.end = from + len(list)
	e.cursor = c.end
	if n == 1 {
		c.close()
	}
	return None
}

// late inserts the candidate for a Tab that was pressed before there were candidates.
func (e *Editor) late() {
	c := &e.completion
	if c.refresh(); c.wanted && !c.stale && len(c.shown.Candidates) > 0 {
		c.wanted = false
		e.tab(false)
	}
}

// view returns the rows of the list.
func (c *completion) view(width int) []string {
	c.refresh()
	list := c.shown.Candidates
	first := 0
	if len(list) > mostBelow {
		first = min(max(c.chosen-mostBelow/2, 0), len(list)-mostBelow)
		list = list[first : first+mostBelow]
	}
	wide := 0
	for _, candidate := range list {
		wide = max(wide, cells.Width(text.Name(candidate.Text)))
	}
	wide = min(wide, width*2/3)
	var rows []string
	for i, candidate := range list {
		row := cells.Fill(text.Name(candidate.Text), wide)
		if first+i == c.chosen {
			row = cells.Reverse.Of(row)
		}
		if candidate.Description != "" {
			row += "  " + cells.Faint.Of(text.Flat(candidate.Description))
		}
		rows = append(rows, cells.Cut("  "+row, width-1))
	}
	if all := len(c.shown.Candidates); all > len(list) {
		rows = append(rows, cells.Cut(cells.Faint.Of(fmt.Sprintf("  %d to %d of %d; Tab goes on", first+1,
			first+len(list), all)), width-1))
	}
	return rows
}
