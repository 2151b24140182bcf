package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/wire/jsonrpc"
)

// Result is the result of a call.
type Result struct {
	Text       string // the text, and a note for each part that is not text
	Structured json.RawMessage
	Images     []Image
	Failed     bool // the tool reports that it failed
}

// Image is a picture in a result.
type Image struct {
	Media string
	Data  []byte
}

// list requests the tools, page by page.
func (c *Conn) list(ctx context.Context) error {
	var tools []event.ToolSpec
	seen := map[string]bool{}
	cursor, cursors := "", map[string]bool{}
	for page := 1; ; page++ {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var answer struct {
			Tools []json.RawMessage `json:"tools"`
			Next  string            `json:"nextCursor"`
		}
		if err := c.call(ctx, "tools/list", params, &answer); err != nil {
			if refused, ok := err.(*jsonrpc.Error); ok && refused.Code == jsonrpc.MethodNotFound && page == 1 {
				return nil // it has no tools
			}
			return err
		}
		for _, raw := range answer.Tools {
			t, why := readTool(raw)
			if why == "" && seen[t.Name] {
				why = "there are two of that name"
			}
			if why != "" {
				c.log("its tool " + text.OneLine(t.Name, 60) + " is left out: " + why)
				continue
			}
			seen[t.Name] = true
			tools = append(tools, t)
		}
		cursor = answer.Next
		full := ""
		switch {
		case len(tools) > maxTools:
			full, tools = "it has more than "+strconv.Itoa(maxTools)+" tools", tools[:maxTools]
		case cursor != "" && cursors[cursor]:
			full = "its list of tools goes in a circle"
		case cursor != "" && page >= maxPages:
			full = "its list of tools has more than " + strconv.Itoa(maxPages) + " pages"
		}
		if full != "" {
			c.log(full + "; the rest is left out")
		}
		if full != "" || cursor == "" {
			c.tools = tools
			return nil
		}
		cursors[cursor] = true
	}
}

// readTool reads the description of a tool. why is not empty if it is invalid.
func readTool(raw json.RawMessage) (t event.ToolSpec, why string) {
	var d struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	err := json.Unmarshal(raw, &d)
	t.Name = d.Name
	switch {
	case err != nil:
		return t, "its description cannot be read"
	case d.Name == "":
		return t, "it has no name"
	case len(d.InputSchema) > maxSchema:
		return t, "the schema of its input is too long"
	}
	described, _ := text.Clean(d.Description)
	t.Description = text.Cut(strings.TrimSpace(described), maxDescribe)
	t.Input = json.RawMessage(`{"type":"object"}`)
	if len(d.InputSchema) == 0 || string(d.InputSchema) == "null" {
		return t, ""
	}
	var schema map[string]json.RawMessage
	if json.Unmarshal(d.InputSchema, &schema) != nil {
		return t, "the schema of its input is not an object"
	}
	switch string(schema["type"]) {
	case `"object"`:
	case "", "null": // model APIs require a schema
		schema["type"] = json.RawMessage(`"object"`)
	default:
		return t, "its input is not an object"
	}
	t.Input, err = json.Marshal(schema)
	if err != nil {
		return t, "the schema of its input cannot be written as JSON"
	}
	return t, ""
}

// Call calls a tool by the server's own name. A failed tool returns a Result; an error means that there is no result.
// progress may be nil; it is called before Call returns.
func (c *Conn) Call(ctx context.Context, name string, input json.RawMessage, progress func(string)) (Result, error) {
	if input = bytes.TrimSpace(input); len(input) == 0 {
		input = json.RawMessage("{}")
	}
	if input[0] != '{' || !json.Valid(input) {
		return Result{}, fault.New(fault.ArgError, "the input of %s is not a JSON object", name).
			Hint("Give the arguments as members of one object.")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.server.Call,
		slow{"did not finish " + text.OneLine(name, 60) + " within " + c.server.Call.String()})
	defer cancel()
	if progress == nil {
		progress = func(string) {}
	}
	var answer struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	err := c.callWith(ctx, "tools/call", map[string]any{"name": name, "arguments": input}, &answer, progress)
	if err != nil {
		return Result{}, c.faultOf(err)
	}
	r := Result{Failed: answer.IsError}
	if string(answer.Structured) != "null" {
		r.Structured = answer.Structured
	}
	var parts []string
	for _, raw := range answer.Content {
		part := r.add(raw)
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 && len(r.Structured) > 0 {
		parts = append(parts, string(r.Structured)) // servers should send it as text too, but some do not
	}
	r.Text = strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD")
	if len(r.Text) > maxText {
		whole := len(r.Text)
		r.Text = strings.TrimSuffix(text.Cut(r.Text, maxText), "…") +
			fmt.Sprintf("\n[the result has %d bytes; this is its beginning]", whole)
	}
	if len(r.Structured) > maxText {
		r.Structured = nil
	}
	return r, nil
}

// add adds one part of a result and returns its text.
func (r *Result) add(raw json.RawMessage) string {
	var p struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Data     string `json:"data"`
		MimeType string `json:"mimeType"`
		URI      string `json:"uri"`
		Name     string `json:"name"`
		Resource struct {
			URI      string  `json:"uri"`
			MimeType string  `json:"mimeType"`
			Text     *string `json:"text"`
			Blob     string  `json:"blob"`
		} `json:"resource"`
		Description string `json:"description"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return "[a part that cannot be read]"
	}
	switch p.Type {
	case "text":
		return p.Text
	case "image":
		return r.image(p.MimeType, p.Data, "an image")
	case "audio":
		return fmt.Sprintf("[audio, %s, %d bytes, which cannot be heard here]", text.OneLine(p.MimeType, 60),
			base64.StdEncoding.DecodedLen(len(p.Data)))
	case "resource_link":
		return strings.TrimSpace(fmt.Sprintf("[link to %s: %s %s]", text.OneLine(p.URI, 500), text.OneLine(p.Name, 200),
			text.OneLine(p.Description, 500)))
	case "resource":
		of := p.Resource
		switch {
		case of.Text != nil:
			return fmt.Sprintf("[%s]\n%s", text.OneLine(of.URI, 500), *of.Text)
		case strings.HasPrefix(of.MimeType, "image/"):
			return r.image(of.MimeType, of.Blob, text.OneLine(of.URI, 500))
		}
		return fmt.Sprintf("[%s, %s, %d bytes]", text.OneLine(of.URI, 500), text.OneLine(of.MimeType, 60),
			base64.StdEncoding.DecodedLen(len(of.Blob)))
	}
	return "[a part of the kind " + text.OneLine(p.Type, 60) + ", which is not known here]"
}

// image keeps an image if models accept its format. Otherwise it returns a note.
func (r *Result) image(media, data, what string) string {
	decoded, err := base64.StdEncoding.DecodeString(data)
	switch {
	case err != nil || len(decoded) == 0:
		return "[" + what + " that cannot be decoded]"
	case !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media):
		return "[" + what + " of the kind " + text.OneLine(media, 60) + ", which models do not see]"
	case len(r.Images) >= maxImages:
		return "[" + what + ", one too many]"
	}
	r.Images = append(r.Images, Image{Media: media, Data: decoded})
	return ""
}
