package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// reader assembles an answer from the events of a stream.
type reader struct {
	client *client
	b      *model.Builder
	a      model.Answer

	reason  string // why the answer ended
	message string // the API's message about that

	run      int            // the number of the current run of text or thoughts; each run has its own block
	kind     model.Kind     // of the run; if empty, the next text begins one
	queries  int            // the number of searches in the answer
	searches []model.Search // the searches that the API reports
}

type chunk struct {
	Candidates []candidate     `json:"candidates"`
	Usage      *usage          `json:"usageMetadata"`
	Model      wire.Word       `json:"modelVersion"`
	ID         wire.Word       `json:"responseId"`
	Error      json.RawMessage `json:"error"`
	Feedback   *struct {
		Reason  wire.Word `json:"blockReason"`
		Message wire.Word `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
}

type candidate struct {
	Index   wire.Count `json:"index"`
	Content *struct {
		Parts []json.RawMessage `json:"parts"`
	} `json:"content"`
	Finish    wire.Word `json:"finishReason"`
	Message   wire.Word `json:"finishMessage"`
	Grounding *struct {
		Queries []json.RawMessage `json:"webSearchQueries"`
		Chunks  []struct {
			Web struct {
				URI   wire.Word `json:"uri"`
				Title wire.Word `json:"title"`
			} `json:"web"`
		} `json:"groundingChunks"`
	} `json:"groundingMetadata"`
}

type usage struct {
	Prompt     wire.Count `json:"promptTokenCount"` // including cached tokens
	Cached     wire.Count `json:"cachedContentTokenCount"`
	Candidates wire.Count `json:"candidatesTokenCount"`
	Thoughts   wire.Count `json:"thoughtsTokenCount"`
	Tools      wire.Count `json:"toolUsePromptTokenCount"` // added to the prompt by the API's own tools
}

// piece is a part of an answer.
type piece struct {
	Text      *wire.Word `json:"text"`
	Thought   bool       `json:"thought"`
	Signature wire.Word  `json:"thoughtSignature"`
	Call      *struct {
		ID   wire.Word       `json:"id"`
		Name wire.Word       `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Server json.RawMessage `json:"toolCall"` // a call of one of the API's own tools
	Result json.RawMessage `json:"toolResponse"`
}

func (r *reader) event(e wire.Event) (bool, error) {
	data := bytes.TrimSpace(e.Data)
	if len(data) == 0 || string(data) == "[DONE]" {
		return false, nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, wire.Garbage("an event of the answer cannot be read", err)
	}
	if !wire.Absent(c.Error) {
		return false, r.client.within(data)
	}
	r.a.ID = cmp.Or(string(c.ID), r.a.ID)
	r.a.Model = cmp.Or(string(c.Model), r.a.Model)
	if c.Usage != nil {
		r.count(*c.Usage)
	}
	if c.Feedback != nil && c.Feedback.Reason != "" {
		// the prompt was blocked, so there is no answer
		r.reason, r.message = string(c.Feedback.Reason), string(c.Feedback.Message)
	}
	for _, one := range c.Candidates {
		if one.Index == 0 { // only one answer was requested
			if err := r.candidate(one); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

func (r *reader) candidate(c candidate) error {
	if c.Content != nil {
		for _, raw := range c.Content.Parts {
			if err := r.part(raw); err != nil {
				return err
			}
		}
	}
	if c.Grounding != nil {
		r.queries = max(r.queries, len(c.Grounding.Queries))
		r.grounded(c)
	}
	if c.Finish != "" && c.Finish != "FINISH_REASON_UNSPECIFIED" {
		r.reason, r.message = string(c.Finish), string(c.Message)
	}
	return nil
}

// asks records a search that is part of the answer.
func (r *reader) asks(raw json.RawMessage) {
	var call struct {
		ID   string
		Args struct{ Queries []string }
	}
	if json.Unmarshal(raw, &call) == nil && len(call.Args.Queries) > 0 {
		r.searches = append(r.searches, model.Search{ID: call.ID, Query: strings.Join(call.Args.Queries, "; ")})
	}
}

// grounded records the searches that the API reports, and repeats in each event.
func (r *reader) grounded(c candidate) {
	var found []string
	for _, chunk := range c.Grounding.Chunks {
		if line := strings.TrimSpace(string(chunk.Web.Title + " " + chunk.Web.URI)); line != "" {
			found = append(found, line)
		}
	}
	searches := make([]model.Search, 0, len(c.Grounding.Queries))
	for _, raw := range c.Grounding.Queries {
		var query string
		if json.Unmarshal(raw, &query) == nil {
			searches = append(searches, model.Search{Query: query})
		}
	}
	if n := len(searches); n > 0 {
		searches[n-1].Found = found // the API does not say which search found what
		r.searches = searches
	}
}

// count keeps the last values. Each event has totals, but not every event has all of them.
func (r *reader) count(u usage) {
	if u.Prompt+u.Tools > 0 {
		cached := min(u.Cached, u.Prompt)
		r.a.Usage.Input, r.a.Usage.CacheRead = int64(u.Prompt-cached+u.Tools), int64(cached)
	}
	if u.Candidates+u.Thoughts > 0 {
		r.a.Usage.Output, r.a.Usage.Reasoning = int64(u.Candidates+u.Thoughts), int64(u.Thoughts)
	}
}

func (r *reader) part(raw json.RawMessage) error {
	var p piece
	if wire.Absent(raw) {
		return nil
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return wire.Garbage("a part of the answer cannot be read", err)
	}
	switch {
	case p.Call != nil:
		key := r.begin("")
		r.b.Call(key, string(p.Call.ID), string(p.Call.Name))
		if !wire.Absent(p.Call.Args) {
			r.b.Input(key, p.Call.Args)
		}
		r.mark(key, model.Call, opaque{Signature: string(p.Signature)})
	case !wire.Absent(p.Server) || !wire.Absent(p.Result):
		if !wire.Absent(p.Server) {
			r.a.Usage.Searches++
			r.asks(p.Server)
		}
		r.mark(r.begin(""), model.Thinking, opaque{Part: raw})
	case p.Text != nil:
		r.text(p, raw)
	}
	return nil
}

// text adds text or thinking. A part with a signature stays a separate block, because the signature is for that part
// alone.
func (r *reader) text(p piece, raw json.RawMessage) {
	kind := model.Text
	if p.Thought {
		kind = model.Thinking
	}
	switch {
	case p.Signature == "":
		if *p.Text == "" {
			return
		}
		if r.kind != kind {
			r.begin(kind)
		}
		r.b.AddText(r.run, kind, string(*p.Text))
	case *p.Text == "": // only a signature, no text
		r.mark(r.begin(""), model.Thinking, opaque{Part: raw})
	default:
		key := r.begin("")
		r.b.AddText(key, kind, string(*p.Text))
		r.mark(key, kind, opaque{Signature: string(p.Signature)})
	}
}

// begin returns the key of a new block. Later text without a signature continues that block.
func (r *reader) begin(kind model.Kind) int {
	r.run++
	r.kind = kind
	return r.run
}

func (r *reader) mark(key int, kind model.Kind, k opaque) {
	if k.Signature == "" && k.Part == nil {
		return
	}
	if raw, err := text.JSON(k); err == nil { // keep the part byte for byte
		r.b.Opaque(key, kind, raw)
	}
}

// end returns the answer. The stream has no end mark, so the reason for the end of the answer serves as one. Only usage
// may follow it.
func (r *reader) end(err error) (*model.Answer, error) {
	if r.reason != "" && model.Ended(err) {
		err = nil
	}
	if err == nil {
		err = r.wrong()
	}
	if err != nil {
		return nil, r.b.Failure(err, r.a.Usage)
	}
	r.a.Blocks, r.a.Reason = r.b.Blocks(), r.reason
	r.a.Usage.Searches = max(r.a.Usage.Searches, int64(r.queries))
	for _, s := range r.searches {
		r.b.Searched(s)
	}
	switch r.reason {
	case "MAX_TOKENS":
		r.a.Stop = model.Length
	case "STOP":
		r.a.Stop = model.Done
		if len(r.a.Calls()) > 0 {
			r.a.Stop = model.Calls
		}
	default: // one of the filters, whose number grows
		r.a.Stop = model.Refused
	}
	return &r.a, nil
}

// wrong returns an error if the reason for the end is one, such as a call that the API could not parse. A retry may
// help.
func (r *reader) wrong() error {
	e := &model.Error{Code: r.reason, Message: "the API ended the answer: " + r.reason}
	if r.message != "" {
		e.Message += ": " + r.message
	}
	switch r.reason {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS":
		e.Trouble = model.Broken
	case "MISSING_THOUGHT_SIGNATURE":
		e.Trouble = model.Rejected
	default:
		return nil
	}
	return e
}
