//go:build unix

package knowledge

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// fifthAPI is all that is known of the fifth API.
func fifthAPI() model.API {
	return model.API{
		Name: "fifth", Base: "https://api.fifth.example", BaseVar: "FIFTH_BASE_URL", Local: true,
		Keys: []model.Key{{Variable: "FIFTH_API_KEY"}}, Default: "fifth-large",
		Models: func() []model.Family {
			return []model.Family{{Prefix: "fifth-", Window: 100_000, Output: 4096, Prices: model.Cost(1, 2)}}
		},
		New: newFifth,
	}
}

// fifth is its wire: what was said, against what to say or to call.
type fifth struct {
	api     *wire.API
	profile model.Profile
}

type (
	fifthRequest struct {
		Model string   `json:"model"`
		Said  string   `json:"said"`
		Done  []string `json:"done"` // what tools answered
		Tools []string `json:"tools"`
	}
	fifthAnswer struct {
		Say  string          `json:"say"`
		Tool string          `json:"tool"`
		With json.RawMessage `json:"with"`
	}
)

func newFifth(o model.Options) model.Client {
	header := func(context.Context) (http.Header, error) { return http.Header{"Fifth-Key": {o.Key}}, nil }
	return &fifth{&wire.API{Base: o.Base, HTTP: o.HTTP, First: o.First, Idle: o.Idle, Header: header}, o.Profile}
}

func (f *fifth) Profile() model.Profile { return f.profile }

func (f *fifth) Count(context.Context, model.Request) (int64, bool, error) { return 1, false, nil }

func (f *fifth) Ask(ctx context.Context, q model.Request, hear func(model.Piece)) (*model.Answer, error) {
	r := fifthRequest{Model: f.profile.Model}
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	for _, m := range q.Messages {
		for _, b := range m.Blocks {
			switch {
			case b.Kind == model.Result:
				r.Done = append(r.Done, b.Text)
			case b.Kind == model.Text && m.Role == model.User:
				r.Said = b.Text
			}
		}
	}
	var said fifthAnswer
	if err := f.api.Call(ctx, "/fifth", r, &said); err != nil {
		return nil, err
	}
	a := &model.Answer{Model: r.Model, Stop: model.Done, Usage: model.Usage{Input: 10, Output: 5}}
	if said.Tool != "" {
		a.Stop = model.Calls
		a.Blocks = []model.Block{{
			Kind: model.Call, ID: "c" + string(rune('a'+len(r.Done))), Name: said.Tool, Input: said.With,
		}}
		return a, nil
	}
	a.Blocks = []model.Block{{Kind: model.Text, Text: said.Say}}
	if hear != nil {
		hear(model.Piece{Kind: model.Text, Text: said.Say})
	}
	return a, nil
}

// fifthServer answers with one step after the other, by what tools have answered; then it repeats their answers.
func fifthServer(t *testing.T, steps ...fifthAnswer) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var r fifthRequest
		if err := json.NewDecoder(q.Body).Decode(&r); err != nil || q.URL.Path != "/fifth" ||
			q.Header.Get("Fifth-Key") != "key-of-a-test" {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
		answer := fifthAnswer{Say: "done"}
		if len(r.Done) < len(steps) {
			answer = steps[len(r.Done)]
		} else if len(r.Done) > 0 {
			answer.Say += ": " + r.Done[len(r.Done)-1]
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func calls(name, input string) fifthAnswer {
	return fifthAnswer{Tool: name, With: json.RawMessage(input)}
}
