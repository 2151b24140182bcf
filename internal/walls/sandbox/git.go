package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/workspace"
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
		pathname.Within(root, common) {
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
	if err != nil || pathname.Within(root, dir) || !isGitDir(dir) {
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

// lineOf returns the only line of a file without its prefix, and false for any other file.
func lineOf(path, beginning string) (string, bool) {
	text, err := workspace.ReadFile(path, 8192) // not a pipe, which a command may have put there
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

// InGitDir reports whether a path lies in a git directory, whatever its name.
func InGitDir(path string) bool {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if isGitDir(dir) {
			return true
		}
	}
	return false
}

// kept is a name below a writable directory that commands cannot change.
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
		all = append(all, p.git(root)...) // these first: they say more about a name
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
	for _, dir := range p.Write { // such as those of a linked work tree
		if _, linked := lineOf(filepath.Join(dir, "commondir"), ""); linked || isGitDir(dir) {
			all = append(all, gitNames(dir, "")...)
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(k kept) bool {
		again := seen[k.path()]
		seen[k.path()] = true
		return again
	})
}

// protectedPaths returns all names that commands cannot change, and the targets of links at and in them.
func (p Policy) protectedPaths() (paths []string) {
	for _, k := range p.kept() {
		paths = append(paths, k.path())
		for _, link := range append(linksIn(k.path(), deepLinks), k.path()) {
			real, err := filepath.EvalSymlinks(link)
			holds := func(root string) bool { return pathname.Within(real, root) }
			if err == nil && !slices.ContainsFunc(append([]string{p.Root}, p.Write...), holds) {
				paths = append(paths, real)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// repository returns the git directories of a work tree: .git, where it leads by a link or as a file, what commondir
// names there, and the tree itself if it is a bare repository. All but the first are without links.
func repository(tree string) []string {
	dirs := []string{filepath.Join(tree, ".git")}
	add := func(dir string) {
		if dir = pathname.Real(dir); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	add(dirs[0])
	if named, ok := lineOf(dirs[0], "gitdir: "); ok {
		add(absolute(named, tree))
	}
	for _, dir := range slices.Clone(dirs) {
		if named, ok := lineOf(filepath.Join(dir, "commondir"), ""); ok {
			add(absolute(named, dir))
		}
	}
	if isGitDir(tree) {
		add(tree)
	}
	return dirs
}

// git returns the names that commands cannot change in the git directories of a work tree, as far as they could write
// them.
func (p Policy) git(tree string) (all []kept) {
	for _, dir := range repository(tree) {
		if base, rel, ok := p.locate(dir); ok && (dir != tree || rel != ".") {
			all = append(all, gitNames(base, rel)...)
		}
	}
	return all
}

// locate returns the writable directory in which a path lies.
func (p Policy) locate(path string) (base, rel string, ok bool) {
	for _, base := range append([]string{p.Root}, p.Write...) {
		if rel, within := pathname.In(base, path); within {
			return base, rel, true
		}
	}
	return "", "", false
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
	found, whole := modules(filepath.Join(base, dir, "modules"))
	for _, module := range found {
		if rel, err := filepath.Rel(base, module); err == nil {
			add(rel)
		}
	}
	if !whole {
		all = append(all, kept{base: base, name: filepath.Join(dir, "modules")})
	}
	return all
}

// mostModules is how many directories are searched for submodules. If there are more, no submodule can be changed.
const mostModules = 4000

// modules returns the git directories of submodules, whose names may have slashes. whole is false if there may be more.
func modules(dir string) (found []string, whole bool) {
	for next, seen := []string{dir}, 0; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		entries, _ := os.ReadDir(at)
		for _, entry := range entries {
			path := filepath.Join(at, entry.Name())
			switch {
			case !entry.IsDir():
			case isGitDir(path):
				found, next = append(found, path), append(next, filepath.Join(path, "modules"))
			default:
				next = append(next, path)
			}
		}
		if seen += len(entries); seen > mostModules {
			return found, false
		}
	}
	return found, true
}

// bareName keeps a work tree from becoming a git directory. Git takes any directory with HEAD, objects and refs for
// one, and reads its config; with a file commondir it looks for objects and refs elsewhere. So commondir is protected,
// and one of the three.
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
	for _, tree := range slices.Concat([]string{p.Root}, p.Roots, p.Repositories) {
		dirs = append(dirs, repository(tree)...)
	}
	for _, dir := range p.Write {
		if isGitDir(dir) {
			dirs = append(dirs, dir)
		}
	}
	for i, dir := range dirs {
		dirs[i] = pathname.Real(dir)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
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
