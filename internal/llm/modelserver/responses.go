package modelserver

import (
	"cmp"
	"encoding/json"
	"strings"
)

// parseResponses reads the body of POST /v1/responses.
func parseResponses(body []byte) (*Request, error) {
	var in struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Instructions JSON            `json:"instructions"`
		Input        JSON            `json:"input"`
		Tools        []responsesTool `json:"tools"`
		Choice       JSON            `json:"tool_choice"`
		Text         struct {
			Format struct {
				Schema JSON `json:"schema"`
			} `json:"format"`
		} `json:"text"`
	}
	if err := decode(body, "body", &in); err != nil {
		return nil, err
	}
	r := &Request{Model: in.Model, Stream: in.Stream, Schema: in.Text.Format.Schema}
	var err error
	if r.System, err = plain(in.Instructions, "instructions"); err != nil {
		return nil, err
	}
	addTools(r, "", in.Tools, 0)
	var items []responsesItem
	switch input := strings.TrimSpace(string(in.Input)); {
	case input == "" || input == "null":
	case input[0] == '"':
		text, err := plain(in.Input, "input")
		if err != nil {
			return nil, err
		}
		r.add(User, Block{Kind: Text, Text: text})
	default:
		if err := decode(in.Input, "input", &items); err != nil {
			return nil, err
		}
	}
	for _, item := range items {
		if err := item.addTo(r); err != nil {
			return nil, err
		}
	}
	var choice struct {
		Name string `json:"name"`
	}
	if decode(in.Choice, "tool_choice", &choice) == nil { // a word does not force a tool
		r.Forced = choice.Name
	}
	return r, nil
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  JSON            `json:"parameters"`
	Tools       []responsesTool `json:"tools"`
}

// addTools flattens namespaces.
func addTools(r *Request, namespace string, tools []responsesTool, depth int) {
	for _, t := range tools {
		if t.Type == "namespace" && depth < 8 {
			addTools(r, t.Name, t.Tools, depth+1)
			continue
		}
		r.Tools = append(r.Tools, Tool{
			Name: cmp.Or(t.Name, t.Type), Namespace: namespace, Kind: t.Type, Description: t.Description,
			Schema: t.Parameters,
		})
	}
}

