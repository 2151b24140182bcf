// Package pathname says where a file lies, judging by names alone.
//
// It follows no links. A caller that must not be led elsewhere by them resolves them first, or opens files through
// workspace.OpenDir.
package pathname

import "path/filepath"

// In returns the name of a file as it is seen from a directory, and whether it is that directory or beneath it. Both
// are absolute, or both are relative to the same directory. An empty name stands for no file.
func In(dir, file string) (rel string, within bool) {
	rel, err := filepath.Rel(dir, file)
	if err != nil || dir == "" || file == "" || !filepath.IsLocal(rel) {
		return "", false
	}
	return rel, true
}

// Within reports whether a file is a directory or beneath it.
func Within(dir, file string) bool {
	_, within := In(dir, file)
	return within
}
