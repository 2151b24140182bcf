package claude

import (
	"encoding/json"
	"strings"

	"omniagent/internal/event"
)

type rawMessage = json.RawMessage

// message is an answer that is being told. Its blocks are lines of their own; with Partial they are told in pieces as well, of which each
// message is a whole sequence whatever happens.
type message struct {
	id, parent, model string
	reason            string
	usage             tokens
	partial           bool // told in pieces
	index             int  // of the block that is open, or the next
	kind              event.Kind
	text              strings.Builder // of the block that is open, which kind names
}

// message is the one that is being told there, or a new one.
func (e *Encoder) message(parent string) *message {
	if m, found := e.open[parent]; found {
		return m
	}
	m := &message{id: "msg_" + strings.ReplaceAll(e.UUID(), "-", ""), parent: parent, model: e.facts.Model, partial: e.Partial && parent == ""}
	if e.open == nil {
		e.open = map[string]*message{}
	}
	e.open[parent] = m
	return m
}

// add is a piece of text or thinking, or the whole of it.
func (m *message) add(e *Encoder, ev event.Event) (lines [][]byte) {
	if m.reason != "" { // that answer has ended
		lines = e.shut(m.parent, false)
		m = e.message(m.parent)
	}
	if ev.Text == "" {
		if !ev.Delta && m.kind == ev.Kind { // there is no more of it
			lines = append(lines, m.flush(e, false)...)
		}
		return lines
	}
	if m.kind != "" && m.kind != ev.Kind {
		lines = append(lines, m.flush(e, false)...)
	}
	text := ev.Text
	if !ev.Delta && m.kind == ev.Kind {
		// The whole, behind its pieces. What they did not say is told as one more.
		rest, goesOn := strings.CutPrefix(text, m.text.String())
		if !goesOn {
			lines = append(lines, m.flush(e, false)...)
		} else {
			text = rest
		}
	}
	if text != "" {
		lines = append(lines, m.piece(e, ev.Kind, text)...)
	}
	if !ev.Delta {
		lines = append(lines, m.flush(e, false)...)
	}
	return lines
}

// piece adds to the block that is open, or opens one.
func (m *message) piece(e *Encoder, kind event.Kind, text string) (lines [][]byte) {
	opened := m.kind == ""
	m.kind = kind
	m.text.WriteString(text)
	if !m.partial {
		return nil
	}
	d := delta{Type: "text_delta", Text: &text}
	var block any = textBlock{"text", ""}
	if kind == event.Thinking {
		d, block = delta{Type: "thinking_delta", Thinking: &text}, thinkingBlock{"thinking", "", ""}
	}
	if opened {
		lines = append(m.start(e), m.told(e, piece{Type: "content_block_start", Index: m.at(), Block: block}))
	}
	return append(lines, m.told(e, piece{Type: "content_block_delta", Index: m.at(), Delta: d}))
}

// start is the beginning of the sequence of pieces.
func (m *message) start(e *Encoder) [][]byte {
	if m.index > 0 {
		return nil
	}
	return [][]byte{m.told(e, piece{Type: "message_start", Message: m.line([]any{})})}
}

// flush tells the block that is open as a whole, and closes it.
func (m *message) flush(e *Encoder, aborted bool) (lines [][]byte) {
	if m.kind == "" {
		return nil
	}
	text := m.text.String()
	var block any = textBlock{"text", text}
	if m.kind == event.Thinking {
		block = thinkingBlock{"thinking", text, ""}
		if m.partial {
			none := ""
			lines = append(lines, m.told(e, piece{Type: "content_block_delta", Index: m.at(), Delta: delta{Type: "signature_delta", Signature: &none}}))
		}
	} else if m.parent == "" {
		e.last = text
	}
	lines = append(lines, e.line(said{Type: "assistant", Parent: parent(m.parent), Message: m.line([]any{block}), Aborted: aborted}))
	lines = append(lines, m.close(e)...)
	m.kind = ""
	m.text.Reset()
	return lines
}

// addCall is a call as a block.
func (m *message) addCall(e *Encoder, c callBlock) [][]byte {
	lines := m.flush(e, false)
	if m.partial {
		input := string(c.Input)
		lines = append(lines, m.start(e)...)
		lines = append(lines, m.told(e, piece{Type: "content_block_start", Index: m.at(), Block: callBlock{"tool_use", c.ID, c.Name, json.RawMessage("{}")}}))
		lines = append(lines, m.told(e, piece{Type: "content_block_delta", Index: m.at(), Delta: delta{Type: "input_json_delta", Partial: &input}}))
	}
	lines = append(lines, e.line(said{Type: "assistant", Parent: parent(m.parent), Message: m.line([]any{c})}))
	return append(lines, m.close(e)...)
}

// close ends the block.
func (m *message) close(e *Encoder) (lines [][]byte) {
	if m.partial {
		lines = append(lines, m.told(e, piece{Type: "content_block_stop", Index: m.at()}))
	}
	m.index++
	return lines
}

// shut ends the message that is being told there, if one is.
func (e *Encoder) shut(parent string, aborted bool) [][]byte {
	m, found := e.open[parent]
	if !found {
		return nil
	}
	delete(e.open, parent)
	lines := m.flush(e, aborted)
	if !m.partial || m.index == 0 {
		return lines
	}
	stop := stopDelta{}
	if m.reason != "" {
		stop.Reason = &m.reason
	}
	usage := m.usage
	lines = append(lines, m.told(e, piece{Type: "message_delta", Delta: stop, Usage: &usage}))
	return append(lines, m.told(e, piece{Type: "message_stop"}))
}

func (m *message) at() *int {
	i := m.index
	return &i
}

func (m *message) line(content []any) *assistant {
	return &assistant{ID: m.id, Type: "message", Role: "assistant", Model: m.model, Content: content, Usage: m.usage}
}

func (m *message) told(e *Encoder, p piece) []byte {
	return encode(streamEvent{"stream_event", p, parent(m.parent), e.session, e.UUID()})
}
