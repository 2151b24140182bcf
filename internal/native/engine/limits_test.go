package engine_test

import (
	"context"
	"strings"
	"testing"

	"omniagent/internal/llm/model"
	"omniagent/internal/native/engine"
	"omniagent/internal/talk/session"
)

// narrow is a model with a small window.
type narrow struct {
	model.Client
	last string // all text of its last request
}

func (c *narrow) Ask(_ context.Context, q model.Request, _ func(model.Piece)) (*model.Answer, error) {
	c.last = ""
	for _, m := range q.Messages {
		for _, b := range m.Blocks {
			c.last += b.Text
		}
	}
	if len(c.last) > 100_000 {
		return nil, &model.Error{Trouble: model.Overflow, Message: "too long"}
	}
	return &model.Answer{Blocks: []model.Block{{Kind: model.Text, Text: "answer"}}, Stop: model.Done}, nil
}

// TestWhatIsCarriedOverIsShort: texts that are kept word for word when a conversation is shortened are cut, for else it
// would be as long as before.
func TestWhatIsCarriedOverIsShort(t *testing.T) {
	long := func(n int) string { return "begin " + strings.Repeat("x", n) + " end" }
	carried := func(t *testing.T, c *narrow, most int) {
		t.Helper()
		if !strings.Contains(c.last, "begin xxx") || !strings.Contains(c.last, "xxx end") || len(c.last) > most {
			t.Errorf("%d bytes are sent", len(c.last))
		}
	}
	t.Run("the last message", func(t *testing.T) {
		client, _ := scripted(t, script(ok()))
		c := &narrow{Client: client}
		s := begin(t, engine.Options{Client: c})
		for _, text := range []string{long(80_000), "/compact", "and now?"} {
			turn(t, s, text, nil)
		}
		carried(t, c, 22_000)
	})
	t.Run("a message that was too long", func(t *testing.T) {
		client, _ := scripted(t, script(ok()))
		c := &narrow{Client: client}
		kept, err := session.Open(t.TempDir()).Create(t.Context(), session.Begin{Provider: "p", Model: "one"})
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close()
		s := begin(t, engine.Options{Client: c, Journal: kept})
		for _, text := range []string{long(200_000), "and now?"} {
			turn(t, s, text, nil)
		}
		carried(t, c, 10_000)
	})
}

// TestLongInstructions: of a project's file its beginning is sent, with the place of the rest.
func TestLongInstructions(t *testing.T) {
	for _, n := range []int{10_000, 10_001, 300_000} {
		said := strings.Join(engine.System(engine.Setting{Project: strings.Repeat("ä", n/2) + "!", File: "A.md"}), "\n")
		cut := strings.Contains(said, "[… the rest is in A.md]")
		if sent := strings.Count(said, "ä"); sent > 5_000 || cut != (n/2*2+1 > 10_000) {
			t.Errorf("%d bytes: %d of the letters are sent, cut: %t", n, sent, cut)
		}
	}
}
