//go:build unix

package knowledge

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"omniagent/internal/core/event"
	"omniagent/internal/native/tool"
)

// stampEntry is one more tool: it puts a mark into a file.
func stampEntry() tool.Entry { return tool.Entry{Make: stamp} }

func stamp(env *tool.Env) tool.Tool {
	return tool.Tool{
		ToolSpec: event.ToolSpec{
			Name: "Stamp", Description: "Puts a mark into a file.", Kind: event.Write, Rule: event.RulePath,
			Changes: true,
			Input:   json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		},
		Plan: func(raw json.RawMessage) (tool.Action, error) {
			var in struct{ Path string }
			if err := json.Unmarshal(raw, &in); err != nil || in.Path == "" {
				return tool.Action{}, errors.New("Stamp needs a path")
			}
			return tool.Action{
				Kind: event.Write, Changes: true, Paths: []string{in.Path}, Title: "Stamp " + in.Path, Input: raw,
				Run: func(context.Context) tool.Result {
					path := filepath.Join(env.Files.Path(), in.Path)
					if err := os.WriteFile(path, []byte("stamped\n"), 0o600); err != nil {
						return tool.Result{Text: err.Error(), Failed: true}
					}
					return tool.Result{Text: "it is stamped"}
				},
			}, nil
		},
	}
}
