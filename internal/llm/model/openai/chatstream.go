package openai

import (
	"bytes"
	"cmp"
	"encoding/json"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// chatReader assembles an answer from the chunks of a stream.
type chatReader struct {
	client *client
	b      *model.Builder
	a      model.Answer

	started bool // there was a choice
	reason  string
	refused bool
	done    bool // [DONE]

	calls []*callState
}

// callState is the received part of a call.
type callState struct {
	index int
	id    string
}

type chatChunk struct {
	ID      wire.Word    `json:"id"`
	Model   wire.Word    `json:"model"`
	Object  wire.Word    `json:"object"`
	Choices []chatChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage"`

	Error json.RawMessage `json:"error"`
}

type chatChoice struct {
	Index  wire.Count `json:"index"`
	Delta  *chatDelta `json:"delta"`
	Whole  *chatDelta `json:"message"` // from servers that do not stream
	Finish wire.Word  `json:"finish_reason"`
}

type chatDelta struct {
	Content   json.RawMessage `json:"content"`
	Refusal   wire.Word       `json:"refusal"`
	Thought   json.RawMessage `json:"reasoning_content"`
	Reasoning json.RawMessage `json:"reasoning"`
	Calls     []chatFragment  `json:"tool_calls"`
	Call      *chatNamed      `json:"function_call"` // the older form, for a single call
}

type chatFragment struct {
	Index    *int      `json:"index"`
	ID       wire.Word `json:"id"`
	Function chatNamed `json:"function"`
}

type chatNamed struct {
	Name      wire.Word       `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type chatUsage struct {
	Prompt     wire.Count `json:"prompt_tokens"`
	Completion wire.Count `json:"completion_tokens"`
	Hit        wire.Count `json:"prompt_cache_hit_tokens"` // DeepSeek
	Details    struct {
		Cached wire.Count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Output struct {
		Reasoning wire.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (u chatUsage) usage() model.Usage {
	cached := min(max(u.Details.Cached, u.Hit), u.Prompt)
	return model.Usage{
		Input: int64(u.Prompt - cached), CacheRead: int64(cached), Output: int64(u.Completion),
		Reasoning: int64(min(u.Output.Reasoning, u.Completion)),
	}
}

func (r *chatReader) event(e wire.Event) (bool, error) {
	data := bytes.TrimSpace(e.Data)
	if string(data) == "[DONE]" {
		r.done = true
		return true, nil
	}
	if len(data) == 0 {
		return false, nil
	}
	var c chatChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, wire.Garbage("an event of the answer cannot be read", err)
	}
	if !wire.Absent(c.Error) || c.Object == "error" || e.Name == "error" {
		return false, r.client.within(data)
	}
	r.a.ID = cmp.Or(string(c.ID), r.a.ID)
	r.a.Model = cmp.Or(string(c.Model), r.a.Model)
	if c.Usage != nil {
		r.a.Usage = c.Usage.usage()
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 { // only one answer was requested
			continue
		}
		r.started = true
		for _, d := range []*chatDelta{choice.Delta, choice.Whole} {
			if d != nil {
				r.delta(d)
			}
		}
		r.reason = cmp.Or(string(choice.Finish), r.reason)
	}
	return false, nil
}

func (r *chatReader) delta(d *chatDelta) {
	text, thought := texts(d.Content)
	r.say(model.Thinking, thought)
	if thought == "" {
		member := "reasoning_content"
		if thought, _ = texts(d.Thought); thought == "" { // some servers send both, with the same content
			thought, _ = texts(d.Reasoning)
			member = "reasoning"
		}
		if thought != "" {
			r.say(model.Thinking, thought)
			name, _ := json.Marshal(member)
			r.b.Opaque(textKey, model.Thinking, name)
		}
	}
	r.say(model.Text, text)
	if d.Refusal != "" {
		r.refused = true
		r.say(model.Text, string(d.Refusal))
	}
	for _, f := range d.Calls {
		r.call(f)
	}
	if d.Call != nil {
		r.call(chatFragment{Index: new(0), Function: *d.Call})
	}
}

// say adds text or thinking. A change of the kind begins a new block.
func (r *chatReader) say(kind model.Kind, text string) {
	if text != "" {
		r.b.AddText(textKey, kind, text)
	}
}

// textKey is the key of everything except calls.
const textKey = "said"

// call adds to a call.
func (r *chatReader) call(f chatFragment) {
	k := r.callOf(f)
	if k == nil {
		k = &callState{index: -1}
		if f.Index != nil {
			k.index = *f.Index
		}
		r.calls = append(r.calls, k)
	}
	k.id = cmp.Or(k.id, string(f.ID))
	r.b.Call(k, k.id, string(f.Function.Name))
	r.b.Arguments(k, arguments(f.Function.Arguments))
}

// callOf finds the call of a fragment by its index, or returns nil for a new one. Some servers send no index, or the
// same one for every call; then each call is complete, with its own id and name.
func (r *chatReader) callOf(f chatFragment) *callState {
	another := func(k *callState) bool {
		return f.ID != "" && k.id != "" && k.id != string(f.ID) && f.Function.Name != ""
	}
	for i := len(r.calls) - 1; i >= 0; i-- {
		k := r.calls[i]
		switch {
		case f.Index != nil && k.index == *f.Index && !another(k):
			return k
		case f.Index == nil && f.ID != "" && k.id == string(f.ID):
			return k
		case f.Index == nil && f.ID == "" && f.Function.Name == "":
			return k
		}
	}
	return nil
}

// hasChoices reports whether a body is a whole answer of Chat Completions.
func hasChoices(body []byte) bool {
	var answer struct {
		Choices []json.RawMessage `json:"choices"`
	}
	return json.Unmarshal(body, &answer) == nil && len(answer.Choices) > 0
}

// end returns the answer. Compatible servers need not send [DONE]: an answer with a reason is complete, whatever
// happens to the connection.
func (r *chatReader) end(err error) (*model.Answer, error) {
	if r.reason != "" && model.Ended(err) {
		err = nil
	}
	if err == nil && r.done && !r.started {
		err = wire.Garbage("the answer ended before it began", nil)
	}
	if err != nil {
		return nil, r.b.Failure(err, r.a.Usage)
	}
	r.a.Blocks, r.a.Reason = r.b.Blocks(), r.reason
	switch r.reason {
	case "length", "model_length", "max_tokens":
		r.a.Stop = model.Length
		model.Unfinished(r.a.Blocks)
	case "content_filter":
		r.a.Stop = model.Refused
		model.Unfinished(r.a.Blocks)
	case "error", "insufficient_system_resource":
		return nil, r.b.Failure(&model.Error{
			Trouble: model.Overloaded, Code: r.reason, Message: "the API ended the answer early: " + r.reason,
		}, r.a.Usage)
	default: // some servers say stop when they wait for tools
		r.a.Stop = model.Done
		if len(r.a.Calls()) > 0 {
			r.a.Stop = model.Calls
		} else if r.refused {
			r.a.Stop = model.Refused
		}
	}
	return &r.a, nil
}
