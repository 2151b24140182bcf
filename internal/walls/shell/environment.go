package shell

import (
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/sys/process"
)

// childMark is how the guards of package process find their processes. An outer guard has to find ours too.
const childMark = "OMNIAGENT_CHILD_MARK"

// Inheritance decides which variables a program that we start gets: those in InheritedVariables, and those that the
// user adds. It drops all others. An environment collects things that nobody thinks of, so a list of forbidden
// variables would always be too short.
type Inheritance struct {
	Roots []string // the workspace and its repository, absolute: directories below them are removed from PATH
	More  []string // further variables that the user allows
	Opens bool     // the program may open windows: an MCP server that logs in with a browser
}

// Environment returns the default environment of commands.
func Environment(base []string) []string { return Inheritance{}.Commands(base) }

// Commands returns the environment of commands: the inherited variables, and settings that keep programs from asking,
// paging and colouring.
func (i Inheritance) Commands(base []string) []string {
	set := settings()
	kept := slices.DeleteFunc(i.Of(base), func(entry string) bool {
		return slices.ContainsFunc(set, func(other string) bool { return sameName(nameOf(entry), nameOf(other)) })
	})
	return append(kept, set...)
}

// Of returns the inherited variables, in the order of base.
func (i Inheritance) Of(base []string) []string {
	table := i.table()
	var kept []string
	for _, entry := range base {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			continue
		}
		switch named := slices.ContainsFunc(i.More, func(more string) bool { return sameName(more, name) }); {
		case name == childMark:
		case sameName(name, "PATH"):
			entry = name + "=" + process.Roots(i.Roots).Path(value, base)
		case Takeover(name):
			continue
		case named: // the user allowed it, even if it is a secret
		case !slices.ContainsFunc(table, func(h VariableGroup) bool { return h.contains(name) && !h.keepsBack(value) }):
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}

func (i Inheritance) table() []VariableGroup {
	table := InheritedVariables()
	if i.Opens {
		table = append(table, windows())
	}
	return table
}

// settings returns the variables that every command has, with fixed values.
func settings() []string {
	return []string{
		"TERM=dumb", "NO_COLOR=1",
		"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat",
		"EDITOR=true", "VISUAL=true", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", // accept the proposed text
		"GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "SSH_ASKPASS_REQUIRE=never",
		"PYTHONUNBUFFERED=1", // output before a timeout is not lost
	}
}

// Takeover reports whether a variable is never inherited, even if the user adds it: it makes a shell, or the loader of
// every program, run something first, or it is about this process.
func Takeover(name string) bool {
	name = strings.ToUpper(name)
	switch name {
	case "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD", "PROMPT_COMMAND", "CDPATH", "GLOBIGNORE", "PWD",
		"OLDPWD", "IFS", "PS4",
		"LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES":
		return true
	}
	return strings.HasPrefix(name, "OMNIAGENT_") || strings.HasPrefix(name, "BASH_FUNC_")
}

// FromWorkspace reports whether a file belongs to the workspace, given an environment that names the home directory.
func (i Inheritance) FromWorkspace(path string, base []string) bool {
	return process.Roots(i.Roots).Hold(path, base)
}

// Programs returns what starts programs that are not agents with these variables; see process.Programs for temp.
func (i Inheritance) Programs(base []string, temp string) process.Programs {
	return process.Programs{Env: i.Of(base), Roots: i.Roots, Temp: temp}
}

func nameOf(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	return name
}

func sameName(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}
