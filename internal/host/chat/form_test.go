package chat

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"omniagent/internal/core/event"
)

// TestForm: the answers to a form are sent once, filled in; that to a question without a form, as text.
func TestForm(t *testing.T) {
	t.Parallel()
	var sent []event.Reply
	send := func(_ context.Context, r event.Reply) error {
		sent = append(sent, r)
		return nil
	}
	c := &Chat{}
	input := json.RawMessage(`{"questions":[{"question":"Which?","options":[{"label":"one"},{"label":"two"}]}]}`)
	form := c.form(&event.Ask{ID: "q", Form: true, Tool: &event.Call{Input: input}}, send)
	plain := c.form(&event.Ask{ID: "r", Text: "Which?", Options: []string{"one", "two"}}, send)
	for _, q := range []*Question{form, plain} {
		if err := q.answer(t.Context(), "2"); err != nil {
			t.Fatal(err)
		}
	}
	if r := sent[0]; r.Text != "" || !strings.Contains(string(r.Input), `"two"`) {
		t.Errorf("form: %+v", r)
	}
	if r := sent[1]; r.Text != "two" || r.Input != nil {
		t.Errorf("question: %+v", r)
	}
}
