package autorun

import (
	_ "embed" // the places
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
)

const (
	mostHome     = 20000 // names of a home directory that are looked at
	deepHome     = 4     // levels of the directories with settings that are looked at
	mostPrograms = 20000 // names of the directories in PATH that are looked at
)

// Home is what starts by itself for a user and may lead into a workspace.
type Home struct {
	Links []string // links in start-up places, and in directories of PATH
	Files []string // start-up files, whose words are followed
}

// HomeOf examines home directories and the directories in PATH. It walks once, bounded in names and levels: all names
// with a dot, what is in such directories, and more levels of those in which programs keep what they start.
func HomeOf(homes, path []string) (h Home) {
	for _, home := range homes {
		h.walk(home)
		for _, name := range startFiles() {
			h.Files = append(h.Files, filepath.Join(home, filepath.FromSlash(name)))
		}
	}
	left := mostPrograms
	for _, dir := range path {
		if filepath.IsAbs(dir) && !ofPackages(filepath.Clean(dir)) {
			h.programs(dir, &left)
		}
	}
	return h
}

// startFiles returns the files of a home directory whose words name what is run at a start.
func startFiles() []string {
	return []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".kshrc", ".zshrc",
		".zshenv", ".zprofile", ".zlogin", ".zlogout", ".cshrc", ".tcshrc", ".login", ".config/fish/config.fish",
		".xprofile", ".xinitrc", ".xsessionrc", ".inputrc", ".ssh/config", ".ssh/rc", ".tmux.conf", ".screenrc",
		".config/tmux/tmux.conf", ".vimrc", ".config/nvim/init.vim", ".config/nvim/init.lua", ".emacs",
		".emacs.d/init.el", ".gdbinit", ".npmrc", ".envrc", ".config/direnv/direnvrc",
	}
}

// levelsOf says how many levels of a directory are looked at.
func levelsOf(name string) int {
	switch name {
	case ".config", ".local", "Library":
		return deepHome
	case ".cache", ".Trash", ".npm", ".m2", ".gradle":
		return 0
	}
	return 1
}

// walk records the links in a home directory, the highest ones first.
func (h *Home) walk(home string) {
	type place struct {
		path   string
		levels int
	}
	left := mostHome
	for next := []place{{home, 0}}; len(next) > 0; next = next[1:] {
		at := next[0]
		for _, entry := range read(at.path) {
			name, path, levels := entry.Name(), filepath.Join(at.path, entry.Name()), at.levels-1
			if at.path == home {
				if levels = levelsOf(name); !dotted(name) && name != "bin" && name != "Library" {
					continue
				}
			}
			if left--; left < 0 {
				return
			}
			switch {
			case entry.Type()&fs.ModeSymlink != 0:
				h.Links = append(h.Links, path)
			case entry.IsDir() && levels > 0:
				next = append(next, place{path, levels})
			}
		}
	}
}

// Holds returns a start-up place of a home directory that leads to a whole workspace, or to a directory that contains
// it, or "".
func (h Home) Holds(root string) string {
	for _, link := range h.Links {
		if !slices.Contains([]string{
			"autostart", "systemd", "user", "environment.d", "bin", ".ssh", ".config", ".local", "fish", "LaunchAgents",
		}, filepath.Base(link)) {
			continue
		}
		if real, err := filepath.EvalSymlinks(link); err == nil && pathname.Within(real, root) {
			return link
		}
	}
	return ""
}

// ofPackages reports whether a directory of programs is filled by the packages of the system. People create no links
// there, and such directories are the largest.
func ofPackages(dir string) bool {
	return slices.Contains([]string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/games", "/snap/bin"}, dir)
}

// programs records the links in a directory of PATH that lead out of it.
func (h *Home) programs(dir string, left *int) {
	for _, entry := range read(dir) {
		if *left--; *left < 0 {
			return
		}
		if entry.Type()&fs.ModeSymlink == 0 {
			continue
		}
		link := filepath.Join(dir, entry.Name())
		if target, err := os.Readlink(link); err == nil && strings.Contains(target, "/") {
			h.Links = append(h.Links, link)
		}
	}
}

// PathsInto returns where the links lead into a workspace, and the paths there that start-up files and the files behind
// the links name.
func (h Home) PathsInto(root string) []string {
	var paths []string
	add := func(more ...string) {
		for _, path := range more {
			if path != root && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	f := newFollower(root, root)
	for _, path := range slices.Concat(h.Links, h.Files) {
		if at, ok := f.enters(path); ok && !pathname.Within(root, path) {
			add(at)
		}
	}
	for _, path := range slices.Concat(h.Files, paths) {
		f.all(path, 1, false)
	}
	add(f.paths...)
	return paths
}
