package modelserver

import (
	"fmt"
	"strings"
)

// parseMessages reads the body of POST /v1/messages.
func parseMessages(body []byte) (*Request, error) {
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		System   JSON   `json:"system"`
		Messages []struct {
			Role    string `json:"role"`
			Content JSON   `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Type        string `json:"type"`
			Name        string `json:"name"`
			Description string `json:"description"`
			Schema      JSON   `json:"input_schema"`
		} `json:"tools"`
		Choice struct {
			Name string `json:"name"`
		} `json:"tool_choice"`
		Output struct {
			Format struct {
				Schema JSON `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
		Format struct {
			Schema JSON `json:"schema"`
		} `json:"output_format"`
	}
	if err := decode(body, "body", &in); err != nil {
		return nil, err
	}
	r := &Request{Model: in.Model, Stream: in.Stream, Forced: in.Choice.Name}
	var err error
	if r.System, err = plain(in.System, "system"); err != nil {
		return nil, err
	}
	for _, m := range in.Messages {
		blocks, err := messageBlocks(m.Content)
		if err != nil {
			return nil, err
		}
		r.add(m.Role, blocks...)
	}
	for _, t := range in.Tools {
		kind := t.Type
		if kind == "" || kind == "custom" { // what this API calls custom is a function
			kind = "function"
		}
		r.Tools = append(r.Tools, Tool{Name: t.Name, Kind: kind, Description: t.Description, Schema: t.Schema})
	}
	for _, s := range []JSON{in.Output.Format.Schema, in.Format.Schema} {
		if !absent(s) {
			r.Schema = s
		}
	}
	return r, nil
}

func messageBlocks(content JSON) ([]Block, error) {
	list, err := parts(content, "messages.content")
	if err != nil {
		return nil, err
	}
	out := []Block{}
	for _, p := range list {
		switch p.Type {
		case "text":
			out = append(out, Block{Kind: Text, Text: p.Text})
		case "thinking", "redacted_thinking":
			out = append(out, Block{Kind: Thinking, Text: p.Thinking})
		case "tool_use":
			out = append(out, Block{Kind: Calling, ID: p.ID, Name: p.Name, Input: p.Input})
		case "tool_result":
			text, err := plain(p.Content, "tool_result.content")
			if err != nil {
				return nil, err
			}
			out = append(out, Block{Kind: Result, ID: p.ToolUseID, Text: text, Error: p.IsError})
		default:
			out = append(out, Block{Kind: Image})
		}
	}
	return out, nil
}

// messagesEncoder writes answers of the Messages API.
type messagesEncoder struct {
	usual
	r *Request
	o Options
}

// named returns an event with its name, as Messages and Responses write it.
func named(name string, data JSON) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
}

func (e *messagesEncoder) event(name string, members ...any) []byte {
	return named(name, object(append([]any{"type", name}, members...)...))
}

func messagesUsage(u Usage) JSON {
	return object("input_tokens", u.Input, "cache_creation_input_tokens", 0, "cache_read_input_tokens", u.Cached,
		"output_tokens", u.Output)
}

func (e *messagesEncoder) message(content []any, stop any, u Usage) JSON {
	return object("id", e.o.name("msg"), "type", "message", "role", "assistant", "model", e.r.Model, "content", content,
		"stop_reason", stop, "stop_sequence", nil, "usage", messagesUsage(u))
}

func (e *messagesEncoder) start() [][]byte {
	first := e.message([]any{}, nil, Usage{Input: len(e.r.Raw)/4 + 1, Output: 1})
	return [][]byte{e.event("message_start", "message", first), e.event("ping")}
}

func (e *messagesEncoder) block(b *block, whole bool) JSON {
	text := ""
	if whole {
		text = b.text.String()
	}
	switch b.kind {
	case Thinking:
		return object("type", "thinking", "thinking", text, "signature", signature(whole))
	case Calling:
		input := JSON("{}")
		if whole {
			input = b.call.Input
		}
		return object("type", "tool_use", "id", b.call.ID, "name", b.call.Name, "input", input)
	default:
		return object("type", "text", "text", text)
	}
}

// signature returns a placeholder for the signature of a thought, which clients only send back.
func signature(whole bool) string {
	if whole {
		return "c2lnbmF0dXJl"
	}
	return ""
}

func (e *messagesEncoder) open(b *block) [][]byte {
	return [][]byte{e.event("content_block_start", "index", b.index, "content_block", e.block(b, false))}
}

func (e *messagesEncoder) delta(b *block, piece string) [][]byte {
	d := object("type", "text_delta", "text", piece)
	switch b.kind {
	case Thinking:
		d = object("type", "thinking_delta", "thinking", piece)
	case Calling:
		d = object("type", "input_json_delta", "partial_json", piece)
	}
	return [][]byte{e.event("content_block_delta", "index", b.index, "delta", d)}
}

func (e *messagesEncoder) shut(b *block) [][]byte {
	out := [][]byte{}
	if b.kind == Thinking {
		out = append(out, e.event("content_block_delta", "index", b.index, "delta",
			object("type", "signature_delta", "signature", signature(true))))
	}
	return append(out, e.event("content_block_stop", "index", b.index))
}

func messagesStop(s *reply) string {
	switch {
	case s.declines():
		return "refusal"
	case s.calls():
		return "tool_use"
	}
	return "end_turn"
}

func (e *messagesEncoder) end(s *reply) [][]byte {
	return [][]byte{
		e.event("message_delta", "delta", object("stop_reason", messagesStop(s), "stop_sequence", nil), "usage",
			messagesUsage(s.usage)),
		e.event("message_stop"),
	}
}

func (e *messagesEncoder) whole(s *reply) []byte {
	content := []any{}
	for _, b := range s.blocks {
		content = append(content, e.block(b, true))
	}
	return e.message(content, messagesStop(s), s.usage)
}

func (e *messagesEncoder) refuse(f Failure) []byte {
	kind, _, message := f.wording(e.r.Model, "messages")
	return object("type", "error", "error", object("type", kind, "message", message), "request_id", e.o.name("req"))
}

func (e *messagesEncoder) fail(f Failure) [][]byte {
	return [][]byte{named("error", e.refuse(f))}
}

// joined returns the text of all blocks of one kind.
func joined(s *reply, kind BlockKind) string {
	var b strings.Builder
	for _, x := range s.blocks {
		if x.kind == kind {
			b.WriteString(x.text.String())
		}
	}
	return b.String()
}
