package claude

import (
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/setting"
)

// Command translates. What depends on two flags at once is fitted into the matrix before: the sandbox's settings follow
// the approval, and a bypass gives way to a sandbox that a person asked for.
func (d driver) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	m := fit(table(s.Machine.OS), s)
	t := cli.Translate(m, s)
	overridden(&t, s)
	id := session(&t, s)
	schema := "--json-schema=" + string(s.Schema)
	native := s.Schema != nil && s.Mode == setting.OneShot && !cli.Passed(s.Passthrough, "--json-schema") &&
		startable(schema, s.Machine.OS)
	if native {
		t.Args = append(t.Args, schema)
	}
	var files []agent.File
	var remove []string
	if s.Rehearsal != nil {
		files, remove = rehearse(&t, s)
	}
	l := d.Launch(s, t)
	l.Env = cli.Environ(s.Env, t.Env, remove...)
	l.Files = files
	l.Session = id
	l.Native = native
	if l.Session == "" || configHome(l.Env) == "" { // otherwise the observer tells of them, and once is enough
		l.Refusals = refusals(l)
	}
	return l, t.Warnings, nil
}

const (
	longestArgument = 128<<10 - 1 // of Linux, for a single argument; the others take no less
	// of the 32,767 characters that Windows has for the whole command line, as we leave room for the rest
	longestLine = 30_000
)

