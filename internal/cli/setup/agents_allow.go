package setup

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch/allow"
	"omniagent/internal/sys/config"
)

type allowResult struct {
	ID     string                `json:"id" doc:"the agent"`
	OK     bool                  `json:"ok"`
	Change string                `json:"change" enum:"allowed,changed,unchanged,denied,removed,not_found,failed"`
	Files  []string              `json:"files" doc:"whose content is recorded: the program, its package and its interpreter"`
	Error  *contract.ErrorDetail `json:"error"`
}

type allowData struct {
	Summary contract.BatchSummary `json:"summary"`
	Results []allowResult         `json:"results"`
}

// PlainText returns a line for each agent. It leaves out the many files of a package.
func (d allowData) PlainText() string {
	var b strings.Builder
	for _, r := range d.Results {
		fmt.Fprintf(&b, "%s: %s", r.ID, strings.ReplaceAll(r.Change, "_", " "))
		if n := len(r.Files); n > 0 {
			fmt.Fprintf(&b, ", %s (%s)", r.Files[0], text.Plural(n, "file"))
		}
		if r.Error != nil {
			fmt.Fprintf(&b, ": %s", r.Error.Message)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (p commands) agentsAllow() *contract.Command {
	cmd := decision("agents allow", "let runs start these agents as they are now")
	cmd.Detail = "Records the real path of the program and of its interpreter, and the content of its files. If " +
		"any of them is another\n" +
		"at a start, the agent is refused until it is allowed again. It lifts `agents deny`."
	cmd.Exits = append(cmd.Exits, contract.Exit{Code: contract.PermissionDenied, When: "others may change a program"})
	cmd.Params = append(cmd.Params, contract.Param{
		Name: "remove", Kind: contract.Bool, Help: "take them off the list",
	})
	cmd.Examples = []contract.Example{
		{Description: "Allow codex", Command: "omniagent agents allow codex"},
		{Description: "See what would be recorded", Command: "omniagent agents allow codex claude --dry-run"},
	}
	cmd.Run = func(_ context.Context, c *contract.Call) (contract.Result, error) {
		if c.Bool("remove") {
			return p.decide(c, removeAgent)
		}
		return p.decide(c, allowAgent)
	}
	return cmd
}

func (p commands) agentsDeny() *contract.Command {
	cmd := decision("agents deny", "forbid these agents, except in direct calls (omniagent --agent NAME)")
	cmd.Detail = "Every host and every run refuses a denied agent. `agents allow` lifts it."
	cmd.Examples = []contract.Example{{Description: "Deny gemini", Command: "omniagent agents deny gemini"}}
	cmd.Run = func(_ context.Context, c *contract.Call) (contract.Result, error) { return p.decide(c, denyAgent) }
	return cmd
}

// decision returns the declarations shared by agents allow and agents deny.
func decision(path, summary string) *contract.Command {
	return &contract.Command{
		Path: path, Summary: summary, Class: contract.Envelope, Danger: contract.Mutating, Version: "1.0.0",
		DryRun: true, Reversible: true, Batch: true, Scopes: []string{}, Output: contract.TypeOf[allowData](),
		Params: []contract.Param{{
			Name: "name", Kind: contract.ID, Position: 1, Variadic: true, Required: true, Stdin: true,
			Help: "the agents",
		}},
		Files: []contract.FileEffect{stores.AllowlistFile()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is recorded"},
			{Code: contract.PartialFailure, When: "some failed; see results[]"},
			{Code: contract.PreconditionFailed, When: "no home, the lock is held, or an unsafe path"},
			{Code: contract.NotFound, When: "no such agent, or not installed"},
		},
	}
}

// decide calls one for each agent that the call names.
func (p commands) decide(
	c *contract.Call,
	one func(*contract.Call, allow.List, parts.KnownAgent, *allowResult) error,
) (contract.Result, error) {
	known, err := parts.KnownAgents(c, p.Agents)
	if err != nil {
		return contract.Result{}, err
	}
	names, list := c.Strings("name"), stores.Allowlist(c)
	data, all := allowData{}, contract.Outcomes{}
	for _, name := range names {
		r := allowResult{ID: name}
		k, err := pick(known, name)
		if err == nil {
			r.ID = k.Name()
			err = one(c, list, k, &r)
		}
		r.Error = all.Add(r.Change, err)
		if r.OK = err == nil; err != nil {
			r.Change = "failed"
		}
		data.Results = append(data.Results, r)
	}
	data.Summary = all.BatchSummary
	return all.Result(data, map[string]any{"agents": names})
}

// pick returns the agent of that name. It refuses an agent that is built in, which needs no permission.
func pick(known []parts.KnownAgent, name string) (parts.KnownAgent, error) {
	k, err := parts.Named(known, name)
	if err == nil && k.Describe().BuiltIn {
		err = fault.New(fault.Unsupported, "%s is a part of this program: no other program is started for it", name).
			Hint("omniagent agents list")
	}
	return k, err
}

func allowAgent(c *contract.Call, list allow.List, k parts.KnownAgent, r *allowResult) error {
	_, install := k.Row(c)
	if install.Path == "" {
		_, err := k.Locate(agent.Env{Lookup: c.Host.Lookup, Dir: c.Dir()})
		return err
	}
	e, err := parts.UserGate(c, k.Name(), c.Dir()).Facts(parts.RequestFor(k, install))
	if err != nil {
		return err
	}
	for _, f := range e.Files {
		r.Files = append(r.Files, f.Path)
	}
	r.Change = "allowed"
	return putAgent(c, list, e, r, func(old allow.Entry) bool { return old.Allows(e) })
}

func denyAgent(c *contract.Call, list allow.List, k parts.KnownAgent, r *allowResult) error {
	r.Change = "denied"
	e := allow.Entry{Name: k.Name(), Denied: true, At: time.Now()}
	return putAgent(c, list, e, r, func(old allow.Entry) bool { return old.Denied })
}

// putAgent records a decision, unless same reports that the recorded one is the same. It compares again under the lock
// of the list, because another process may have changed it.
func putAgent(
	c *contract.Call, list allow.List, e allow.Entry, r *allowResult, same func(allow.Entry) bool,
) error {
	first := r.Change
	unchanged := func(old allow.Entry, had bool) bool {
		switch r.Change = first; {
		case had && same(old):
			r.Change = "unchanged"
		case had:
			r.Change = "changed"
		}
		return r.Change == "unchanged"
	}
	old, had, err := list.Find(e.Name)
	if err != nil || unchanged(old, had) {
		return err
	}
	return keepDecision(c, func() error { return list.Put(e, unchanged) })
}

func removeAgent(c *contract.Call, list allow.List, k parts.KnownAgent, r *allowResult) error {
	_, had, err := list.Find(k.Name())
	if err == nil && had {
		err = keepDecision(c, func() error {
			had, err = list.Remove(k.Name())
			return err
		})
	}
	if r.Change = "removed"; !had {
		r.Change = "not_found"
	}
	return err
}

// keepDecision calls write unless this is a dry run. It refuses if the list would be a file of the repository, which
// could then allow agents itself.
func keepDecision(c *contract.Call, write func() error) error {
	if config.OpenTrust(c.TrustFile()).Refuses(filepath.Join(c.Dir(), "any")) {
		return fault.New(fault.Unsafe, "the list of agents would be in the repository itself, in %s",
			filepath.Dir(c.TrustFile())).Hint("set XDG_STATE_HOME to another place")
	}
	if c.DryRun() {
		return nil
	}
	return write()
}
