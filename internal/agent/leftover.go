package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Absent returns the paths of About.Placeholders that do not exist in the directories of a launch. Call it before the
// agent starts.
func Absent(a About, l Launch) (paths []string) {
	for _, dir := range slices.Concat([]string{l.Dir}, l.Spec.Terms.Dirs) {
		for _, name := range a.Placeholders {
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); filepath.IsAbs(path) && os.IsNotExist(err) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// Clear removes those paths that are empty directories. Call it with the result of Absent when the agent has ended.
func Clear(paths []string) {
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeDir {
			_ = os.Remove(path) // fails unless it is empty
		}
	}
}
