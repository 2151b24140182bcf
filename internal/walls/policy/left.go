package policy

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/walls/sandbox"
)

// Left returns the files in the temporary directory of commands, and the directories there with files in them, which
// end in a slash. The names are as commands see them: as is the name of the directory for them. Places, which are
// mounted there, are left out.
func Left(dir, as string, places []string) (paths []string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		path := filepath.Join(as, entry.Name())
		holds := func(place string) bool { return pathname.Within(path, place) }
		switch here := filepath.Join(dir, entry.Name()); {
		case slices.Contains(places, path):
			continue
		case slices.ContainsFunc(places, holds) && !entry.IsDir(): // a command has put a link there
			continue
		case slices.ContainsFunc(places, holds):
			paths = append(paths, Left(here, path, places)...)
			continue
		case !holdsFile(here):
			continue
		}
		if entry.IsDir() {
			path += string(filepath.Separator)
		}
		paths = append(paths, path)
	}
	return paths
}

// holdsFile reports whether a path is a file or a link, or a directory with one.
func holdsFile(path string) (found bool) {
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && (entry.Type().IsRegular() || entry.Type()&fs.ModeSymlink != 0) {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// SeenTemp returns where commands see their temporary directory.
func (w *Walls) SeenTemp(temp string) string {
	if w.Tier() == sandbox.Namespaces {
		return "/tmp"
	}
	return temp
}
