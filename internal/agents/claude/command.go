package claude

import (
	"encoding/json"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

// Command adapts the matrix to the combination of flags: the sandbox's settings depend on the approval, and a sandbox
// that a person asked for rules out a bypass.
func (d driver) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	m := fit(table(s.Machine.OS), s)
	t, err := cli.Translate(m, s)
	if err != nil {
		return agent.Launch{}, nil, err
	}
	overridden(&t, s)
	id := session(&t, s)
	schema := "--json-schema=" + string(s.Schema)
	native := s.Schema != nil && s.Mode == setting.OneShot && !cli.Passed(s.Passthrough, "--json-schema") &&
		startable(schema, s.Machine.OS)
	if native {
		t.Args = append(t.Args, schema)
	}
	if s.Rehearsal != nil {
		rehearse(&t, s)
	}
	if s.Walled && s.Machine.Root && !cli.Passed(s.Passthrough, settings) {
		// Its own sandbox mounts another /proc, which the kernel refuses to the superuser in our sandbox. The existing
		// one shows only the agent's processes.
		t.Args = withSettings(t.Args, "sandbox", map[string]any{"enableWeakerNestedSandbox": true})
	}
	if s.Walled && s.Machine.Root {
		t.Env = append(t.Env, "IS_SANDBOX=1") // it runs in our sandbox; else it refuses a bypass to root
	}
	l := d.Launch(s, t)
	l.Session, l.Native = id, native
	if l.Session == "" || configHome(l.Env) == "" { // otherwise the observer reports the refusals
		l.Refusals = refusals(l)
	}
	return l, t.Warnings, nil
}

const (
	longestArgument = 128<<10 - 1 // Linux's limit for one argument; other systems allow more
	// Windows allows 32,767 characters for the whole command line; this leaves room for the rest
	longestLine = 30_000
)

