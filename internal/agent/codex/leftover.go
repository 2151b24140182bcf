package codex

import (
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/agent"
)

// placeholders are the directories that Codex's sandbox makes in a place where a command may write, to protect what
// could come to lie there, and removes when the command ends. A command that is killed leaves them.
func placeholders() []string { return []string{".agents", ".aws", ".codex", ".git"} }

// absent returns the placeholders that are not there.
func absent(l agent.Launch) (paths []string) {
	for _, dir := range slices.Concat([]string{l.Dir}, l.Spec.Terms.Dirs) {
		for _, name := range placeholders() {
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); filepath.IsAbs(path) && os.IsNotExist(err) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// Leaves implements agent.Leaver.
func (o *observer) Leaves() []string { return o.absent }
