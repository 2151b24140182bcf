// Package pathname says where a file lies.
//
// In and Within judge by names alone. A caller that must not be led elsewhere by links calls Real first, or opens files
// through workspace.OpenDir.
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

// Real follows the links of a path, as far as it exists: unlike filepath.EvalSymlinks it has a name for what is not
// there. It does not clean the path first, since link/.. is not the directory of link.
func Real(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real
	}
	clean := filepath.Clean(path)
	parent := filepath.Dir(clean)
	if parent == clean {
		return clean
	}
	return filepath.Join(Real(parent), filepath.Base(clean))
}
