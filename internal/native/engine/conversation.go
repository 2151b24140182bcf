package engine

import (
	"fmt"
	"slices"

	"omniagent/internal/llm/model"
	"omniagent/internal/talk/session"
)

// conversation is the message history in a form that every model accepts: each call has its result, and the first
// message is the user's.
type conversation struct {
	messages []model.Message
	numbers  []int64         // record of the journal in which each message begins; 0: unknown
	ids      map[string]bool // of calls
	number   int             // how many calls got an id from us
	context  int64           // tokens of the conversation in the last request; 0: unknown
	seen     int             // number of messages in context
}

func newConversation(history []model.Message, kept *session.Session) *conversation {
	c := &conversation{ids: map[string]bool{}}
	var numbers []int64
	if kept != nil {
		history = kept.Messages()
		numbers = numbered(kept.Visible())
	}
	if len(numbers) != len(history) { // a message was repaired, so their records are unknown
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

// numbered returns the record in which each message begins. Consecutive records of the same role are one message.
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

// named gives an id to each call that has none or repeats one.
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

// add appends a message. A message of the same role as the last one extends that one.
func (c *conversation) add(m model.Message, number int64) {
	if n := len(c.messages); n > 0 && c.messages[n-1].Role == m.Role {
		last := &c.messages[n-1]
		last.Blocks = append(slices.Clone(last.Blocks), m.Blocks...)
		return
	}
	c.messages, c.numbers = append(c.messages, m), append(c.numbers, number)
}

// tokens returns roughly how many tokens the conversation has: those that the model counted, and an estimate of the
// rest.
func (c *conversation) tokens() int64 {
	if c.context == 0 {
		return estimate(c.messages)
	}
	return c.context + estimate(c.messages[min(c.seen, len(c.messages)):])
}

// estimate counts four characters as a token, and an image as fifteen hundred tokens.
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
