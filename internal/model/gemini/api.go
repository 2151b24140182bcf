package gemini

import (
	"time"

	"omniagent/internal/model"
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

// models returns the families and their list prices. A prompt longer than 200,000 tokens for gemini-…-pro costs more.
func models() []model.Family {
	const k, million = 1_000, 1_000_000
	cost := model.Cost
	return []model.Family{
		{Prefix: "gemini-", Window: million, Output: 8192, Compact: 0.8},
		{Prefix: "gemini-3", Window: 1_048_576, Output: 65_536, Compact: 0.8, Open: true},
		{Prefix: "gemini-3.8-flash", Window: 1_048_576, Output: 65_536, Compact: 0.8, Prices: cost(0.75, 3.75, 0.075)},
		{Prefix: "gemini-3.5-flash", Window: 1_048_576, Output: 65_536, Compact: 0.8, Prices: cost(1.5, 9, 0.15)},
		{Prefix: "gemini-3.1-pro", Window: 1_048_576, Output: 65_536, Compact: 0.8, Prices: cost(2, 12, 0.2)},
		{
			Prefix: "gemini-3.1-flash-lite", Window: 1_048_576, Output: 65_536, Compact: 0.8,
			Prices: cost(0.25, 1.5, 0.025),
		},
		{Prefix: "gemini-3-pro", Window: 1_048_576, Output: 65_536, Compact: 0.8, Prices: cost(2, 12, 0.2)},
		{Prefix: "gemini-3-flash", Window: 1_048_576, Output: 65_536, Compact: 0.8, Prices: cost(0.5, 3, 0.05)},
		{Prefix: "gemini-2.5-pro", Window: 1_048_576, Output: 65_536, Compact: 0.8, Prices: cost(1.25, 10, 0.125)},
		{Prefix: "gemini-2.5-flash", Window: 1_048_576, Output: 65_536, Compact: 0.8, Prices: cost(0.3, 2.5, 0.03)},
		{
			Prefix: "gemini-2.5-flash-lite", Window: 1_048_576, Output: 65_536, Compact: 0.8,
			Prices: cost(0.1, 0.4, 0.01),
		},
		{Prefix: "gemini-2.0-flash", Window: 1_048_576, Output: 8192, Compact: 0.8, Prices: cost(0.1, 0.4, 0.025)},
		{Prefix: "gemini-2.0-flash-lite", Window: 1_048_576, Output: 8192, Compact: 0.8, Prices: cost(0.075, 0.3)},
		{Prefix: "gemini-2.0-flash-thinking", Window: 32 * k, Output: 8192, Compact: 0.6, Prices: cost(0.1, 0.4)},
		{Prefix: "gemini-2.0-thinking", Window: 32 * k, Output: 8192, Compact: 0.6, Prices: cost(0.1, 0.4)},
		{Prefix: "gemini-1.5-pro", Window: 2_097_152, Output: 8192, Compact: 0.8, Prices: cost(3.5, 10.5, 0.88)},
		{Prefix: "gemini-1.5-flash", Window: 1_048_576, Output: 8192, Compact: 0.8, Prices: cost(0.075, 0.3, 0.02)},
	}
}
