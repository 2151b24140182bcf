package gemini

import (
	_ "embed"
	"time"

	"omniagent/internal/llm/model"
)

// API describes the Gemini API. The keys are in the order of Google's own libraries. Its rate limits pass quickly, so
// retries come early and often.
func API() model.API {
	return model.API{
		Name: "gemini", Aliases: []string{"google"}, Base: official, BaseVar: "GOOGLE_GEMINI_BASE_URL", Google: true,
		Keys:    []model.Key{{Variable: "GOOGLE_API_KEY"}, {Variable: "GEMINI_API_KEY"}},
		Default: "gemini-3.8-flash", Models: models, New: New,
		Retry: model.RetryOptions{Tries: 5, First: 500 * time.Millisecond},
	}
}

//go:embed models.txt
var table string

func models() []model.Family { return model.ReadFamilies(table) }
