package gemini

import (
	"bytes"
	"path/filepath"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/setting"
)

// fit changes the cells that are different in this call.
func fit(m agent.Matrix, s agent.Spec) {
	if found := widening(s); len(found) > 0 && s.Shared.Approval.Value != setting.Yolo {
		change(m, agent.Approval, string(s.Shared.Approval.Value), func(c *agent.Cell) {
			c.Level, c.Note = agent.Nearest, "the settings of this repository, which is trusted, can allow more: "+
				strings.Join(found, ", ")
		})
	}
	fitOnce(m, s)
	fitSandbox(m, s)
	if web := s.Shared.Web; !web.Value {
		change(m, agent.Web, "off", func(c *agent.Cell) {
			if why := noPolicy(s); why != "" {
				*c = agent.Cell{Level: agent.None, Note: why}
			} else if !web.Typed() && allowsWeb(s.Passthrough) {
				*c = agent.Cell{Level: agent.None, Note: "the passthrough allows it"}
			}
		})
	}
}

// fitOnce leaves out what nobody typed where the passthrough says it: told twice how to approve, the CLI refuses to
// start, and told twice what to print, it prints text whatever was said.
func fitOnce(m agent.Matrix, s agent.Spec) {
	elsewhere := func(c *agent.Cell) { *c = agent.Cell{Level: agent.None, Note: "the passthrough says another"} }
	if !s.Shared.Approval.Typed() && cli.Passed(s.Passthrough, approvalFlag, "--approvalMode", "--yolo", "-y") {
		change(m, agent.Approval, string(s.Shared.Approval.Value), elsewhere)
	}
	if !s.Shared.Output.Typed() && passedOutput(s.Passthrough) {
		change(m, agent.Output, string(s.Shared.Output.Value), elsewhere)
	}
}

func passedOutput(passthrough []string) bool {
	return cli.Passed(passthrough, outputFlag, "--outputFormat", "-o")
}

// fitSandbox sends --sandbox only where somebody asked for it: without its image a run would have to fetch that first,
// and fail where it cannot, and whether the image is there cannot be known without starting something.
func fitSandbox(m agent.Matrix, s agent.Spec) {
	sandbox := s.Shared.Sandbox
	passed, said := passedSandbox(s.Passthrough)
	change(m, agent.Sandbox, string(sandbox.Value), func(c *agent.Cell) {
		if sandbox.Value == setting.Off {
			if !switchedOff(s) {
				return
			}
			c.Weak = nil
			if lookup(s.Env, sandboxName, "") != "" {
				c.Env = []string{sandboxName + "=false"} // it would win over the flag
			}
			return
		}
		switch {
		case lookup(s.Env, "SANDBOX", "") != "":
			*c = agent.Cell{Level: agent.None, Note: "SANDBOX is set, so the CLI takes it that it is in one already"}
		case said && !passed:
			*c = agent.Cell{Level: agent.None, Note: "the passthrough switches it off"}
		case sandbox.Asked():
		case said, inherited(s.Env):
			c.Args = nil // on, but not by us
		default:
			*c = agent.Cell{Level: agent.None, Note: "a container is used only where --sandbox is given or configured"}
		}
	})
}

// switchedOff says whether somebody wants no sandbox: in so many words, or with --yolo and nothing else in the
// passthrough.
func switchedOff(s agent.Spec) bool {
	_, said := passedSandbox(s.Passthrough)
	return s.Shared.Sandbox.Value == setting.Off &&
		(s.Shared.Sandbox.Typed() || s.Shared.Sandbox.Origin == setting.Derived && !said)
}

const sandboxName = "GEMINI_SANDBOX"

// inherited says whether the environment switches the sandbox on.
func inherited(env []string) bool {
	value := strings.ToLower(strings.TrimSpace(lookup(env, sandboxName, "")))
	return value != "" && value != "0" && value != "false"
}

// passedSandbox says whether the passthrough switches the sandbox on or off. The last word counts.
func passedSandbox(passthrough []string) (on, said bool) {
	for i, arg := range passthrough {
		if arg == "--" {
			break
		}
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "-s", sandboxFlag:
			if i+1 < len(passthrough) && passthrough[i+1] == "false" {
				value = "false"
			}
			on, said = value != "false", true
		case "--no-sandbox":
			on, said = false, true
		}
	}
	return on, said
}

