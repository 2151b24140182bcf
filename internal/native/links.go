package native

import (
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/walls/autorun"
	"omniagent/internal/walls/guard"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/sandbox"
)

// PlaceOf returns the place in which calls of a conversation are judged. The first of roots is the workspace. lookup
// reads a variable of the environment; nil: none is set.
func PlaceOf(roots []string, home string, agents guard.Agents, lookup func(name string) (string, bool)) guard.Place {
	policies := make([]autorun.Policy, len(roots))
	for i, root := range roots {
		policies[i] = policy.Later(root, agents, home, lookup)
	}
	return guard.Place{
		Root: roots[0], More: roots[1:], Dir: roots[0], Home: home, Agents: agents,
		ResolveLinks: leads, Names: names, InGit: sandbox.InGitDir,
		Kept: func() (paths []string) {
			for _, p := range policies {
				paths = append(paths, p.Kept()...)
			}
			return paths
		},
		Fresh: func(path string) string {
			if _, err := os.Lstat(path); err == nil {
				return ""
			}
			real := pathname.Real(path)
			for _, p := range policies {
				if p.Fresh(real) {
					return p.Why(real, true)
				}
			}
			return ""
		},
	}
}

// leads returns the targets of a path, which may contain * or ?, if it goes through a link. It leaves out broken links,
// which no command can read.
func leads(path string) (all []string) {
	matches := []string{path}
	if strings.ContainsAny(path, "*?") {
		if found, err := filepath.Glob(strings.ReplaceAll(path, `\`, `\\`)); err == nil && len(found) > 0 {
			matches = found
		}
	}
	dirs := map[string]bool{} // whether a directory is reached through a link
	for _, match := range matches {
		dir := filepath.Dir(match)
		if _, known := dirs[dir]; !known || strings.Contains(match, "..") {
			real, err := filepath.EvalSymlinks(dir)
			dirs[dir] = err != nil || real != dir || strings.Contains(match, "..")
		}
		if info, err := os.Lstat(match); err == nil && info.Mode()&os.ModeSymlink == 0 && !dirs[dir] {
			continue // no link to follow; this check is cheap in a large directory
		}
		if real, err := filepath.EvalSymlinks(match); err == nil && real != filepath.Clean(match) {
			all = append(all, real)
		}
	}
	return all
}

// names returns the names in a directory, or those that can be listed.
func names(dir string) (list []string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}
