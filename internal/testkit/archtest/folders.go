package archtest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// outside are the folders that serve only tests and measurements: they may import anything, and nothing else may import
// them.
func outside() []string { return []string{"internal/testkit", "bench", "test"} }

// folder is a row of the map.
type folder struct {
	name string // beneath internal
	line string // place of the row
}

// readFolders reads the table beneath the heading "## Map", from the highest folder to the lowest:
//
//	| folder | what is in it |
func readFolders(name string) ([]folder, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var folders []folder
	within := false
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "## ") {
			within = strings.TrimSpace(line) == "## Map"
			continue
		}
		if !within || !strings.HasPrefix(line, "|") {
			continue
		}
		place := fmt.Sprintf("docs/architecture.md:%d", i+1)
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2 {
			return nil, fmt.Errorf("%s: a row has two cells: folder, what is in it", place)
		}
		name := strings.Trim(strings.TrimSpace(cells[0]), "`")
		if name == "folder" || strings.Trim(name, "-:") == "" {
			continue
		}
		if slices.ContainsFunc(folders, func(f folder) bool { return f.name == name }) {
			return nil, fmt.Errorf("%s: %s has two rows", place, name)
		}
		if strings.TrimSpace(cells[1]) == "" {
			return nil, fmt.Errorf("%s: nothing is said of %s", place, name)
		}
		folders = append(folders, folder{name, place})
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("%s has no table beneath the heading ## Map", name)
	}
	return folders, nil
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

// checkFolders compares the rows with the packages.
func (t *tree) checkFolders() {
	for _, f := range t.folders {
		found := false
		for dir := range t.packages {
			name, within := folderOf(dir)
			found = found || within && name == f.name
		}
		if !found {
			t.problem(f.line, "%s has a row and no package", f.name)
		}
	}
	for dir, p := range t.packages {
		if _, within := folderOf(dir); within && !isOutside(dir) {
			if _, ok := t.place(dir); !ok {
				t.problem(dir, "%s lies in a folder that has no row in docs/architecture.md", p.name)
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
