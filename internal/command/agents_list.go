package command

import (
	"context"

	"omniagent/internal/agent"
	"omniagent/internal/contract"
)

type agentRow struct {
	Name           string  `json:"name"`
	Title          string  `json:"title"`
	Installed      bool    `json:"installed"`
	Version        *string `json:"version" doc:"null: not installed, or not to be told without starting it"`
	Path           *string `json:"path"`
	InstallCommand string  `json:"install_command"`
	DefinedIn      *string `json:"defined_in" doc:"the file that defines it; null: built in"`
}

type agentsData struct {
	Agents contract.Rows[agentRow] `json:"agents"`
}

func agentsList(drivers []agent.Driver) *contract.Command {
	return &contract.Command{
		Path: "agents list", Summary: "list the coding agents, with version and path if installed", Class: contract.Envelope, Danger: contract.Safe, Version: "1.0.0",
		Detail: "No agent is started: versions are read from the files beside the program. A version that cannot be read so is left out.\n" +
			"Agents of your own file, and of the repository's while it is trusted, are among them.",
		Scopes: []string{}, Output: contract.TypeOf[agentsData](), Volatile: []string{"agents"},
		List:   &contract.List{Key: "agents", ID: "name", Order: "name", Columns: []string{"name", "installed", "version", "path"}},
		Params: []contract.Param{{Name: "installed", Kind: contract.Bool, Help: "only installed ones"}},
		Exits:  []contract.Exit{{Code: contract.Success, When: "the agents are listed, installed or not"}},
		Examples: []contract.Example{
			{Description: "All agents", Command: "omniagent agents list"},
			{Description: "Names of the installed ones, a line each", Command: "omniagent agents list --installed --output id"},
		},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			known, err := knownAgents(c, drivers)
			if err != nil {
				return contract.Result{}, err
			}
			rows := []agentRow{}
			for _, k := range known {
				row := describeAgent(c, k)
				if row.Installed || !c.Bool("installed") {
					rows = append(rows, row)
				}
			}
			return contract.Result{Data: agentsData{contract.RowsOf(rows)}}, nil
		},
	}
}

func describeAgent(c *contract.Call, d knownAgent) agentRow {
	about := d.Describe()
	row := agentRow{Name: d.Name(), Title: about.Title, InstallCommand: about.InstallCommand, DefinedIn: d.from}
	install, err := d.Locate(agent.Env{Lookup: c.Host.Lookup, Dir: c.Dir()})
	if err != nil {
		return row
	}
	row.Installed, row.Path = true, &install.Path
	if install.Version != "" {
		row.Version = &install.Version
	}
	return row
}
