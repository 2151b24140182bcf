package copilot

import (
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/setting"
)

// Command translates. What depends on two flags at once, or on this machine, is fitted into the matrix before.
func (d driver) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	t := cli.Translate(d.fit(table(s.Machine.OS), s), s)
	overridden(&t, s)
	id := session(&t, s)
	var files []agent.File
	var remove []string
	if s.Rehearsal != nil {
		files, remove = rehearse(&t, s)
	}
	l := d.Launch(s, t)
	l.Env = cli.Environ(s.Env, t.Env, remove...)
	l.Files = files
	l.Session = id
	l.Refusals = d.refusals(l)
	return l, t.Warnings, nil
}

// fit is the matrix as it is for this run.
func (d driver) fit(m agent.Matrix, s agent.Spec) agent.Matrix {
	sh := s.Shared
	if sh.Sandbox.Value == setting.WorkspaceWrite {
		change(&m, agent.Sandbox, string(setting.WorkspaceWrite), func(c *agent.Cell) { d.hold(c, s) })
		// Here the bypass would leave commands in the sandbox too. It is not sent all the same: a sandbox that a person
		// chose must not depend on how the CLI weighs the two.
		change(&m, agent.Approval, string(setting.Yolo), func(c *agent.Cell) {
			c.Args, c.Note = []string{allowAll},
				"paths outside the workspace are refused, since a sandbox was asked for"
		})
	}
	// A fetch needs an approval, which only yolo gives. So where nobody chose, the tool is withheld with yolo only: the
	// CLI tells of it on standard output. And the passthrough could not take the exclusion back, so it gives way to
	// whatever is said there about the web.
	change(&m, agent.Web, "off", func(c *agent.Cell) {
		if sh.Approval.Value == setting.Yolo && !aboutWeb(s.Passthrough) {
			c.Weak = nil
		}
		c.Note = withheld
		if !sh.Web.Asked() && c.Weak != nil {
			c.Note = notAsked
		}
	})
	if !sh.Web.Asked() && aboutWeb(s.Passthrough) {
		change(&m, agent.Web, "on", func(c *agent.Cell) { c.Weak = nothing() })
	}
	return m
}

// hold fits the sandbox to the machine. What a person asked for is sent even where commands will fail: that is closer
// to it than running them without.
func (d driver) hold(c *agent.Cell, s agent.Spec) {
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

func change(m *agent.Matrix, feature, value string, f func(*agent.Cell)) {
	i := slices.IndexFunc(m.Rows, func(r agent.Row) bool { return r.Feature == feature && r.Value == value })
	f(&m.Rows[i].Interactive)
	f(&m.Rows[i].OneShot)
}

func aboutWeb(passthrough []string) bool {
	return cli.Passed(passthrough, allURLs, "--allow-url", "--deny-url", "--available-tools", excludeFlag)
}

// overridden corrects the policies where the passthrough decides.
func overridden(t *cli.Translation, s agent.Spec) {
	note := func(feature, note string) {
		for i := range t.Policies {
			if t.Policies[i].Feature == feature && t.Policies[i].Enforced != agent.None {
				t.Policies[i].Enforced, t.Policies[i].Note = agent.None, note
			}
		}
	}
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

// lastOf is the flag among these that stands last.
func lastOf(args []string, flags ...string) string {
	for _, arg := range slices.Backward(args) {
		if slices.Contains(flags, arg) {
			return arg
		}
	}
	return ""
}

// session adds the flag that chooses the session, and returns its id where that is known.
func session(t *cli.Translation, s agent.Spec) string {
	id := ""
	if s.Resume != "" {
		t.Args = append(t.Args, resumeFlag+"="+s.Resume)
		t.Env = append(t.Env, stayHere)
		id = s.Resume
	}
	if named, ok := cli.PassedValue(s.Passthrough, resumeFlag, "-r", sessionFlag); ok {
		id = named
	} else if cli.Passed(s.Passthrough, "--continue", "--connect") {
		id = ""
	} else if id == "" && s.Mode == setting.OneShot && s.Fresh != "" {
		id = s.Fresh
		t.Args = append(t.Args, sessionFlag+"="+s.Fresh)
	}
	if !isID(id) { // a name, or the beginning of an id
		return ""
	}
	return id
}

// isID says whether it is a whole UUID.
func isID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, r := range s {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if r != '-' {
				return false
			}
		} else if !strings.ContainsRune("0123456789abcdefABCDEF", r) {
			return false
		}
	}
	return true
}
