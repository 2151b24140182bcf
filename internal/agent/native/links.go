package native

import (
	"os"
	"path/filepath"
	"strings"
)

// Leads returns the targets of a path, which may contain * or ?, if it goes through a link. It leaves out broken links,
// which no command can read.
func Leads(path string) (all []string) {
	matches := []string{path}
	if strings.ContainsAny(path, "*?") {
		if found, err := filepath.Glob(strings.ReplaceAll(path, `\`, `\\`)); err == nil && len(found) > 0 {
			matches = found
		}
	}
	dirs := map[string]bool{} // whether the directory is reached through a link
	for _, match := range matches {
		dir := filepath.Dir(match)
		if _, known := dirs[dir]; !known || strings.Contains(match, "..") {
			real, err := filepath.EvalSymlinks(dir)
			dirs[dir] = err != nil || real != dir || strings.Contains(match, "..")
		}
		if info, err := os.Lstat(match); err == nil && info.Mode()&os.ModeSymlink == 0 && !dirs[dir] {
			continue // there is nothing to follow; this is cheap in a large directory
		}
		if real, err := filepath.EvalSymlinks(match); err == nil && real != filepath.Clean(match) {
			all = append(all, real)
		}
	}
	return all
}

// Names returns the names in a directory, or none where it cannot be listed.
func Names(dir string) []string {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil // opening a FIFO would wait
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // what was read before an error is there
	return names
}