// responsesItem is one of the many items of an input.
type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   JSON            `json:"content"`
	Summary   JSON            `json:"summary"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments JSON            `json:"arguments"`
	Input     JSON            `json:"input"`
	Action    JSON            `json:"action"`
	Output    JSON            `json:"output"`
	Tools     []responsesTool `json:"tools"`
}

func (i responsesItem) addTo(r *Request) error {
	switch i.Type {
	case "message", "":
		return i.addMessage(r)
	case "additional_tools":
		addTools(r, "", i.Tools, 0)
	case "reasoning":
		text, err := plain(i.Summary, "summary")
		if err != nil {
			return err
		}
		r.add(Assistant, Block{Kind: Thinking, Text: text})
	case "function_call":
		var arguments string
		if err := decode(i.Arguments, "arguments", &arguments); err != nil {
			arguments = string(i.Arguments)
		}
		r.add(Assistant, Block{Kind: Calling, ID: i.CallID, Name: i.Name, Input: jsonOrText(arguments)})
	case "custom_tool_call":
		var input string
		if err := decode(i.Input, "input", &input); err != nil {
			return err
		}
		r.add(Assistant, Block{Kind: Calling, ID: i.CallID, Name: i.Name, Text: input})
	case "local_shell_call":
		r.add(Assistant, Block{Kind: Calling, ID: i.CallID, Name: "local_shell", Input: i.Action})
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		text, err := plain(i.Output, "output")
		if err != nil {
			text = string(i.Output)
		}
		r.add(User, Block{Kind: Result, ID: i.CallID, Text: text})
	case "web_search_call":
		r.add(Assistant, Block{Kind: searching})
	}
	return nil
}

func (i responsesItem) addMessage(r *Request) error {
	list, err := parts(i.Content, "input.content")
	if err != nil {
		return err
	}
	r.add(i.Role, openAIBlocks(list)...)
	return nil
}

// jsonOrText returns JSON unchanged, and anything else as a JSON string.
func jsonOrText(s string) JSON {
	if json.Valid([]byte(s)) {
		return JSON(s)
	}
	return encode(s)
}

// responsesEncoder writes answers of the Responses API.
type responsesEncoder struct {
	usual
	r   *Request
	o   Options
	id  string
	at  int64
	seq int
}

func (e *responsesEncoder) prefix(kind BlockKind) string {
	switch kind {
	case Thinking:
		return "rs"
	case Calling:
		return "fc"
	case searching:
		return "ws"
	}
	return "msg"
}

func (e *responsesEncoder) event(name string, members ...any) []byte {
	e.seq++
	return named(name, object(append([]any{"type", name, "sequence_number", e.seq - 1}, members...)...))
}

func (e *responsesEncoder) response(status string, output []any, problem, usage any) JSON {
	if e.id == "" {
		e.id, e.at = e.o.name("resp"), e.o.now().Unix()
	}
	return object("id", e.id, "object", "response", "created_at", e.at, "status", status, "background", false, "error",
		problem,
		"incomplete_details", nil, "instructions", nil, "model", e.r.Model, "output", output, "parallel_tool_calls",
		true,
		"previous_response_id", nil, "store", false, "tool_choice", "auto", "tools", []any{}, "usage", usage,
		"metadata", object())
}

func (e *responsesEncoder) start() [][]byte {
	r := e.response("in_progress", []any{}, nil, nil)
	return [][]byte{e.event("response.created", "response", r), e.event("response.in_progress", "response", r)}
}

// contentPart is the part of which a message consists.
func contentPart(b *block, text string) JSON {
	if b.kind == declining {
		return object("type", "refusal", "refusal", text)
	}
	return object("type", "output_text", "annotations", []any{}, "logprobs", []any{}, "text", text)
}

// item is a block as an item of the output, begun or completed.
func (e *responsesEncoder) item(b *block, whole bool) JSON {
	status, text := "in_progress", ""
	content := []any{}
	if whole {
		status, text = "completed", b.text.String()
		content = []any{contentPart(b, text)}
	}
	switch b.kind {
	case Thinking:
		if whole {
			content = []any{summaryText(text)}
		}
		return object("id", b.id, "type", "reasoning", "summary", content, "encrypted_content", signature(whole))
	case searching:
		return object("id", b.id, "type", "web_search_call", "status", status, "action",
			object("type", "search", "query", b.text.String()))
	case Calling:
		return callItem(b, status, text)
	}
	return object("id", b.id, "type", "message", "status", status, "role", "assistant", "content", content)
}

func callItem(b *block, status, input string) JSON {
	c, kind, member := b.call, "function_call", "arguments"
	switch c.Kind {
	case "local_shell":
		return object("id", b.id, "type", "local_shell_call", "status", status, "call_id", c.ID, "action", c.Input)
	case "custom":
		kind, member = "custom_tool_call", "input"
	}
	members := []any{"id", b.id, "type", kind, "status", status, "call_id", c.ID, "name", c.Name, member, input}
	if c.Namespace != "" {
		members = append(members, "namespace", c.Namespace)
	}
	return object(members...)
}

// about returns an event about an item.
func (e *responsesEncoder) about(b *block, name string, members ...any) []byte {
	return e.event(name, append([]any{"item_id", b.id, "output_index", b.index}, members...)...)
}

func summaryText(text string) JSON { return object("type", "summary_text", "text", text) }

func (e *responsesEncoder) open(b *block) [][]byte {
	out := [][]byte{e.event("response.output_item.added", "output_index", b.index, "item", e.item(b, false))}
	switch b.kind {
	case Text, declining:
		return append(out, e.about(b, "response.content_part.added", "content_index", 0, "part", contentPart(b, "")))
	case Thinking:
		return append(out,
			e.about(b, "response.reasoning_summary_part.added", "summary_index", 0, "part", summaryText("")))
	case searching:
		for _, state := range []string{"in_progress", "searching", "completed"} {
			out = append(out, e.event("response.web_search_call."+state, "output_index", b.index, "item_id", b.id))
		}
	}
	return out
}

// inputEvent is how the events of a call's input are called; empty for those that come in one piece.
func inputEvent(c Call) string {
	switch c.Kind {
	case "local_shell":
		return ""
	case "custom":
		return "response.custom_tool_call_input"
	}
	return "response.function_call_arguments"
}

func (e *responsesEncoder) delta(b *block, piece string) [][]byte {
	switch b.kind {
	case Thinking:
		return [][]byte{e.about(b, "response.reasoning_summary_text.delta", "summary_index", 0, "delta", piece)}
	case Calling:
		if name := inputEvent(b.call); name != "" {
			return [][]byte{e.about(b, name+".delta", "delta", piece)}
		}
		return nil
	case declining:
		return [][]byte{e.about(b, "response.refusal.delta", "content_index", 0, "delta", piece)}
	}
	return [][]byte{
		e.about(b, "response.output_text.delta", "content_index", 0, "delta", piece, "logprobs", []any{}),
	}
}

func (e *responsesEncoder) shut(b *block) [][]byte {
	var out [][]byte
	text := b.text.String()
	switch b.kind {
	case Text:
		out = append(out,
			e.about(b, "response.output_text.done", "content_index", 0, "text", text, "logprobs", []any{}),
			e.about(b, "response.content_part.done", "content_index", 0, "part", contentPart(b, text)))
	case declining:
		out = append(out, e.about(b, "response.refusal.done", "content_index", 0, "refusal", text),
			e.about(b, "response.content_part.done", "content_index", 0, "part", contentPart(b, text)))
	case Thinking:
		out = append(out,
			e.about(b, "response.reasoning_summary_text.done", "summary_index", 0, "text", text),
			e.about(b, "response.reasoning_summary_part.done", "summary_index", 0, "part", summaryText(text)))
	case Calling:
		if name := inputEvent(b.call); name != "" {
			member := "arguments"
			if b.call.Kind == "custom" {
				member = "input"
			}
			out = append(out, e.about(b, name+".done", member, text))
		}
	}
	return append(out, e.event("response.output_item.done", "output_index", b.index, "item", e.item(b, true)))
}

func responsesUsage(u Usage) JSON {
	in := u.Input + u.Cached
	return object("input_tokens", in, "input_tokens_details", object("cached_tokens", u.Cached), "output_tokens",
		u.Output,
		"output_tokens_details", object("reasoning_tokens", 0), "total_tokens", in+u.Output)
}

func (e *responsesEncoder) completed(s *reply) JSON {
	items := []any{}
	for _, b := range s.blocks {
		items = append(items, e.item(b, true))
	}
	return e.response("completed", items, nil, responsesUsage(s.usage))
}

func (e *responsesEncoder) end(s *reply) [][]byte {
	return [][]byte{e.event("response.completed", "response", e.completed(s))}
}

func (e *responsesEncoder) whole(s *reply) []byte { return e.completed(s) }

func (e *responsesEncoder) refuse(f Failure) []byte {
	return object("error", openAIError(f, e.r.Model, "responses", "input"))
}

// late: that a request is too long is only found out after the stream has begun.
func (e *responsesEncoder) late(f Failure) bool { return f.ContextFull }

func (e *responsesEncoder) fail(f Failure) [][]byte {
	whole := openAIError(f, e.r.Model, "responses", "input")
	var problem struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    string `json:"code"`
	}
	_ = decode(whole, "error", &problem)
	problem.Code = cmp.Or(problem.Code, problem.Type)
	return [][]byte{
		e.event("error", "error", whole),
		e.event("response.failed", "response",
			e.response("failed", []any{}, object("code", problem.Code, "message", problem.Message), nil)),
	}
}
