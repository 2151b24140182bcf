package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// outside are the folders that serve only tests and measurements: they may import anything, and nothing else may import
// them.
func outside() []string { return []string{"internal/testkit", "bench", "test"} }

// folder is a line of the map.
type folder struct {
	name string // below internal
	line string // place of the line
}

// readMap returns the lines of the map of a page, from the highest folder to the lowest: what stands in the first block
// below the heading "## Map".
func readMap(root, page string) (lines []string, first int, err error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return nil, 0, err
	}
	all := strings.Split(string(text), "\n")
	begin := slices.Index(all, "## Map")
	if begin < 0 {
		return nil, 0, fmt.Errorf("%s has no heading ## Map", page)
	}
	for i, line := range all[begin+1:] {
		switch {
		case strings.HasPrefix(line, "## ") || line == "```" && first == 0:
			return nil, 0, fmt.Errorf("%s has no map beneath the heading ## Map", page)
		case line == "```text":
			first = begin + 1 + i + 2
		case line == "```":
			return lines, first, nil
		case first > 0:
			lines = append(lines, line)
		}
	}
	return nil, 0, fmt.Errorf("%s: the map has no end", page)
}

// architecture is the page whose map holds; those of the others are copies.
const architecture = "docs/architecture.md"

// readFolders reads the map.
func readFolders(root string) ([]folder, error) {
	lines, first, err := readMap(root, architecture)
	if err != nil {
		return nil, err
	}
	var folders []folder
	for i, line := range lines {
		place := fmt.Sprintf("%s:%d", architecture, first+i)
		name, what, _ := strings.Cut(line, " ")
		if slices.ContainsFunc(folders, func(f folder) bool { return f.name == name }) {
			return nil, fmt.Errorf("%s: %s has two lines", place, name)
		}
		if strings.TrimSpace(what) == "" {
			return nil, fmt.Errorf("%s: nothing is said of %s", place, name)
		}
		folders = append(folders, folder{name, place})
	}
	return folders, nil
}

// checkMaps compares the copies of the map with it.
func (t *tree) checkMaps() error {
	want, _, err := readMap(t.root, architecture)
	if err != nil {
		return err
	}
	for _, page := range []string{"AGENTS.md", "CONTRIBUTING.md"} {
		got, first, err := readMap(t.root, page)
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			t.problem(fmt.Sprintf("%s:%d", page, first), "the map is not that of %s", architecture)
		}
	}
	return nil
}

// folderOf returns the folder that a package lies in, as the map calls it.
func folderOf(dir string) (name string, within bool) {
	rest, within := strings.CutPrefix(dir, "internal/")
	name, _, _ = strings.Cut(rest, "/")
	return name, within
}

// isOutside reports whether a package serves only tests and measurements.
func isOutside(dir string) bool {
	return slices.ContainsFunc(outside(), func(o string) bool { return dir == o || strings.HasPrefix(dir, o+"/") })
}

// place returns the position of a package in the map, and whether it has one.
func (t *tree) place(dir string) (int, bool) {
	name, within := folderOf(dir)
	i := slices.IndexFunc(t.folders, func(f folder) bool { return f.name == name })
	return i, within && i >= 0
}

// checkFolders compares the map with the packages.
func (t *tree) checkFolders() {
	for _, f := range t.folders {
		found := false
		for dir := range t.packages {
			name, within := folderOf(dir)
			found = found || within && name == f.name
		}
		if !found {
			t.problem(f.line, "%s has a line and no package", f.name)
		}
	}
	for dir, p := range t.packages {
		if _, within := folderOf(dir); within && !isOutside(dir) {
			if _, ok := t.place(dir); !ok {
				t.problem(dir, "%s lies in a folder that has no line in the map", p.name)
			}
		}
	}
}

// checkImports compares the imports of a package with the order of the folders. Test files are free.
func (t *tree) checkImports(p *pkg) {
	if isOutside(p.dir) {
		return
	}
	from, ordered := t.place(p.dir)
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, spec := range f.syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			dir, own := strings.CutPrefix(imported, t.module+"/")
			if !own {
				continue
			}
			to, known := t.place(dir)
			switch {
			case isOutside(dir):
				t.problem(t.at(spec), "%s imports %s, which serves only tests", p.name, t.nameOf(dir))
			case ordered && known && to < from:
				t.problem(t.at(spec), "%s imports %s, which stands above it", p.name, t.nameOf(dir))
			}
		}
	}
}
