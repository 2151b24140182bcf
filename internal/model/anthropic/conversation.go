package anthropic

import (
	"strconv"
	"strings"
	"unicode"

	"omniagent/internal/model"
	"omniagent/internal/model/wire"
)

// conversation converts messages to the form that the API accepts: user and assistant alternate, each with content;
// every call of one is answered at the beginning of the next, and nothing else is answered.
func conversation(all []model.Message) []message {
	c := &order{used: map[string]bool{}}
	merged := merge(all)
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

// merge joins consecutive messages of the same role, and drops those without content.
func merge(all []model.Message) []model.Message {
	var out []model.Message
	for _, m := range all {
		if len(m.Blocks) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Blocks = append(out[n-1].Blocks[:len(out[n-1].Blocks):len(out[n-1].Blocks)], m.Blocks...)
			continue
		}
		out = append(out, m)
	}
	return out
}

// order arranges the messages.
type order struct {
	out     []message
	used    map[string]bool // ids of calls
	waiting []call          // those of the last message
}

// call is a call that waits for its result.
type call struct{ given, id string }

func (c *order) assistant(m model.Message, last bool) {
	found := map[string]bool{} // searches of the API's own that have their result
	for _, b := range m.Blocks {
		if k := opaqueOf(b); k.ToolUse != "" {
			found[k.ToolUse] = true
		}
	}
	var content []*block
	for _, b := range m.Blocks {
		s := assistantBlock(b)
		// Such a search goes on when its answer is sent back as the last message; elsewhere half of it would be an
		// error.
		if s == nil || s.Type == "server_tool_use" && !found[s.ID] && !last {
			continue
		}
		if s.Type == "tool_use" {
			s.ID = c.unique(b.ID)
			c.waiting = append(c.waiting, call{b.ID, s.ID})
		}
		content = append(content, s)
	}
	// the API takes no blanks at the end of a begun answer
	if n := len(content); last && n > 0 && content[n-1].Type == "text" {
		content[n-1].Text = strings.TrimRightFunc(content[n-1].Text, unicode.IsSpace)
	}
	c.add(model.Assistant, content)
}

// unique returns an id that the API accepts and that no other call has.
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

// orphan renders a result whose call is gone, as a text.
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
	if n := len(c.out); n > 0 && c.out[n-1].Role == role { // between them was one that had nothing to say
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
