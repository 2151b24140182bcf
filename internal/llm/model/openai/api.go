package openai

import (
	_ "embed"
	"strings"
	"time"

	"omniagent/internal/llm/model"
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

//go:embed models.txt
var table string

func models() []model.Family { return model.ReadFamilies(table) }
