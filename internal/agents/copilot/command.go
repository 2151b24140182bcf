package copilot

import (
	"slices"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

// Command adapts the matrix to the combination of flags and to this machine.
func (d driver) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	t, err := cli.Translate(d.fit(table(s.Machine.OS), s), s)
	if err != nil {
		return agent.Launch{}, nil, err
	}
	overridden(&t, s)
	id := session(&t, s)
	if s.Rehearsal != nil {
		rehearse(&t, s)
	}
	l := d.Launch(s, t)
	l.Session = id
	l.Refusals = d.refusals(l)
	return l, t.Warnings, nil
}

// fit returns the matrix for this run.
func (d driver) fit(m agent.Matrix, s agent.Spec) agent.Matrix {
	sh := s.Shared
	if sh.Sandbox.Value == setting.WorkspaceWrite {
		m.Edit(agent.Sandbox, string(setting.WorkspaceWrite), func(c *agent.Cell) { d.fitSandbox(c, s) })
		// Do not send a bypass. It would leave commands in the sandbox, but a sandbox that a person chose must not
		// depend on which of the two the CLI prefers.
		m.Edit(agent.Approval, string(setting.Yolo), func(c *agent.Cell) {
			c.Args, c.Note = []string{allowAll},
				"paths outside the workspace are refused, since a sandbox was asked for"
		})
	}
	// Only yolo approves a fetch. So unless a person chose, the tool is excluded only with yolo: the CLI prints a
	// message about the exclusion on standard output. The passthrough could not revoke it, so nothing is excluded if
	// the passthrough has any flag about the web.
	m.Edit(agent.Web, "off", func(c *agent.Cell) {
		if sh.Approval.Value == setting.Yolo && !aboutWeb(s.Passthrough) {
			c.Weak = nil
		}
		c.Note = withheld
		if !sh.Web.Asked() && c.Weak != nil {
			c.Note = notAsked
		}
	})
	if !sh.Web.Asked() && aboutWeb(s.Passthrough) {
		m.Edit(agent.Web, "on", func(c *agent.Cell) { c.Weak = []string{} })
	}
	return m
}

// fitSandbox fits the sandbox to the machine. A sandbox that a person asked for is sent even if commands will fail in
// it, which is closer to the request than running them without one.
func (d driver) fitSandbox(c *agent.Cell, s agent.Spec) {
	here := cli.Here(*c, s.Machine)
	if here.Level == agent.Full && s.Machine.OS == "linux" {
		if why := d.sandboxable(s.Machine); why != "" {
			here = agent.Cell{Level: agent.None, Note: why}
		}
	}
	if here.Level == agent.None && s.Shared.Sandbox.Asked() {
		here = agent.Cell{Level: agent.Nearest, Args: c.Args, Note: "commands will fail, as " + here.Note}
	}
	*c = here
}

func aboutWeb(passthrough []string) bool {
	return cli.Passed(passthrough, allURLs, "--allow-url", "--deny-url", "--available-tools", excludeFlag)
}

// overridden corrects the policies that the passthrough overrides.
func overridden(t *cli.Translation, s agent.Spec) {
	note := func(feature, note string) { t.Override(feature, agent.None, note) }
	if s.Shared.Approval.Value != setting.Yolo && cli.Passed(s.Passthrough, yoloFlag, "--allow-all", allowAll,
		"--allow-tool", "--assisted-approval") {
		note(agent.Approval, "the passthrough allows more")
	}
	if s.Shared.Sandbox.Value == setting.WorkspaceWrite && lastOf(s.Passthrough, sandboxFlag, noSandbox) == noSandbox {
		note(agent.Sandbox, "the passthrough turns it off")
	}
	if s.Shared.Sandbox.Value == setting.Off && lastOf(s.Passthrough, sandboxFlag, noSandbox) == sandboxFlag {
		note(agent.Sandbox, "the passthrough turns it on")
	}
	if !s.Shared.Web.Value && !s.Shared.Web.Asked() &&
		(aboutWeb(s.Passthrough) || cli.Passed(s.Passthrough, yoloFlag, "--allow-all", allowAll)) {
		note(agent.Web, "the passthrough decides")
	}
}

// lastOf returns the last of these flags.
func lastOf(args []string, flags ...string) string {
	for _, arg := range slices.Backward(args) {
		if slices.Contains(flags, arg) {
			return arg
		}
	}
	return ""
}

// session adds the flag that chooses the session, and returns the id if it is known.
func session(t *cli.Translation, s agent.Spec) string {
	id := ""
	if s.Resume != "" {
		t.Args = append(t.Args, resumeFlag+"="+s.Resume)
		t.Env = append(t.Env, stayHere)
		id = s.Resume
	}
	if s.Newest {
		t.Args = append(t.Args, continueFlag)
		t.Env = append(t.Env, stayHere)
	}
	if named, ok := cli.PassedValue(s.Passthrough, resumeFlag, "-r", sessionFlag); ok {
		id = named
	} else if s.Newest || cli.Passed(s.Passthrough, continueFlag, "--connect") {
		id = ""
	} else if id == "" && s.Mode == setting.OneShot && s.Fresh != "" {
		id = s.Fresh
		t.Args = append(t.Args, sessionFlag+"="+s.Fresh)
	}
	if !cli.IsUUID(id) { // a name, or a prefix of an id
		return ""
	}
	return id
}
