package session

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/sys/workspace"
)

// mostHistory is the largest history file that is read.
const mostHistory = 256 << 20

// ReadHistory reads a conversation from elsewhere, to continue it here. It reads
//
//   - an array of messages {role, content, tool_calls, tool_call_id}, or such messages one after the other;
//   - an object with such an array as its history, as in our projections;
//   - a transcript of Claude Code: objects {type, message{role, content}}, one after the other, from the last
//     compaction on;
//   - one of our journals.
//
// It leaves out a model's thinking, because only that model can use it, and system messages, because we have our own.
// The result is consistent: each call has one result. An error names the file, the position and the reason.
func ReadHistory(file string) ([]model.Message, error) {
	data, err := workspace.ReadFile(file, mostHistory)
	if err != nil {
		return nil, err
	}
	if h, ok := parseHead(data[:min(len(data), peek)]); ok && h.number > 0 {
		return journalHistory(file)
	}
	messages, err := parseHistory(data)
	if err != nil {
		return nil, fault.New(fault.InvalidJSON, "%s does not contain a history: %v", file, err).With("path", file).
			Hint("give a JSON array of {role, content} messages, a session file or a transcript")
	}
	return messages, nil
}

func journalHistory(file string) ([]model.Message, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, unreadable(file, err)
	}
	defer f.Close()
	v, err := viewOf(f, blobs(strings.TrimSuffix(file, journalEnding)+blobsEnding))
	if err != nil {
		return nil, unreadable(file, err)
	}
	return v.Messages(), nil
}

// foreignMessage is an object of a history in any of the forms.
type foreignMessage struct {
	Role    string            `json:"role"`
	Content json.RawMessage   `json:"content"`
	Calls   []foreignCall     `json:"tool_calls"`
	CallID  string            `json:"tool_call_id"`
	History []json.RawMessage `json:"history"`

	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	Message   json.RawMessage `json:"message"`
	Sidechain bool            `json:"isSidechain"` // from a sub-agent
	Meta      bool            `json:"isMeta"`      // written by the program itself
}

type foreignCall struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type foreignBlock struct {
	Type   string          `json:"type"`
	Text   string          `json:"text"`
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Title  string          `json:"title"`
	Input  json.RawMessage `json:"input"`
	CallID string          `json:"tool_use_id"`
	Inner  json.RawMessage `json:"content"`
	Failed bool            `json:"is_error"`
	Source struct {
		Type  string `json:"type"`
		Media string `json:"media_type"`
		Data  string `json:"data"`
	} `json:"source"`
	URL json.RawMessage `json:"image_url"`
}

// historian collects messages.
type historian struct {
	messages []model.Message
	names    map[string]string // names of tools, by call
}

func parseHistory(data []byte) ([]model.Message, error) {
	h := &historian{names: map[string]string{}}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	decoder := json.NewDecoder(bytes.NewReader(data))
	for n := 0; ; n++ {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", lineAt(data, brokenAt(data, decoder.InputOffset(), err)), err)
		}
		start := decoder.InputOffset() - int64(len(value))
		alone := n == 0 && len(bytes.TrimSpace(data[decoder.InputOffset():])) == 0
		if err := h.value(value, alone); err != nil {
			return nil, fmt.Errorf("line %d: %w", lineAt(data, start), err)
		}
	}
	messages := consistent(h.messages)
	if len(messages) == 0 {
		return nil, errors.New("it has no messages")
	}
	return messages, nil
}

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:max(0, min(offset, int64(len(data))))], []byte{'\n'})
}

// brokenAt returns the offset of a JSON error: the one in err, or the start of a value that never ends.
func brokenAt(data []byte, offset int64, err error) int64 {
	if syntax, is := errors.AsType[*json.SyntaxError](err); is {
		return syntax.Offset - 1
	}
	rest := data[offset:]
	return offset + int64(len(rest)-len(bytes.TrimLeft(rest, " \t\r\n")))
}

// value reads one value of the file: an array, a session, or a message. alone means that it is the only value.
func (h *historian) value(value json.RawMessage, alone bool) error {
	switch value[0] {
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return err
		}
		return h.list(list)
	case '{':
		var f foreignMessage
		if err := json.Unmarshal(value, &f); err != nil {
			return fault.InJSON(err)
		}
		if f.History != nil && f.Role == "" && f.Type == "" && alone {
			return h.list(f.History)
		}
		return h.object(f)
	}
	return errors.New("neither a message nor a list of messages")
}

