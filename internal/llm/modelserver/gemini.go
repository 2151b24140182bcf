package modelserver

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// parseGemini reads the body of generateContent and of streamGenerateContent. Which model and whether to stream is in
// the path.
func parseGemini(body []byte) (*Request, error) {
	var in struct {
		Contents []geminiContent `json:"contents"`
		System   *geminiContent  `json:"systemInstruction"`
		System2  *geminiContent  `json:"system_instruction"`
		Tools    []JSON          `json:"tools"`
		Config   struct {
			Schema     JSON `json:"responseSchema"`
			JSONSchema JSON `json:"responseJsonSchema"`
		} `json:"generationConfig"`
		ToolConfig struct {
			Calling struct {
				Mode    string   `json:"mode"`
				Allowed []string `json:"allowedFunctionNames"`
			} `json:"functionCallingConfig"`
		} `json:"toolConfig"`
	}
	if err := decode(body, "body", &in); err != nil {
		return nil, err
	}
	r := &Request{Schema: in.Config.Schema}
	if !absent(in.Config.JSONSchema) {
		r.Schema = in.Config.JSONSchema
	}
	for _, s := range []*geminiContent{in.System, in.System2} {
		if s != nil {
			r.System += s.text()
		}
	}
	for _, c := range in.Contents {
		c.addTo(r)
	}
	for _, t := range in.Tools {
		if err := addGeminiTools(r, t); err != nil {
			return nil, err
		}
	}
	if c := in.ToolConfig.Calling; c.Mode == "ANY" && len(c.Allowed) == 1 {
		r.Forced = c.Allowed[0]
	}
	return r, nil
}

// addGeminiTools reads one entry: functions, or tools that the model's side runs, by their names.
func addGeminiTools(r *Request, entry JSON) error {
	var members map[string]JSON
	if err := decode(entry, "tools", &members); err != nil {
		return err
	}
	for _, key := range sortedKeys(members) {
		if key != "functionDeclarations" && key != "function_declarations" {
			r.Tools = append(r.Tools, Tool{Name: key, Kind: key})
			continue
		}
		var functions []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Parameters  JSON   `json:"parameters"`
			JSONSchema  JSON   `json:"parametersJsonSchema"`
		}
		if err := decode(members[key], key, &functions); err != nil {
			return err
		}
		for _, f := range functions {
			schema := f.JSONSchema
			if absent(schema) {
				schema = f.Parameters
			}
			r.Tools = append(r.Tools, Tool{Name: f.Name, Kind: "function", Description: f.Description, Schema: schema})
		}
	}
	return nil
}

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text    string `json:"text"`
		Thought bool   `json:"thought"`
		Call    *struct {
			ID   string `json:"id"`
			Name string `json:"name"`
			Args JSON   `json:"args"`
		} `json:"functionCall"`
		Response *struct {
			ID       string `json:"id"`
			Name     string `json:"name"`
			Response JSON   `json:"response"`
		} `json:"functionResponse"`
		Data JSON `json:"inlineData"`
		File JSON `json:"fileData"`
	} `json:"parts"`
}

