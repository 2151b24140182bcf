package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// reader reads the events of an answer.
type reader struct {
	api     *wire.API
	build   model.Builder
	open    map[int]*part
	queries map[string]string // of the API's own searches, by id
	id      string
	model   string
	usage   usage
	reason  string
}

// part is the state of a block, in addition to the builder's.
type part struct {
	kind      string
	begun     json.RawMessage // of a block that goes back unchanged
	arguments []byte          // of the API's own search
	input     json.RawMessage // a call's arguments in its first event
	some      bool            // there were arguments in later events
	signature string
	citations []json.RawMessage
}

// streamed is any event of a stream.
type streamed struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		ID    string `json:"id"`
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		JSON      string          `json:"partial_json"`
		Citation  json.RawMessage `json:"citation"`
		Stop      string          `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// usage is the API's usage. Its input excludes cached tokens, as in model.Usage.
type usage struct {
	Input  int64 `json:"input_tokens"`
	Write  int64 `json:"cache_creation_input_tokens"`
	Read   int64 `json:"cache_read_input_tokens"`
	Output int64 `json:"output_tokens"`
	Server struct {
		Searches int64 `json:"web_search_requests"`
	} `json:"server_tool_use"`
}

// UnmarshalJSON ignores counts in an unknown form, which must not spoil the answer.
func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	_ = json.Unmarshal(data, (*plain)(u))
	return nil
}

// later merges a later report. Each value in it is complete or missing.
func (u *usage) later(l usage) {
	u.Input, u.Write, u.Read = cmp.Or(l.Input, u.Input), cmp.Or(l.Write, u.Write), cmp.Or(l.Read, u.Read)
	u.Output, u.Server.Searches = cmp.Or(l.Output, u.Output), cmp.Or(l.Server.Searches, u.Server.Searches)
}

func (u usage) usage() model.Usage {
	return model.Usage{
		Input: u.Input, CacheRead: u.Read, CacheWrite: u.Write, Output: u.Output, Searches: u.Server.Searches,
	}
}

// event reads one event. It ignores unknown ones, as the API's documentation requires.
func (r *reader) event(w wire.Event) (done bool, err error) {
	var e streamed
	if err := json.Unmarshal(w.Data, &e); err != nil && e.Type != "error" {
		return false, wire.Garbage("an event of the answer is not the JSON that was expected: "+err.Error(), err)
	}
	switch cmp.Or(e.Type, w.Name) {
	case "message_start":
		r.id, r.model = e.Message.ID, e.Message.Model
		r.usage.later(e.Message.Usage)
	case "content_block_start":
		return false, r.begin(e.Index, e.Block)
	case "content_block_delta":
		r.delta(&e)
	case "content_block_stop":
		r.end(e.Index)
	case "message_delta":
		r.usage.later(e.Usage)
		r.reason = cmp.Or(e.Delta.Stop, r.reason)
	case "message_stop":
		return true, nil
	case "error":
		return false, r.api.Refused(http.StatusOK, nil, w.Data)
	}
	return false, nil
}

// part returns the block with an index. A block without a beginning gets its kind from its first piece.
func (r *reader) part(index int, kind string) *part {
	p := r.open[index]
	if p == nil {
		p = &part{kind: kind}
		r.open[index] = p
	}
	return p
}

func (r *reader) begin(index int, raw json.RawMessage) error {
	var b struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return wire.Garbage("a part of the answer is not what was expected: "+err.Error(), err)
	}
	p := &part{kind: b.Type, signature: b.Signature}
	r.open[index] = p
	switch {
	case b.Type == "text":
		r.build.AddText(index, model.Text, b.Text)
	case b.Type == "thinking":
		r.build.AddText(index, model.Thinking, b.Thinking)
	case b.Type == "tool_use":
		r.build.Call(index, b.ID, b.Name)
		p.input = b.Input
	case b.Type == "redacted_thinking":
		r.build.Opaque(index, model.Thinking, raw)
	case b.Type == "server_tool_use" || strings.HasSuffix(b.Type, "_tool_result"):
		p.begun = raw
		r.build.Opaque(index, model.Text, raw)
		if b.Type == "web_search_tool_result" {
			r.searched(raw)
		}
	}
	return nil
}

func (r *reader) delta(e *streamed) {
	switch e.Delta.Type {
	case "text_delta":
		r.part(e.Index, "text")
		r.build.AddText(e.Index, model.Text, e.Delta.Text)
	case "thinking_delta":
		r.part(e.Index, "thinking")
		r.build.AddText(e.Index, model.Thinking, e.Delta.Thinking)
	case "signature_delta":
		r.part(e.Index, "thinking").signature += e.Delta.Signature
	case "citations_delta":
		p := r.part(e.Index, "text")
		p.citations = append(p.citations, e.Delta.Citation)
	case "input_json_delta":
		switch p := r.part(e.Index, "tool_use"); p.kind {
		case "tool_use":
			p.some = p.some || strings.TrimSpace(e.Delta.JSON) != ""
			r.build.Arguments(e.Index, e.Delta.JSON)
		case "server_tool_use":
			p.arguments = append(p.arguments, e.Delta.JSON...)
		}
	}
}

// end passes a completed block to the builder.
func (r *reader) end(index int) {
	p := r.open[index]
	if p == nil {
		return
	}
	switch {
	case p.kind == "thinking" && p.signature != "":
		r.keep(index, model.Thinking, opaque{Signature: p.signature})
	case p.kind == "text" && len(p.citations) > 0:
		list, _ := json.Marshal(p.citations)
		r.keep(index, model.Text, opaque{Citations: list})
	case p.kind == "tool_use" && !p.some && len(p.input) > 0:
		r.build.Input(index, p.input)
	case p.kind == "server_tool_use" && json.Valid(p.arguments):
		var whole map[string]json.RawMessage
		if json.Unmarshal(p.begun, &whole) == nil {
			r.asks(whole["id"], p.arguments)
			whole["input"] = p.arguments
			data, _ := json.Marshal(whole)
			r.build.Opaque(index, model.Text, data)
		}
	}
	p.arguments, p.citations = nil, nil
}

// asks records the query of a search.
func (r *reader) asks(rawID, input json.RawMessage) {
	var id string
	var q struct{ Query string }
	if json.Unmarshal(rawID, &id) == nil && json.Unmarshal(input, &q) == nil && q.Query != "" {
		r.queries[id] = q.Query
	}
}

// searched reports a search that the API made.
func (r *reader) searched(raw json.RawMessage) {
	var found struct {
		ID      string `json:"tool_use_id"`
		Content json.RawMessage
	}
	if json.Unmarshal(raw, &found) != nil {
		return
	}
	s := model.Search{ID: found.ID, Query: r.queries[found.ID]}
	var pages []struct{ Title, URL string }
	var failed struct {
		Code string `json:"error_code"`
	}
	if json.Unmarshal(found.Content, &pages) == nil {
		for _, page := range pages {
			s.Found = append(s.Found, strings.TrimSpace(page.Title+" "+page.URL))
		}
	} else if json.Unmarshal(found.Content, &failed) == nil {
		s.Failed = failed.Code
	}
	r.build.Searched(s)
}

func (r *reader) keep(index int, kind model.Kind, k opaque) {
	data, _ := json.Marshal(k)
	r.build.Opaque(index, kind, data)
}

// failure returns err with the readable part of the answer. Opaque parts are worthless without the rest.
func (r *reader) failure(err error) error {
	err = r.build.Failure(err, r.usage.usage())
	if e, is := errors.AsType[*model.Error](err); is {
		e.Partial = slices.DeleteFunc(e.Partial, func(b model.Block) bool { return b.Text == "" })
	}
	return err
}

// answer returns the complete answer. The end of the stream also ends blocks without an end event.
func (r *reader) answer() (*model.Answer, error) {
	for index := range r.open {
		r.end(index)
	}
	a := &model.Answer{ID: r.id, Model: r.model, Blocks: r.build.Blocks(), Reason: r.reason, Usage: r.usage.usage()}
	calls := a.Calls()
	if slices.ContainsFunc(calls, func(b model.Block) bool { return b.Name == "" }) {
		return nil, wire.Garbage("the answer calls a tool without a name", nil)
	}
	a.Stop = stop(r.reason, len(calls) > 0)
	if a.Stop == model.Length || a.Stop == model.Full || a.Stop == model.Refused {
		model.Unfinished(a.Blocks)
	}
	return a, nil
}

func stop(reason string, calls bool) model.Stop {
	switch reason {
	case "max_tokens":
		return model.Length
	case "model_context_window_exceeded":
		return model.Full
	case "refusal":
		return model.Refused
	case "pause_turn":
		return model.Paused
	}
	if calls { // for any reason: some compatible servers say end_turn, or nothing
		return model.Calls
	}
	return model.Done
}
