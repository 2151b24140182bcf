package shim

import (
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
)

// eventsAlone returns an error for flags that --output events cannot be combined with, because the command start, which
// prints the events, does not have them.
func (c *shimCall) eventsAlone() error {
	a := c.args
	if !a.Events {
		return nil
	}
	for _, other := range []struct {
		flag  string
		given bool
	}{
		{"--report", a.Report != ""},
		{"--trace-translate", a.Trace != ""},
		{"--output-schema", a.Schema != nil},
		{"--allow-workspace-agent", a.Workspace},
		{"--agentsDir", a.AgentsDir != nil},
		{"--rehearse with --continue", a.Rehearse != nil && a.Continue},
		{"the agent's own flags behind --", len(a.Passthrough) > 0},
	} {
		if other.given {
			return fault.New(fault.ArgError, "--output events and %s cannot be combined", other.flag).
				Hint("--output stream-json prints the agent's own lines")
		}
	}
	return nil
}

// events runs the command start with equivalent flags. It starts an installed agent like a call without --output
// events.
func (c *shimCall) events() int {
	c.standby.Dismiss()
	lacks, err := c.lacks()
	if err != nil {
		return c.shim.fail(c.host, err)
	}
	return c.shim.Events(c.eventArgs(lacks), c.args.Prompt != nil, Plain{c.shared, c.args.Walls}, c.host.Signals)
}

// lacks warns about flags that the agent does not support, and returns their features, because start would refuse them.
func (c *shimCall) lacks() (features map[string]bool, err error) {
	launch, warnings, err := c.driver.Command(c.spec())
	if err != nil {
		return nil, err
	}
	warnings = slices.DeleteFunc(warnings, func(w agent.Warning) bool {
		return w.Flag == "--"+agent.Output || w.Flag == "--"+agent.Approval && c.driver.Describe().BuiltIn
	})
	features = map[string]bool{
		agent.Model: c.driver.Matrix(c.install.Version).Cell(agent.Model, "", c.mode).Level == agent.None,
	}
	for _, w := range warnings {
		features[strings.TrimPrefix(w.Flag, "--")] = w.Kind == agent.Unsupported
	}
	for _, p := range launch.Policies {
		features[p.Feature] = p.Enforced == agent.None
	}
	return features, c.tell(warnings)
}

// eventArgs returns the flags of start.
func (c *shimCall) eventArgs(lacks map[string]bool) []string {
	a := c.args
	args := []string{"--agent=" + c.driver.Name(), "--approval=" + string(c.shared.Approval.Value)}
	add := func(flag, value string) {
		if value != "" && !lacks[strings.TrimPrefix(flag, "--")] {
			args = append(args, flag+"="+value)
		}
	}
	if *a.Timeout > 0 {
		add("--timeout", a.Timeout.String())
	}
	if c.shared.Sandbox.Asked() {
		add("--sandbox", string(c.shared.Sandbox.Value))
	}
	add("--model", c.shared.Model.Value)
	add("--web", setting.OnOff(c.shared.Web.Value))
	add("--undo", a.Undo)
	add("--provider", a.Provider)
	add("--api-base", a.Base)
	add("--resume", a.Resume)
	if a.Continue && !lacks[agent.Continue] {
		args = append(args, "--continue")
	}
	if a.Dir != "" {
		add("--cwd", c.dir)
	}
	if a.Rehearse != nil {
		args = append(args, "--rehearse")
		if *a.Rehearse != "" {
			add("--script", pathname.From(c.host.Dir, *a.Rehearse))
		}
	}
	if c.prompt.text != nil {
		return append(args, "--prompt="+*c.prompt.text)
	}
	return append(args, "--input-format=text")
}
