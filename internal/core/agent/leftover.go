package agent

import (
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/kit/pathname"
)

// Absent returns the paths of About.Placeholders that do not exist in the directories of a launch. Call it before the
// agent starts; process.Plan.RemoveIfEmpty takes them.
func Absent(a About, l Launch) (paths []string) {
	for _, dir := range slices.Concat([]string{l.Dir}, l.Spec.Terms.Dirs) {
		for _, name := range a.Placeholders {
			path := filepath.Join(pathname.Real(dir), name)
			if _, err := os.Lstat(path); filepath.IsAbs(dir) && os.IsNotExist(err) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}
