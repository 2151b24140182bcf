package openai

import (
	"strings"
	"time"

	"omniagent/internal/model"
)

// Chat describes Chat Completions, including that of other servers. The default is the newest model that accepts tools
// there. OpenAI's rate limits pass slowly, so retries come late.
func Chat() model.API {
	return model.API{
		Name: "openai", Base: official, BaseVar: "OPENAI_BASE_URL", Local: true, Named: true,
		Keys:    []model.Key{{Variable: "OPENAI_API_KEY"}},
		Default: "gpt-5.4", Models: models, New: NewChat, Retry: model.RetryOptions{Max: 2 * time.Minute},
		Advice: func(name string) string {
			if onlyResponses(name) {
				return name + " takes tools only through the Responses API: --provider codex"
			}
			return ""
		},
	}
}

// Responses describes OpenAI's newer API.
func Responses() model.API {
	api := Chat()
	api.Name, api.Account, api.New, api.Default = "codex", api.Name, NewResponses, "gpt-6.2-sol"
	api.Search, api.Named, api.Advice = true, false, nil
	return api
}

// onlyResponses reports whether OpenAI refuses tools for a model in Chat Completions.
func onlyResponses(name string) bool {
	return strings.HasPrefix(name, "gpt-5.6") || strings.HasPrefix(name, "gpt-6")
}

