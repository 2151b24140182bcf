package anthropic

import "omniagent/internal/model"

// API describes the Messages API. The token takes precedence over the key, as in Claude Code: a user who sets it has a
// gateway.
func API() model.API {
	return model.API{
		Name: "anthropic", Aliases: []string{"claude"}, Base: address, BaseVar: "ANTHROPIC_BASE_URL", Local: true,
		Keys:    []model.Key{{Variable: "ANTHROPIC_AUTH_TOKEN", Token: true}, {Variable: "ANTHROPIC_API_KEY"}},
		Default: "claude-sonnet-5-5", Models: models, Search: true, New: New,
		Short: map[string]string{
			"opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5-5", "haiku": "claude-haiku-5-5",
		},
	}
}

// models returns the families and their list prices. A prompt longer than 100,000 tokens for claude-haiku-5-5 costs
// more.
// Long because it is a table.
func models() []model.Family {
	const k, million = 1_000, 1_000_000
	cost := model.Cost
	return []model.Family{
		{Prefix: "claude-", Window: 200 * k, Output: 64 * k},
		{Prefix: "claude-fable-5", Window: million, Output: 128 * k, Prices: cost(10, 50, 1, 12.5)},
		{Prefix: "claude-fable-5-1", Window: million, Output: 128 * k, Prices: cost(10, 50, 0.25, 12.5)},
		{Prefix: "claude-opus-5-5", Window: million, Output: 128 * k, Prices: cost(4, 20, 0.2, 5)},
		{Prefix: "claude-opus-5", Window: million, Output: 128 * k, Prices: cost(5, 25, 0.5, 6.25)},
		{Prefix: "claude-opus-4-8", Window: million, Output: 128 * k, Prices: cost(5, 25, 0.5, 6.25)},
		{Prefix: "claude-opus-4-7", Window: million, Output: 128 * k, Prices: cost(5, 25, 0.5, 6.25)},
		{Prefix: "claude-opus-4-6", Window: million, Output: 128 * k, Prices: cost(5, 25, 0.5, 6.25)},
		{Prefix: "claude-opus-4-5", Window: 200 * k, Output: 64 * k, Prices: cost(5, 25, 0.5, 6.25)},
		{Prefix: "claude-opus-4-1", Window: 200 * k, Output: 32 * k, Prices: cost(15, 75, 1.5, 18.75)},
		{Prefix: "claude-opus-4-0", Window: 200 * k, Output: 32 * k, Prices: cost(15, 75, 1.5, 18.75)},
		{Prefix: "claude-opus-4", Window: 200 * k, Output: 32 * k, Prices: cost(15, 75, 1.5, 18.75)},
		{Prefix: "claude-3-opus", Window: 200 * k, Output: 4096, Prices: cost(15, 75, 1.5, 18.75)},
		{Prefix: "claude-sonnet-5-5", Window: million, Output: 128 * k, Prices: cost(2, 10, 0.1, 2.5)},
		{Prefix: "claude-sonnet-5", Window: million, Output: 128 * k, Prices: cost(2, 10, 0.2, 2.5)},
		{Prefix: "claude-sonnet-4-6", Window: million, Output: 64 * k, Prices: cost(3, 15, 0.3, 3.75)},
		{Prefix: "claude-sonnet-4-5", Window: 200 * k, Output: 64 * k, Prices: cost(3, 15, 0.3, 3.75)},
		{Prefix: "claude-sonnet-4-0", Window: 200 * k, Output: 64 * k, Prices: cost(3, 15, 0.3, 3.75)},
		{Prefix: "claude-sonnet-4", Window: 200 * k, Output: 64 * k, Prices: cost(3, 15, 0.3, 3.75)},
		{Prefix: "claude-3-7-sonnet", Window: 200 * k, Output: 64 * k, Prices: cost(3, 15, 0.3, 3.75)},
		{Prefix: "claude-3-5-sonnet", Window: 200 * k, Output: 8192, Prices: cost(3, 15, 0.3, 3.75)},
		{Prefix: "claude-haiku-5-5", Window: million, Output: 128 * k, Prices: cost(0.1, 0.5, 0.01, 0.125)},
		{Prefix: "claude-haiku-4-5", Window: 200 * k, Output: 64 * k, Prices: cost(1, 5, 0.1, 1.25)},
		{Prefix: "claude-3-5-haiku", Window: 200 * k, Output: 8192, Prices: cost(0.8, 4, 0.08, 1)},
		{Prefix: "claude-3-haiku", Window: 200 * k, Output: 4096, Prices: cost(0.25, 1.25, 0.03, 0.3)},
	}
}
