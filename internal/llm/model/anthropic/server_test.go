package anthropic

import (
	"encoding/json"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/modelserver"
)

// scripted is a client of a model that says what is written down.
func scripted(t *testing.T, script string) (model.Client, *modelserver.Server) {
	t.Helper()
	b, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	s, err := modelserver.Start(b, modelserver.Options{Key: "key-0123456789", Hurry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := New(Options{Base: s.URL(), Key: "key-0123456789", Model: "m", First: 2 * time.Second, Idle: time.Second})
	return c, s
}

func working() model.Request {
	q := hello()
	q.System = []string{"be brief"}
	q.Tools = []event.ToolSpec{{
		Name: "Bash", Description: "runs",
		Input: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`),
	}}
	return q
}

// A conversation with calls goes through as many turns as it has.
func TestConversation(t *testing.T) {
	c, s := scripted(t, `[
		{"think": "I should look."}, {"say": "I will look, ${input}."},
		{"calls": [{"shell": "ls"}, {"call": {"name": "Other", "input": {"deep": {"a": [1, "ü"]}}}}]},
		{"say": "It said ${result}.", "slow": "1ms", "usage": {"input": 5, "output": 7, "cached": 11}},
	]`)
	q := working()
	a, pieces, err := heard(t.Context(), c, q)
	if err != nil {
		t.Fatal(err)
	}
	calls := a.Calls()
	if a.Stop != model.Calls || a.Text() != "I will look, hello." || len(calls) != 2 || calls[0].Name != "Bash" ||
		string(calls[0].Input) != `{"command":"ls"}` ||
		calls[1].Name != "Other" || calls[1].Broken != "" || a.Blocks[0].Kind != model.Thinking ||
		a.Blocks[0].Opaque == nil || len(pieces) < 3 {
		t.Fatalf("%+v", a)
	}
	q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks},
		model.Message{Role: model.User, Blocks: []model.Block{
			{Kind: model.Result, ID: calls[1].ID, Text: "unknown tool", Failed: true}, {
				Kind: model.Result,
				ID:   calls[0].ID,
				Text: "a.txt",
			},
		}})
	a, err = c.Ask(t.Context(), q, nil)
	if err != nil || a.Stop != model.Done || a.Text() != "It said unknown tool." ||
		a.Usage != (model.Usage{Input: 5, Output: 7, CacheRead: 11}) {
		t.Fatalf("%+v %v", a, err)
	}
	requests := s.Requests()
	if len(requests) != 2 || !requests[1].Stream || requests[1].System != "be brief" || len(requests[1].Messages) != 3 {
		t.Errorf("%+v", requests)
	}
	if n, exact, err := c.Count(t.Context(), q); err != nil || !exact || n == 0 {
		t.Error(n, exact, err)
	}
}

func TestTroubles(t *testing.T) {
	for _, c := range []struct {
		step  string
		want  model.Trouble
		heard bool
	}{
		{`{"error": 400}`, model.Rejected, false},
		{`{"error": 401}`, model.NoLogin, false},
		{`{"error": 403}`, model.Forbidden, false},
		{`{"error": 404}`, model.Unknown, false},
		{`{"error": 429, "retry_after": 3}`, model.Limited, false},
		{`{"error": 500}`, model.Broken, false},
		{`{"error": 503}`, model.Overloaded, false},
		{`{"error": 529}`, model.Overloaded, false},
		{`{"error": "context_full"}`, model.Overflow, false},
		{`{"stall": "headers"}`, model.Stalled, false},
		{`{"stall": "start"}`, model.Stalled, false},
		{`{"stall": "middle"}`, model.Stalled, true},
		{`{"cut": "headers"}`, model.Cut, false},
		{`{"cut": "start"}`, model.Cut, false},
		{`{"cut": "middle"}`, model.Cut, true},
		{`{"cut": {"events": 4}}`, model.Cut, true},
		{`{"cut": {"bytes": 700}}`, model.Cut, true},
	} {
		t.Run(c.step, func(t *testing.T) {
			t.Parallel()
			client, _ := scripted(t, `[`+c.step+`]`)
			a, pieces, err := heard(t.Context(), client, working())
			e := failed(t, err)
			if a != nil || e.Trouble != c.want || e.Emitted != c.heard || e.Emitted != (len(pieces) > 0) {
				t.Errorf("%#v", e)
			}
			if want := 3 * time.Second; c.want == model.Limited && e.After != want {
				t.Errorf("after %s", e.After)
			}
			partial(t, e, pieces)
		})
	}
}

// Troubles that pass are survived, and nothing is heard twice.
func TestRetrying(t *testing.T) {
	client, s := scripted(t, `[{"error": 529, "times": 1}, {"cut": "start", "times": 1}, {"say": "here"}]`)
	var waits []model.Retry
	c := model.Retrying(client, model.RetryOptions{Tries: 3, First: time.Millisecond},
		func(r model.Retry) { waits = append(waits, r) })
	a, pieces, err := heard(t.Context(), c, working())
	if err != nil || a.Text() != "here" || len(pieces) != 1 || len(waits) != 2 ||
		waits[0].Error.Trouble != model.Overloaded || waits[1].Error.Trouble != model.Cut {
		t.Errorf("%+v %v %v %v", a, pieces, waits, err)
	}
	if n := len(s.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
}