// contained says whether the CLI will start itself in a container.
func contained(s agent.Spec) bool {
	if lookup(s.Env, "SANDBOX", "") != "" || s.Machine.OS == "darwin" && has(s, "sandbox-exec") {
		return false
	}
	on, said := passedSandbox(s.Passthrough)
	if !said {
		on = s.Shared.Sandbox.Asked() && s.Shared.Sandbox.Value == setting.WorkspaceWrite ||
			!s.Shared.Sandbox.Typed() && !switchedOff(s) && inherited(s.Env)
	}
	return on
}

// change edits both cells of a row.
func change(m agent.Matrix, feature, value string, edit func(*agent.Cell)) {
	for i := range m.Rows {
		if r := &m.Rows[i]; r.Feature == feature && r.Value == value {
			edit(&r.Interactive)
			edit(&r.OneShot)
		}
	}
}

// policy puts the file of the web policy in the place of its name, and adds it to the files.
//
// An administrator's policy is taken because it comes on top of the user's own, where --policy would replace those.
// Where the passthrough gives --policy they are replaced already, and ours goes the same way so that a rule there
// outweighs what nobody typed.
func policy(t *cli.Translation, files *[]agent.File, s agent.Spec) {
	for i, arg := range t.Args {
		if arg != adminFlag+"="+webPolicy {
			continue
		}
		flag, weight := adminFlag, "999"
		if !s.Shared.Web.Typed() {
			weight = "0"
			if cli.Passed(s.Passthrough, policyFlag) {
				flag = policyFlag
			}
		}
		path := filepath.Join(s.Temp, webPolicy)
		t.Args[i] = flag + "=" + path
		*files = append(*files, agent.File{Path: path, Data: []byte("[[rule]]\n" +
			"toolName = [\"google_web_search\", \"web_fetch\"]\n" +
			"decision = \"deny\"\n" +
			"priority = " + weight + "\n" +
			"denyMessage = \"Web access is off.\"\n")})
		if contained(s) { // a policy that is not found there is passed over in silence
			mounts := lookup(s.Env, mountsName, "")
			t.Env = append(t.Env, mountsName+"="+strings.TrimPrefix(mounts+","+path, ","))
		}
	}
}

const mountsName = "SANDBOX_MOUNTS"

// noPolicy says why a policy of ours would not hold, or would put others out of force.
func noPolicy(s agent.Spec) string {
	if strings.Contains(s.Temp, ",") {
		return "the temporary directory has a comma in its path, where the CLI splits it"
	}
	if strings.Contains(s.Temp, ":") && contained(s) {
		return "a file of that path cannot be put into the container"
	}
	if found, _ := filepath.Glob(filepath.Join(systemDir(s.Machine.OS), "policies", "*.toml")); len(found) > 0 {
		return "the policies of this machine admit no others"
	}
	for _, path := range settingsFiles(s) {
		if bytes.Contains(head(path), []byte("adminPolicyPaths")) {
			return "adminPolicyPaths in " + path + " would no longer hold"
		}
	}
	return ""
}

// allowsWeb says whether the passthrough names a web tool as allowed.
func allowsWeb(passthrough []string) bool {
	for i, arg := range passthrough {
		if arg == "--" {
			return false
		}
		value, ok := strings.CutPrefix(arg, "--allowed-tools=")
		if arg == "--allowed-tools" && i+1 < len(passthrough) {
			value, ok = passthrough[i+1], true
		}
		if ok && (strings.Contains(value, "google_web_search") || strings.Contains(value, "web_fetch")) {
			return true
		}
	}
	return false
}

// choosesSession says whether the passthrough chooses the session, or asks for something that has none.
func choosesSession(passthrough []string) bool {
	return cli.Passed(passthrough, resumeFlag, "-r", sessionFlag, "--sessionId", "--session-file", "--sessionFile",
		"--acp", "--experimental-acp")
}

// named is the session that a person named, where it is named by its id and not by its place in a list.
func named(s agent.Spec) string {
	id := s.Resume
	if value, ok := cli.PassedValue(s.Passthrough, sessionFlag, "--sessionId", resumeFlag, "-r"); ok {
		id = value
	}
	if len(id) == len("00000000-0000-0000-0000-000000000000") && id[8] == '-' {
		return id
	}
	return ""
}
