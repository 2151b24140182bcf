package modelserver

import "fmt"

// parseChat reads the body of POST /v1/chat/completions.
func parseChat(body []byte) (*Request, error) {
	var in struct {
		Model   string `json:"model"`
		Stream  bool   `json:"stream"`
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []chatMessage `json:"messages"`
		Tools    []struct {
			Type     string `json:"type"`
			Function struct {
				Name        string `json:"name"`
				Description string `json:"description"`
				Parameters  JSON   `json:"parameters"`
			} `json:"function"`
			Custom struct {
				Name        string `json:"name"`
				Description string `json:"description"`
			} `json:"custom"`
		} `json:"tools"`
		Choice JSON `json:"tool_choice"`
		Format struct {
			JSON struct {
				Schema JSON `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := decode(body, "body", &in); err != nil {
		return nil, err
	}
	r := &Request{Model: in.Model, Stream: in.Stream, Schema: in.Format.JSON.Schema, usage: in.Options.Usage}
	for _, m := range in.Messages {
		if err := m.addTo(r); err != nil {
			return nil, err
		}
	}
	for _, t := range in.Tools {
		name, description := t.Function.Name, t.Function.Description
		if t.Type == "custom" {
			name, description = t.Custom.Name, t.Custom.Description
		}
		r.Tools = append(r.Tools, Tool{
			Name: name, Kind: t.Type, Description: description, Schema: t.Function.Parameters,
		})
	}
	var choice struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if decode(in.Choice, "tool_choice", &choice) == nil { // a word does not force a tool
		r.Forced = choice.Function.Name
	}
	return r, nil
}

type chatMessage struct {
	Role      string `json:"role"`
	Content   JSON   `json:"content"`
	Reasoning string `json:"reasoning_content"`
	Calls     []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
		Custom struct {
			Name  string `json:"name"`
			Input string `json:"input"`
		} `json:"custom"`
	} `json:"tool_calls"`
	CallID string `json:"tool_call_id"`
}

func (m chatMessage) addTo(r *Request) error {
	if m.Role == "tool" {
		text, err := plain(m.Content, "messages.content")
		if err != nil {
			return err
		}
		r.add(User, Block{Kind: Result, ID: m.CallID, Text: text})
		return nil
	}
	list, err := parts(m.Content, "messages.content")
	if err != nil {
		return err
	}
	blocks := []Block{}
	if m.Reasoning != "" {
		blocks = append(blocks, Block{Kind: Thinking, Text: m.Reasoning})
	}
	blocks = append(blocks, openAIBlocks(list)...)
	for _, c := range m.Calls {
		b := Block{Kind: Calling, ID: c.ID, Name: c.Function.Name, Input: jsonOrText(c.Function.Arguments)}
		if c.Custom.Name != "" {
			b.Name, b.Text, b.Input = c.Custom.Name, c.Custom.Input, nil
		}
		blocks = append(blocks, b)
	}
	r.add(m.Role, blocks...)
	return nil
}

// openAIBlocks reads the parts of a message as both APIs of OpenAI write them.
func openAIBlocks(list []part) []Block {
	blocks := []Block{}
	for _, p := range list {
		switch p.Type {
		case "text", "input_text", "output_text":
			blocks = append(blocks, Block{Kind: Text, Text: p.Text})
		case "refusal":
			blocks = append(blocks, Block{Kind: Text, Text: p.Refusal})
		default:
			blocks = append(blocks, Block{Kind: Image})
		}
	}
	return blocks
}

// chatEncoder writes answers of the Chat Completions API.
type chatEncoder struct {
	usual
	r  *Request
	o  Options
	id string
	at int64

	calls int // the index of the next call
}

func (e *chatEncoder) head(kind string) []any {
	if e.id == "" {
		e.id, e.at = e.o.name("chatcmpl"), e.o.now().Unix()
	}
	return []any{"id", e.id, "object", kind, "created", e.at, "model", e.r.Model}
}

func data(v JSON) []byte { return fmt.Appendf(nil, "data: %s\n\n", v) }

func (e *chatEncoder) chunk(delta JSON, finish any) []byte {
	choice := object("index", 0, "delta", delta, "logprobs", nil, "finish_reason", finish)
	members := append(e.head("chat.completion.chunk"), "choices", []any{choice})
	if e.r.usage {
		members = append(members, "usage", nil)
	}
	return data(object(members...))
}

func (e *chatEncoder) start() [][]byte {
	return [][]byte{e.chunk(object("role", "assistant", "content", "", "refusal", nil), nil)}
}

func (e *chatEncoder) open(b *block) [][]byte {
	if b.kind != Calling {
		return nil
	}
	c := chatCall(b.call, "", "index", e.calls)
	e.calls++
	return [][]byte{e.chunk(object("tool_calls", []any{c}), nil)}
}

// chatCall is a call: of a function with arguments, or of a custom tool with an input.
func chatCall(c Call, input string, members ...any) JSON {
	kind, member := "function", "arguments"
	if c.Kind == "custom" {
		kind, member = c.Kind, "input"
	}
	return object(append(members, "id", c.ID, "type", kind, kind, object("name", c.Name, member, input))...)
}

func (e *chatEncoder) delta(b *block, piece string) [][]byte {
	d := object("content", piece)
	switch {
	case b.kind == Thinking:
		d = object("reasoning_content", piece)
	case b.kind == declining:
		d = object("refusal", piece)
	case b.kind == Calling && b.call.Kind == "custom":
		d = object("tool_calls", []any{object("index", e.calls-1, "custom", object("input", piece))})
	case b.kind == Calling:
		d = object("tool_calls", []any{object("index", e.calls-1, "function", object("arguments", piece))})
	}
	return [][]byte{e.chunk(d, nil)}
}

func (e *chatEncoder) shut(*block) [][]byte { return nil }

func chatStop(s *reply) string {
	if s.calls() {
		return "tool_calls"
	}
	return "stop"
}

func chatUsage(u Usage) JSON {
	in := u.Input + u.Cached
	return object("prompt_tokens", in, "completion_tokens", u.Output, "total_tokens", in+u.Output,
		"prompt_tokens_details", object("cached_tokens", u.Cached), "completion_tokens_details",
		object("reasoning_tokens", 0))
}

func (e *chatEncoder) end(s *reply) [][]byte {
	out := [][]byte{e.chunk(object(), chatStop(s))}
	if e.r.usage {
		out = append(out,
			data(object(append(e.head("chat.completion.chunk"), "choices", []any{}, "usage", chatUsage(s.usage))...)))
	}
	return append(out, data(JSON("[DONE]")))
}

func (e *chatEncoder) whole(s *reply) []byte {
	message := []any{"role", "assistant", "content", any(nil), "refusal", nil}
	if text := joined(s, Text); text != "" || !s.calls() && !s.declines() {
		message[3] = text
	}
	if s.declines() {
		message[5] = joined(s, declining)
	}
	if thought := joined(s, Thinking); thought != "" {
		message = append(message, "reasoning_content", thought)
	}
	calls := []any{}
	for _, b := range s.blocks {
		if b.kind == Calling {
			calls = append(calls, chatCall(b.call, b.text.String()))
		}
	}
	if len(calls) > 0 {
		message = append(message, "tool_calls", calls)
	}
	choice := object("index", 0, "message", object(message...), "logprobs", nil, "finish_reason", chatStop(s))
	return object(append(e.head("chat.completion"), "choices", []any{choice}, "usage", chatUsage(s.usage))...)
}

func (e *chatEncoder) refuse(f Failure) []byte {
	return object("error", openAIError(f, e.r.Model, "chat", "messages"))
}

func (e *chatEncoder) fail(f Failure) [][]byte { return [][]byte{data(e.refuse(f))} }

// openAIError is the error object of both APIs of OpenAI; input is what the API calls that which is too long.
func openAIError(f Failure, model, api, input string) JSON {
	kind, code, message := f.wording(model, api, "openai")
	var param any
	if f.ContextFull {
		param = input
	}
	return object("message", message, "type", kind, "param", param, "code", code)
}
