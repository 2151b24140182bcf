package command

import (
	"context"

	"omniagent/internal/cli/contract"
)

type manifestData struct {
	SchemaVersion    string         `json:"schema_version"`
	FrameworkVersion string         `json:"framework_version"`
	Etag             string         `json:"etag"`
	Commands         map[string]any `json:"commands"`
}

func manifest() *contract.Command {
	return &contract.Command{
		Path: "manifest", Summary: "describe every command, flag and exit code in one call", Class: contract.Envelope,
		Danger: contract.Safe, Version: "1.0.0",
		Detail: "Flags and exit codes that all commands share stand once, in the entry omniagent; those that some " +
			"share, in\nmeta.groups, where each group names its commands. omniagent --schema repeats them with each " +
			"command.",
		NoConfig: true, Quiet: true, Scopes: []string{}, Output: contract.TypeOf[manifestData](),
		Params: []contract.Param{{
			Name: "etag", Kind: contract.Text, MaxLen: 128,
			Help: "etag of the copy at hand; nothing is sent when it is current",
		}},
		Exits: []contract.Exit{{Code: contract.Success, When: "the manifest is printed, or has not changed"}},
		Examples: []contract.Example{
			{Description: "Everything that can be called", Command: "omniagent manifest"},
			{Description: "Only if it has changed", Command: "omniagent manifest --etag sha256:0123456789abcdef"},
		},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			data, meta, etag := c.Program.Manifest()
			if c.String("etag") == etag {
				return contract.Result{Meta: map[string]any{"not_modified": true}}, nil
			}
			return contract.Result{Data: data, Meta: meta}, nil
		},
	}
}
