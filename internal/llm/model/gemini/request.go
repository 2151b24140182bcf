package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/llm/model"
)

type request struct {
	Contents []content   `json:"contents"`
	System   *content    `json:"systemInstruction,omitempty"`
	Tools    []tool      `json:"tools,omitempty"`
	Calling  *toolConfig `json:"toolConfig,omitempty"`
	Config   *config     `json:"generationConfig,omitempty"`
}

// counted is a request to count tokens.
type counted struct {
	Model string `json:"model"`
	request
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []any  `json:"parts"`
}

type part struct {
	Text      *string       `json:"text,omitempty"`
	Thought   bool          `json:"thought,omitempty"`
	Call      *functionCall `json:"functionCall,omitempty"`
	Response  *response     `json:"functionResponse,omitempty"`
	Inline    *inline       `json:"inlineData,omitempty"`
	Signature string        `json:"thoughtSignature,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type response struct {
	ID       string         `json:"id,omitempty"`
	Name     string         `json:"name"`
	Response functionOutput `json:"response"`
}

// functionOutput is the result of a function, with members that the API knows.
type functionOutput struct {
	Output *string `json:"output,omitempty"`
	Error  *string `json:"error,omitempty"`
}

type inline struct {
	Media string `json:"mimeType"`
	Data  []byte `json:"data"`
}

type tool struct {
	Functions []declared `json:"functionDeclarations,omitempty"`
	Search    *struct{}  `json:"google_search,omitempty"`
}

// declared is a function. It has the whole JSON schema; the older member parameters only supports part of it.
type declared struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type toolConfig struct {
	Server bool `json:"includeServerSideToolInvocations"`
}

type config struct {
	Thinking thinks `json:"thinkingConfig"`
}

type thinks struct {
	Thoughts bool `json:"includeThoughts"`
}

// opaque is the content of Opaque: the signature of a part, or a whole part that only the API understands.
type opaque struct {
	Signature string          `json:"signature,omitempty"`
	Part      json.RawMessage `json:"part,omitempty"`
}

// unmarked replaces the signature of a call by another model. Google documents it for imported conversations.
const unmarked = "skip_thought_signature_validator"

func (c *client) request(q model.Request) request {
	r := request{Contents: []content{}}
	if len(q.System) > 0 {
		r.System = &content{}
		for _, s := range q.System {
			if s != "" {
				r.System.Parts = append(r.System.Parts, words(s))
			}
		}
		if len(r.System.Parts) == 0 {
			r.System = nil
		}
	}
	names := callNames(q)
	for _, m := range q.Messages {
		said := content{Role: "user"}
		if m.Role == model.Assistant {
			said = content{Role: "model", Parts: c.assistant(m)}
		} else {
			said.Parts = user(m, names)
		}
		if len(said.Parts) > 0 {
			r.Contents = append(r.Contents, said)
		}
	}
	c.tools(&r, q)
	r.Config = c.config()
	return r
}

// config asks for the model's thoughts. A model that cannot think refuses the option.
func (c *client) config() *config {
	special := slices.ContainsFunc([]string{"image", "tts", "live", "audio", "embedding"},
		func(s string) bool { return strings.Contains(c.name, s) })
	if c.generation() < 2.5 || special {
		return nil
	}
	return &config{thinks{Thoughts: true}}
}

// tools offers the functions. The API's own search can be combined with functions only since Gemini 3, and only if its
// calls are included in the answer. Before that, functions take precedence.
func (c *client) tools(r *request, q model.Request) {
	var functions []declared
	for _, t := range q.Tools {
		functions = append(functions, declared{t.Name, t.Description, schema(t.Input)})
	}
	if len(functions) > 0 {
		r.Tools = append(r.Tools, tool{Functions: functions})
	}
	if !q.Search || !c.profile.Search || len(functions) > 0 && c.generation() < 3 {
		return
	}
	r.Tools = append(r.Tools, tool{Search: &struct{}{}})
	if len(functions) > 0 {
		r.Calling = &toolConfig{Server: true}
	}
}

// schema returns a tool's schema for the API, which does not accept $schema.
func schema(input json.RawMessage) json.RawMessage {
	if !bytes.Contains(input, []byte(`"$schema"`)) {
		return input
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return input
	}
	delete(members, "$schema")
	out, err := json.Marshal(members)
	if err != nil {
		return input
	}
	return out
}

func words(s string) part { return part{Text: &s} }

// callNames maps the ids of calls to names, because a result must name its function.
func callNames(q model.Request) map[string]string {
	names := map[string]string{}
	for _, m := range q.Messages {
		for _, b := range m.Blocks {
			if b.Kind == model.Call {
				names[b.ID] = b.Name
			}
		}
	}
	return names
}

// assistant converts a message of the model, with signatures on the parts that they came with.
func (c *client) assistant(m model.Message) []any {
	var parts []any
	first := true // there was no call before
	for _, b := range m.Blocks {
		var own opaque
		if b.Wire == wireName {
			_ = json.Unmarshal(b.Opaque, &own)
		}
		switch {
		case b.Kind == model.Text && b.Text != "":
			p := words(b.Text)
			p.Signature = own.Signature
			parts = append(parts, p)
		case b.Kind == model.Thinking && len(own.Part) > 0:
			parts = append(parts, own.Part)
		case b.Kind == model.Thinking && own.Signature != "":
			p := words(b.Text)
			p.Thought, p.Signature = true, own.Signature
			parts = append(parts, p)
		case b.Kind == model.Call:
			p := part{Call: &functionCall{b.ID, b.Name, args(b)}, Signature: own.Signature}
			if first && p.Signature == "" && c.generation() >= 3 {
				p.Signature = unmarked
			}
			first = false
			parts = append(parts, p)
		}
	}
	return parts
}

func args(b model.Block) json.RawMessage {
	if raw := bytes.TrimSpace(b.Input); len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
		return raw
	}
	return json.RawMessage("{}")
}

// user converts the results of functions, then their images, then the user's own blocks.
func user(m model.Message, names map[string]string) []any {
	var results, shown, said []any
	for _, b := range m.Blocks {
		if b.Kind != model.Result {
			if p, ok := media(b); ok {
				said = append(said, p)
			}
			continue
		}
		name := cmp.Or(b.Name, names[b.ID])
		a := functionOutput{Output: new(b.Text)}
		if b.Failed {
			a = functionOutput{Error: new(b.Text)}
		}
		results = append(results, part{Response: &response{b.ID, name, a}})
		for _, inner := range b.Parts {
			if p, ok := media(inner); ok {
				shown = append(shown, p)
			}
		}
	}
	return slices.Concat(results, shown, said)
}

// media converts a block of the user. It returns false if the block is empty.
func media(b model.Block) (part, bool) {
	switch b.Kind {
	case model.Image, model.File:
		known := []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf"}
		if slices.Contains(known, b.Media) && len(b.Data) > 0 {
			return part{Inline: &inline{b.Media, b.Data}}, true
		}
		return words(b.InWords()), true
	}
	return words(b.Text), b.Text != ""
}
