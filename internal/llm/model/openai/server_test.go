package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/modelserver"
)

func serve(t *testing.T, script string) *modelserver.Server {
	t.Helper()
	s, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(s, modelserver.Options{Key: "secret-key"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func (w wireOf) at(s *modelserver.Server) model.Client {
	return w.make(Options{
		Base: s.URL() + "/v1", Key: "secret-key", Model: "m", First: 5 * time.Second,
		Idle: 150 * time.Millisecond, Profile: model.Profile{Search: true},
	})
}

func offering() model.Request {
	q := hello()
	q.Tools = tools()
	return q
}

func TestAScript(t *testing.T) {
	server := serve(t, `[
		{"think":"I think."}, {"say":"I look."},
		{"calls":[{"call":{"name":"Bash","input":{"command":"ls <a> & \"b\" é"}}},{"call":{"name":"Now"}}], "usage":{"input":20,"output":9,"cached":4}},
		{"say":"done: ${result}"}]`)
	for _, w := range both() {
		c, q := w.at(server), offering()
		heard := ""
		a, err := c.Ask(t.Context(), q, func(p model.Piece) { heard += string(p.Kind) + ":" + p.Text + ";" })
		if err != nil {
			t.Fatal(w.name, err)
		}
		if got := plain(
			a); got != `(I think.) "I look." [call_A Bash {"command":"ls <a> & \"b\" é"}] [call_B Now {}] calls` {
			t.Errorf("%s: %s", w.name, got)
		}
		if heard != "thinking:I think.;text:I look.;" || a.Usage != (model.Usage{Input: 20, CacheRead: 4, Output: 9}) ||
			a.Model != "m" || a.ID == "" {
			t.Errorf("%s: %q %+v", w.name, heard, a)
		}
		results := model.Message{Role: model.User}
		for i, call := range a.Calls() {
			results.Blocks = append(results.Blocks, model.Block{
				Kind: model.Result, ID: call.ID, Name: call.Name, Text: fmt.Sprint("result ", i),
			})
		}
		q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks}, results)
		if a, err = c.Ask(t.Context(), q, nil); err != nil || a.Text() != "done: result 1" || a.Stop != model.Done {
			t.Errorf("%s: %v %+v", w.name, err, a)
		}
		requests := server.Requests()
		last := requests[len(requests)-1]
		if w.name == "responses" && !strings.Contains(string(last.Raw), `"encrypted_content":"c2lnbmF0dXJl"`) {
			t.Errorf("the chain of thought did not go back: %s", last.Raw)
		}
		if w.name == "chat" && !strings.Contains(string(last.Raw), `"reasoning_content":"I think."`) {
			t.Errorf("the thinking did not go back: %s", last.Raw)
		}
	}
}

func TestASearch(t *testing.T) {
	server := serve(t, `[{"think":"hm"},{"search":"go"},{"say":"found"}]`)
	q := offering()
	q.Search = true
	c := both()[1].at(server)
	var told []model.Search
	a, err := c.Ask(t.Context(), q, func(p model.Piece) {
		if p.Search != nil {
			told = append(told, *p.Search)
		}
	})
	if len(told) != 1 || told[0].Query != "go" || told[0].ID == "" {
		t.Errorf("told: %+v", told)
	}
	if err != nil || a.Usage.Searches != 1 || plain(a) != `(hm) "found" done` {
		t.Fatal(err, plain(a), a.Usage)
	}
	q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks}, hello().Messages[0])
	if _, err := c.Ask(t.Context(), q, nil); err != nil {
		t.Fatal(err)
	}
	last := server.Requests()[1]
	if kinds := fmt.Sprint(last.Messages[1].Blocks); !strings.Contains(kinds, "thinking") ||
		!strings.Contains(kinds, "search") || !strings.Contains(kinds, "found") {
		t.Errorf("the search did not go back: %v", kinds)
	}
}

