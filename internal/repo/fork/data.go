package fork

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
)

// data lists where the files of repositories are, with all links resolved.
type data struct {
	dirs  []string
	links []string // links in these directories to files
}

// dataOf finds the repositories of the workspace: its own, and those of directories in it down to the depth. A deeper
// search would take longer than everything else in making a fork.
func dataOf(top string, depth int) (d data) {
	d.add(top)
	if depth == 0 {
		return d
	}
	entries, _ := os.ReadDir(top)
	for _, e := range entries {
		if e.IsDir() && e.Name() != ".git" {
			below := dataOf(filepath.Join(top, e.Name()), depth-1)
			d.dirs, d.links = append(d.dirs, below.dirs...), append(d.links, below.links...)
		}
	}
	return d
}

// nestedDepth is how deep dataOf looks in a workspace.
const nestedDepth = 2

// add adds the repository of a working tree, if it has one.
func (d *data) add(top string) {
	if _, err := os.Lstat(filepath.Join(top, ".git")); err != nil {
		return
	}
	opened, err := git.Open(top)
	if err != nil {
		return
	}
	defer opened.Close()
	for _, dir := range []string{opened.Dir(), opened.Common(), filepath.Join(opened.Common(), "objects")} {
		dir = pathname.Real(dir)
		if slices.Contains(d.dirs, dir) {
			continue
		}
		d.dirs = append(d.dirs, dir)
		for _, link := range linksIn(dir) {
			to := pathname.Real(link)
			switch info, err := os.Stat(to); {
			case err != nil: // it leads nowhere
			case info.IsDir():
				d.dirs = append(d.dirs, to)
			default:
				d.links = append(d.links, link)
			}
		}
	}
}

func linksIn(dir string) (links []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			links = append(links, filepath.Join(dir, e.Name()))
		}
	}
	return links
}

// copied returns an error if a copy of the workspace would use the repository of a working tree in it instead of a copy
// of that repository.
func (f *Fork) copied(top string) error {
	var d data
	d.add(top)
	at := filepath.Join(top, ".git")
	links := []string{at}
	for _, dir := range d.dirs {
		if !pathname.Within(f.Workspace, dir) {
			return fmt.Errorf("its repository is outside of it, in %s", dir)
		}
		links = append(links, linksIn(dir)...)
	}
	for _, link := range links {
		to, err := os.Readlink(link)
		if err == nil && (filepath.IsAbs(to) || !pathname.Within(f.Workspace, pathname.Real(link))) {
			return fmt.Errorf("%s leads to %s, which a copy would use too", link, to)
		}
	}
	return git.Movable(append(d.dirs, at)...)
}
