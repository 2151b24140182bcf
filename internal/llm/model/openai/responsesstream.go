package openai

import (
	"bytes"
	"cmp"
	"encoding/json"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// responsesReader assembles an answer from the events of a stream.
type responsesReader struct {
	client *client
	b      *model.Builder
	a      model.Answer

	streamed map[any]bool // items whose text came in pieces
	items    bool         // an item came before the end
	refused  bool
	status   string // at the end
}

type responsesEvent struct {
	Type    wire.Word       `json:"type"`
	Index   *int            `json:"output_index"`
	ItemID  wire.Word       `json:"item_id"`
	Part    wire.Count      `json:"summary_index"`
	Delta   wire.Word       `json:"delta"`
	Whole   json.RawMessage `json:"arguments"`
	Item    *responsesItem  `json:"item"`
	Answer  *responsesWhole `json:"response"`
	Problem json.RawMessage `json:"error"`
}

type responsesWhole struct {
	ID         wire.Word         `json:"id"`
	Model      wire.Word         `json:"model"`
	Status     wire.Word         `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Usage      *responsesUsage   `json:"usage"`
	Incomplete struct {
		Reason wire.Word `json:"reason"`
	} `json:"incomplete_details"`
}

type responsesUsage struct {
	Input   wire.Count `json:"input_tokens"`
	Output  wire.Count `json:"output_tokens"`
	Details struct {
		Cached wire.Count `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Of struct {
		Reasoning wire.Count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// responsesItem is an item of the output.
type responsesItem struct {
	raw json.RawMessage

	Type      wire.Word       `json:"type"`
	ID        wire.Word       `json:"id"`
	CallID    wire.Word       `json:"call_id"`
	Name      wire.Word       `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Encrypted wire.Word       `json:"encrypted_content"`
	Summary   []responsesText `json:"summary"`
	Content   []responsesText `json:"content"`
	Phase     wire.Word       `json:"phase"`
	Action    responsesAction `json:"action"`
}

// responsesAction is what a search of the API did; its other types open a page, or look for a text in one.
type responsesAction struct {
	Type    wire.Word                 `json:"type"`
	Query   wire.Word                 `json:"query"`
	Sources []struct{ URL wire.Word } `json:"sources"`
}

type responsesText struct {
	Type    wire.Word `json:"type"`
	Text    wire.Word `json:"text"`
	Refusal wire.Word `json:"refusal"`
}

// UnmarshalJSON also keeps the raw item.
func (i *responsesItem) UnmarshalJSON(data []byte) error {
	type plain responsesItem
	if err := json.Unmarshal(data, (*plain)(i)); err != nil {
		return err
	}
	i.raw = bytes.Clone(data)
	return nil
}

func (r *responsesReader) event(e wire.Event) (bool, error) {
	data := bytes.TrimSpace(e.Data)
	// from servers that follow Chat Completions here; it does not replace the real end
	if string(data) == "[DONE]" {
		return false, nil
	}
	var it responsesEvent
	if err := json.Unmarshal(data, &it); err != nil {
		return false, wire.Garbage("an event of the answer cannot be read", err)
	}
	it.Type = cmp.Or(it.Type, wire.Word(e.Name))
	key := it.key()
	switch it.Type {
	case "error", "response.failed", "response.cancelled":
		r.about(it.Answer)
		return false, r.client.within(data)
	case "":
		if !wire.Absent(it.Problem) {
			return false, r.client.within(data)
		}
	case "response.created", "response.in_progress":
		r.about(it.Answer)
	case "response.output_item.added":
		r.place(key, it.Item)
	case "response.output_item.done":
		r.item(key, it.Item)
	case "response.output_text.delta":
		r.say(key, model.Text, string(it.Delta))
	case "response.refusal.delta":
		r.refused = true
		r.say(key, model.Text, string(it.Delta))
	case "response.reasoning_summary_part.added":
		if it.Part > 0 {
			r.say(key, model.Thinking, "\n\n")
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		r.say(key, model.Thinking, string(it.Delta))
	case "response.function_call_arguments.delta":
		r.b.Arguments(key, string(it.Delta))
	case "response.function_call_arguments.done":
		if whole := arguments(it.Whole); whole != "" {
			r.b.Input(key, json.RawMessage(whole))
		}
	case "response.completed", "response.incomplete", "response.done":
		return true, r.completed(it, data)
	}
	return false, nil
}

// key identifies the item of an event by its position in the output or, if the server omits that, by its id.
func (e responsesEvent) key() any {
	switch {
	case e.Index != nil:
		return *e.Index
	case e.ItemID != "":
		return string(e.ItemID)
	case e.Item != nil:
		return string(e.Item.ID)
	}
	return ""
}

func (r *responsesReader) about(w *responsesWhole) {
	if w == nil {
		return
	}
	r.a.ID = cmp.Or(string(w.ID), r.a.ID)
	r.a.Model = cmp.Or(string(w.Model), r.a.Model)
	if u := w.Usage; u != nil {
		cached := min(u.Details.Cached, u.Input)
		r.a.Usage.Input, r.a.Usage.CacheRead = int64(u.Input-cached), int64(cached)
		r.a.Usage.Output, r.a.Usage.Reasoning = int64(u.Output), int64(min(u.Of.Reasoning, u.Output))
	}
}

func (r *responsesReader) say(key any, kind model.Kind, text string) {
	if text == "" {
		return
	}
	if r.streamed == nil {
		r.streamed = map[any]bool{}
	}
	r.streamed[key] = true
	r.b.AddText(key, kind, text)
}

// place announces an item, so that it keeps its position.
func (r *responsesReader) place(key any, i *responsesItem) {
	if i == nil {
		return
	}
	r.items = true
	if i.Type == "function_call" {
		r.b.Call(key, string(i.CallID), string(i.Name))
	}
}

// item handles a complete item.
func (r *responsesReader) item(key any, i *responsesItem) {
	if i == nil {
		return
	}
	r.place(key, i)
	switch i.Type {
	case "function_call":
		if whole := arguments(i.Arguments); whole != "" {
			r.b.Input(key, json.RawMessage(whole))
		}
	case "message":
		said := r.streamed[key]
		for _, c := range i.Content {
			r.refused = r.refused || c.Refusal != ""
			if !said {
				r.say(key, model.Text, string(c.Text+c.Refusal))
			}
		}
		if i.Phase != "" && r.streamed[key] {
			phase, _ := json.Marshal(i.Phase)
			r.b.Opaque(key, model.Text, phase)
		}
	case "reasoning":
		if !r.streamed[key] {
			for n, s := range append(i.Summary, i.Content...) {
				if n > 0 {
					r.b.AddText(key, model.Thinking, "\n\n")
				}
				r.b.AddText(key, model.Thinking, string(s.Text))
			}
		}
		if i.Encrypted != "" { // otherwise the API would look for the item in its store
			r.b.Opaque(key, model.Thinking, i.back())
		}
	case "web_search_call":
		r.a.Usage.Searches++
		r.b.Opaque(key, model.Thinking, i.raw)
		if i.Action.Type == "search" || i.Action.Query != "" {
			s := model.Search{ID: string(i.ID), Query: string(i.Action.Query)}
			for _, source := range i.Action.Sources {
				s.Found = append(s.Found, string(source.URL))
			}
			r.b.Searched(s)
		}
	}
}

// back returns reasoning without the members that the API writes but does not accept.
func (i *responsesItem) back() json.RawMessage {
	type said struct {
		Type wire.Word `json:"type"`
		Text wire.Word `json:"text"`
	}
	summary := []said{}
	for _, s := range i.Summary {
		summary = append(summary, said{s.Type, s.Text})
	}
	raw, _ := json.Marshal(struct {
		Type      wire.Word `json:"type"`
		ID        wire.Word `json:"id,omitempty"`
		Summary   []said    `json:"summary"`
		Encrypted wire.Word `json:"encrypted_content"`
	}{i.Type, i.ID, summary, i.Encrypted})
	return raw
}

// completed handles the end, which repeats the output. Some servers send no other events about items.
func (r *responsesReader) completed(it responsesEvent, data []byte) error {
	r.status = "completed"
	if it.Type == "response.incomplete" {
		r.status = "incomplete"
	}
	w := it.Answer
	if w == nil {
		return nil
	}
	r.about(w)
	if w.Status == "failed" {
		return r.client.within(data)
	}
	if it.Type != "response.incomplete" {
		r.status = cmp.Or(string(w.Status), r.status)
	}
	if r.status == "incomplete" {
		r.a.Reason = string(w.Incomplete.Reason)
	}
	if r.items || r.b.Emitted() {
		return nil
	}
	for n, raw := range w.Output {
		var i responsesItem
		if err := json.Unmarshal(raw, &i); err != nil {
			return wire.Garbage("the answer cannot be read", err)
		}
		r.item(n, &i)
	}
	return nil
}

func (r *responsesReader) end(err error) (*model.Answer, error) {
	if r.status != "" && model.Ended(err) {
		err = nil
	}
	if err != nil {
		return nil, r.b.Failure(err, r.a.Usage)
	}
	r.a.Blocks = r.b.Blocks()
	r.a.Reason = cmp.Or(r.a.Reason, r.status)
	switch {
	case r.status == "incomplete" && r.a.Reason == "content_filter", r.refused && len(r.a.Calls()) == 0:
		r.a.Stop = model.Refused
		model.Unfinished(r.a.Blocks)
	case r.status == "incomplete":
		r.a.Stop = model.Length
		model.Unfinished(r.a.Blocks)
	case len(r.a.Calls()) > 0:
		r.a.Stop = model.Calls
	default:
		r.a.Stop = model.Done
	}
	return &r.a, nil
}
