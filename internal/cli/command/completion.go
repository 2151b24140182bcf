package command

import (
	"context"
	"strings"

	"omniagent/internal/cli/contract"
)

type completionData struct {
	Shell  string `json:"shell"`
	Script string `json:"script"`
}

// PlainText returns only the script, for a shell.
func (d completionData) PlainText() string { return d.Script }

func completion() *contract.Command {
	return &contract.Command{
		Path: "completion", Summary: "print the script that completes commands in a shell", Class: contract.Script,
		Danger: contract.Safe, Version: "1.0.0",
		Detail: "The script is printed in a pipe as well; --json gives the envelope. It completes commands, flags, " +
			"agents, providers, models, settings and the ids of sessions and runs.",
		NoConfig: true, Quiet: true, Scopes: []string{}, Output: contract.TypeOf[completionData](),
		Params: []contract.Param{{
			Name: "shell", Kind: contract.Enum, Enum: contract.Shells(), Position: 1, Required: true, Help: "the shell",
		}},
		Exits: []contract.Exit{{Code: contract.Success, When: "the script is printed"}},
		Examples: []contract.Example{
			{Description: "For ~/.bashrc: source <(omniagent completion bash)", Command: "omniagent completion bash"},
			{Description: "For fish: omniagent completion fish | source", Command: "omniagent completion fish"},
		},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			var script strings.Builder
			if err := c.Program.Completion(&script, c.String("shell")); err != nil {
				return contract.Result{}, err
			}
			return contract.Result{Data: completionData{c.String("shell"), script.String()}}, nil
		},
	}
}
