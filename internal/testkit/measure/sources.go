package measure

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// Sources looks into every folder of the module at root. A test that builds the program calls it: what only the
// compiler reads is nothing that the cache of go test knows of, and an old result would stand for a new program.
func Sources(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		return err
	})
}
