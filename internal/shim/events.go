package shim

import (
	"omniagent/internal/fault"
	"omniagent/internal/setting"
)

// eventsAlone refuses what --output events cannot be combined with: the lines are those of the command start, which
// knows nothing of it.
func (c *call) eventsAlone() error {
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
		{"--timeout", a.limited},
		{"the agent's own flags behind --", len(a.Passthrough) > 0},
	} {
		if other.given {
			return fault.New(fault.ArgError, "--output events and %s cannot be combined", other.flag).
				Hint("--output stream-json prints the agent's own lines")
		}
	}
	return nil
}

// eventArgs returns the flags of start that ask for the same.
func (c *call) eventArgs() []string {
	a := c.args
	args := []string{"--agent=" + c.driver.Name(), "--approval=" + string(c.shared.Approval.Value)}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag+"="+value)
		}
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
	if a.Continue {
		args = append(args, "--continue")
	}
	if a.Dir != "" {
		add("--cwd", c.dir)
	}
	if a.Rehearse != nil {
		args = append(args, "--rehearse")
		if *a.Rehearse != "" {
			add("--script", absolute(c.host.Dir, *a.Rehearse))
		}
	}
	if c.prompt.text != nil {
		return append(args, "--prompt="+*c.prompt.text)
	}
	return append(args, "--input-format=text")
}
