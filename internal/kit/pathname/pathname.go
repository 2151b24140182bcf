// Package pathname relates the names of files to directories.
//
// In and Within compare names only. A caller that must not follow links elsewhere calls Real first, or opens files
// through workspace.OpenDir.
package pathname

import (
	"os"
	"path/filepath"
	"strings"
)

// From returns path relative to dir as one path; an absolute path is returned unchanged.
func From(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Typed returns a path as a person types it: ~ at its beginning is home, unless that is unknown.
func Typed(home, path string) string {
	below, found := strings.CutPrefix(path, "~")
	if !found || home == "" || below != "" && !os.IsPathSeparator(below[0]) {
		return path
	}
	return home + below
}

// In returns the name of a file relative to dir, and whether it is dir or below it. Both are absolute, or both are
// relative to the same directory. An empty name does not name a file.
func In(dir, file string) (rel string, within bool) {
	rel, err := filepath.Rel(dir, file)
	if err != nil || dir == "" || file == "" || !filepath.IsLocal(rel) {
		return "", false
	}
	return rel, true
}

// Within reports whether a file is a directory or below it.
func Within(dir, file string) bool {
	_, within := In(dir, file)
	return within
}

// Real returns a path without links. Unlike filepath.EvalSymlinks, it accepts one of which only the beginning exists.
// It does not clean the path first, since link/.. is not the directory of link.
func Real(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	end := len(path)
	for end > 0 && os.IsPathSeparator(path[end-1]) {
		end--
	}
	switch dir, name := filepath.Split(path[:end]); {
	case dir == "" || name == "":
		return filepath.Clean(path)
	default:
		return filepath.Join(Real(dir), name)
	}
}

// Same reports whether two paths lead to one file.
func Same(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// Packages returns the outermost node_modules in which a file lies, or "".
func Packages(path string) string {
	const name = string(filepath.Separator) + "node_modules" + string(filepath.Separator)
	if i := strings.Index(path, name); i >= 0 {
		return path[:i+len(name)-1]
	}
	return ""
}
