package anthropic

import (
	_ "embed"

	"omniagent/internal/llm/model"
)

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

//go:embed models.txt
var table string

func models() []model.Family { return model.ReadFamilies(table) }
