package command

import (
	"context"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/contract"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
	"omniagent/internal/text"
)

type agentData struct {
	Agent    agentRow      `json:"agent"`
	Login    string        `json:"login"`
	Measured string        `json:"measured_with" doc:"the version that the capabilities were run with; empty: none, they are as the file says"`
	Limit    *promptLimit  `json:"prompt_limit" doc:"null: none is known"`
	Features []featureData `json:"capabilities"`
}

type promptLimit struct {
	Characters int64  `json:"characters"`
	Bytes      int64  `json:"bytes"`
	Note       string `json:"note"`
}

type featureData struct {
	Feature     string   `json:"feature"`
	Value       string   `json:"value"`
	OneShot     cellData `json:"one_shot"`
	Interactive cellData `json:"interactive"`
}

type cellData struct {
	Level string   `json:"level" enum:"yes,nearest,no"`
	Args  []string `json:"args"`
	Weak  []string `json:"args_untyped" doc:"what is sent where nobody asked for it"`
	Env   []string `json:"env"`
	Needs []string `json:"needs"`
	Note  string   `json:"note"`
}

func agentsShow(drivers []agent.Driver) *contract.Command {
	return &contract.Command{
		Path: "agents show", Summary: "show what one agent can do, and what is sent to it", Class: contract.Envelope, Danger: contract.Safe, Version: "1.0.0",
		Detail: "The same table translates the flags of a call without a command. Nothing is started.",
		Scopes: []string{}, Output: contract.TypeOf[agentData](), Volatile: []string{"agent"},
		Params: []contract.Param{{Name: "name", Kind: contract.ID, Position: 1, Required: true, Stdin: true, Help: "the agent"}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the agent is shown"},
			{Code: contract.NotFound, When: "there is no such agent"},
		},
		Examples: []contract.Example{{Description: "What codex can do", Command: "omniagent agents show codex"}},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			name := strings.ToLower(c.String("name"))
			names := []string{}
			known, err := knownAgents(c, drivers)
			if err != nil {
				return contract.Result{}, err
			}
			for _, k := range known {
				if k.answersTo(name) {
					return contract.Result{Data: showAgent(c, k)}, nil
				}
				names = append(names, k.Name())
			}
			f := fault.New(fault.NotFoundCode, "there is no agent %q; there are %s", name, strings.Join(names, ", "))
			if near := text.Nearest(name, names); near != "" {
				return contract.Result{}, f.Hint("omniagent agents show %s", near)
			}
			return contract.Result{}, f.Hint("omniagent agents list")
		},
	}
}

func showAgent(c *contract.Call, d knownAgent) agentData {
	row := describeAgent(c, d)
	version := ""
	if row.Version != nil {
		version = *row.Version
	}
	m := d.Matrix(version)
	data := agentData{Agent: row, Login: d.Describe().Login, Measured: m.Measured, Features: []featureData{}}
	if m.Limit != (agent.Limit{}) {
		data.Limit = &promptLimit{m.Limit.Characters, m.Limit.Bytes, m.Limit.Note}
	}
	for _, r := range m.Rows {
		data.Features = append(data.Features, featureData{r.Feature, r.Value, cellOf(r.Cell(setting.OneShot)), cellOf(r.Cell(setting.Interactive))})
	}
	return data
}

func cellOf(c agent.Cell) cellData {
	weak := c.Weak
	if weak == nil {
		weak = c.Args
	}
	return cellData{string(c.Level), listed(c.Args), listed(weak), listed(c.Env), listed(c.Needs), c.Note}
}

func listed(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
