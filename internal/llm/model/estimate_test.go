package model_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"omniagent/internal/llm/model"
)

// TestUsageVectors: what an API does not tell of the tokens is estimated as seed 2's vectors say, four characters each,
// and what it tells counts.
func TestUsageVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/usage.json")
	if err != nil {
		t.Fatal(err)
	}
	type figures struct{ PromptTokens, CompletionTokens int64 }
	var v struct {
		Prompt []struct {
			Messages []struct {
				Content   string
				Reasoning string `json:"reasoning_content"`
			}
			Tokens int64
		}
		Completion []struct {
			Text   string
			Tokens int64
		}
		Merge []struct{ Partial, Fallback, Merged figures }
	}
	if err := json.Unmarshal(data, &v); err != nil || len(v.Prompt) == 0 || len(v.Merge) == 0 {
		t.Fatal(err)
	}
	said := func(text string) []model.Block { return []model.Block{{Kind: model.Text, Text: text}} }
	for _, c := range v.Prompt {
		var q model.Request
		for _, m := range c.Messages {
			q.Messages = append(q.Messages, model.Message{Blocks: append(said(m.Content), said(m.Reasoning)...)})
		}
		if got := model.Estimate(q); got != c.Tokens {
			t.Errorf("%+v: %d tokens", c, got)
		}
	}
	for _, c := range v.Completion {
		if got := model.EstimateOutput(said(c.Text)); got != c.Tokens {
			t.Errorf("%+v: %d tokens", c, got)
		}
	}
	for _, c := range v.Merge {
		a := model.Answer{
			Blocks: said(strings.Repeat("word", int(c.Fallback.CompletionTokens))),
			Usage:  model.Usage{Input: c.Partial.PromptTokens, Output: c.Partial.CompletionTokens},
		}
		a.Complete(model.Request{System: []string{strings.Repeat("word", int(c.Fallback.PromptTokens))}}, "call")
		whole := c.Partial.PromptTokens != 0 && c.Partial.CompletionTokens != 0
		if a.Usage.Input != c.Merged.PromptTokens || a.Usage.Output != c.Merged.CompletionTokens ||
			a.Usage.Estimated == whole {
			t.Errorf("%+v: %+v", c, a.Usage)
		}
	}
}
