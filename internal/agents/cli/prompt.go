package cli

import (
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
)

// WithPrompt returns the arguments of a launch with the prompt inserted. It refuses a prompt that the agent would read
// as a flag: the author of a prompt must not choose what the agent may do.
func WithPrompt(l agent.Launch, name, text string) ([]string, error) {
	if l.PromptBare && strings.HasPrefix(text, "-") {
		return nil, fault.New(fault.ArgError, "the prompt begins with \"-\", and %s could take it for a flag", name).
			Hint(`define its prompt with type = "stdin", or with type = "flag" and flag = ["--"]`)
	}
	return slices.Insert(slices.Clone(l.Args), l.PromptAt, text), nil
}
