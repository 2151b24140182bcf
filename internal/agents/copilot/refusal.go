package copilot

import (
	"os"
	"strconv"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
)

// refusals returns the known reasons why the CLI fails.
func (d driver) refusals(l agent.Launch) []agent.Refusal {
	var list []agent.Refusal
	s := l.Spec
	if lastOf(l.Args, sandboxFlag, noSandbox) == sandboxFlag && s.Machine.OS == "linux" {
		if missing := cli.Missing(helpers(), s.Machine); len(missing) > 0 {
			r := agent.Refusal{
				Reason: "Commands of Copilot fail in its sandbox without " + strings.Join(missing, ", ") + ".",
				Fix:    "Install them, or call with --sandbox off.", Codes: []int{0}, // it continues after that
			}
			if s.Machine.Has != nil && s.Machine.Has("apt-get") {
				r.Command = "sudo apt-get install -y bubblewrap slirp4netns iptables"
			}
			list = append(list, r)
		} else if why := d.sandboxable(s.Machine); why != "" {
			list = append(list, agent.Refusal{
				Reason: "Commands of Copilot fail in its sandbox: " + why + ".",
				Fix:    "Call with --sandbox off.", Codes: []int{0},
			})
		}
	}
	if cli.First(l.Env, "COPILOT_PROVIDER_BASE_URL") != "" {
		if !named(l) {
			list = append(list, agent.Refusal{
				Reason: "With a model provider of your own, Copilot has no default model.",
				Fix:    "Name one with --model, or in COPILOT_MODEL.",
			})
		}
		return list
	}
	// The CLI uses the first of these that is set, and tries nothing else.
	for _, name := range tokens() {
		if token := cli.First(l.Env, name); token != "" {
			if strings.HasPrefix(token, "ghp_") {
				list = append(list, agent.Refusal{
					Reason: "The token in " + name + " is a classic one, which Copilot does not accept.",
					Fix: "Put a fine-grained token there, or unset " + name +
						" and log in.", Command: "copilot login",
				})
			}
			break
		}
	}
	return list
}

// tokens returns the variables that may hold a token, the strongest first.
func tokens() []string { return []string{"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"} }

// named reports whether the launch names a model.
func named(l agent.Launch) bool {
	return cli.First(l.Env, "COPILOT_MODEL", "COPILOT_PROVIDER_MODEL_ID") != "" ||
		l.Spec.Shared.Model.Value != "" || cli.Passed(l.Args, modelFlag)
}

// sandboxable returns why a sandbox cannot be created here, as far as files show, or "". A sandboxed command needs a
// tunnel for its network and, unless we are the superuser, a user namespace. Opening the device does not create a
// tunnel.
func sandboxable(m agent.Machine) string {
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return "/dev/net/tun cannot be opened"
	}
	_ = tun.Close()
	if m.Root {
		return ""
	}
	for file, blocked := range map[string]func(int) bool{
		"/proc/sys/user/max_user_namespaces":                     func(n int) bool { return n == 0 },
		"/proc/sys/kernel/unprivileged_userns_clone":             func(n int) bool { return n == 0 },
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": func(n int) bool { return n != 0 },
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // a kernel without that switch
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && blocked(n) {
			return "user namespaces are restricted (" + file + ")"
		}
	}
	return ""
}
