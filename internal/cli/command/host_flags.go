package command

import (
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/provider"
	"omniagent/internal/walls/guard"
)

// dontAsk is the mode prompt with every question denied.
const dontAsk = "dont-ask"

// sandboxParam is the flag that removes walls.
func sandboxParam() contract.Param {
	return contract.Param{
		Name: "sandbox", Kind: contract.Enum, Enum: []string{string(setting.WorkspaceWrite), string(setting.Off)},
		Also: setting.SandboxElsewhere(),
		Help: "what commands can change; off: no walls",
	}
}

// addDirParam is --add-dir.
func addDirParam() contract.Param {
	return contract.Param{Name: "add-dir", Kind: contract.File, Repeat: true, Help: "a further directory to work in"}
}

// addedDirs returns what --add-dir names, absolute.
func addedDirs(c *contract.Call) (dirs []string) {
	for _, dir := range c.Strings("add-dir") {
		dirs = append(dirs, c.Abs(dir))
	}
	return dirs
}

// hostParams returns the flags of every command that runs an agent for another side: permissions and time limits. more
// are further values of --permission-mode.
func hostParams(more ...string) []contract.Param {
	return append(approvalParams(more...),
		timeoutParam("time limit of a turn"),
		contract.Param{
			Name: "connect-timeout", Kind: contract.Duration, Default: "60s",
			Help: "until an agent prints something; native: native.first_byte",
		},
		undoParam(),
	)
}

func approvalParam() contract.Param {
	return contract.Param{
		Name: "approval", Kind: contract.Enum, Enum: approvalWords(), Also: setting.Elsewhere(),
		Help: "what runs without asking",
	}
}

// approvalParams returns the flags that say what runs unasked, with more words for --permission-mode.
func approvalParams(more ...string) []contract.Param {
	return []contract.Param{
		approvalParam(),
		{
			Name: "permission-mode", Kind: contract.Enum, Enum: append(hostWords(), more...),
			Also: setting.Elsewhere(), Help: "the same",
		},
		{Name: "auto-edit", Kind: contract.Bool, Help: "as --approval auto-edit"},
		{Name: "yolo", Kind: contract.Bool, Help: "as --approval yolo"},
		{Name: "read-only", Kind: contract.Bool, Help: "as --approval plan"},
	}
}

// agentPrograms declares the programs of the agents.
func (p Parts) agentPrograms() (list []contract.Subprocess) {
	for _, d := range p.Agents {
		list = append(list, contract.Subprocess{Binary: d.Describe().Binary, FixedArgs: []string{}})
	}
	return list
}

func approvalWords() []string { return text.Words(setting.Approvals()) }

// hostWords returns the values of --permission-mode: the approvals, and two words of hosts.
func hostWords() []string { return append(approvalWords(), "auto", "interactive") }

// meaning returns the approval for a word. An unknown word means default.
func meaning(word string) setting.Approval {
	if word == dontAsk {
		return setting.Prompt
	}
	if a, ok := setting.ParseApproval(word); ok {
		return a
	}
	return setting.Default
}

// approvalOf returns what the flags allow without a question, and the flag that says so, or "". Two flags that
// contradict each other are refused.
func approvalOf(c *contract.Call) (approval setting.Approval, flag string, err error) {
	for _, f := range []struct {
		name string
		is   setting.Approval
	}{
		{name: "approval"},
		{name: "permission-mode"},
		{"auto-edit", setting.AutoEdit},
		{"yolo", setting.Yolo},
		{"read-only", setting.Plan},
	} {
		written := "--" + f.name
		switch {
		case !c.Given(f.name) || f.is != "" && !c.Bool(f.name):
			continue
		case f.is == "":
			written += " " + c.String(f.name)
			f.is = meaning(c.String(f.name))
		}
		if flag != "" && f.is != approval {
			return "", "", fault.New(fault.ArgError, "%s and %s cannot be combined", flag, written).
				Hint("leave one of them out")
		}
		if flag == "" {
			approval, flag = f.is, written
		}
	}
	return approval, flag, nil
}

// timeoutParam returns the flag of commands that keep a clock of their own.
func timeoutParam(what string) contract.Param {
	return contract.Param{
		Name: "timeout", Kind: contract.Duration, Help: what + "; default: timeout, or none",
	}
}

// turnOf returns the limit that timeoutParam declares. The turns of a run have none: the run has.
func turnOf(c *contract.Call) time.Duration {
	if c.Command.Clock != nil {
		return 0
	}
	return clockOf(c, "timeout", "timeout")
}

// clocks returns the time limits of a conversation. For the native agent, the limit to the first sign of life is that
// of its model API.
func clocks(c *contract.Call) (turn, connect time.Duration) {
	return turnOf(c), c.Duration("connect-timeout")
}

// firstByte returns how long a model API may take to begin its answer.
func firstByte(c *contract.Call) time.Duration {
	switch limit := c.Duration("connect-timeout"); {
	case c.Given("connect-timeout") && limit == 0: // no limit; to the client zero means its default
		return math.MaxInt64
	case c.Given("connect-timeout"):
		return limit
	}
	return c.Config.Duration("native.first_byte")
}

// proxyOf returns the proxy to the model API that the flags name; nil: that of the environment.
func proxyOf(c *contract.Call) model.Proxy {
	switch {
	case c.Bool("no-proxy"):
		return http.ProxyURL(nil)
	case c.Given("proxy"):
		if at, err := url.Parse(c.String("proxy")); err == nil {
			return http.ProxyURL(at)
		}
	}
	return nil
}

// retriesOf returns how requests to the model API are repeated, as far as the flags say.
func retriesOf(c *contract.Call) *model.RetryOptions {
	var o model.RetryOptions
	if c.Given("retries") {
		o.Tries = 1 + c.Int("retries")
	}
	if c.Given("retry-delay") {
		o.First = c.Duration("retry-delay")
	}
	if o == (model.RetryOptions{}) {
		return nil
	}
	return &o
}

// modelAPI returns the limits of the native agent's model API: the default of native.first_byte for silence, and that
// of wire for connecting.
func modelAPI() *contract.Network {
	return &contract.Network{Timeout: 5 * time.Minute, Connect: 15 * time.Second}
}

// apiWords returns the words of --provider, for people.
func (p Parts) apiWords() string { return text.Either(provider.Names(p.APIs)) }

// guarded returns what guard must know of the agents to judge a call, and where our own keys are.
func (p Parts) guarded(c *contract.Call) guard.Agents { return p.guardedBeside(c.Paths, c.Host.Lookup) }

func (p Parts) guardedBeside(paths contract.Paths, lookup func(string) (string, bool)) guard.Agents {
	var all guard.Agents
	for _, d := range p.Agents {
		about := d.Describe()
		all = append(all, guard.Agent{
			Program: about.Binary, Package: about.Package, Private: about.Private,
			Settings: slices.Concat(about.Settings, about.RepoFiles),
		})
	}
	home, _ := lookup("HOME")
	if ours, err := filepath.Rel(home, paths.Config); err == nil && paths.Config != "" {
		all = append(all, guard.Agent{Private: []string{ours}})
	}
	return all
}

// veiled returns the names in a workspace that any agent obeys.
func (p Parts) veiled() (names []string) {
	for _, d := range p.Agents {
		names = append(names, launch.Veiled(d.Describe())...)
	}
	return names
}

// providing returns the names of agents that --provider may name.
func (p Parts) providing() []string {
	var names []string
	for _, d := range p.Agents {
		if d.Describe().Provides {
			names = append(names, d.Name())
		}
	}
	return names
}
