package claude

import (
	"encoding/json"
	"strings"

	"omniagent/internal/core/event"
)

type rawMessage = json.RawMessage

// message is an answer in progress. Each block becomes a line. With Partial the pieces are written too, as a sequence
// that is always completed.
type message struct {
	id, parent, model string
	reason            string
	usage             Tokens
	partial           bool          // written in pieces
	index             int           // of the open block, or the next one
	kind              event.Kind    // of the open block
	whole             []event.Event // texts written in pieces, held back until the end of the answer is known
}

// message returns the open message of a parent, or a new one.
func (e *Encoder) message(parent string) *message {
	if m, found := e.open[parent]; found {
		return m
	}
	m := &message{
		id: "msg_" + strings.ReplaceAll(e.UUID(), "-", ""), parent: parent, model: e.facts.Model,
		partial: e.Partial && parent == "",
	}
	if e.open == nil {
		e.open = map[string]*message{}
	}
	e.open[parent] = m
	return m
}

// add returns the lines for a text or thinking, or a piece of one.
func (m *message) add(e *Encoder, ev event.Event) (lines [][]byte) {
	if m.reason != "" { // the previous answer has ended
		lines = e.shut(m.parent, false)
		m = e.message(m.parent)
	}
	if ev.Delta {
		if m.partial && ev.Text != "" {
			lines = append(lines, m.flush(e, false)...)
			lines = append(lines, m.piece(e, ev.Kind, ev.Text)...)
		}
		return lines
	}
	if ev.Text == "" {
		return lines
	}
	if ev.Synthetic { // its end follows, with the tokens
		m.whole = append(m.whole, ev)
		return lines
	}
	lines = append(lines, m.flush(e, false)...)
	return append(lines, m.block(e, ev, false)...)
}

// flush writes the whole texts that were held back.
func (m *message) flush(e *Encoder, aborted bool) (lines [][]byte) {
	for _, ev := range m.whole {
		lines = append(lines, m.block(e, ev, aborted)...)
	}
	m.whole = nil
	return lines
}

// block writes a whole text, which ends its pieces.
func (m *message) block(e *Encoder, ev event.Event, aborted bool) (lines [][]byte) {
	var block any = textBlock{"text", ev.Text}
	if ev.Kind == event.Thinking {
		block = thinkingBlock{"thinking", ev.Text, ""}
	} else if m.parent == "" {
		e.last = ev.Text
	}
	open := m.kind == ev.Kind
	if open {
		lines = m.sign(e)
	}
	lines = append(lines,
		e.line(messageLine{
			Type: "assistant", Parent: parent(m.parent), Message: m.line([]any{block}), Aborted: aborted,
		}))
	if open {
		m.kind = ""
		lines = append(lines, m.stop(e)...)
	}
	return lines
}

// sign ends the pieces of thinking.
func (m *message) sign(e *Encoder) [][]byte {
	if m.kind != event.Thinking {
		return nil
	}
	return [][]byte{m.streamEvent(e, piece{
		Type: "content_block_delta", Index: m.at(), Delta: delta{Type: "signature_delta", Signature: new("")},
	})}
}

// piece adds to the open block, or opens one.
func (m *message) piece(e *Encoder, kind event.Kind, text string) (lines [][]byte) {
	d := delta{Type: "text_delta", Text: &text}
	var block any = textBlock{"text", ""}
	if kind == event.Thinking {
		d, block = delta{Type: "thinking_delta", Thinking: &text}, thinkingBlock{"thinking", "", ""}
	}
	if m.kind != kind {
		lines = append(m.close(e), m.start(e)...)
		lines = append(lines, m.streamEvent(e, piece{Type: "content_block_start", Index: m.at(), Block: block}))
		m.kind = kind
	}
	return append(lines, m.streamEvent(e, piece{Type: "content_block_delta", Index: m.at(), Delta: d}))
}

// start begins the sequence of pieces.
func (m *message) start(e *Encoder) [][]byte {
	if m.index > 0 {
		return nil
	}
	return [][]byte{m.streamEvent(e, piece{Type: "message_start", Message: m.line([]any{})})}
}

// addCall returns a call as a block.
func (m *message) addCall(e *Encoder, c callBlock) [][]byte {
	lines := append(m.flush(e, false), m.close(e)...)
	if m.partial {
		lines = append(lines, m.start(e)...)
		lines = append(lines,
			m.streamEvent(e, piece{
				Type: "content_block_start", Index: m.at(),
				Block: callBlock{"tool_use", c.ID, c.Name, json.RawMessage("{}")},
			}))
		lines = append(lines,
			m.streamEvent(e, piece{
				Type: "content_block_delta", Index: m.at(),
				Delta: delta{Type: "input_json_delta", Partial: new(string(c.Input))},
			}))
	}
	lines = append(lines, e.line(messageLine{Type: "assistant", Parent: parent(m.parent), Message: m.line([]any{c})}))
	return append(lines, m.stop(e)...)
}

// close ends the open block. Its whole text comes later.
func (m *message) close(e *Encoder) [][]byte {
	if m.kind == "" {
		return nil
	}
	lines := m.sign(e)
	m.kind = ""
	return append(lines, m.stop(e)...)
}

// stop ends a block.
func (m *message) stop(e *Encoder) (lines [][]byte) {
	if m.partial {
		lines = append(lines, m.streamEvent(e, piece{Type: "content_block_stop", Index: m.at()}))
	}
	m.index++
	return lines
}

// shut ends the open message of a parent.
func (e *Encoder) shut(parent string, aborted bool) [][]byte {
	m, found := e.open[parent]
	if !found {
		return nil
	}
	delete(e.open, parent)
	lines := append(m.flush(e, aborted), m.close(e)...)
	if !m.partial || m.index == 0 {
		return lines
	}
	stop := stopDelta{}
	if m.reason != "" {
		stop.Reason = &m.reason
	}
	lines = append(lines, m.streamEvent(e, piece{Type: "message_delta", Delta: stop, Usage: new(m.usage)}))
	return append(lines, m.streamEvent(e, piece{Type: "message_stop"}))
}

func (m *message) at() *int { return new(m.index) }

func (m *message) line(content []any) *assistant {
	return &assistant{ID: m.id, Type: "message", Role: "assistant", Model: m.model, Content: content, Usage: m.usage}
}

func (m *message) streamEvent(e *Encoder, p piece) []byte {
	return encode(streamEvent{"stream_event", p, parent(m.parent), e.session, e.UUID()})
}
