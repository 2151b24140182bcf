package conversation

import (
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/talk/session"
)

// TestATitleIsThePersons: what a host has added before a message names no conversation.
func TestATitleIsThePersons(t *testing.T) {
	t.Parallel()
	m := model.Message{Role: model.User, Blocks: blocksOf([]event.Block{
		{Name: "@handover", Text: "This conversation began with another agent."}, {Text: "build a bridge"},
	})}
	if got := session.TitleOf(m); got != "build a bridge" {
		t.Errorf("%q", got)
	}
}
