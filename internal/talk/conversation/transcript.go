package conversation

import (
	"fmt"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
)

// transcript turns events into messages for Minds that do not record messages themselves, so that every session can be
// shown, searched, exported, and continued by another agent. It leaves out what sub-agents say. Of a turn that is
// longer than mostKept, it keeps the beginning and the end of the last text.
type transcript struct {
	answer  []model.Block
	results []model.Block
	kept    int    // bytes of the turn
	last    string // the last text that was left out
	left    int    // how many blocks were left out
}

const (
	mostKept = 2 << 20
	lastKept = 64 << 10 // of the last text
)

// keeps reports whether the turn has room for a block. After the first block without room, it returns false for all
// others.
func (t *transcript) keeps(text string, more int) bool {
	t.kept += 256 + len(text) + more
	if t.left == 0 && t.kept <= mostKept {
		return true
	}
	t.left++
	return false
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
		if !t.keeps(e.Text, 0) {
			t.last = e.Text
			return nil
		}
		done := t.take(&t.results, model.User)
		t.answer = append(t.answer, model.Block{Kind: model.Text, Text: e.Text})
		return done
	case event.ToolCall:
		if !t.keeps("", len(e.Call.Input)) {
			return nil
		}
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
		r := e.Result
		if !t.keeps(r.Output, 0) {
			return nil
		}
		done := t.take(&t.answer, model.Assistant)
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

// flush returns the messages that put has not returned yet.
func (t *transcript) flush() []model.Message {
	if t.left > 0 {
		done := t.take(&t.results, model.User)
		t.answer = append(t.answer, model.Block{Kind: model.Text, Text: fmt.Sprintf(
			"[%d more parts of this turn are only in the events of the session. The last text ends so:]\n%s", t.left,
			strings.ToValidUTF8(t.last[max(0, len(t.last)-lastKept):], ""),
		)})
		t.left, t.last, t.kept = 0, "", mostKept
		return append(done, t.take(&t.answer, model.Assistant)...)
	}
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
			all = append(all, model.Block{
				Kind: model.Text, Text: strings.ToValidUTF8(b.Text, "\uFFFD"), Name: b.Name,
			})
		}
	}
	return all
}