// startable reports whether the system accepts an argument of that length. On Windows, quotes and the backslashes
// before them are doubled.
func startable(arg, system string) bool {
	if system == "windows" {
		return len(arg)+strings.Count(arg, `"`)+strings.Count(arg, `\`) <= longestLine
	}
	return len(arg) <= longestArgument
}

// fit returns the matrix for this run.
func fit(m agent.Matrix, s agent.Spec) agent.Matrix {
	sh := s.Shared
	chosen := sh.Sandbox.Asked()
	if sh.Sandbox.Value == setting.WorkspaceWrite {
		m.Edit(agent.Sandbox, string(setting.WorkspaceWrite), func(c *agent.Cell) {
			args := []string{settings + "=" + encode(sandbox(sh.Approval.Value.Edits()))}
			switch {
			case cli.Passed(s.Passthrough, settings) && !asksForSandbox(s.Passthrough):
				// The last --settings replaces the others, so sending a default has no effect.
				*c = agent.Cell{Level: agent.None, Note: "the passthrough's --settings replaces ours"}
			case chosen && !works(*c, s.Machine):
				// Send it anyway, so that the CLI refuses to start rather than run without a sandbox. Warn if a person
				// typed it.
				level := agent.Full
				if sh.Sandbox.Typed() {
					level = agent.Nearest
				}
				*c = agent.Cell{Level: level, Args: args, Note: "the CLI will not start, as " +
					cli.Here(*c, s.Machine).Note}
			case c.Level == agent.Full:
				c.Args = args
			}
		})
		if sh.Approval.Value == setting.Yolo {
			// A bypass leaves commands in the sandbox, but file tools could write anywhere.
			m.Edit(agent.Approval, string(setting.Yolo), func(c *agent.Cell) {
				*c = agent.Cell{
					Level: agent.Nearest, Args: []string{modeFlag, "acceptEdits"},
					Note: "all commands run, in the sandbox; file tools outside the workspace and MCP tools still " +
						"ask, since a bypass would free them from it",
				}
			})
		}
	}
	if cli.Passed(s.Passthrough, settings) {
		// The last --settings replaces the others, so sending the off implied by yolo has no effect.
		m.Edit(agent.Sandbox, string(setting.Off), func(c *agent.Cell) { c.Weak = []string{} })
	}
	if listsTools(s.Passthrough) {
		// The passthrough could not allow a tool that we disallow.
		m.Edit(agent.Web, setting.OnOff(sh.Web.Value), func(c *agent.Cell) { c.Weak = []string{} })
	}
	return m
}

func listsTools(passthrough []string) bool {
	return cli.Passed(passthrough, "--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools",
		"--tools")
}

func works(c agent.Cell, m agent.Machine) bool { return cli.Here(c, m).Level == agent.Full }

// overridden corrects the policies that the passthrough overrides.
func overridden(t *cli.Translation, s agent.Spec) {
	if cli.Passed(s.Passthrough, modeFlag) && !cli.Passed(t.Args, bypass) { // a bypass always wins
		t.Override(agent.Approval, agent.None, "the passthrough's "+modeFlag+" decides")
	}
	if cli.Passed(s.Passthrough, settings) {
		if !asksForSandbox(s.Passthrough) || s.Shared.Sandbox.Value == setting.Off {
			t.Override(agent.Sandbox, agent.None, "the passthrough's "+settings+" decides")
		}
		if !cli.Passed(t.Args, bypass) { // a bypass allows everything
			t.Override(agent.Approval, agent.Nearest, "the passthrough's "+settings+
				" replaces ours: its rules, or a sandbox in those of a repository, may let more run unasked")
		}
	}
	if bypasses(s.Passthrough) {
		if s.Shared.Approval.Value != setting.Yolo {
			t.Override(agent.Approval, agent.None, "the passthrough bypasses it")
		}
		if s.Shared.Sandbox.Value == setting.WorkspaceWrite {
			t.Override(agent.Sandbox, agent.Nearest, "it holds commands; the passthrough frees the file tools from it")
		}
	}
	if listsTools(s.Passthrough) && !s.Shared.Web.Asked() {
		t.Override(agent.Web, agent.None, "the passthrough's lists of tools decide")
	}
}

// session adds the flag that chooses the session, and returns the id if it is known.
func session(t *cli.Translation, s agent.Spec) string {
	if s.Resume != "" {
		t.Args = append(t.Args, "--resume="+s.Resume)
	}
	if s.Newest {
		t.Args = append(t.Args, "--continue")
	}
	if id, ok := cli.PassedValue(s.Passthrough, "--session-id"); ok {
		return id
	}
	resumed, resumes := cli.PassedValue(s.Passthrough, "--resume", "-r")
	if !resumes {
		resumed, resumes = s.Resume, s.Resume != ""
	}
	elsewhere := cli.Passed(s.Passthrough, "--from-pr", "--teleport", "--cloud", "--bg", "--background")
	newest := s.Newest || cli.Passed(s.Passthrough, "--continue", "-c")
	switch fork := cli.Passed(s.Passthrough, "--fork-session"); {
	case !fork && (elsewhere || newest || resumes && !cli.IsUUID(resumed)):
		return "" // a name, a search, or the newest session
	case !fork && resumes:
		return resumed
	case s.Mode != setting.OneShot || s.Fresh == "" || elsewhere:
		return ""
	}
	t.Args = append(t.Args, "--session-id="+s.Fresh)
	return s.Fresh
}

// refusals returns the known reasons why the CLI does not start.
func refusals(l agent.Launch) []agent.Refusal {
	var out []agent.Refusal
	s := l.Spec
	if s.Machine.Root && bypasses(l.Args) && !deliberate(l.Env) {
		out = append(out, agent.Refusal{
			Reason:  "Claude Code refuses " + bypass + " to the superuser",
			Fix:     "run it as another user, or if this machine is a sandbox, declare that",
			Command: "export IS_SANDBOX=1",
		})
	}
	if s.Shared.Sandbox.Value == setting.WorkspaceWrite && s.Shared.Sandbox.Asked() &&
		!cli.Passed(s.Passthrough, settings) {
		cell := sandboxed(s.Machine.OS)
		switch missing := cli.Missing(cell.Needs, s.Machine); {
		case cell.Level == agent.None:
			out = append(out, agent.Refusal{
				Reason: "Claude Code has no sandbox on this system, and does not start with one that is required",
				Fix:    "choose --sandbox off",
			})
		case len(missing) > 0:
			out = append(out, agent.Refusal{
				Reason: "Claude Code's sandbox needs " + strings.Join(missing, " and ") + ", not found in PATH",
				Fix:    "install what is missing, or choose --sandbox off", Command: "apt-get install bubblewrap socat",
			})
		}
	}
	return out
}

func bypasses(args []string) bool {
	mode, _ := cli.PassedValue(args, modeFlag)
	return cli.Passed(args, bypass) || mode == "bypassPermissions"
}

// deliberate reports whether the environment tells the CLI that the machine itself is a sandbox.
func deliberate(env []string) bool {
	return cli.First(env, "IS_SANDBOX") == "1" || cli.First(env, "CLAUDE_CODE_BUBBLEWRAP") != ""
}

// sandbox returns the settings that confine commands to the workspace. If auto is true, they run without a question.
func sandbox(auto bool) map[string]any {
	return map[string]any{"sandbox": map[string]any{
		"enabled":                  true,
		"failIfUnavailable":        true,  // otherwise a missing program only causes a warning
		"allowUnsandboxedCommands": false, // otherwise the model may ask to leave the sandbox
		"autoAllowBashIfSandboxed": auto,
	}}
}

// encode returns compact JSON with sorted keys.
func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings, numbers and booleans can be encoded
	}
	return string(data)
}

// asksForSandbox reports whether the passthrough's settings turn the sandbox on. It does not read settings in a file.
func asksForSandbox(passthrough []string) bool {
	text, _ := cli.PassedValue(passthrough, settings)
	var theirs struct {
		Sandbox struct {
			Enabled           bool `json:"enabled"`
			FailIfUnavailable bool `json:"failIfUnavailable"`
		} `json:"sandbox"`
	}
	return json.Unmarshal([]byte(text), &theirs) == nil && theirs.Sandbox.Enabled && theirs.Sandbox.FailIfUnavailable
}
