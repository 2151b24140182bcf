package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/sys/workspace"
)

// projection is the object that other programs read. The members are in the order of the file.
type projection struct {
	ID       string         `json:"id"`
	Provider string         `json:"provider"`
	Model    string         `json:"model"`
	Cwd      string         `json:"cwd"`
	Created  time.Time      `json:"created"`
	Updated  time.Time      `json:"updated"`
	History  []HistoryEntry `json:"history"`
	Usage    struct {
		Input  int64   `json:"total_input_tokens"`
		Output int64   `json:"total_output_tokens"`
		Cost   float64 `json:"total_cost_usd"`
	} `json:"usage"`
	Metadata struct {
		Title       string `json:"title"`
		Compactions int    `json:"compaction_count"`
	} `json:"metadata"`
}

// HistoryEntry is an entry of a projection's history: a text of the user or the model, or the result of a tool.
type HistoryEntry struct {
	Role    string        `json:"role"`
	Content string        `json:"content"`
	Calls   []HistoryCall `json:"tool_calls,omitempty"`
	CallID  string        `json:"tool_call_id,omitempty"`
}

// HistoryCall is a tool call in a history.
type HistoryCall struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func project(s State, messages []model.Message) projection {
	p := projection{
		ID: s.Begin.ID, Provider: s.Provider, Model: s.Model, Cwd: s.Begin.Cwd, Created: s.Begin.Created,
		Updated: s.Updated, History: []HistoryEntry{},
	}
	p.Usage.Input, p.Usage.Output, p.Usage.Cost = s.Usage.Context(), s.Usage.Output, s.Cost
	p.Metadata.Title, p.Metadata.Compactions = s.Title, s.Compactions
	for _, m := range messages {
		p.History = append(p.History, HistoryOf(m)...)
	}
	return p
}

// HistoryOf returns a message as entries of a history.
func HistoryOf(m model.Message) []HistoryEntry {
	var all []HistoryEntry
	entry := HistoryEntry{Role: string(m.Role)}
	for _, b := range m.Blocks {
		switch b.Kind {
		case model.Result:
			content := b.Text
			for _, part := range b.Parts {
				content = paragraph(content, inWords(part))
			}
			all = append(all, HistoryEntry{Role: "tool", Content: content, CallID: b.ID})
		case model.Call:
			input := b.Input
			if len(input) == 0 {
				input = json.RawMessage("{}")
			}
			entry.Calls = append(entry.Calls, HistoryCall{b.ID, b.Name, input})
		default:
			entry.Content = paragraph(entry.Content, inWords(b))
		}
	}
	if entry.Content != "" || entry.Calls != nil {
		all = append(all, entry)
	}
	return all
}

func paragraph(before, more string) string {
	if before == "" || more == "" {
		return before + more
	}
	return before + "\n\n" + more
}

// inWords returns a block that is neither a call nor a result as text.
func inWords(b model.Block) string {
	switch b.Kind {
	case model.Text:
		return b.Text
	case model.Image:
		return fmt.Sprintf("[image: %s, %d bytes]", b.Media, len(b.Data))
	case model.File:
		return fmt.Sprintf("[file: %s, %s, %d bytes]", b.Name, b.Media, len(b.Data))
	}
	return ""
}

// writeProjection replaces the projection.
func (s *Session) writeProjection() error {
	if s.lock == nil { // this session is not kept
		return nil
	}
	s.decoded()
	if err := s.store.noLink(s.id); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := project(s.state, plain(s.visible)).write(&b); err != nil {
		return err
	}
	text := b.Bytes()
	if s.mask != nil { // the messages in memory are not masked
		var err error
		if text, err = MaskedJSON(s.mask, text, json.Valid); err != nil {
			return fault.New(fault.Internal,
				"the session %s cannot be written for other programs: masking breaks its form",
				s.id).Because(err)
		}
	}
	if err := workspace.WriteDerived(s.store.file(s.id, projectionEnding), text, 0o600); err != nil {
		return err
	}
	s.stale = false
	return nil
}

func (p projection) write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(p)
}
