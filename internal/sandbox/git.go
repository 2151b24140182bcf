package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// GitDirs returns the directories outside root that git has to write when root is a linked worktree: the git directory
// of the worktree and the common one. A repository cannot choose them alone: the directory that its .git file names has
// to point back to that very file, and to be where git creates it. The files there from which git runs something stay
// protected.
func GitDirs(root string) []string {
	file := filepath.Join(root, ".git")
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	own, ok := lineOf(file, "gitdir: ")
	if !ok {
		return nil
	}
	if own, err = filepath.EvalSymlinks(absolute(own, root)); err != nil {
		return nil
	}
	back, ok := lineOf(filepath.Join(own, "gitdir"), "")
	if !ok {
		return nil
	}
	back = absolute(back, own)
	if dir, err := filepath.EvalSymlinks(filepath.Dir(back)); err != nil || dir != root ||
		filepath.Base(back) != ".git" {
		return nil
	}
	common, worktrees := filepath.Dir(filepath.Dir(own)), filepath.Dir(own)
	named, ok := lineOf(filepath.Join(own, "commondir"), "")
	if !ok || filepath.Base(worktrees) != "worktrees" || absolute(named, own) != common || !isGitDir(common) ||
		within(root, common) {
		return nil
	}
	return []string{common, own}
}

// SubmoduleDir returns the git directory outside of a work tree that is a submodule, or "". A repository cannot choose
// it alone: the configuration there has to name that very work tree.
func SubmoduleDir(root string) string {
	named, ok := lineOf(filepath.Join(root, ".git"), "gitdir: ")
	if !ok {
		return ""
	}
	dir, err := filepath.EvalSymlinks(absolute(named, root))
	if err != nil || within(root, dir) || !isGitDir(dir) {
		return ""
	}
	for _, s := range gitSettings(filepath.Join(dir, "config")) {
		if s.key != "core.worktree" {
			continue
		}
		if tree, err := filepath.EvalSymlinks(absolute(s.value, dir)); err == nil && tree == root {
			return dir
		}
	}
	return ""
}

// lineOf returns the single line of a file, without its prefix.
func lineOf(path, beginning string) (string, bool) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a command may have put a pipe there
	if err != nil {
		return "", false
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > 8192 {
		return "", false
	}
	text, err := io.ReadAll(io.LimitReader(file, 8193))
	if err != nil {
		return "", false
	}
	rest, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), beginning)
	return rest, ok && rest != "" && !strings.ContainsAny(rest, "\n\x00")
}