func (h *historian) list(list []json.RawMessage) error {
	for i, value := range list {
		var f foreignMessage
		err := fault.InJSON(json.Unmarshal(value, &f))
		if err == nil {
			err = h.object(f)
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	return nil
}

// object reads a message, or a line of a transcript.
func (h *historian) object(f foreignMessage) error {
	if f.Role != "" {
		return h.message(f)
	}
	switch {
	case f.Type == "":
		return errors.New("role or type is missing")
	case f.Type == "system" && f.Subtype == "compact_boundary":
		h.messages = nil
	case f.Type != "user" && f.Type != "assistant", f.Sidechain, f.Meta:
		// the rest of a transcript
	default:
		var inner foreignMessage
		if err := json.Unmarshal(f.Message, &inner); err != nil {
			return fmt.Errorf("message: %w", fault.InJSON(err))
		}
		inner.Role = cmp.Or(inner.Role, f.Type)
		return h.message(inner)
	}
	return nil
}

func (h *historian) message(f foreignMessage) error {
	blocks, err := h.content(f.Content)
	if err != nil {
		return err
	}
	switch f.Role {
	case "system", "developer":
		return nil
	case "user":
		h.add(model.User, blocks)
	case "assistant", "model":
		for i, c := range f.Calls {
			b, err := h.call(c)
			if err != nil {
				return fmt.Errorf("tool_calls[%d]: %w", i, err)
			}
			blocks = append(blocks, b)
		}
		h.add(model.Assistant, blocks)
	case "tool":
		if f.CallID == "" {
			return errors.New("tool_call_id is missing in a message of a tool")
		}
		h.add(model.User, []model.Block{h.result(f.CallID, blocks, false)})
	default:
		return fmt.Errorf("the role %.40q is not user, assistant or tool", f.Role)
	}
	return nil
}

func (h *historian) add(role model.Role, blocks []model.Block) {
	h.messages = append(h.messages, model.Message{Role: role, Blocks: blocks})
}

func (h *historian) call(c foreignCall) (model.Block, error) {
	c.Name = cmp.Or(c.Name, c.Function.Name)
	if c.ID == "" || c.Name == "" {
		return model.Block{}, errors.New("a call needs an id and a name")
	}
	if len(c.Input) == 0 {
		c.Input = json.RawMessage(c.Function.Arguments)
	}
	h.names[c.ID] = c.Name
	b := model.Block{Kind: model.Call, ID: c.ID, Name: c.Name, Input: bytes.TrimSpace(c.Input)}
	if string(b.Input) == "null" || len(b.Input) == 0 {
		b.Input = json.RawMessage("{}")
	}
	if b.Input[0] != '{' || !json.Valid(b.Input) {
		b.Input, b.Broken = json.RawMessage("{}"), string(b.Input)
	}
	return b, nil
}

// result makes one result of blocks: their texts and images.
func (h *historian) result(id string, blocks []model.Block, failed bool) model.Block {
	b := model.Block{Kind: model.Result, ID: id, Name: h.names[id], Failed: failed}
	for _, part := range blocks {
		switch part.Kind {
		case model.Text:
			b.Text = strings.TrimPrefix(b.Text+"\n"+part.Text, "\n")
		case model.Image:
			b.Parts = append(b.Parts, part)
		}
	}
	return b
}

// content reads a text, or a list of blocks.
func (h *historian) content(raw json.RawMessage) ([]model.Block, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil || text == "" {
			return nil, err
		}
		return []model.Block{{Kind: model.Text, Text: text}}, nil
	}
	var list []foreignBlock
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("content is neither a text nor a list of blocks: %w", fault.InJSON(err))
	}
	var all []model.Block
	for i, f := range list {
		b, err := h.block(f)
		if err != nil {
			return nil, fmt.Errorf("content[%d]: %w", i, err)
		}
		if b.Kind != "" {
			all = append(all, b)
		}
	}
	return all, nil
}

// block reads one block. It returns a block without a kind if it is to be left out.
func (h *historian) block(f foreignBlock) (model.Block, error) {
	switch f.Type {
	case "text", "input_text", "output_text", "":
		if f.Text == "" {
			return model.Block{}, nil
		}
		return model.Block{Kind: model.Text, Text: f.Text}, nil
	case "tool_use":
		return h.call(foreignCall{ID: f.ID, Name: f.Name, Input: f.Input})
	case "tool_result":
		if f.CallID == "" {
			return model.Block{}, errors.New("a tool_result has no tool_use_id")
		}
		inner, err := h.content(f.Inner)
		return h.result(f.CallID, inner, f.Failed), err
	case "image", "document":
		return f.data()
	case "image_url":
		return f.dataURL()
	case "thinking", "redacted_thinking", "reasoning", "server_tool_use", "web_search_tool_result":
		return model.Block{}, nil // useful only to the model that wrote it
	}
	if f.Text != "" {
		return model.Block{Kind: model.Text, Text: f.Text}, nil
	}
	return model.Block{}, fmt.Errorf("unknown type of block %.40q", f.Type)
}

func (f foreignBlock) data() (model.Block, error) {
	if f.Source.Type == "text" {
		return model.Block{Kind: model.Text, Text: f.Source.Data}, nil
	}
	if f.Source.Type != "base64" {
		return model.Block{}, fmt.Errorf("the %s has its data as %.40q, not as base64", f.Type, f.Source.Type)
	}
	data, err := base64.StdEncoding.DecodeString(f.Source.Data)
	if err != nil {
		return model.Block{}, fmt.Errorf("the %s: %w", f.Type, err)
	}
	b := model.Block{Kind: model.Image, Media: f.Source.Media, Data: data}
	if f.Type == "document" {
		b.Kind, b.Name = model.File, f.Title
	}
	return b, nil
}

// dataURL reads an image from a data URL. It does not fetch an image from elsewhere, but names its address.
func (f foreignBlock) dataURL() (model.Block, error) {
	var nested struct {
		URL string `json:"url"`
	}
	address := ""
	if json.Unmarshal(f.URL, &nested) == nil {
		address = nested.URL
	} else if err := json.Unmarshal(f.URL, &address); err != nil {
		return model.Block{}, errors.New("image_url has no url")
	}
	rest, ok := strings.CutPrefix(address, "data:")
	media, encoded, found := strings.Cut(rest, ";base64,")
	if !ok || !found {
		return model.Block{Kind: model.Text, Text: "[image: " + address + "]"}, nil
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return model.Block{}, fmt.Errorf("the image: %w", err)
	}
	return model.Block{Kind: model.Image, Media: media, Data: data}, nil
}