// startable says whether the CLI could be started with that argument. A schema that is longer stands in the prompt. On
// Windows quotes, and backslashes before them, are doubled on the way.
func startable(arg, system string) bool {
	if system == "windows" {
		return len(arg)+strings.Count(arg, `"`)+strings.Count(arg, `\`) <= longestLine
	}
	return len(arg) <= longestArgument
}

// fit is the matrix as it is for this run.
func fit(m agent.Matrix, s agent.Spec) agent.Matrix {
	sh := s.Shared
	chosen := sh.Sandbox.Asked()
	if sh.Sandbox.Value == setting.WorkspaceWrite {
		change(&m, agent.Sandbox, string(setting.WorkspaceWrite), func(c *agent.Cell) {
			args := []string{settings + "=" + encode(sandbox(sh.Approval.Value.Edits()))}
			switch {
			case cli.Passed(s.Passthrough, settings) && !asksForSandbox(s.Passthrough):
				// The last --settings replaces the others. What nobody chose need not be sent to be replaced.
				*c = agent.Cell{Level: agent.None, Note: "the passthrough's --settings replaces ours"}
			case chosen && !works(*c, s.Machine):
				// Sent all the same: it makes the CLI refuse to start rather than run unguarded. Who typed it is warned
				// of that.
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
			// A bypass leaves commands in the sandbox, but lets the file tools write anywhere.
			change(&m, agent.Approval, string(setting.Yolo), func(c *agent.Cell) {
				*c = agent.Cell{
					Level: agent.Nearest, Args: []string{modeFlag, "acceptEdits"},
					Note: "all commands run, in the sandbox; file tools outside the workspace and MCP tools still " +
						"ask, since a bypass would free them from it",
				}
			})
		}
	}
	if cli.Passed(s.Passthrough, settings) {
		// The last --settings replaces the others: what only follows from yolo need not be sent to be replaced.
		change(&m, agent.Sandbox, string(setting.Off), func(c *agent.Cell) { c.Weak = nothing() })
	}
	if cli.Passed(s.Passthrough, "--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools",
		"--tools") {
		// A tool that is disallowed anywhere stays so: the passthrough could not allow it.
		change(&m, agent.Web, setting.OnOff(sh.Web.Value), func(c *agent.Cell) { c.Weak = nothing() })
	}
	return m
}

func change(m *agent.Matrix, feature, value string, f func(*agent.Cell)) {
	i := slices.IndexFunc(m.Rows, func(r agent.Row) bool { return r.Feature == feature && r.Value == value })
	f(&m.Rows[i].Interactive)
	f(&m.Rows[i].OneShot)
}

func works(c agent.Cell, m agent.Machine) bool { return cli.Here(c, m).Level == agent.Full }

// overridden corrects the policies where the passthrough decides.
func overridden(t *cli.Translation, s agent.Spec) {
	note := func(feature string, level agent.Level, note string) {
		for i := range t.Policies {
			if t.Policies[i].Feature == feature && t.Policies[i].Enforced != agent.None {
				t.Policies[i].Enforced, t.Policies[i].Note = level, note
			}
		}
	}
	if cli.Passed(s.Passthrough, modeFlag) && !cli.Passed(t.Args, bypass) { // a bypass is stronger, wherever it stands
		note(agent.Approval, agent.None, "the passthrough's "+modeFlag+" decides")
	}
	if cli.Passed(s.Passthrough, settings) {
		if !asksForSandbox(s.Passthrough) || s.Shared.Sandbox.Value == setting.Off {
			note(agent.Sandbox, agent.None, "the passthrough's "+settings+" decides")
		}
		if !cli.Passed(t.Args, bypass) { // nothing can widen that
			note(agent.Approval, agent.Nearest, "the passthrough's "+settings+
				" replaces ours: its rules, or a sandbox in those of a repository, may let more run unasked")
		}
	}
	if mode, _ := cli.PassedValue(s.Passthrough, modeFlag); mode == "bypassPermissions" ||
		cli.Passed(s.Passthrough, bypass) {
		if s.Shared.Approval.Value != setting.Yolo {
			note(agent.Approval, agent.None, "the passthrough bypasses it")
		}
		if s.Shared.Sandbox.Value == setting.WorkspaceWrite {
			note(agent.Sandbox, agent.Nearest, "it holds commands; the passthrough frees the file tools from it")
		}
	}
	if cli.Passed(s.Passthrough, "--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools",
		"--tools") {
		if !s.Shared.Web.Asked() {
			note(agent.Web, agent.None, "the passthrough's lists of tools decide")
		}
	}
}

// session adds the flag that chooses the session, and returns its id where that is known.
func session(t *cli.Translation, s agent.Spec) string {
	fork := cli.Passed(s.Passthrough, "--fork-session")
	if s.Resume != "" {
		t.Args = append(t.Args, "--resume="+s.Resume)
	}
	if id, ok := cli.PassedValue(s.Passthrough, "--session-id"); ok {
		return id
	}
	resumed, resumes := cli.PassedValue(s.Passthrough, "--resume", "-r")
	if !resumes {
		resumed, resumes = s.Resume, s.Resume != ""
	}
	elsewhere := cli.Passed(s.Passthrough, "--continue", "-c", "--from-pr", "--teleport", "--cloud", "--bg",
		"--background")
	if (resumes || elsewhere) && !fork {
		if elsewhere || !isID(resumed) {
			return "" // a name, a search, or whatever came last
		}
		return resumed
	}
	if s.Mode != setting.OneShot || s.Fresh == "" || cli.Passed(s.Passthrough, "--from-pr", "--teleport", "--cloud",
		"--bg", "--background") {
		return ""
	}
	t.Args = append(t.Args, "--session-id="+s.Fresh)
	return s.Fresh
}

// isID recognises a UUID.
func isID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
				return false
			}
		}
	}
	return true
}

// refusals are the conditions under which the CLI is known not to start.
func refusals(l agent.Launch) []agent.Refusal {
	var out []agent.Refusal
	s := l.Spec
	if s.Machine.Root && bypasses(l.Args) && !deliberate(l.Env) {
		out = append(out, agent.Refusal{
			Reason:  "Claude Code refuses " + bypass + " to the superuser",
			Fix:     "run it as another user, or say that this machine is a sandbox",
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

// deliberate says whether the superuser has told the CLI that the machine itself is a sandbox.
func deliberate(env []string) bool {
	one, _ := cli.Lookup(env, "IS_SANDBOX")
	wrapped, _ := cli.Lookup(env, "CLAUDE_CODE_BUBBLEWRAP")
	return one == "1" || wrapped != ""
}

// sandbox are the settings that hold commands in the workspace. With auto they run there unasked.
func sandbox(auto bool) map[string]any {
	return map[string]any{"sandbox": map[string]any{
		"enabled":                  true,
		"failIfUnavailable":        true,  // else a missing program means a warning, and no sandbox
		"allowUnsandboxedCommands": false, // else the model may ask to leave it
		"autoAllowBashIfSandboxed": auto,
	}}
}

// encode is compact JSON with its keys in order.
func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings, numbers and truth values can be encoded
	}
	return string(data)
}

// asksForSandbox says whether the passthrough's settings turn the sandbox on themselves. Those in a file are not looked
// into.
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