func absolute(path, base string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

func isGitDir(dir string) bool {
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil
}

// kept is a name beneath a writable directory that commands cannot change.
type kept struct {
	base, name string
	config     bool // a configuration of git, of which git may change some keys
	hooks      bool // a directory of hooks, in which git puts samples when it makes one
	lock       bool // a file that git replaces over a lock
}

func (k kept) path() string { return filepath.Join(k.base, k.name) }

// kept returns all names that commands cannot change.
func (p Policy) kept() []kept {
	var all []kept
	for _, root := range append([]string{p.Root}, p.Roots...) {
		for _, dir := range p.repository(root) { // these first: they say more about a name
			all = append(all, gitNames(root, dir)...)
		}
		for _, name := range p.Protected {
			all = append(all, kept{base: root, name: filepath.Clean(name)})
		}
		all = append(all, bareName(root, "")...)
		all = append(all, p.pointers(root, "")...)
		if up := enclosing(root); up != "" {
			all = append(all, p.pointers(root, up)...)
		}
		for _, tree := range p.Repositories {
			all = append(all, p.nested(root, tree)...)
		}
	}
	for _, dir := range p.Write {
		if !isGitDir(dir) {
			if _, ok := lineOf(filepath.Join(dir, "commondir"), ""); !ok {
				continue
			}
		}
		all = append(all, gitNames(dir, "")...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(k kept) bool {
		again := seen[k.path()]
		seen[k.path()] = true
		return again
	})
}

// repository returns the git directory of a workspace relative to it: .git, what the file .git names, and what
// commondir names there.
func (p Policy) repository(root string) []string {
	dirs := []string{".git"}
	follow := func(file, beginning, from string) {
		named, ok := lineOf(filepath.Join(root, file), beginning)
		if !ok {
			return
		}
		dir := absolute(named, filepath.Join(root, from))
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		rel, err := filepath.Rel(root, dir)
		if err == nil && filepath.IsLocal(rel) && rel != "." && !slices.Contains(dirs, rel) {
			dirs = append(dirs, rel)
		}
	}
	follow(".git", "gitdir: ", "")
	for _, dir := range slices.Clone(dirs) {
		follow(filepath.Join(dir, "commondir"), "", dir)
	}
	return dirs
}

// gitNames returns the names in a git directory from which git runs something, or which lead it elsewhere: a file
// commondir there makes git read hooks and configuration in another directory, and remotes and branches hold addresses
// of an old kind.
func gitNames(base, dir string) []kept {
	var all []kept
	add := func(under string) {
		for _, name := range []string{
			"hooks", "config", "commondir", "config.worktree", "remotes", "branches", "info/attributes",
		} {
			all = append(all, kept{
				base: base, name: filepath.Join(under, name), config: name == "config",
				hooks: name == "hooks" || name == "branches", lock: strings.HasPrefix(name, "config"),
			})
		}
	}
	add(dir)
	linked, _ := os.ReadDir(filepath.Join(base, dir, "worktrees"))
	for _, entry := range linked {
		at := filepath.Join(dir, "worktrees", entry.Name())
		for _, name := range []string{"commondir", "gitdir", "config.worktree"} {
			if _, err := os.Lstat(filepath.Join(base, at, name)); err == nil || name == "config.worktree" {
				all = append(all, kept{
					base: base, name: filepath.Join(at, name), lock: name == "config.worktree",
				})
			}
		}
	}
	for _, module := range modules(filepath.Join(base, dir, "modules"), 4) {
		if rel, err := filepath.Rel(base, module); err == nil {
			add(rel)
		}
	}
	return all
}

// modules returns the git directories of submodules, whose names may have slashes.
func modules(dir string, depth int) (found []string) {
	entries, err := os.ReadDir(dir)
	if err != nil || depth == 0 {
		return nil
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if !entry.IsDir() {
			continue
		}
		if isGitDir(path) {
			found = append(found, path)
			found = append(found, modules(filepath.Join(path, "modules"), depth-1)...)
			continue
		}
		found = append(found, modules(path, depth-1)...)
	}
	return found
}

// bareName keeps a work tree from becoming a git directory itself. Git takes any directory with HEAD, objects and refs
// for one, and then reads its config; with a file commondir it looks for the last two elsewhere. So that name is
// protected, and one of the three.
func bareName(root, tree string) []kept {
	name := func(of string) kept { return kept{base: root, name: filepath.Join(tree, of)} }
	all := []kept{name("commondir")}
	for _, dir := range []string{"refs", "objects"} {
		if _, err := os.Lstat(name(dir).path()); err != nil {
			return append(all, name(dir))
		}
	}
	if isGitDir(filepath.Join(root, tree)) {
		config := name("config")
		config.lock = true
		return append(all, config, name("hooks"))
	}
	return append(all, name("HEAD"))
}

// gitDirs returns the git directories of the workspaces, whether or not they are there.
func (p Policy) gitDirs() (dirs []string) {
	trees := slices.Concat([]string{p.Root}, p.Roots, p.Repositories)
	for _, tree := range trees {
		for _, dir := range p.repository(tree) {
			dirs = append(dirs, filepath.Join(tree, dir))
		}
	}
	for _, dir := range slices.Concat(p.Write, []string{p.Root}, p.Roots) {
		if isGitDir(dir) {
			dirs = append(dirs, dir)
		}
	}
	for i, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dirs[i] = real
		}
	}
	return dirs
}

// enclosing returns the relative path of the work tree in which a workspace lies that has no repository itself, or "".
func enclosing(root string) string {
	if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
		return ""
	}
	up := ".."
	for dir := filepath.Dir(root); dir != "/"; dir, up = filepath.Dir(dir), filepath.Join(up, "..") {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return up
		}
	}
	return ""
}