func (c geminiContent) text() string {
	texts := []string{}
	for _, p := range c.Parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (c geminiContent) addTo(r *Request) {
	role := User
	if c.Role == "model" {
		role = Assistant
	}
	blocks := []Block{}
	for _, p := range c.Parts {
		switch {
		case p.Call != nil:
			blocks = append(blocks, Block{Kind: Calling, ID: p.Call.ID, Name: p.Call.Name, Input: p.Call.Args})
		case p.Response != nil:
			blocks = append(blocks, responseBlock(p.Response.ID, p.Response.Name, p.Response.Response))
		case p.Thought:
			blocks = append(blocks, Block{Kind: Thinking, Text: p.Text})
		case !absent(p.Data) || !absent(p.File):
			blocks = append(blocks, Block{Kind: Image})
		default:
			blocks = append(blocks, Block{Kind: Text, Text: p.Text})
		}
	}
	r.add(role, blocks...)
}

// responseBlock reads what a function answered: by convention an object with output or error.
func responseBlock(id, name string, response JSON) Block {
	b := Block{Kind: Result, ID: id, Name: name, Text: string(response)}
	var known struct {
		Output JSON `json:"output"`
		Error  JSON `json:"error"`
	}
	if decode(response, "response", &known) != nil {
		return b
	}
	text := known.Output
	if absent(text) && !absent(known.Error) {
		text, b.Error = known.Error, true
	}
	if !absent(text) {
		b.Text = string(text)
		_ = decode(text, "output", &b.Text)
	}
	return b
}

// geminiEncoder writes answers of the Gemini API.
type geminiEncoder struct {
	usual
	r   *Request
	o   Options
	id  string
	any bool // the array of a stream without events has begun
}

func (e *geminiEncoder) contentType() string {
	if e.r.array {
		return "application/json; charset=UTF-8"
	}
	return "text/event-stream"
}

// frame is one event, or one element of the array.
func (e *geminiEncoder) frame(v JSON) []byte {
	if !e.r.array {
		return fmt.Appendf(nil, "data: %s\r\n\r\n", v)
	}
	before := ",\r\n"
	if !e.any {
		e.any, before = true, "["
	}
	return append([]byte(before), v...)
}

func (e *geminiEncoder) answer(parts []any, finish string, u *Usage) JSON {
	if e.id == "" {
		e.id = e.o.name("resp")
	}
	candidate := []any{"content", object("parts", parts, "role", "model")}
	if finish != "" {
		candidate = append(candidate, "finishReason", finish)
	}
	members := []any{"candidates", []any{object(append(candidate, "index", 0)...)}}
	if u != nil {
		in := u.Input + u.Cached
		usage := []any{"promptTokenCount", in, "candidatesTokenCount", u.Output, "totalTokenCount", in + u.Output}
		if u.Cached > 0 {
			usage = append(usage, "cachedContentTokenCount", u.Cached)
		}
		members = append(members, "usageMetadata", object(usage...))
	}
	return object(append(members, "modelVersion", e.r.Model, "responseId", e.id)...)
}

func (e *geminiEncoder) start() [][]byte        { return nil }
func (e *geminiEncoder) open(b *block) [][]byte { return nil }

func geminiPart(b *block, text string) JSON {
	switch b.kind {
	case Thinking:
		return object("text", text, "thought", true)
	case Calling:
		return object("functionCall", object("id", b.call.ID, "name", b.call.Name, "args", b.call.Input),
			"thoughtSignature", signature(true))
	}
	return object("text", text)
}

// delta writes texts as they come; a call comes whole, when it ends.
func (e *geminiEncoder) delta(b *block, piece string) [][]byte {
	if b.kind == Calling {
		return nil
	}
	return [][]byte{e.frame(e.answer([]any{geminiPart(b, piece)}, "", nil))}
}

func (e *geminiEncoder) shut(b *block) [][]byte {
	if b.kind != Calling {
		return nil
	}
	return [][]byte{e.frame(e.answer([]any{geminiPart(b, "")}, "", nil))}
}

// ending is the last element of a stream, or all of an answer: one that was stopped has a reason of its own, and one of
// which nothing may be seen has no candidate.
func (e *geminiEncoder) ending(parts []any, s *reply) JSON {
	switch {
	case !s.declines():
		return e.answer(parts, "STOP", &s.usage)
	case joined(s, declining) == "":
		return object("promptFeedback", object("blockReason", "PROHIBITED_CONTENT"), "modelVersion", e.r.Model)
	}
	return e.answer(parts, "SAFETY", &s.usage)
}

func (e *geminiEncoder) end(s *reply) [][]byte {
	return e.last(e.ending([]any{object("text", "")}, s))
}

// last is the end of a stream.
func (e *geminiEncoder) last(v JSON) [][]byte {
	out := [][]byte{e.frame(v)}
	if e.r.array {
		out = append(out, []byte("]"))
	}
	return out
}

func (e *geminiEncoder) whole(s *reply) []byte {
	parts := []any{}
	for _, b := range s.blocks {
		parts = append(parts, geminiPart(b, b.text.String()))
	}
	return e.ending(parts, s)
}

func (e *geminiEncoder) refuse(f Failure) []byte {
	status, _, message := f.wording(e.r.Model, "gemini")
	code := f.Status
	if f.ContextFull {
		code = http.StatusBadRequest
	}
	members := []any{"code", code, "message", message, "status", status}
	if f.RetryAfter > 0 {
		delay := strconv.FormatFloat(float64(f.RetryAfter)/float64(time.Second), 'f', -1, 64) + "s"
		members = append(members, "details",
			[]any{object("@type", "type.googleapis.com/google.rpc.RetryInfo", "retryDelay", delay)})
	}
	return object("error", object(members...))
}

func (e *geminiEncoder) fail(f Failure) [][]byte { return e.last(e.refuse(f)) }