func TestFailures(t *testing.T) {
	for step, want := range map[string]model.Trouble{
		`{"error":400}`: model.Rejected, `{"error":401}`: model.NoLogin, `{"error":403}`: model.Forbidden,
		`{"error":404}`:                 model.Unknown,
		`{"error":429,"retry_after":2}`: model.Limited, `{"error":500}`: model.Broken,
		`{"error":503}`: model.Overloaded, `{"error":529}`: model.Overloaded,
		`{"error":"context_full"}`: model.Overflow,
		`{"cut":"headers"}`:        model.Cut, `{"cut":"start"}`: model.Cut,
		`{"say":"half of it, and more","cut":"middle"}`:   model.Cut,
		`{"stall":"start"}`:                               model.Stalled,
		`{"say":"half of it, and more","stall":"middle"}`: model.Stalled,
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			server := serve(t, "["+step+"]")
			for _, w := range both() {
				heard := false
				_, err := w.at(server).Ask(t.Context(), offering(), func(model.Piece) { heard = true })
				e := trouble(t, err)
				if e.Trouble != want || e.Emitted != heard || heard && len(e.Partial) != 1 {
					t.Errorf("%s: %s: %+v", w.name, step, e)
				}
				if strings.Contains(step, "retry_after") && e.After != 2*time.Second {
					t.Errorf("%s: after %s", w.name, e.After)
				}
			}
		})
	}
}

// halves says something and fails then.
type halves struct{}

func (halves) Answer(_ context.Context, _ *modelserver.Request, w modelserver.Writer) error {
	if err := w.Text("half"); err != nil {
		return err
	}
	return w.Fail(modelserver.Failure{Status: 529})
}

func TestALateFailure(t *testing.T) {
	server, err := modelserver.Start(halves{}, modelserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, w := range both() {
		_, err := w.at(server).Ask(t.Context(), hello(), nil)
		if e := trouble(t, err); e.Trouble != model.Overloaded || !e.Again() || e.Partial[0].Text != "half" {
			t.Errorf("%s: %+v", w.name, e)
		}
	}
}

func TestAWrongKeyIsNotShown(t *testing.T) {
	server := serve(t, `[]`)
	for _, w := range both() {
		_, err := w.make(Options{Base: server.URL() + "/v1", Key: "wrong-key-123456"}).Ask(t.Context(), hello(), nil)
		if e := trouble(t, err); e.Trouble != model.NoLogin || strings.Contains(e.Message, "wrong-key") {
			t.Errorf("%s: %+v", w.name, e)
		}
	}
}

func TestSlowIsNotSilent(t *testing.T) {
	server := serve(t, `[{"say":"one two three four five six seven eight nine ten eleven twelve", "slow":"60ms"}]`)
	for _, w := range both() {
		if a, err := w.at(server).Ask(t.Context(), offering(), nil); err != nil ||
			!strings.HasSuffix(a.Text(), "twelve") {
			t.Errorf("%s: %v", w.name, err)
		}
	}
}

func TestStopped(t *testing.T) {
	server := serve(t, `[{"say":"half of it, and more","stall":"middle"}]`)
	for _, w := range both() {
		ctx, stop := context.WithCancel(t.Context())
		_, err := w.at(server).Ask(ctx, offering(), func(model.Piece) { stop() })
		if e := trouble(t, err); e.Trouble != model.Stopped || !e.Emitted || e.Again() {
			t.Errorf("%s: %+v", w.name, e)
		}
		stop()
	}
}

func TestTextsThatAreHardToWrite(t *testing.T) {
	hard := "a\xff\"\\\u2028\x00é<&>"
	server := serve(t, `[{"say":"${input}"}]`)
	for _, w := range both() {
		q := offering()
		q.Messages[0].Blocks[0].Text = hard
		q.Messages = append(q.Messages,
			model.Message{
				Role:   model.Assistant,
				Blocks: []model.Block{{Kind: model.Call, ID: "x", Name: "Now", Input: json.RawMessage("{}")}},
			},
			model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Result, ID: "x", Text: hard}}})
		if _, err := w.at(server).Ask(t.Context(), q, nil); err != nil {
			t.Fatal(w.name, err)
		}
		r := server.Requests()
		last := r[len(r)-1].Messages
		for _, b := range []modelserver.Block{last[0].Blocks[0], last[len(last)-1].Blocks[0]} {
			if b.Text != strings.ToValidUTF8(hard, "\uFFFD") {
				t.Errorf("%s: %q", w.name, b.Text)
			}
		}
	}
}
