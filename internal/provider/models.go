package provider

import (
	"strings"

	"omniagent/internal/model"
)

// TableOf is the date of the data about models, which are from the vendors' pages on models and prices. Prices are list
// prices for prompts of ordinary length, in USD for a million tokens. Some models cost more where a prompt is longer
// than 100,000 (claude-haiku-5-5), 200,000 (gemini-…-pro) or 272,000 tokens (gpt-5.4 and later); the reported cost of
// such a prompt is too low.
const TableOf = "2026-11-21"

// row has the data of the models whose names begin with a prefix.
type row struct {
	prefix  string
	window  int64
	output  int64
	compact float64 // 0: as the vendor's others
	prices  []float64
}

// cost returns input, output, cache read, cache write. If a vendor has no price for the cache, it is the price of
// input.
func cost(all ...float64) []float64 {
	for len(all) < 4 {
		all = append(all, all[0])
	}
	return all
}

// rows have no order: the longest prefix counts. A row without prices is a family whose new members may have any price.
// Long because it is a table.
func rows() []row {
	const k, million = 1_000, 1_000_000
	return []row{
		{"claude-", 200 * k, 64 * k, 0, nil},
		{"claude-fable-5", million, 128 * k, 0, cost(10, 50, 1, 12.5)},
		{"claude-fable-5-1", million, 128 * k, 0, cost(10, 50, 0.25, 12.5)},
		{"claude-opus-5-5", million, 128 * k, 0, cost(4, 20, 0.2, 5)},
		{"claude-opus-5", million, 128 * k, 0, cost(5, 25, 0.5, 6.25)},
		{"claude-opus-4-8", million, 128 * k, 0, cost(5, 25, 0.5, 6.25)},
		{"claude-opus-4-7", million, 128 * k, 0, cost(5, 25, 0.5, 6.25)},
		{"claude-opus-4-6", million, 128 * k, 0, cost(5, 25, 0.5, 6.25)},
		{"claude-opus-4-5", 200 * k, 64 * k, 0, cost(5, 25, 0.5, 6.25)},
		{"claude-opus-4-1", 200 * k, 32 * k, 0, cost(15, 75, 1.5, 18.75)},
		{"claude-opus-4-0", 200 * k, 32 * k, 0, cost(15, 75, 1.5, 18.75)},
		{"claude-opus-4", 200 * k, 32 * k, 0, cost(15, 75, 1.5, 18.75)},
		{"claude-3-opus", 200 * k, 4096, 0, cost(15, 75, 1.5, 18.75)},
		{"claude-sonnet-5-5", million, 128 * k, 0, cost(2, 10, 0.1, 2.5)},
		{"claude-sonnet-5", million, 128 * k, 0, cost(2, 10, 0.2, 2.5)},
		{"claude-sonnet-4-6", million, 64 * k, 0, cost(3, 15, 0.3, 3.75)},
		{"claude-sonnet-4-5", 200 * k, 64 * k, 0, cost(3, 15, 0.3, 3.75)},
		{"claude-sonnet-4-0", 200 * k, 64 * k, 0, cost(3, 15, 0.3, 3.75)},
		{"claude-sonnet-4", 200 * k, 64 * k, 0, cost(3, 15, 0.3, 3.75)},
		{"claude-3-7-sonnet", 200 * k, 64 * k, 0, cost(3, 15, 0.3, 3.75)},
		{"claude-3-5-sonnet", 200 * k, 8192, 0, cost(3, 15, 0.3, 3.75)},
		{"claude-haiku-5-5", million, 128 * k, 0, cost(0.1, 0.5, 0.01, 0.125)},
		{"claude-haiku-4-5", 200 * k, 64 * k, 0, cost(1, 5, 0.1, 1.25)},
		{"claude-3-5-haiku", 200 * k, 8192, 0, cost(0.8, 4, 0.08, 1)},
		{"claude-3-haiku", 200 * k, 4096, 0, cost(0.25, 1.25, 0.03, 0.3)},

		{"gemini-", million, 8192, 0, nil},
		{"gemini-3", 1_048_576, 65_536, 0, nil},
		{"gemini-3.8-flash", 1_048_576, 65_536, 0, cost(0.75, 3.75, 0.075)},
		{"gemini-3.5-flash", 1_048_576, 65_536, 0, cost(1.5, 9, 0.15)},
		{"gemini-3.1-pro", 1_048_576, 65_536, 0, cost(2, 12, 0.2)},
		{"gemini-3.1-flash-lite", 1_048_576, 65_536, 0, cost(0.25, 1.5, 0.025)},
		{"gemini-3-pro", 1_048_576, 65_536, 0, cost(2, 12, 0.2)},
		{"gemini-3-flash", 1_048_576, 65_536, 0, cost(0.5, 3, 0.05)},
		{"gemini-2.5-pro", 1_048_576, 65_536, 0, cost(1.25, 10, 0.125)},
		{"gemini-2.5-flash", 1_048_576, 65_536, 0, cost(0.3, 2.5, 0.03)},
		{"gemini-2.5-flash-lite", 1_048_576, 65_536, 0, cost(0.1, 0.4, 0.01)},
		{"gemini-2.0-flash", 1_048_576, 8192, 0, cost(0.1, 0.4, 0.025)},
		{"gemini-2.0-flash-lite", 1_048_576, 8192, 0, cost(0.075, 0.3)},
		{"gemini-2.0-flash-thinking", 32 * k, 8192, 0.6, cost(0.1, 0.4)},
		{"gemini-2.0-thinking", 32 * k, 8192, 0.6, cost(0.1, 0.4)},
		{"gemini-1.5-pro", 2_097_152, 8192, 0, cost(3.5, 10.5, 0.88)},
		{"gemini-1.5-flash", 1_048_576, 8192, 0, cost(0.075, 0.3, 0.02)},

		{"gpt-", 128 * k, 16_384, 0, nil},
		{"gpt-6", 1_050_000, 128 * k, 0, nil},
		{"gpt-6.2-sol", 1_050_000, 128 * k, 0, cost(2, 10, 0.1, 2.5)},
		{"gpt-6.1-sol", 1_050_000, 128 * k, 0, cost(2, 10, 0.1, 2.5)},
		{"gpt-6.1-terra", 1_050_000, 128 * k, 0, cost(1, 5, 0.05, 1.25)},
		{"gpt-6-astra", 1_050_000, 128 * k, 0, cost(10, 50, 1, 12.5)},
		{"gpt-6-sol", 1_050_000, 128 * k, 0, cost(2, 10, 0.2, 2.5)},
		{"gpt-6-luna", 1_050_000, 128 * k, 0, cost(0.1, 0.5, 0.01, 0.125)},
		{"gpt-5.6", 1_050_000, 128 * k, 0, nil}, // its prices changed twice, and the sources disagree
		{"gpt-5.5", 1_050_000, 128 * k, 0, cost(5, 30, 0.5)},
		{"gpt-5.5-pro", 1_050_000, 128 * k, 0, cost(30, 180)},
		{"gpt-5.4", 1_050_000, 128 * k, 0, cost(2.5, 15, 0.25)},
		{"gpt-5.4-pro", 1_050_000, 128 * k, 0, cost(30, 180)},
		{"gpt-5.4-mini", 400 * k, 128 * k, 0, cost(0.75, 4.5, 0.075)},
		{"gpt-5.4-nano", 400 * k, 128 * k, 0, cost(0.2, 1.25, 0.02)},
		{"gpt-5.3-codex", 400 * k, 128 * k, 0, cost(1.75, 14, 0.175)},
		{"gpt-5.3-codex-spark", 128 * k, 32 * k, 0, cost(1.75, 14, 0.175)},
		{"gpt-5.2", 400 * k, 128 * k, 0, cost(1.75, 14, 0.175)},
		{"gpt-5.2-codex", 400 * k, 128 * k, 0, cost(1.75, 14, 0.175)},
		{"gpt-5.2-pro", 400 * k, 128 * k, 0, cost(21, 168)},
		{"gpt-5.1", 400 * k, 128 * k, 0, cost(1.25, 10, 0.125)},
		{"gpt-5.1-codex", 400 * k, 128 * k, 0, cost(1.25, 10, 0.125)},
		{"gpt-5.1-codex-max", 400 * k, 128 * k, 0, cost(1.25, 10, 0.125)},
		{"gpt-5.1-codex-mini", 400 * k, 128 * k, 0, cost(0.25, 2, 0.025)},
		{"gpt-5", 400 * k, 128 * k, 0, cost(1.25, 10, 0.125)},
		{"gpt-5-codex", 400 * k, 128 * k, 0, cost(1.25, 10, 0.125)},
		{"gpt-5-mini", 400 * k, 128 * k, 0, cost(0.25, 2, 0.025)},
		{"gpt-5-nano", 400 * k, 128 * k, 0, cost(0.05, 0.4, 0.005)},
		{"gpt-5-pro", 400 * k, 272 * k, 0, cost(15, 120)},
		{"gpt-4.1", 1_047_576, 32_768, 0, cost(2, 8, 0.5)},
		{"gpt-4.1-mini", 1_047_576, 32_768, 0, cost(0.4, 1.6, 0.1)},
		{"gpt-4.1-nano", 1_047_576, 32_768, 0, cost(0.1, 0.4, 0.025)},
		{"gpt-4o", 128 * k, 16_384, 0, cost(2.5, 10, 1.25)},
		{"gpt-4o-2024-05-13", 128 * k, 4096, 0, cost(5, 15)},
		{"gpt-4o-mini", 128 * k, 16_384, 0, cost(0.15, 0.6, 0.075)},
		{"gpt-4-turbo", 128 * k, 4096, 0, cost(10, 30)},
		{"gpt-4", 8192, 4096, 0, cost(30, 60)},
		{"gpt-3.5-turbo", 16_385, 4096, 0, cost(0.5, 1.5)},

		{"o1", 200 * k, 100 * k, 0.5, cost(15, 60, 7.5)},
		{"o1-mini", 128 * k, 65_536, 0.5, cost(3, 12)},
		{"o1-preview", 128 * k, 32_768, 0.5, cost(15, 60, 7.5)},
		{"o1-pro", 200 * k, 100 * k, 0.5, cost(150, 600)},
		{"o3", 200 * k, 100 * k, 0.5, cost(2, 8, 0.5)},
		{"o3-mini", 200 * k, 100 * k, 0.5, cost(1.1, 4.4, 0.55)},
		{"o3-pro", 200 * k, 100 * k, 0.5, cost(20, 80)},
		{"o4-mini", 200 * k, 100 * k, 0.5, cost(1.1, 4.4, 0.275)},
	}
}

