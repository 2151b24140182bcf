package provider

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"omniagent/internal/llm/model"
)

// TestClientSendsTheCredential asks each API once; the server refuses, which is enough to see where the request went
// and with what.
func TestClientSendsTheCredential(t *testing.T) {
	t.Parallel()
	type seen struct {
		url, model string
		header     http.Header
	}
	requests := make(chan seen, 8)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		var sent struct{ Model string }
		_ = json.Unmarshal(body, &sent)
		requests <- seen{q.URL.String(), sent.Model, q.Header}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w,
			`{"error":{"type":"invalid_request_error","message":"no","status":"INVALID_ARGUMENT"}}`)
	}))
	defer api.Close()
	for name, c := range map[string]struct {
		provider, suffix, env string
		url, header, value    string
	}{
		"anthropic key": {Anthropic, "", "ANTHROPIC_API_KEY=k1", "/v1/messages", "X-Api-Key", "k1"},
		"anthropic token": {
			Anthropic, "/gate/", "ANTHROPIC_AUTH_TOKEN=t1", "/gate/v1/messages", "Authorization",
			"Bearer t1",
		},
		"openai": {OpenAI, "/v1", "OPENAI_API_KEY=k2", "/v1/chat/completions", "Authorization", "Bearer k2"},
		"codex":  {Codex, "/v1", "OPENAI_API_KEY=k3", "/v1/responses", "Authorization", "Bearer k3"},
		"azure": {
			OpenAI, "/openai/v1/?api-version=preview", "OPENAI_API_KEY=k4",
			"/openai/v1/chat/completions?api-version=preview", "Authorization", "Bearer k4",
		},
		"gemini": {
			Gemini, "", "GEMINI_API_KEY=k5", "/v1beta/models/m:streamGenerateContent?alt=sse",
			"X-Goog-Api-Key", "k5",
		},
		"gemini, query": {
			Gemini, "/?q=1", "GEMINI_API_KEY=k6", "/v1beta/models/m:streamGenerateContent?q=1&alt=sse",
			"X-Goog-Api-Key", "k6",
		},
		"none": {OpenAI, "/v1", "", "/v1/chat/completions", "Authorization", ""},
	} {
		choice, err := Choose(Options{Provider: c.provider, Model: "m", Base: api.URL + c.suffix, Lookup: env(c.env)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		client := choice.Client()
		if p := choice.Patience(); c.provider == Gemini && p.Tries != 5 || c.provider == OpenAI &&
			p.Max != 2*time.Minute {
			t.Errorf("%s: %+v", name, p)
		}
		if p := client.Profile(); p.Model != "m" || p.Provider != c.provider || p.Window == 0 {
			t.Errorf("%s: %+v", name, p)
		}
		q := model.Request{Messages: []model.Message{{
			Role:   model.User,
			Blocks: []model.Block{{Kind: model.Text, Text: "hi"}},
		}}}
		_, err = client.Ask(t.Context(), q, nil)
		if err == nil || strings.Contains(err.Error(), "k1") {
			t.Errorf("%s: %v", name, err)
		}
		got := <-requests
		if got.url != c.url || got.header.Get(c.header) != c.value || c.provider != Gemini && got.model != "m" {
			t.Errorf("%s: %s, model %s, %s: %q", name, got.url, got.model, c.header, got.header.Get(c.header))
		}
		for _, other := range []string{"X-Api-Key", "Authorization", "X-Goog-Api-Key"} {
			if other != c.header && got.header.Get(other) != "" {
				t.Errorf("%s: %s is sent too", name, other)
			}
		}
	}
}
