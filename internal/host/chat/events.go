package chat

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/talk/conversation"
)

// listen shows the events of a conversation, beginning with record number from, until another conversation is joined.
// It shows earlier records first, and then the person is asked for a message.
func (c *Chat) listen(ctx context.Context, with *conversation.Conversation, from int64) {
	events := with.Events(from)
	defer events.Close()
	replayed := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.Conversation() == with && c.replays {
			if c.replays = false; c.owed { // otherwise handle asks
				c.refresh(true)
			}
		}
	}
	defer replayed()
	for {
		entry, err := events.Record(ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				c.notice("the conversation cannot be read: " + err.Error())
			}
			return
		}
		past := entry.Number <= with.Opened()
		if e := entry.Event(); e != nil {
			c.mu.Lock()
			if c.Conversation() == with {
				c.event(*e, past)
			}
			c.mu.Unlock()
		}
		if entry.Number >= with.Opened() {
			replayed()
		}
	}
}

// count counts the message of a turn once: when the conversation accepts it, or when its event comes. The caller holds
// the lock.
func (c *Chat) count(turn int64) {
	if turn > c.counted {
		c.messages, c.counted = c.messages+1, turn
	}
}

// event shows an event, and updates the state. past: it was recorded before the conversation was opened. The caller
// holds the lock.
func (c *Chat) event(e event.Event, past bool) {
	number := 0
	switch e.Kind {
	case event.Prompted:
		c.count(e.Turn)
		if past {
			c.View.Message(lastText(e.Blocks))
			return
		}
		c.turns.prompted = e.Turn
		if _, known := c.turns.texts[e.Turn]; !known {
			c.turns.texts[e.Turn] = ""
		}
		c.update()
	case event.TurnBegan:
		if past {
			return
		}
		if words := c.turns.texts[e.Turn]; words != "" { // it was queued
			c.View.Message(words)
		}
		c.turns.texts[e.Turn] = ""
		c.update()
	case event.ToolResult:
		c.results = append(c.results, kept{record: e.Seq})
		number = len(c.results)
		if line, is := c.declined[e.Result.ID]; is && e.Result.Failed {
			delete(c.declined, e.Result.ID)
			e.Result = &event.Result{ID: e.Result.ID, Output: line}
		}
		if r := e.Result; !past && r.Change != nil && r.Change.Differs() && !r.Failed && !c.unasked.asked[r.ID] {
			c.unasked.change(r.Change.Path, c.undoes(r.Change.Path))
		}
	case event.Question:
		if !past {
			c.unasked.note(e.Ask.Tool)
			c.queue(c.asked(e.Ask))
		}
		return
	case event.Withdrawn:
		if c.forget(e.Ask.ID) {
			c.View.Notice("· the question needs no answer any more")
		}
		return
	case event.Replied:
		switch r := e.Reply; { // a question answered here is closed already
		case !c.forget(r.Question):
		case r.Automatic:
			c.View.Notice("· no: " + text.Name(r.Text))
		default: // by another client of the conversation
			c.View.Notice("· somebody has answered: " + text.Name(r.Option))
		}
		return
	case event.Answered:
		if e.Answer.Usage != nil && e.Parent == "" {
			c.spent.Context = e.Answer.Usage.Input
		}
	case event.Compacted:
		if e.Parent == "" {
			c.agent.known = false // the prompt may be gone
		}
	case event.Retry:
		c.retried = append(c.retried, e.Retry.Note())
	case event.Ended:
		c.ended(e, past)
		return
	}
	c.View.Event(c.local(e), number)
}

// unasked records the files that changed without a question. That is reported after the first such turn, and after each
// interrupted one, whose agent does not say what it has done. Files that cannot be taken back are listed after each
// turn.
type unasked struct {
	asked   map[string]bool // calls that were asked about
	changed bool            // in this turn
	lasting []string        // changed in this turn, and not covered by undo
	told    bool
}

func (u *unasked) change(path string, undoes bool) {
	switch path = text.Name(path); {
	case undoes:
		u.changed = true
	case !slices.Contains(u.lasting, path):
		u.lasting = append(u.lasting, path)
	}
}

// tell reports whether to report after a turn that files were changed.
func (u *unasked) tell(end *event.End) bool {
	is := u.changed && (!u.told || end.Reason == event.Cancelled)
	u.changed, u.told = false, u.told || is
	return is
}

func (u *unasked) note(call *event.Call) {
	if call == nil {
		return
	}
	if u.asked == nil {
		u.asked = map[string]bool{}
	}
	u.asked[call.ID] = true
}

// untold returns the end of a turn without the notes of retries, which were shown before.
func (c *Chat) untold(e event.Event) event.Event {
	end := *e.End
	end.Notes = slices.DeleteFunc(slices.Clone(end.Notes), func(note string) bool {
		return slices.Contains(c.retried, note)
	})
	c.retried, e.End = nil, &end
	return e
}

// local returns an event with paths relative to the workspace.
func (c *Chat) local(e event.Event) event.Event {
	if e.Call != nil {
		call := *e.Call
		call.Path = c.near(call.Path)
		e.Call = &call
	}
	if e.Result != nil && e.Result.Change != nil {
		result, change := *e.Result, *e.Result.Change
		change.Path = c.near(change.Path)
		result.Change = &change
		e.Result = &result
	}
	return e
}

// near returns a path in the workspace relative to it, and any other path unchanged.
func (c *Chat) near(path string) string {
	if rel, within := pathname.In(c.World.Dir, path); within {
		return rel
	}
	return path
}

// undoes reports whether undo covers a path.
func (c *Chat) undoes(path string) bool {
	return c.World.Undoes == nil || c.World.Undoes(pathname.From(c.World.Dir, path))
}

// ended handles the end of a turn.
func (c *Chat) ended(e event.Event, past bool) {
	if c.turns.unsent[e.Turn] { // it did not begin
		delete(c.turns.unsent, e.Turn)
		delete(c.turns.texts, e.Turn)
		c.update()
		return
	}
	c.View.Event(c.untold(e), 0)
	if c.unasked.tell(e.End) && c.World.Back != "" {
		c.View.Notice("· changed without asking; " + c.World.Back)
	}
	if lasting := c.unasked.lasting; len(lasting) > 0 && c.World.Back != "" {
		c.View.Notice("· changed without asking, where no undo reaches: " + strings.Join(lasting, ", "))
	}
	c.unasked.lasting = nil
	if past {
		return
	}
	if _, waited := c.turns.carries[e.Turn]; !waited || c.turns.texts[e.Turn] == "" { // otherwise it never began
		c.spent.Turns++
	}
	c.failed = c.failed || !e.End.OK && e.End.Reason != event.Cancelled
	if e.End.Usage != nil {
		c.spent.Add(*e.End.Usage)
	}
	delete(c.turns.texts, e.Turn)
	delete(c.turns.carries, e.Turn)
	c.update()
}

// lastText returns the text that a person wrote, which is the last one without a name.
func lastText(blocks []event.Block) string {
	for _, b := range slices.Backward(blocks) {
		if b.Media == "" && b.Name == "" {
			return b.Text
		}
	}
	return ""
}
