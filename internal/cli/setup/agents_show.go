package setup

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/work/rehearsal"
)

type agentData struct {
	Agent    parts.AgentRow `json:"agent"`
	Login    string         `json:"login"`
	Measured string         `json:"measured_with" doc:"the version that the capabilities were run with; empty: none, they are as the file says"`
	Limit    *promptLimit   `json:"prompt_limit" doc:"null: none is known"`
	Features []featureData  `json:"capabilities"`
}

type promptLimit struct {
	Characters int64  `json:"characters"`
	Bytes      int64  `json:"bytes"`
	Note       string `json:"note"`
}

type featureData struct {
	Feature     string    `json:"feature"`
	Value       string    `json:"value"`
	OneShot     cellData  `json:"one_shot"`
	Interactive cellData  `json:"interactive"`
	Seen        *seenCell `json:"seen" doc:"what omniagent doctor --rehearse saw of this very program; null: it was not tried, or something is another since"`
}

type seenCell struct {
	Verdict  string `json:"verdict" enum:"holds,differs,cannot-be-tried,unknown"`
	Observed string `json:"observed"`
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
		Path: "agents show", Summary: "show what one agent can do, and what is sent to it", Class: contract.Envelope,
		Danger: contract.Safe, Version: "1.0.0",
		Detail: "The same table translates the flags of a call without a command. Nothing is started.",
		Scopes: []string{}, Output: contract.TypeOf[agentData](), Volatile: []string{"agent"},
		Params: []contract.Param{{
			Name: "name", Kind: contract.ID, Position: 1, Required: true, Stdin: true, Help: "the agent",
		}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the agent is shown"},
			{Code: contract.NotFound, When: "there is no such agent"},
		},
		Examples: []contract.Example{{Description: "What codex can do", Command: "omniagent agents show codex"}},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			name := strings.ToLower(c.String("name"))
			known, err := parts.KnownAgents(c, drivers)
			if err != nil {
				return contract.Result{}, err
			}
			if k, ok := agent.Find(known, name); ok {
				return contract.Result{Data: showAgent(c, k)}, nil
			}
			names := parts.NamesOf(known)
			f := fault.New(fault.NotFoundCode, "there is no agent %q; there are %s", name, strings.Join(names, ", "))
			if near := text.Nearest(name, names); near != "" {
				return contract.Result{}, f.Hint("omniagent agents show %s", near)
			}
			return contract.Result{}, f.Hint("omniagent agents list")
		},
	}
}

func showAgent(c *contract.Call, d parts.KnownAgent) agentData {
	row, install := d.Row(c)
	version := ""
	if row.Version != nil {
		version = *row.Version
	}
	m := d.Matrix(version)
	data := agentData{Agent: row, Login: d.Describe().Login, Measured: m.Measured}
	if m.Limit != (agent.Limit{}) {
		data.Limit = &promptLimit{m.Limit.Characters, m.Limit.Bytes, m.Limit.Note}
	}
	seen := map[[2]string]*seenCell{}
	if record, state := rehearsals(c).Load(d.Name(), install); row.Installed && state == rehearsal.Fresh {
		for _, f := range record.Findings {
			seen[[2]string{f.Feature, f.Value}] = &seenCell{string(f.Verdict), f.Observed}
		}
	}
	for _, r := range m.Rows {
		data.Features = append(data.Features, featureData{
			r.Feature, r.Value, cellOf(r.Cell(setting.OneShot)),
			cellOf(r.Cell(setting.Interactive)), seen[[2]string{r.Feature, r.Value}],
		})
	}
	return data
}

func cellOf(c agent.Cell) cellData {
	weak := c.Weak
	if weak == nil {
		weak = c.Args
	}
	return cellData{string(c.Level), c.Args, weak, c.Env, c.Needs, c.Note}
}

// ForPeople makes the lines fit the screen.
func (agentData) ForPeople() {}

// PlainText returns the table with one paragraph for each row, since what is sent is too long for columns.
func (d agentData) PlainText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)", d.Agent.Title, d.Agent.Name)
	switch {
	case !d.Agent.Installed:
		fmt.Fprintf(&b, ": not installed; %s", d.Agent.InstallCommand)
	case d.Agent.Version != nil:
		fmt.Fprintf(&b, " %s", *d.Agent.Version)
	}
	fmt.Fprintf(&b, "\nlogin: %s\nmeasured with: %s\n", d.Login, d.Measured)
	if d.Limit != nil {
		fmt.Fprintf(&b, "longest one-shot prompt: %s\n", d.Limit.text())
	}
	for _, f := range d.Features {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(f.Feature+" "+f.Value))
		if reflect.DeepEqual(f.OneShot, f.Interactive) {
			f.OneShot.describe(&b, "")
		} else {
			f.OneShot.describe(&b, "one-shot: ")
			f.Interactive.describe(&b, "interactive: ")
		}
		if f.Seen != nil {
			fmt.Fprintf(&b, "  seen here: %s; %s\n", strings.ReplaceAll(f.Seen.Verdict, "-", " "), f.Seen.Observed)
		}
	}
	return b.String()
}

func (l promptLimit) text() string {
	var parts []string
	if l.Characters > 0 {
		parts = append(parts, fmt.Sprintf("%d characters", l.Characters))
	}
	if l.Bytes > 0 {
		parts = append(parts, fmt.Sprintf("%d bytes", l.Bytes))
	}
	return strings.Join(append(parts, l.Note), "; ")
}

func (c cellData) describe(b *strings.Builder, mode string) {
	fmt.Fprintf(b, "  %s%s", mode, c.Level)
	if c.Note != "" {
		fmt.Fprintf(b, "; %s", c.Note)
	}
	b.WriteString("\n")
	line := func(title string, words []string) {
		if len(words) > 0 {
			fmt.Fprintf(b, "    %s: %s\n", title, strings.Join(words, " "))
		}
	}
	line("sends", c.Args)
	if !slices.Equal(c.Args, c.Weak) {
		if line("untyped", c.Weak); len(c.Weak) == 0 {
			b.WriteString("    untyped: nothing\n")
		}
	}
	line("sets", c.Env)
	line("needs", c.Needs)
}
