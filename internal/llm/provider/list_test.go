package provider

import "omniagent/internal/llm/model"

// The words of --provider.
const (
	OpenAI    = "openai"
	Codex     = "codex"
	Gemini    = "gemini"
	Anthropic = "anthropic"
)

func apiOf(name string) model.API {
	api, _ := list(APIs()).find(name)
	return api
}

// Default is the model of an API where none was named.
func Default(name string) string { return apiOf(name).Default }

// Known is what is known of a model behind an API.
func Known(api, name string) model.Profile { return list(APIs()).known(apiOf(api), name) }

func families() (all []model.Family) {
	for _, api := range APIs() {
		if api.Account == "" {
			all = append(all, api.Models()...)
		}
	}
	return all
}
