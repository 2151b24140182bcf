package openai

import (
	"context"
	"encoding/json"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// responsesWire is the value of Block.Wire for this API.
const responsesWire = "openai-responses"

// NewResponses returns a client of the Responses API.
func NewResponses(o Options) model.Client { return &responses{client: newClient(o)} }

type responses struct{ client }

type responsesRequest struct {
	Model        string              `json:"model"`
	Instructions string              `json:"instructions,omitempty"`
	Input        []any               `json:"input"` // items
	Tools        []responsesTool     `json:"tools,omitempty"`
	Stream       bool                `json:"stream"`
	Store        bool                `json:"store"`
	Include      []string            `json:"include,omitempty"`
	Reasoning    *responsesReasoning `json:"reasoning,omitempty"`
}

type responsesReasoning struct {
	Summary string `json:"summary"`
}

// responsesTool is a function, or a tool that the API runs itself, which has only a type.
type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

type responsesMessage struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content []responsesPart `json:"content"`
	Phase   string          `json:"phase,omitempty"` // set by the model: comment or answer
}

type responsesPart struct {
	Type  string  `json:"type"`
	Text  *string `json:"text,omitempty"`
	Image string  `json:"image_url,omitempty"`
	Name  string  `json:"filename,omitempty"`
	Data  string  `json:"file_data,omitempty"`
}

type responsesCall struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type responsesOutput struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"` // a string, or a list of responsesPart
}

// opaqueItem is an item that goes back in addition to text and calls: reasoning or a search.
type opaqueItem struct {
	item      json.RawMessage
	reasoning bool
}

func (k opaqueItem) MarshalJSON() ([]byte, error) { return k.item, nil }

// Ask sends one request.
func (c *responses) Ask(ctx context.Context, q model.Request, hear func(model.Piece)) (*model.Answer, error) {
	r := &responsesReader{client: &c.client, b: &model.Builder{Emit: hear, Wire: responsesWire}}
	err := c.api.Stream(ctx, "/responses"+c.query, c.request(q), r.event)
	a, err := r.end(err)
	if err != nil {
		return nil, err
	}
	a.Complete(q, "call_openai")
	return a, nil
}

func (c *responses) request(q model.Request) responsesRequest {
	r := responsesRequest{Model: c.model, Instructions: system(q), Input: []any{}, Stream: true}
	if reasons(c.model) {
		// Nothing is stored at the API, so the chain of thought has to be part of the conversation.
		r.Include = []string{"reasoning.encrypted_content"}
		r.Reasoning = &responsesReasoning{Summary: "auto"}
	}
	for _, m := range q.Messages {
		if m.Role == model.Assistant {
			r.Input = append(r.Input, responsesAssistant(m)...)
		} else {
			r.Input = append(r.Input, responsesUser(m)...)
		}
	}
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, responsesTool{
			Type: "function", Name: t.Name, Description: t.Description, Parameters: schema(t.Input),
			Strict: new(false), // otherwise the API requires every member of a tool's input
		})
	}
	if q.Search && c.profile.Search {
		r.Tools = append(r.Tools, responsesTool{Type: "web_search"})
	}
	return r
}

// responsesAssistant converts a message of the model, in order.
func responsesAssistant(m model.Message) []any {
	var items []any
	for _, b := range m.Blocks {
		own := b.Wire == responsesWire && json.Valid(b.Opaque)
		switch {
		case b.Kind == model.Text && b.Text != "":
			said := responsesMessage{
				Type: "message", Role: "assistant", Content: []responsesPart{textPart("output_text", b.Text)},
			}
			if own {
				_ = json.Unmarshal(b.Opaque, &said.Phase)
			}
			items = append(items, said)
		case b.Kind == model.Thinking && own:
			var kind struct {
				Type wire.Word `json:"type"`
			}
			_ = json.Unmarshal(b.Opaque, &kind)
			items = append(items, opaqueItem{b.Opaque, kind.Type == "reasoning"})
		case b.Kind == model.Call:
			items = append(items, responsesCall{
				Type: "function_call", CallID: b.ID, Name: wire.Identifier(b.Name, 64), Arguments: input(b),
			})
		}
	}
	// The API refuses reasoning that nothing follows, as at the end of an answer that was cut off.
	for n := len(items) - 1; n >= 0; n-- {
		if kept, ok := items[n].(opaqueItem); !ok || !kept.reasoning {
			break
		}
		items = items[:n]
	}
	return items
}

func textPart(kind, text string) responsesPart { return responsesPart{Type: kind, Text: &text} }

// responsesUser converts the results of tools, and then the user's own blocks.
func responsesUser(m model.Message) []any {
	var items []any
	said := responsesMessage{Type: "message", Role: "user"}
	for _, b := range m.Blocks {
		switch {
		case b.Kind == model.Result:
			items = append(items, responsesOutput{
				Type: "function_call_output", CallID: b.ID, Output: responsesResult(b),
			})
		case b.Kind != model.Text || b.Text != "":
			said.Content = append(said.Content, responsesContent(b))
		}
	}
	if len(said.Content) > 0 {
		items = append(items, said)
	}
	return items
}

func responsesResult(b model.Block) any {
	if len(b.Parts) == 0 {
		return b.Text
	}
	var parts []responsesPart
	if b.Text != "" {
		parts = append(parts, textPart("input_text", b.Text))
	}
	for _, p := range b.Parts {
		parts = append(parts, responsesContent(p))
	}
	return parts
}

func responsesContent(b model.Block) responsesPart {
	switch {
	case b.Kind == model.Image && picture(b):
		return responsesPart{Type: "input_image", Image: dataURL(b)}
	case b.Kind == model.File && b.Media == "application/pdf" && len(b.Data) > 0:
		return responsesPart{Type: "input_file", Name: fileName(b), Data: dataURL(b)}
	case b.Kind == model.Image, b.Kind == model.File:
		return textPart("input_text", b.InWords())
	}
	return textPart("input_text", b.Text)
}
