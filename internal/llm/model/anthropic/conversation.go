package anthropic

import (
	"strconv"
	"strings"
	"unicode"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// conversation converts messages to the form that the API accepts: user and assistant alternate, each with content.
// Every call of a message has its result at the beginning of the next one, and there are no other results.
func conversation(all []model.Message) []message {
	c := &order{used: map[string]bool{}}
	merged := model.Joined(all)
	for i, m := range merged {
		if m.Role == model.Assistant {
			c.assistant(m, i == len(merged)-1)
		} else {
			c.user(m)
		}
	}
	if len(c.waiting) > 0 {
		c.user(model.Message{Role: model.User})
	}
	return c.out
}

// order arranges the messages.
type order struct {
	out     []message
	used    map[string]bool // ids of calls
	waiting []openCall      // calls of the last message
}

// openCall is a call that waits for its result.
type openCall struct{ given, id string }

func (c *order) assistant(m model.Message, last bool) {
	found := map[string]bool{} // the API's own searches that have a result
	for _, b := range m.Blocks {
		if k := opaqueOf(b); k.ToolUse != "" {
			found[k.ToolUse] = true
		}
	}
	var content []*block
	for _, b := range m.Blocks {
		s := assistantBlock(b)
		// A search without a result continues if it is in the last message. Elsewhere the API refuses it.
		if s == nil || s.Type == "server_tool_use" && !found[s.ID] && !last {
			continue
		}
		if s.Type == "tool_use" {
			s.ID = c.unique(b.ID)
			c.waiting = append(c.waiting, openCall{b.ID, s.ID})
		}
		content = append(content, s)
	}
	// the API refuses blanks at the end of a partial answer
	if n := len(content); last && n > 0 && content[n-1].Type == "text" {
		content[n-1].Text = strings.TrimRightFunc(content[n-1].Text, unicode.IsSpace)
	}
	c.add(model.Assistant, content)
}

// unique returns a valid id that no other call has.
func (c *order) unique(given string) string {
	id := wire.Identifier(given, 60)
	for n := 2; c.used[id]; n++ {
		id = wire.Identifier(given, 60) + "_" + strconv.Itoa(n)
	}
	c.used[id] = true
	return id
}

func (c *order) user(m model.Message) {
	results := make([]*block, len(c.waiting))
	var content []*block
	for _, b := range m.Blocks {
		if b.Kind != model.Result {
			if s := userBlock(b); s != nil {
				content = append(content, s)
			}
			continue
		}
		i := 0
		for i < len(c.waiting) && (c.waiting[i].given != b.ID || results[i] != nil) {
			i++
		}
		if i < len(c.waiting) {
			results[i] = result(b, c.waiting[i].id)
		} else {
			content = append(content, orphan(b)...)
		}
	}
	for i, r := range results {
		if r == nil {
			results[i] = result(model.Block{Failed: true, Text: "there is no result: the call was interrupted"},
				c.waiting[i].id)
		}
	}
	c.waiting = nil
	c.add(model.User, append(results, content...))
}

// orphan converts a result without its call to text.
func orphan(b model.Block) []*block {
	var out []*block
	if strings.TrimSpace(b.Text) != "" {
		out = append(out, &block{Type: "text", Text: "[result of an earlier call of " + wire.Identifier(b.Name, 128) +
			"]\n" +
			b.Text})
	}
	for _, p := range b.Parts {
		if s := userBlock(p); s != nil {
			out = append(out, s)
		}
	}
	return out
}

func (c *order) add(role model.Role, content []*block) {
	if len(content) == 0 {
		return
	}
	if n := len(c.out); n > 0 && c.out[n-1].Role == role { // there was an empty message between them
		c.out[n-1].blocks = append(c.out[n-1].blocks, content...)
		return
	}
	if len(c.out) == 0 && role == model.Assistant {
		c.out = append(c.out, message{
			Role:   model.User,
			blocks: []*block{{Type: "text", Text: "(The beginning of the conversation is not shown.)"}},
		})
	}
	c.out = append(c.out, message{Role: role, blocks: content})
}
