package policy

import (
	"path/filepath"
	"slices"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/walls/autorun"
	"omniagent/internal/walls/guard"
	"omniagent/internal/walls/sandbox"
)

// Later returns the current policy of a directory about what is run later by itself: for file tools, for forks and for
// the end of a turn. Walls have the same through Wanted.Policy. lookup reads a variable of the environment; nil: none
// is set.
func Later(
	root string, agents guard.Agents, home string, lookup func(name string) (string, bool),
) autorun.Policy {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		real = root
	}
	names := agents.Protected()
	p := autorun.For(real, names, excludes(home, lookup))
	config := sandbox.UserGit{Files: GitConfig(home, lookup), Settings: gitSettings(lookup)}
	started := startedOf(home, lookup).PathsInto(real)
	p.Kept = func() []string {
		paths := sandbox.Aliases(real, names, config, started)
		for _, path := range paths[:len(paths):len(paths)] { // as a tool names them
			if rel, within := pathname.In(real, path); within && real != root {
				paths = append(paths, filepath.Join(root, rel))
			}
		}
		return paths
	}
	return p
}

// startedOf returns what starts by itself for the user.
func startedOf(home string, lookup func(name string) (string, bool)) autorun.Home {
	var homes []string
	for _, dir := range []string{home, accountHome()} {
		if filepath.IsAbs(dir) && !slices.Contains(homes, filepath.Clean(dir)) {
			homes = append(homes, filepath.Clean(dir))
		}
	}
	return autorun.HomeOf(homes, filepath.SplitList(Wanted{Lookup: lookup}.variable("PATH")))
}

// excludes returns the user's own ignore file of git.
func excludes(home string, lookup func(name string) (string, bool)) string {
	if dir := (Wanted{Lookup: lookup}).variable("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "git", "ignore")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".config", "git", "ignore")
}
