package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ObjectsIn lists the packs and the loose objects of a repository, sorted, without the index of several packs, which
// git replaces under the same name. Git does without it.
func ObjectsIn(common string) (names []string) {
	dir := filepath.Join(common, "objects")
	folders, _ := os.ReadDir(dir)
	for _, folder := range folders {
		name := folder.Name()
		if !folder.IsDir() || len(name) != 2 && name != "pack" {
			continue
		}
		files, _ := os.ReadDir(filepath.Join(dir, name))
		for _, f := range files {
			if f.Type().IsRegular() && !strings.HasPrefix(f.Name(), "tmp_") &&
				!strings.HasPrefix(f.Name(), "multi-pack-index") {
				names = append(names, name+"/"+f.Name())
			}
		}
	}
	slices.Sort(names)
	return names
}
