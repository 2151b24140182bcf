package gemini

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

// fit changes the cells that depend on this call.
func fit(m agent.Matrix, s agent.Spec) {
	if found := widening(s); len(found) > 0 && s.Shared.Approval.Value != setting.Yolo {
		m.Edit(agent.Approval, string(s.Shared.Approval.Value), func(c *agent.Cell) {
			c.Level, c.Note = agent.Nearest, "the settings of this repository, which is trusted, can allow more: "+
				strings.Join(found, ", ")
		})
	}
	fitOnce(m, s)
	fitSandbox(m, s)
	if web := s.Shared.Web; !web.Value {
		m.Edit(agent.Web, "off", func(c *agent.Cell) {
			if why := noPolicy(s); why != "" {
				*c = agent.Cell{Level: agent.None, Note: why}
			} else if !web.Typed() && allowsWeb(s.Passthrough) {
				*c = agent.Cell{Level: agent.None, Note: "the passthrough allows it"}
			}
		})
	}
}

// fitOnce omits flags that nobody typed and that the passthrough has too: with two approvals the CLI refuses to start,
// and with two output formats it prints text.
func fitOnce(m agent.Matrix, s agent.Spec) {
	elsewhere := func(c *agent.Cell) { *c = agent.Cell{Level: agent.None, Note: "the passthrough overrides it"} }
	if !s.Shared.Approval.Typed() && cli.Passed(s.Passthrough, approvalFlag, "--approvalMode", "--yolo", "-y") {
		m.Edit(agent.Approval, string(s.Shared.Approval.Value), elsewhere)
	}
	if !s.Shared.Output.Typed() && passedOutput(s.Passthrough) {
		m.Edit(agent.Output, string(s.Shared.Output.Value), elsewhere)
	}
}

func passedOutput(passthrough []string) bool {
	return cli.Passed(passthrough, outputFlag, "--outputFormat", "-o")
}

// fitSandbox sends --sandbox only if somebody asked for it. If the container image is missing, a run would first have
// to fetch it, or fail, and only starting a program could tell whether the image exists.
func fitSandbox(m agent.Matrix, s agent.Spec) {
	sandbox := s.Shared.Sandbox
	on, passed := passedSandbox(s.Passthrough)
	m.Edit(agent.Sandbox, string(sandbox.Value), func(c *agent.Cell) {
		if sandbox.Value == setting.Off {
			if !switchedOff(s) {
				return
			}
			c.Weak = nil
			if cli.First(s.Env, sandboxName) != "" {
				c.Env = []string{sandboxName + "=false"} // it would override the flag
			}
			return
		}
		switch {
		case cli.First(s.Env, "SANDBOX") != "":
			*c = agent.Cell{Level: agent.None, Note: "SANDBOX is set, so the CLI believes that it is already in one"}
		case passed && !on:
			*c = agent.Cell{Level: agent.None, Note: "the passthrough switches it off"}
		case sandbox.Asked():
		case passed, inherited(s.Env):
			c.Args = nil // something else turns it on
		default:
			*c = agent.Cell{Level: agent.None, Note: "a container is used only where --sandbox is given or configured"}
		}
	})
}

// switchedOff reports whether somebody wants no sandbox, by --sandbox off, or by --yolo if the passthrough has no
// sandbox flag.
func switchedOff(s agent.Spec) bool {
	_, passed := passedSandbox(s.Passthrough)
	return s.Shared.Sandbox.Value == setting.Off &&
		(s.Shared.Sandbox.Typed() || s.Shared.Sandbox.Origin == setting.Derived && !passed)
}

const sandboxName = "GEMINI_SANDBOX"

// inherited reports whether the environment turns the sandbox on.
func inherited(env []string) bool {
	value := strings.ToLower(strings.TrimSpace(cli.First(env, sandboxName)))
	return value != "" && value != "0" && value != "false"
}

// passedSandbox reports whether the passthrough turns the sandbox on or off. The last flag counts.
func passedSandbox(passthrough []string) (on, passed bool) {
	for i, arg := range passthrough {
		if arg == "--" {
			break
		}
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "-s", sandboxFlag:
			if i+1 < len(passthrough) && passthrough[i+1] == "false" {
				value = "false"
			}
			on, passed = value != "false", true
		case "--no-sandbox":
			on, passed = false, true
		}
	}
	return on, passed
}

// startsContainer reports whether the CLI will restart itself in a container.
func startsContainer(s agent.Spec) bool {
	if cli.First(s.Env, "SANDBOX") != "" || s.Machine.OS == "darwin" && has(s, "sandbox-exec") {
		return false
	}
	on, passed := passedSandbox(s.Passthrough)
	if !passed {
		on = s.Shared.Sandbox.Asked() && s.Shared.Sandbox.Value == setting.WorkspaceWrite ||
			!s.Shared.Sandbox.Typed() && !switchedOff(s) && inherited(s.Env)
	}
	return on
}

// policy adds the file of the web policy, and replaces its name in the arguments with its path.
//
// It is an administrator's policy, because that adds to the user's own policies, while --policy would replace them. If
// the passthrough has --policy, they are replaced anyway. Then ours uses that flag too, so that a rule in the
// passthrough overrides a value that nobody typed.
func policy(t *cli.Translation, s agent.Spec) {
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
		t.Files = append(t.Files, agent.File{Path: path, Data: []byte("[[rule]]\n" +
			"toolName = [\"google_web_search\", \"web_fetch\"]\n" +
			"decision = \"deny\"\n" +
			"priority = " + weight + "\n" +
			"denyMessage = \"Web access is off.\"\n")})
		if startsContainer(s) { // a container silently ignores a policy that it cannot find
			mounts := cli.First(s.Env, mountsName)
			t.Env = append(t.Env, mountsName+"="+strings.TrimPrefix(mounts+","+path, ","))
		}
	}
}

const mountsName = "SANDBOX_MOUNTS"

// noPolicy returns why our policy would have no effect, or would disable others, or "".
func noPolicy(s agent.Spec) string {
	if strings.Contains(s.Temp, ",") {
		return "the temporary directory has a comma in its path, where the CLI splits it"
	}
	if strings.Contains(s.Temp, ":") && startsContainer(s) {
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

// allowsWeb reports whether the passthrough allows a web tool.
func allowsWeb(passthrough []string) bool {
	return slices.ContainsFunc(cli.PassedValues(passthrough, "--allowed-tools"), func(tools string) bool {
		return strings.Contains(tools, "google_web_search") || strings.Contains(tools, "web_fetch")
	})
}

// choosesSession reports whether the passthrough chooses the session, or a mode without one.
func choosesSession(passthrough []string) bool {
	return cli.Passed(passthrough, resumeFlag, "-r", sessionFlag, "--sessionId", "--session-file", "--sessionFile",
		"--acp", "--experimental-acp")
}

// named returns the session that a person named by its id, not by its place in a list.
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
