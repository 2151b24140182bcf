package gemini

import (
	"fmt"
	"testing"

	"omniagent/internal/llm/model"
)

// TestSearchesAreTold: what the API searched for by itself is told once, however often it repeats it.
func TestSearchesAreTold(t *testing.T) {
	const grounding = `"groundingMetadata":{"webSearchQueries":["a","b"],"groundingChunks":[{"web":{"uri":"https://x","title":"X"}}]}`
	for want, body := range map[string]string{
		"[{ a [] } { b [X https://x] }]": `{"candidates":[{"content":{"parts":[{"text":"f"}]},` + grounding +
			`}]}` + "\n\ndata: " + `{"candidates":[{"content":{"parts":[{"text":"ound"}]},"finishReason":"STOP",` + grounding + `}]}`,
		"[{1 x; y [] }]": `{"candidates":[{"content":{"parts":[{"toolCall":{"args":{"queries":["x","y"]},"id":"1"}},` +
			`{"text":"found"}]},"finishReason":"STOP"}]}`,
	} {
		var told []model.Search
		_, err := canned{body: events(body)}.client().Ask(t.Context(), hello(), func(p model.Piece) {
			if p.Search != nil {
				told = append(told, *p.Search)
			}
		})
		if got := fmt.Sprint(told); err != nil || got != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}
