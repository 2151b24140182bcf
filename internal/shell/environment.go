package shell

import (
	"slices"
	"strings"

	"omniagent/internal/redact"
)

// childMark is how the guards of process find what they are responsible for. An outer one has to find ours as well.
const childMark = "OMNIAGENT_CHILD_MARK"

// Environment is what commands get of an environment: without our own variables, without those whose name says that they hold a secret,
// and without those that make a shell run or print something of its own; with what keeps programs from asking, paging and colouring.
func Environment(base []string) []string {
	set := []string{
		"TERM=dumb", "NO_COLOR=1",
		"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat",
		"EDITOR=true", "VISUAL=true", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", // a text stays as it was proposed
		"GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "SSH_ASKPASS_REQUIRE=never",
		"PYTHONUNBUFFERED=1", // what was printed before the time was over is not lost
	}
	kept := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, ok := strings.Cut(entry, "=")
		return !ok || name == "" || unwanted(name) || slices.ContainsFunc(set, func(other string) bool { return strings.HasPrefix(other, name+"=") })
	})
	return append(kept, set...)
}

func unwanted(name string) bool {
	switch name {
	case childMark:
		return false
	case "CI", "FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM": // the first changes what tools do, the others colour
		return true
	case "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD", "PROMPT_COMMAND", "CDPATH", "GLOBIGNORE", "PWD", "OLDPWD":
		return true
	}
	return strings.HasPrefix(name, "OMNIAGENT_") || strings.HasPrefix(name, "BASH_FUNC_") || redact.Name(name)
}
