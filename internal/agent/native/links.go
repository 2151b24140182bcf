package native

import (
	"os"
	"path/filepath"
	"strings"
)

// Leads returns where a path leads, or each match of one with * or ?, if a link is on the way. What leads nowhere is
// left out: no command can read it.
func Leads(path string) (all []string) {
	matches := []string{path}
	if strings.ContainsAny(path, "*?") {
		if found, err := filepath.Glob(strings.ReplaceAll(path, `\`, `\\`)); err == nil && len(found) > 0 {
			matches = found
		}
	}
	dirs := map[string]bool{} // whether a link is on the way
	for _, match := range matches {
		dir := filepath.Dir(match)
		if _, known := dirs[dir]; !known || strings.Contains(match, "..") {
			real, err := filepath.EvalSymlinks(dir)
			dirs[dir] = err != nil || real != dir || strings.Contains(match, "..")
		}
		if info, err := os.Lstat(match); err == nil && info.Mode()&os.ModeSymlink == 0 && !dirs[dir] {
			continue // nothing to follow, which is cheap to see in a large directory
		}
		if real, err := filepath.EvalSymlinks(match); err == nil && real != filepath.Clean(match) {
			all = append(all, real)
		}
	}
	return all
}