// Default returns the default model of a provider. For OpenAI it is the newest that supports tools in Chat Completions.
func Default(provider string) string {
	switch provider {
	case Anthropic:
		return "claude-sonnet-5-5"
	case Gemini:
		return "gemini-3.8-flash"
	case Codex:
		return "gpt-6.2-sol"
	}
	return "gpt-5.4"
}

// onlyResponses reports whether OpenAI refuses tools for that model in Chat Completions.
func onlyResponses(name string) bool {
	return strings.HasPrefix(name, "gpt-5.6") || strings.HasPrefix(name, "gpt-6")
}

// Known returns the data of a model, by the longest prefix of its name. For an unknown one it is a careful guess,
// without a price.
func Known(provider, name string) model.Profile {
	p := model.Profile{
		Provider: provider, Model: name, Window: 128_000, Output: 8192, Compact: 0.6,
		Search: provider == Anthropic || provider == Codex,
	}
	plain := bare(name)
	if strings.HasPrefix(plain, "gemini-") {
		p.Compact = 0.8
		if strings.Contains(plain, "thinking") {
			p.Compact = 0.6
		}
	}
	best := row{}
	for _, r := range rows() {
		if len(r.prefix) > len(best.prefix) && begins(plain, r.prefix) {
			best = r
		}
	}
	if best.prefix == "" {
		return p
	}
	p.Window, p.Output = best.window, best.output
	if best.compact > 0 {
		p.Compact = best.compact
	}
	if best.prices != nil && same(plain[len(best.prefix):]) {
		p.Prices = &model.Prices{
			Input: best.prices[0], Output: best.prices[1], CacheRead: best.prices[2],
			CacheWrite: best.prices[3],
		}
	}
	return p
}

