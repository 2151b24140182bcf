package conversation

import (
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/model"
)

// transcript turns events into messages for Minds that do not record messages themselves. So every session can be
// shown, searched, exported, and continued by another agent. It leaves out what sub-agents say.
type transcript struct {
	answer  []model.Block
	results []model.Block
}

// put adds an event and returns the messages that it completes.
func (t *transcript) put(e event.Event) []model.Message {
	if e.Parent != "" {
		return nil
	}
	switch e.Kind {
	case event.Text:
		if e.Delta || e.Text == "" {
			return nil
		}
		done := t.take(&t.results, model.User)
		t.answer = append(t.answer, model.Block{Kind: model.Text, Text: e.Text})
		return done
	case event.ToolCall:
		done := t.take(&t.results, model.User)
		input, broken := e.Call.Input, ""
		if object := e.Call.Object(); string(object) != string(input) {
			input, broken = object, string(input)
		}
		t.answer = append(t.answer, model.Block{
			Kind: model.Call, ID: e.Call.ID, Name: e.Call.Name, Input: input, Broken: broken,
		})
		return done
	case event.ToolResult:
		done := t.take(&t.answer, model.Assistant)
		r := e.Result
		t.results = append(t.results, model.Block{
			Kind: model.Result, ID: r.ID, Name: r.Name, Text: r.Output, Failed: r.Failed,
		})
		return done
	case event.Steered:
		done := t.flush()
		return append(done, model.Message{Role: model.User, Blocks: blocksOf(e.Blocks)})
	}
	return nil
}

// flush returns the messages that are not complete yet.
func (t *transcript) flush() []model.Message {
	return append(t.take(&t.answer, model.Assistant), t.take(&t.results, model.User)...)
}

func (t *transcript) take(blocks *[]model.Block, role model.Role) []model.Message {
	if len(*blocks) == 0 {
		return nil
	}
	m := model.Message{Role: role, Blocks: *blocks}
	*blocks = nil
	return []model.Message{m}
}

// blocksOf returns the blocks of a message in the form that a model takes.
func blocksOf(blocks []event.Block) (all []model.Block) {
	for _, b := range blocks {
		switch {
		case strings.HasPrefix(b.Media, "image/"):
			all = append(all, model.Block{Kind: model.Image, Media: b.Media, Data: b.Data})
		case b.Media != "":
			all = append(all, model.Block{Kind: model.File, Media: b.Media, Data: b.Data, Name: b.Name})
		default:
			all = append(all, model.Block{Kind: model.Text, Text: strings.ToValidUTF8(b.Text, "\uFFFD")})
		}
	}
	return all
}
