package engine

import (
	"fmt"
	"slices"

	"omniagent/internal/model"
	"omniagent/internal/session"
)

// conversation is what was said, in the form in which a model can be sent it at any moment: each call has its result,
// and a user's message comes first.
type conversation struct {
	messages []model.Message
	numbers  []int64         // the journal's records with which they begin; 0: not known
	ids      map[string]bool // of calls
	number   int             // of calls that got an id from us
	context  int64           // tokens of the conversation when the model last saw it; 0: not known
	seen     int             // how many messages that was
}

func newConversation(history []model.Message, kept *session.Session) *conversation {
	c := &conversation{ids: map[string]bool{}}
	var numbers []int64
	if kept != nil {
		history = kept.Messages()
		numbers = numbered(kept.Seen())
	}
	if len(numbers) != len(history) { // something was mended, and where a message begins in the journal is not known
		numbers = make([]int64, len(history))
	}
	for i, m := range history {
		c.add(m, numbers[i])
		for _, b := range m.Blocks {
			if b.Kind == model.Call {
				c.ids[b.ID] = true
			}
		}
	}
	return c
}

// numbered are the records with which the messages begin, of which those of one side in a row are one.
func numbered(seen []session.Numbered) []int64 {
	var numbers []int64
	var last model.Role
	for _, m := range seen {
		if m.Role != last {
			numbers = append(numbers, m.Number)
		}
		last = m.Role
	}
	return numbers
}

// named gives calls without an id, or with one that was used, an id of their own.
func (c *conversation) named(blocks []model.Block) {
	for i := range blocks {
		b := &blocks[i]
		if b.Kind != model.Call {
			continue
		}
		for b.ID == "" || c.ids[b.ID] {
			c.number++
			b.ID = fmt.Sprintf("call_%d", c.number)
		}
		c.ids[b.ID] = true
	}
}

// add puts a message at the end; one of the same side goes on with the last.
func (c *conversation) add(m model.Message, number int64) {
	if n := len(c.messages); n > 0 && c.messages[n-1].Role == m.Role {
		last := &c.messages[n-1]
		last.Blocks = append(slices.Clone(last.Blocks), m.Blocks...)
		return
	}
	c.messages, c.numbers = append(c.messages, m), append(c.numbers, number)
}

// tokens is about how many there are: what the model counted, and an estimate of what came since.
func (c *conversation) tokens() int64 {
	if c.context == 0 {
		return estimate(c.messages)
	}
	return c.context + estimate(c.messages[min(c.seen, len(c.messages)):])
}

// estimate takes four characters for a token, and an image for fifteen hundred.
func estimate(messages []model.Message) int64 {
	var n int64
	for _, m := range messages {
		for _, b := range m.Blocks {
			n += int64(len(b.Text)+len(b.Input)+len(b.Opaque)+len(b.Broken))/4 + 4
			if b.Kind == model.Image || b.Kind == model.File {
				n += 1500
			}
			n += int64(1500 * len(b.Parts))
		}
	}
	return n
}
