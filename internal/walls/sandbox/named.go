package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
)

const hiddenName = "%s is hidden in every directory, if it is there when a command begins"

// named returns the element of a path below dir that has one of the names, or "".
func named(names []string, path, dir string) string {
	for at := path; pathname.Within(dir, filepath.Dir(at)) && !inDotGit(at); at = filepath.Dir(at) {
		if isNamed(names, at) {
			return filepath.Base(at)
		}
	}
	return ""
}

// isNamed reports whether the last element of a path is one of the names.
func isNamed(names []string, path string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		pattern := strings.ReplaceAll(strings.ToLower(name), `\`, `\\`)
		same, err := filepath.Match(pattern, strings.ToLower(filepath.Base(path)))
		return same && err == nil
	})
}

func inDotGit(path string) bool { return strings.Contains(strings.ToLower(path)+"/", "/.git/") }
