package safety

import (
	"context"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
)

type scopeData struct {
	Required       []string              `json:"required_scopes"`
	Active         []string              `json:"active_scopes"`
	Missing        []string              `json:"missing_scopes"`
	Covered        bool                  `json:"covered"`
	OverPrivileged bool                  `json:"over_privileged"`
	Excess         []string              `json:"excess_scopes" doc:"rights that no command here needs"`
	Commands       map[string]scopeOfOne `json:"commands"`
}

type scopeOfOne struct {
	Required       []string `json:"required_scopes"`
	Covered        bool     `json:"covered"`
	OverPrivileged bool     `json:"over_privileged"`
}

func checkPermissions() *contract.Command {
	return &contract.Command{
		Path: "check-permissions", Summary: "compare the rights that commands need with those configured",
		Class: contract.Envelope, Danger: contract.Safe, Version: "1.0.0",
		Detail: "Model providers do not tell what a key may do, so the rights in force are those that the setting " +
			"scopes lists.",
		Scopes: []string{}, Output: contract.TypeOf[scopeData](),
		Params: []contract.Param{{
			Name: "for", Kind: contract.Name, MaxLen: 100, Help: "only this command, as in the manifest",
		}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the rights cover what was asked about"},
			{Code: contract.NotFound, When: "there is no such command"},
			{Code: contract.AuthRequired, When: "rights are missing"},
		},
		Examples: []contract.Example{
			{Description: "All commands", Command: "omniagent check-permissions"},
			{Description: "One command", Command: "omniagent check-permissions --for config.set"},
		},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			active := c.Config.List("scopes")
			data := scopeData{Active: active, Commands: map[string]scopeOfOne{}}
			found := false
			for _, command := range c.Program.All() {
				if c.Given("for") && command.Key() != c.String("for") && command.Path != c.String("for") {
					continue
				}
				found = true
				missing, beyond := contract.Missing(command.Scopes, active), contract.Missing(active, command.Scopes)
				one := scopeOfOne{Required: command.Scopes, OverPrivileged: len(beyond) > 0}
				one.Covered, data.Missing = len(missing) == 0, append(data.Missing, missing...)
				data.Required = append(data.Required, command.Scopes...)
				data.Commands[command.Key()] = one
			}
			if !found {
				return contract.Result{}, fault.New(fault.NotFoundCode, "there is no command %s", c.String("for")).
					Hint("omniagent manifest lists the commands")
			}
			data.Excess = contract.Missing(active, data.Required)
			data.Covered, data.OverPrivileged = len(data.Missing) == 0, len(data.Excess) > 0
			if !data.Covered {
				return contract.Result{Data: data}, fault.New(fault.MissingScopes, "%d rights are missing",
					len(data.Missing)).With("missing_scopes", data.Missing)
			}
			if data.OverPrivileged {
				c.Warn("OVER_PRIVILEGED", "the configured rights go beyond what is needed: %v", data.Excess)
			}
			return contract.Result{Data: data}, nil
		},
	}
}
