package setup

import (
	"context"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
)

type agentsData struct {
	Agents contract.Rows[parts.AgentRow] `json:"agents"`
}

func agentsList(drivers []agent.Driver) *contract.Command {
	return &contract.Command{
		Path: "agents list", Summary: "list the coding agents, with version and path if installed",
		Class: contract.Envelope, Danger: contract.Safe, Version: "1.0.0",
		Detail: "Versions are read from the files beside the program. An agent without such files is asked once, " +
			"with --version; the answer is kept.\n" +
			"Agents of your own file, and of the repository's while it is trusted, are among them.\n" +
			"ALLOWED says whether run may start one.",
		Scopes: []string{}, Output: contract.TypeOf[agentsData](), Volatile: []string{"agents"},
		List: &contract.List{
			Key: "agents", ID: "name", Order: "name",
			Columns: []string{"name", "installed", "version", "allowed", "path"},
		},
		Params: []contract.Param{{Name: "installed", Kind: contract.Bool, Help: "only installed ones"}},
		Exits:  []contract.Exit{{Code: contract.Success, When: "the agents are listed, installed or not"}},
		Examples: []contract.Example{
			{Description: "All agents", Command: "omniagent agents list"},
			{
				Description: "Names of the installed ones, a line each",
				Command:     "omniagent agents list --installed --output id",
			},
		},
		Children: versionCalls(drivers), Files: []contract.FileEffect{versionsFile(), stores.AllowlistFile()},
		Run: func(ctx context.Context, c *contract.Call) (contract.Result, error) {
			known, err := parts.KnownAgents(c, drivers)
			if err != nil {
				return contract.Result{}, err
			}
			var rows []parts.AgentRow
			for _, k := range known {
				row := askAgent(ctx, c, k)
				if row.Installed || !c.Bool("installed") {
					rows = append(rows, row)
				}
			}
			return contract.Result{Data: agentsData{contract.RowsOf(rows)}}, nil
		},
	}
}

// askAgent returns the row of an agent. It runs the program with --version only if no file tells the version.
func askAgent(ctx context.Context, c *contract.Call, d parts.KnownAgent) parts.AgentRow {
	row, install := d.Row(c)
	if row.Installed && row.Version == nil && d.From == nil {
		if version := askVersion(ctx, c, install); version != "" {
			row.Version = &version
		}
	}
	return row
}
