package provider

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"omniagent/internal/llm/model"
)

func TestKnownModels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, name string
		window, output int64
		compact, input float64 // input: 0 where no price is known
	}{
		{Anthropic, "claude-sonnet-5-5", 1_000_000, 128_000, 0.6, 2},
		{Anthropic, "claude-sonnet-4-5-20250929", 200_000, 64_000, 0.6, 3},
		{Anthropic, "claude-sonnet-4-20250514[1m]", 200_000, 64_000, 0.6, 3},
		{Anthropic, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, 64_000, 0.6, 3},
		{OpenAI, "anthropic/claude-opus-4-5@20251101", 200_000, 64_000, 0.6, 5},
		{Anthropic, "claude-opus-4-9", 200_000, 32_000, 0.6, 0},
		{Anthropic, "claude-something-9", 200_000, 64_000, 0.6, 0},
		{Gemini, "models/gemini-2.5-pro", 1_048_576, 65_536, 0.8, 1.25},
		{Gemini, "gemini-2.5-pro-preview-05-06", 1_048_576, 65_536, 0.8, 1.25},
		{Gemini, "gemini-2.5-pro-ultra", 1_048_576, 65_536, 0.8, 0},
		{Gemini, "gemini-2.0-flash-001", 1_048_576, 8192, 0.8, 0.1},
		{Gemini, "gemini-2.0-flash-thinking-exp", 32_000, 8192, 0.6, 0.1},
		{Gemini, "gemini-3.9-flash", 1_048_576, 65_536, 0.8, 0},
		{OpenAI, "gpt-4o-2024-08-06", 128_000, 16_384, 0.6, 2.5},
		{OpenAI, "gpt-4o-2024-05-13", 128_000, 4096, 0.6, 5},
		{OpenAI, "gpt-4o-mini", 128_000, 16_384, 0.6, 0.15},
		{OpenAI, "gpt-5-nano", 400_000, 128_000, 0.6, 0.05},
		{OpenAI, "gpt-5.9", 128_000, 16_384, 0.6, 0},
		{OpenAI, "gpt-50", 128_000, 16_384, 0.6, 0},
		{OpenAI, "o1", 200_000, 100_000, 0.5, 15},
		{OpenAI, "o3-mini", 200_000, 100_000, 0.5, 1.1},
		{OpenAI, "o30", 128_000, 8192, 0.6, 0},
		{OpenAI, "qwen3-coder:30b", 128_000, 8192, 0.6, 0},
		{OpenAI, "", 128_000, 8192, 0.6, 0},
	} {
		p := Known(c.provider, c.name)
		input := 0.0
		if p.Prices != nil {
			input = p.Prices.Input
		}
		if p.Provider != c.provider || p.Model != c.name || p.Window != c.window || p.Output != c.output ||
			p.Compact != c.compact || input != c.input {
			t.Errorf("%s: got %+v, input %v", c.name, p, input)
		}
	}
}

// Every line of a table must be understood as a whole: ReadFamilies does not refuse a wrong word.
func TestLinesOfModels(t *testing.T) {
	t.Parallel()
	comment := regexp.MustCompile(`^#.*\n`)
	family := regexp.MustCompile(
		`^\S+ +[1-9][\d_]* +[1-9][\d_]*( open)?( compact=0\.\d+)?( +\d+(\.\d+)?){0,4}\n$`)
	tables, _ := filepath.Glob("../model/*/models.txt")
	count := 0
	for _, table := range tables {
		b, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			switch {
			case comment.MatchString(line):
			case family.MatchString(line):
				count++
			default:
				t.Errorf("%s: %q", table, line)
			}
		}
	}
	if count == 0 || count != len(families()) {
		t.Errorf("%d lines, %d families", count, len(families()))
	}
}

// Every row must be reachable under its own name, and its prices in order: reading from the cache is no dearer than
// reading, and answers are dearer than questions.
func TestTableOfModels(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range families() {
		if seen[r.Prefix] {
			t.Errorf("%s is there twice", r.Prefix)
		}
		seen[r.Prefix] = true
		p := Known(OpenAI, r.Prefix)
		if p.Window != r.Window || p.Output != r.Output || (p.Prices == nil) != (r.Prices == nil) ||
			r.Output > r.Window {
			t.Errorf("%s: got %+v", r.Prefix, p)
		}
		if q := p.Prices; q != nil && (q.Input <= 0 || q.Output <= q.Input || q.CacheRead > q.Input ||
			q.CacheRead <= 0 || q.CacheWrite < q.Input) {
			t.Errorf("%s: %+v", r.Prefix, *q)
		}
	}
	for _, provider := range Names(APIs()) {
		if p := Known(provider, Default(provider)); p.Prices == nil || p.Window == 0 {
			t.Errorf("nothing is known of %s, the default of %s", Default(provider), provider)
		}
	}
}

// The documents' own list of prices is older than the vendors' pages: Opus 4.5 costs a third of what it says there.
func TestPricesOfTheDocuments(t *testing.T) {
	t.Parallel()
	var v struct {
		Pricing map[string][]*float64 `json:"pricing"`
		Compact map[string]any        `json:"compaction_thresholds"`
	}
	read(t, "models.json", &v)
	for name, want := range v.Pricing {
		vendor, short, _ := strings.Cut(name, ":")
		full := map[string]string{"opus-4.5": "claude-opus-4-5", "sonnet-4.5": "claude-sonnet-4-5"}[short]
		switch {
		case full != "":
		case vendor == "gemini":
			full = "gemini-" + short
		default:
			full = short
		}
		p := Known(vendor, full)
		if p.Prices == nil {
			t.Errorf("%s has no price", full)
			continue
		}
		got := []float64{p.Prices.Input, p.Prices.Output, p.Prices.CacheRead, p.Prices.CacheWrite}
		for i, price := range want {
			if full == "claude-opus-4-5" {
				if *price != 3*got[i] {
					t.Errorf("%s: price %d is %v", full, i, got[i])
				}
				continue
			}
			if price != nil && *price != got[i] {
				t.Errorf("%s: price %d is %v, not %v", full, i, got[i], *price)
			}
		}
	}
	for kind, name := range map[string]string{
		"claude": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro", "gemini-thinking": "gemini-2.0-flash-thinking",
		"openai": "gpt-4o",
	} {
		if want, _ := v.Compact[kind].(float64); want == 0 || Known("", name).Compact != want {
			t.Errorf("%s: %v, not %v", kind, Known("", name).Compact, want)
		}
	}
	cost := Known(OpenAI, "gpt-4o").Prices.Cost(model.Usage{Input: 1_000_000, Output: 100_000})
	if cost != 3.5 {
		t.Errorf("a million in and a tenth of one out cost %v", cost)
	}
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
