package shell

import (
	_ "embed" // the table
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/sys/redact"
)

// VariableGroup is a group of variables that programs get, with the reason.
type VariableGroup struct {
	Names     []string // LC_* stands for all names with that prefix
	Why       string
	Addresses bool // of hosts, in front of which a password may stand
}

// keepsBack reports whether a value of the group may hold a password. Programs read user:password@host without a scheme
// too, a token alone as the user, and an @ in a password.
func (h VariableGroup) keepsBack(value string) bool {
	return redact.String(value) != value || h.Addresses && strings.Contains(value, "@")
}

func (h VariableGroup) contains(name string) bool {
	return slices.ContainsFunc(h.Names, func(known string) bool {
		prefix, open := strings.CutSuffix(known, "*")
		return sameName(known, name) || open && strings.HasPrefix(name, prefix)
	})
}

//go:embed handed.txt
var handed string

// InheritedVariables returns what programs get of an environment, decided one by one. What is not here is not passed
// on; these are deliberately not:
//
//   - what makes a program load or run something: NODE_OPTIONS, NODE_PATH, PYTHONPATH, PYTHONSTARTUP, PERL5OPT,
//     PERL5LIB, RUBYOPT, RUBYLIB, JAVA_TOOL_OPTIONS, GOFLAGS (-toolexec), RUSTC_WRAPPER, MAKEFLAGS, LD_*, DYLD_*, GIT_*
//     (GIT_SSH_COMMAND, GIT_CONFIG_*, GIT_DIR);
//   - what lets a command act as the user elsewhere: SSH_AUTH_SOCK, GPG_AGENT_INFO, KUBECONFIG, DOCKER_HOST, AWS_*,
//     GOOGLE_*, AZURE_*;
//   - CI, which changes what tools do, and what colours.
//
// The table is handed.txt.
func InheritedVariables() []VariableGroup {
	var list []VariableGroup
	skip := false
	for line := range strings.Lines(handed) {
		switch words := strings.Fields(line); {
		case line[0] == '#':
		case line[0] != ' ':
			why, others := strings.CutPrefix(strings.TrimSpace(line), "windows: ")
			why, addresses := strings.CutPrefix(why, "addresses: ")
			if skip = others && runtime.GOOS != "windows"; !skip {
				list = append(list, VariableGroup{Why: why, Addresses: addresses})
			}
		case !skip:
			last := &list[len(list)-1]
			last.Names = append(last.Names, words...)
		}
	}
	return list
}

// windows returns the variables for programs that open windows, which the user configured.
func windows() VariableGroup {
	return VariableGroup{
		Names: []string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"}, Why: "the screen",
	}
}
