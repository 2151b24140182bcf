package shell

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/process"
	"omniagent/internal/redact"
)

// childMark is how the guards of process find what they are responsible for. An outer one has to find ours as well.
const childMark = "OMNIAGENT_CHILD_MARK"

// Inheritance is what a program that we start gets of our environment: what stands in Handed, and what the user adds to
// it. Everything else stays here. An environment collects what nobody thinks of, so a list of what is kept back would
// always be too short.
type Inheritance struct {
	Roots []string // the workspace and its repository, absolute: no directory beneath them stays in PATH
	More  []string // names that the user hands on as well
	Opens bool     // the program may open windows: an MCP server that logs in with a browser
}

// Environment is what commands get of an environment where nothing is said about it.
func Environment(base []string) []string { return Inheritance{}.Commands(base) }

// Commands is what commands get: what is handed on, and what keeps programs from asking, paging and colouring.
func (i Inheritance) Commands(base []string) []string {
	set := settings()
	kept := slices.DeleteFunc(i.Of(base), func(entry string) bool {
		return slices.ContainsFunc(set, func(other string) bool { return sameName(nameOf(entry), nameOf(other)) })
	})
	return append(kept, set...)
}

// Of is what is handed on, in the order of base.
func (i Inheritance) Of(base []string) []string {
	table, homes := i.table(), homesIn(base)
	var kept []string
	for _, entry := range base {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			continue
		}
		switch named := slices.ContainsFunc(i.More, func(more string) bool { return sameName(more, name) }); {
		case name == childMark:
		case sameName(name, "PATH"):
			entry = name + "=" + i.path(value, homes)
		case Takeover(name):
			continue
		case named: // the user's word, also about a secret
		case !slices.ContainsFunc(table, func(h Handed) bool { return h.is(name) }), redact.String(value) != value:
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}

func (i Inheritance) table() []Handed {
	table := HandedOn()
	if i.Opens {
		table = append(table, windows())
	}
	return table
}

// settings are the variables that commands always have with these values.
func settings() []string {
	return []string{
		"TERM=dumb", "NO_COLOR=1",
		"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat",
		"EDITOR=true", "VISUAL=true", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", // a text stays as it was proposed
		"GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "SSH_ASKPASS_REQUIRE=never",
		"PYTHONUNBUFFERED=1", // what was printed before the time was over is not lost
	}
}

// Takeover says whether a variable of that name is handed on to nobody, also where the user adds it: it makes a shell,
// or the loader of every program, run something before what was asked for, or it is about this process.
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

// path is PATH without directories that depend on where a command runs, and without those that come with the workspace:
// a repository could put a git or an ls of its own there. A workspace that the home directory is in is no repository
// that somebody cloned; there the user's own programs stay.
func (i Inheritance) path(value string, homes []string) string {
	var dirs []string
	for _, dir := range filepath.SplitList(value) {
		if filepath.IsAbs(dir) && !i.brings(dir, homes) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 && runtime.GOOS != "windows" {
		return "/usr/local/bin:/usr/bin:/bin"
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// Brings says whether a file comes with the workspace, in an environment that says where the home directory is.
func (i Inheritance) Brings(path string, base []string) bool { return i.brings(path, homesIn(base)) }

func (i Inheritance) brings(path string, homes []string) bool {
	return slices.ContainsFunc(i.Roots, func(root string) bool {
		return root != "" && within(path, root) &&
			!slices.ContainsFunc(homes, func(home string) bool { return within(home, root) })
	})
}

// within says whether a directory is another one or beneath it, by its name or by where links lead.
func within(dir, root string) bool {
	beneath := func(a, b string) bool {
		rel, err := filepath.Rel(b, a)
		return err == nil && filepath.IsLocal(rel)
	}
	return beneath(filepath.Clean(dir), filepath.Clean(root)) || beneath(real(dir), real(root))
}

// real is a path without links, as far as it is there. It is not tidied before: what stands behind link/.. is not
// beside the link.
func real(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	if parent := filepath.Dir(filepath.Clean(path)); parent != path {
		if _, err := os.Lstat(path); err != nil {
			return filepath.Join(real(parent), filepath.Base(path))
		}
	}
	return path
}

func homesIn(base []string) []string {
	var homes []string
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, _ := process.Value(base, name); filepath.IsAbs(home) {
			homes = append(homes, home)
		}
	}
	return homes
}

func nameOf(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	return name
}

func sameName(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}
