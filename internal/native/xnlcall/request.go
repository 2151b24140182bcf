package xnlcall

import (
	"cmp"
	"slices"
	"strings"

	"omniagent/internal/kit/xnl"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
)

// failure is the prefix of the result of a failed call.
const failure = "tool_call error: "

// written returns a request in which tools, calls and results are text.
func written(q model.Request) model.Request {
	n := namesOf(q.Tools)
	if len(q.Tools) > 0 {
		q.System = slices.Clone(q.System)
		for _, d := range Documents(q.Tools) {
			q.System = append(q.System, d.Text)
		}
	}
	ids := idsOf(q.Messages)
	messages := make([]model.Message, len(q.Messages))
	for i, m := range q.Messages {
		if m.Role == model.Assistant {
			m.Blocks = n.said(m.Blocks)
		} else {
			m.Blocks = heard(m.Blocks, ids)
		}
		messages[i] = m
	}
	q.Tools, q.Messages = nil, messages
	return q
}

// idsOf returns the ids of the calls that were written as text: from the engine's id to the one that the model wrote.
func idsOf(messages []model.Message) map[string]string {
	ids := map[string]string{}
	for _, m := range messages {
		for _, b := range m.Blocks {
			if o, ok := originOf(b); ok {
				ids[b.ID] = o.ID
			}
		}
	}
	return ids
}

// said returns the blocks of an answer with calls as text, as the model wrote them.
func (n names) said(blocks []model.Block) (out []model.Block) {
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, model.Block{Kind: model.Text, Text: b.String()})
			b.Reset()
		}
	}
	for _, one := range blocks {
		switch one.Kind {
		case model.Text:
			b.WriteString(one.Text)
		case model.Call:
			if o, ok := originOf(one); ok {
				b.WriteString(o.Raw)
				continue
			}
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
				b.WriteByte('\n')
			}
			b.WriteString(n.block(one))
		default:
			flush()
			out = append(out, one)
		}
	}
	flush()
	return out
}

// block returns a native call of the API as the text that a model would write.
func (n names) block(c model.Block) string {
	name := c.Name
	for _, written := range n.list {
		if n.real[written] == c.Name {
			name = written
		}
	}
	if !strings.Contains(name, ".") {
		name = others + "." + identifier(name)
	}
	return blockWith(c.ID, name, cmp.Or(c.Broken, string(c.Input), "{}"))
}

// blockWith returns the text of a block with one call.
func blockWith(id, name, input string) string {
	node := &xnl.Node{
		Kind: xnl.Text, Tag: tag, Metadata: xnl.Object{{Key: "id", Value: id}, {Key: "lang", Value: "javascript"}},
		Text: "\n" + name + "(" + input + ")\n",
	}
	return unquoteStart + "\n" + xnl.Print(node, "") + "\n" + unquoteEnd + "\n"
}

// heard returns the blocks of a user's message for the model: first all results as one text, then the rest.
func heard(blocks []model.Block, ids map[string]string) []model.Block {
	var results, notes, rest []model.Block
	for _, b := range blocks {
		id, written := ids[b.ID]
		switch {
		case b.Kind != model.Result:
			rest = append(rest, b)
			continue
		case b.Name == tool.RejectedName && written && id == "": // the answer to a block, not to a call
			notes = append(notes, model.Block{Kind: model.Text, Text: failure + b.Text})
		default:
			if written {
				b.ID = id
			}
			results = append(results, b)
		}
		rest = append(rest, b.Parts...)
	}
	var out []model.Block
	if len(results) > 0 {
		out = append(out, model.Block{Kind: model.Text, Text: Results(results)})
	}
	return append(append(out, notes...), rest...)
}

// Results returns the results of tools as text, with one node for each.
func Results(results []model.Block) string {
	if len(results) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(unquoteStart + "\n")
	for _, r := range results {
		text := r.Text
		if r.Failed {
			text = failure + text
		}
		node := &xnl.Node{
			Kind: xnl.Text, Tag: "tool_resp", Metadata: xnl.Object{{Key: "id", Value: r.ID}}, Text: text,
			Marker: cmp.Or(r.ID, "r"),
		}
		b.WriteString(xnl.Print(node, "") + "\n")
	}
	return b.String() + unquoteEnd
}

// AsWritten returns a message in the form that the model wrote or got. earlier are the messages before it.
func AsWritten(m model.Message, earlier []model.Message) model.Message {
	all := written(model.Request{Messages: append(slices.Clone(earlier), m)}).Messages
	return all[len(all)-1]
}

// RawText returns the blocks of calls in an answer as the model wrote them, or "" if no call was written as text.
func RawText(m model.Message) string {
	var b strings.Builder
	for _, one := range m.Blocks {
		if o, ok := originOf(one); ok {
			b.WriteString(o.Raw)
		}
	}
	return b.String()
}

// ID returns the id of a call as the model wrote it.
func ID(call model.Block) string {
	o, _ := originOf(call)
	return cmp.Or(o.ID, call.ID)
}

// ResultTexts returns the text of the results in a message, and the problems of invalid blocks. Both are empty unless
// the calls were written as text. earlier are the messages before it.
func ResultTexts(m model.Message, earlier []model.Message) (results string, notes []string) {
	ids := idsOf(earlier)
	told := m
	told.Blocks = nil
	wrote := false
	for _, b := range m.Blocks {
		if b.Kind != model.Result {
			continue
		}
		_, written := ids[b.ID]
		wrote, b.Parts = wrote || written, nil
		told.Blocks = append(told.Blocks, b)
	}
	if !wrote {
		return "", nil
	}
	for _, b := range heard(told.Blocks, ids) {
		if strings.HasPrefix(b.Text, unquoteStart) {
			results = b.Text
			continue
		}
		notes = append(notes, b.Text)
	}
	return results, notes
}
