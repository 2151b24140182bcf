package command

import (
	"context"
	"runtime"

	"omniagent/internal/cli/contract"
)

type versionData struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func version() *contract.Command {
	return &contract.Command{
		Path: "version", Summary: "print the version", Class: contract.Envelope, Danger: contract.Safe,
		Version:  "1.0.0",
		NoConfig: true, Quiet: true, Scopes: []string{}, Output: contract.TypeOf[versionData](),
		Exits: []contract.Exit{{Code: contract.Success, When: "the version is printed"}},
		Examples: []contract.Example{{
			Description: "The version, and what it was built with",
			Command:     "omniagent version",
		}},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			return contract.Result{Data: versionData{
				c.Program.Version, runtime.Version(),
				runtime.GOOS + "/" + runtime.GOARCH,
			}}, nil
		},
	}
}