// models returns the families and their list prices. A prompt longer than 272,000 tokens for gpt-5.4 and later costs
// more.
// Long because it is a table.
func models() []model.Family {
	const k = 1_000
	cost := model.Cost
	return []model.Family{
		{Prefix: "gpt-", Window: 128 * k, Output: 16_384},
		{Prefix: "gpt-6", Window: 1_050_000, Output: 128 * k, Open: true},
		{Prefix: "gpt-6.2-sol", Window: 1_050_000, Output: 128 * k, Prices: cost(2, 10, 0.1, 2.5)},
		{Prefix: "gpt-6.1-sol", Window: 1_050_000, Output: 128 * k, Prices: cost(2, 10, 0.1, 2.5)},
		{Prefix: "gpt-6.1-terra", Window: 1_050_000, Output: 128 * k, Prices: cost(1, 5, 0.05, 1.25)},
		{Prefix: "gpt-6-astra", Window: 1_050_000, Output: 128 * k, Prices: cost(10, 50, 1, 12.5)},
		{Prefix: "gpt-6-sol", Window: 1_050_000, Output: 128 * k, Prices: cost(2, 10, 0.2, 2.5)},
		{Prefix: "gpt-6-luna", Window: 1_050_000, Output: 128 * k, Prices: cost(0.1, 0.5, 0.01, 0.125)},
		{Prefix: "gpt-5.6", Window: 1_050_000, Output: 128 * k}, // its prices changed twice, and the sources disagree
		{Prefix: "gpt-5.5", Window: 1_050_000, Output: 128 * k, Prices: cost(5, 30, 0.5)},
		{Prefix: "gpt-5.5-pro", Window: 1_050_000, Output: 128 * k, Prices: cost(30, 180)},
		{Prefix: "gpt-5.4", Window: 1_050_000, Output: 128 * k, Prices: cost(2.5, 15, 0.25)},
		{Prefix: "gpt-5.4-pro", Window: 1_050_000, Output: 128 * k, Prices: cost(30, 180)},
		{Prefix: "gpt-5.4-mini", Window: 400 * k, Output: 128 * k, Prices: cost(0.75, 4.5, 0.075)},
		{Prefix: "gpt-5.4-nano", Window: 400 * k, Output: 128 * k, Prices: cost(0.2, 1.25, 0.02)},
		{Prefix: "gpt-5.3-codex", Window: 400 * k, Output: 128 * k, Prices: cost(1.75, 14, 0.175)},
		{Prefix: "gpt-5.3-codex-spark", Window: 128 * k, Output: 32 * k, Prices: cost(1.75, 14, 0.175)},
		{Prefix: "gpt-5.2", Window: 400 * k, Output: 128 * k, Prices: cost(1.75, 14, 0.175)},
		{Prefix: "gpt-5.2-codex", Window: 400 * k, Output: 128 * k, Prices: cost(1.75, 14, 0.175)},
		{Prefix: "gpt-5.2-pro", Window: 400 * k, Output: 128 * k, Prices: cost(21, 168)},
		{Prefix: "gpt-5.1", Window: 400 * k, Output: 128 * k, Prices: cost(1.25, 10, 0.125)},
		{Prefix: "gpt-5.1-codex", Window: 400 * k, Output: 128 * k, Prices: cost(1.25, 10, 0.125)},
		{Prefix: "gpt-5.1-codex-max", Window: 400 * k, Output: 128 * k, Prices: cost(1.25, 10, 0.125)},
		{Prefix: "gpt-5.1-codex-mini", Window: 400 * k, Output: 128 * k, Prices: cost(0.25, 2, 0.025)},
		{Prefix: "gpt-5", Window: 400 * k, Output: 128 * k, Prices: cost(1.25, 10, 0.125)},
		{Prefix: "gpt-5-codex", Window: 400 * k, Output: 128 * k, Prices: cost(1.25, 10, 0.125)},
		{Prefix: "gpt-5-mini", Window: 400 * k, Output: 128 * k, Prices: cost(0.25, 2, 0.025)},
		{Prefix: "gpt-5-nano", Window: 400 * k, Output: 128 * k, Prices: cost(0.05, 0.4, 0.005)},
		{Prefix: "gpt-5-pro", Window: 400 * k, Output: 272 * k, Prices: cost(15, 120)},
		{Prefix: "gpt-4.1", Window: 1_047_576, Output: 32_768, Prices: cost(2, 8, 0.5)},
		{Prefix: "gpt-4.1-mini", Window: 1_047_576, Output: 32_768, Prices: cost(0.4, 1.6, 0.1)},
		{Prefix: "gpt-4.1-nano", Window: 1_047_576, Output: 32_768, Prices: cost(0.1, 0.4, 0.025)},
		{Prefix: "gpt-4o", Window: 128 * k, Output: 16_384, Prices: cost(2.5, 10, 1.25)},
		{Prefix: "gpt-4o-2024-05-13", Window: 128 * k, Output: 4096, Prices: cost(5, 15)},
		{Prefix: "gpt-4o-mini", Window: 128 * k, Output: 16_384, Prices: cost(0.15, 0.6, 0.075)},
		{Prefix: "gpt-4-turbo", Window: 128 * k, Output: 4096, Prices: cost(10, 30)},
		{Prefix: "gpt-4", Window: 8192, Output: 4096, Prices: cost(30, 60)},
		{Prefix: "gpt-3.5-turbo", Window: 16_385, Output: 4096, Prices: cost(0.5, 1.5)},
		{Prefix: "o1", Window: 200 * k, Output: 100 * k, Compact: 0.5, Prices: cost(15, 60, 7.5)},
		{Prefix: "o1-mini", Window: 128 * k, Output: 65_536, Compact: 0.5, Prices: cost(3, 12)},
		{Prefix: "o1-preview", Window: 128 * k, Output: 32_768, Compact: 0.5, Prices: cost(15, 60, 7.5)},
		{Prefix: "o1-pro", Window: 200 * k, Output: 100 * k, Compact: 0.5, Prices: cost(150, 600)},
		{Prefix: "o3", Window: 200 * k, Output: 100 * k, Compact: 0.5, Prices: cost(2, 8, 0.5)},
		{Prefix: "o3-mini", Window: 200 * k, Output: 100 * k, Compact: 0.5, Prices: cost(1.1, 4.4, 0.55)},
		{Prefix: "o3-pro", Window: 200 * k, Output: 100 * k, Compact: 0.5, Prices: cost(20, 80)},
		{Prefix: "o4-mini", Window: 200 * k, Output: 100 * k, Compact: 0.5, Prices: cost(1.1, 4.4, 0.275)},
	}
}
