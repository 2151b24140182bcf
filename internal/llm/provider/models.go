package provider

import (
	"strings"

	"omniagent/internal/llm/model"
)

// The data about models is from the vendors' pages on models and prices, as of 2026-11-21. Prices are list prices for
// prompts of ordinary length, in USD for a million tokens. Some models cost more if a prompt is longer than 100,000
// (claude-haiku-5-5), 200,000 (gemini-…-pro) or 272,000 tokens (gpt-5.4 and later); the reported cost of such a prompt
// is too low.

// known returns the profile of a model of any API, by the longest prefix of its name. For an unknown model, it returns
// a careful guess without a price.
func (l list) known(api model.API, name string) model.Profile {
	p := model.Profile{
		Provider: api.Name, Model: name, Window: 128_000, Output: 8192, Compact: 0.6, Search: api.Search,
	}
	plain := bare(name)
	best := model.Family{}
	for _, one := range l {
		for _, f := range one.Models() {
			if len(f.Prefix) > len(best.Prefix) && begins(plain, f) {
				best = f
			}
		}
	}
	if best.Prefix == "" {
		return p
	}
	p.Window, p.Output = best.Window, best.Output
	if best.Compact > 0 {
		p.Compact = best.Compact
	}
	if strings.Contains(plain, "thinking") {
		p.Compact = min(p.Compact, 0.6)
	}
	if same(plain[len(best.Prefix):]) {
		p.Prices = best.Prices
	}
	return p
}

// bare returns the vendor's name of a model, without the prefixes of gateways: models/…, openai/…, us.anthropic.…
func bare(name string) string {
	name = strings.ToLower(name)
	name = name[strings.LastIndexByte(name, '/')+1:]
	if i := strings.LastIndex(name, "anthropic."); i >= 0 {
		name = name[i+len("anthropic."):]
	}
	return name
}

// begins reports whether a name belongs to a family. gpt-50 and gpt-5.9 do not belong to gpt-5.
func begins(name string, f model.Family) bool {
	rest, ok := strings.CutPrefix(name, f.Prefix)
	return ok && (rest == "" || f.Open || strings.HasSuffix(f.Prefix, "-") ||
		strings.ContainsRune("-@:[", rune(rest[0])))
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