// bare returns the vendor's name of a model, without what gateways put around it: models/…, openai/…, us.anthropic.…
func bare(name string) string {
	name = strings.ToLower(name)
	name = name[strings.LastIndexByte(name, '/')+1:]
	if i := strings.LastIndex(name, "anthropic."); i >= 0 {
		name = name[i+len("anthropic."):]
	}
	return name
}

// begins reports whether a name belongs to a family. gpt-5 is neither a prefix of gpt-50 nor of gpt-5.9.
func begins(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && (rest == "" || strings.HasSuffix(prefix, "-") || strings.ContainsRune("-@:[", rune(rest[0])) ||
		prefix == "gpt-6" || prefix == "gemini-3")
}

// same reports whether the rest of a name only selects a version of the model: -20250929, -2024-08-06, -001, -latest,
// -preview-05-06, @20250514, -v1:0, [1m]. claude-opus-4-9 is not a version of claude-opus-4.
func same(rest string) bool {
	loose := false
	for rest != "" && rest != "[1m]" {
		word, digits := rest, 0
		for _, known := range []string{"-latest", "-preview", "-exp"} {
			word = strings.TrimPrefix(word, known)
		}
		if word != rest {
			rest, loose = word, true
			continue
		}
		marked := rest[0] == '@' || rest[0] == ':' || strings.HasPrefix(rest, "-v")
		if !marked && rest[0] != '-' {
			return false
		}
		word = strings.TrimPrefix(rest[1:], "v")
		digits = len(word) - len(strings.TrimLeft(word, "0123456789"))
		switch {
		case marked && digits > 0, digits == 3, digits == 8, loose && digits == 2:
		case digits == 4 && len(word) >= 10 && word[4] == '-' && word[7] == '-':
			digits = 10
		default:
			return false
		}
		rest = word[digits:]
	}
	return true
}
