package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
)

// AgentPolicy is the policy for an agent that is a foreign program. Mounts enforce it, without Landlock, because the
// agent may build its own sandbox around its commands, for which it has to mount.
//
//	everything ─────────────── read-only
//	Root, Write ────────────── as AgentWalls.SetWritable says, at first writable
//	Homes ──────────────────── empty but for Places and what AgentNeeds lists
//	/tmp, /run, /dev, /proc ── its own
//	Veiled ─────────────────── not there for the agent's own program
//
// Its network is that of the machine. The fields of Policy about names, hosts, limits and repositories are ignored.
type AgentPolicy struct {
	Policy

	// Veiled are names of a repository's configuration, such as ".claude" and ".github/hooks". The agent's own program
	// and the programs of AgentNeeds.Readers do not find them, whenever they appear, unless they belong to the agent.
	// Other programs, such as git, do.
	Veiled      []string
	OwnSettings []string // names below Veiled that the agent creates itself, and sees
	// Reviewed are files below Veiled names that the agent finds as long as they have this content: a path without
	// links to its SHA-256 in hexadecimal.
	Reviewed map[string]string
}

// AgentNeeds is what one process of an agent needs besides the workspace. Paths are absolute. Those that do not exist
// are ignored, except for Own, which is created.
type AgentNeeds struct {
	Own     []string // directories that it may change: its logins, sessions and caches
	Show    []string // files and directories that it reads, wherever they lie, such as its program
	Readers []string // files and directories of its program, see AgentPolicy.Veiled
	Shells  []string // those Readers that are shells, and run a script that starts the agent
}

// Explain returns whether an agent may read and write a path, and why. It looks only at names, not at file permissions.
func (p AgentPolicy) Explain(path string, n AgentNeeds) []Effect {
	leads := func(paths []string) (list []string) {
		for _, path := range paths {
			list = append(list, pathname.Real(path))
		}
		return list
	}
	path = pathname.Real(path)
	read, write := Effect{Access: "read"}, Effect{Access: "write"}
	own := func(why string) []Effect {
		read.Allowed, write.Allowed, read.Why, write.Why = true, true, why, why
		return []Effect{read, write}
	}
	write.Why = "only the workspace and what belongs to the agent may be written"
	name, program := p.veiledName(path), first(leads(n.Show), path)
	workspace := first(append([]string{p.Root}, p.Write...), path)
	apart := first([]string{"/tmp", "/run", "/proc"}, path)
	switch mine := first(leads(n.Own), path); {
	case mine != "":
		return own(fmt.Sprintf("%s belongs to the agent", mine))
	case workspace != "":
		read.Allowed, read.Why = true, "it lies in "+workspace
		write.Allowed, write.Why = true, fmt.Sprintf("%s may be written, but not in the modes plan and deny", workspace)
		if name != "" {
			read.Allowed, read.Why = false, fmt.Sprintf("to the agent's own program there is no %s of a repository, "+
				"but for what omniagent trust has recorded; other programs find it", name)
		}
	case first(p.Hidden, path) != "":
		read.Why = fmt.Sprintf("%s is hidden", first(p.Hidden, path))
	case program != "":
		read.Allowed, read.Why = true, fmt.Sprintf("%s is a part of its program, or named by its environment", program)
	case pathname.Within("/dev", path):
		return own("the agent has the usual devices")
	default:
		if e, inHome := p.readsHome(path, Namespaces); inHome {
			read = e
			if e, written := p.writesHome(path, Namespaces); written {
				write = e
			}
			break
		}
		if read.Why = "everything may be read that is not in a home directory"; apart != "" {
			read.Why = fmt.Sprintf("the agent has a %s of its own", apart)
			write.Why = read.Why
		}
		read.Allowed = apart == ""
	}
	return []Effect{read, write}
}

// veiledName returns the Veiled name in a path that the agent does not find, or "".
func (p AgentPolicy) veiledName(path string) string {
	elements := strings.Split(filepath.ToSlash(path), "/")
	has := func(name string, at int) bool {
		all := strings.Split(name, "/")
		return at+len(all) <= len(elements) && slices.Equal(elements[at:at+len(all)], all)
	}
	for at := range elements {
		if slices.ContainsFunc(p.OwnSettings, func(name string) bool { return has(name, at) }) {
			return ""
		}
		i := slices.IndexFunc(p.Veiled, func(name string) bool { return has(name, at) })
		if _, reviewed := p.Reviewed[path]; i >= 0 && !reviewed {
			return p.Veiled[i]
		}
	}
	return ""
}
