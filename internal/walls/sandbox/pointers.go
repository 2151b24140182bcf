package sandbox

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/gitconfig"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/autorun"
)

// Git's configuration names further files from which git runs something: a directory of hooks, included configuration,
// programs of filters. A repository in the workspace has a configuration of its own.

const (
	mostIncludes     = 256     // files of configuration that are read for one repository
	longestConfig    = 8 << 20 // bytes of such a file
	mostDirectories  = 20000   // that are looked at for repositories
	deepRepositories = 8       // levels of directories
	fewRepositories  = 12      // in which all names are protected
)

// Repositories returns the work trees below root that have a git directory of their own, and bare repositories,
// without root itself. whole is false if there may be more than it looked at. It looks at each package that npm
// installed, but not at what is in it.
func Repositories(root string) (found []string, whole bool) {
	whole = true
	seen := 0
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		dir := filepath.Dir(path)
		switch {
		case path == root || err != nil && entry == nil:
			return nil
		case entry.Name() == ".git":
			if dir != root {
				found = append(found, dir)
			}
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.Name() == "HEAD" && dir != root && isGitDir(dir):
			found = append(found, dir)
			return fs.SkipDir
		case !entry.IsDir():
		case entry.Name() == "node_modules":
			found = append(found, packages(path)...)
			return fs.SkipDir
		case seen >= mostDirectories || strings.Count(path[len(root):], string(filepath.Separator)) > deepRepositories:
			whole = false
			return fs.SkipDir
		default:
			seen++
		}
		return nil
	})
	return found, whole
}

// packages returns the installed packages that have a git directory, also those below other packages.
func packages(dir string) (found []string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case !entry.IsDir():
		case strings.HasPrefix(entry.Name(), "@"): // the packages of an organization
			found = append(found, packages(path)...)
		default:
			if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil {
				found = append(found, path)
			}
			found = append(found, packages(filepath.Join(path, "node_modules"))...)
		}
	}
	return found
}

// Aliases returns the paths below root that only a person may change although their names do not say so: where .git
// leads, the targets of links in protected directories, what git's configuration (of the repository or of the user)
// names as hooks, configuration or programs, what protected files name, and where start-up places lead.
func Aliases(root string, protected []string, user UserGit, started []string) (paths []string) {
	p := Policy{Root: root, GitConfig: user, Obeyed: protected, Started: started}
	all := append(p.git(root), p.pointers(root, "")...)
	if up := enclosing(root); up != "" {
		all = append(all, p.pointers(root, up)...)
	}
	named := filepath.Join(root, ".git")
	for _, k := range all {
		if path := k.path(); !pathname.Within(named, path) {
			paths = append(paths, path)
		}
	}
	for _, name := range protected {
		all = append(all, kept{base: root, name: name})
	}
	for _, k := range all {
		for _, link := range linksIn(k.path(), deepLinks) {
			if real, err := filepath.EvalSymlinks(link); err == nil && real != root && pathname.Within(root, real) {
				paths = append(paths, real)
			}
		}
	}
	return paths
}

// deepLinks is how many levels of a protected directory are searched for links.
const deepLinks = 3

// linksIn returns the links in a directory. A hook, for example, is often a link to a script of the work tree.
func linksIn(dir string, levels int) (links []string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			links = append(links, path)
		case entry.IsDir() && levels > 1:
			links = append(links, linksIn(path, levels-1)...)
		}
	}
	return links
}

// many reports whether there are too many repositories to look for each protected name in each of them before every
// command. Names that do not exist there are not protected then.
func (p Policy) many() bool { return len(p.Repositories) > fewRepositories }

// nested returns the names that commands cannot change in a repository below a workspace: what git runs there, and
// the protected names.
func (p Policy) nested(root, tree string) (all []kept) {
	rel, within := pathname.In(root, tree)
	if !within || rel == "." {
		return nil
	}
	if info, err := os.Lstat(filepath.Join(tree, ".git")); err == nil {
		if info.Mode().IsRegular() {
			all = append(all, kept{base: root, name: filepath.Join(rel, ".git")})
		}
		all = append(all, p.git(tree)...)
	} else if isGitDir(tree) {
		all = append(all, gitNames(root, rel)...)
	}
	for _, name := range p.Protected {
		if strings.HasPrefix(name, ".git/") && name != ".git/info/attributes" {
			continue // gitNames knows better what git itself has to write
		}
		name = filepath.Join(rel, filepath.Clean(name))
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil || !p.many() {
			all = append(all, kept{base: root, name: name})
		}
	}
	return append(append(all, bareName(root, rel)...), p.pointers(root, rel)...)
}

// pointers returns the paths that protected files of a work tree and git's configuration name, and those to which
// start-up places lead, as far as commands could write them.
func (p Policy) pointers(root, rel string) (all []kept) {
	tree := filepath.Join(root, rel)
	files := slices.Clone(p.GitConfig.Files)
	for _, dir := range repository(tree) {
		files = append(files, filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree"))
	}
	add := func(lock bool, paths ...string) {
		for _, path := range paths {
			if base, name, ok := p.locate(path); ok && name != "." {
				all = append(all, kept{base: base, name: name, lock: lock})
			}
		}
	}
	var followed []string // directories of hooks
	for _, dir := range repository(tree) {
		followed = append(followed, filepath.Join(dir, "hooks"))
	}
	for i := -1; i < len(files) && i < mostIncludes; i++ {
		settings, base := p.GitConfig.settings(), tree // git takes no relative path of the environment for an include
		if i >= 0 {
			settings, base = gitSettings(files[i]), filepath.Dir(files[i])
		}
		for _, s := range settings {
			switch {
			case slices.Contains([]string{"core.hookspath", "core.attributesfile", "init.templatedir"}, s.key):
				path := homely(s.value, tree)
				paths := written(path)
				if add(false, paths...); s.key == "core.hookspath" {
					followed = append(followed, paths...)
					all = append(all, p.hooksIn(path)...)
				}
			case s.key == "include.path" || strings.HasPrefix(s.key, "includeif.") && strings.HasSuffix(s.key, ".path"):
				path := homely(s.value, base)
				add(true, written(path)...)
				files = append(files, path)
			case !isData(s.key):
				for _, path := range autorun.Files(s.value, tree) {
					add(false, written(path)...)
				}
			}
		}
	}
	add(false, autorun.Pointers(root, tree, p.Obeyed, followed)...) // they follow links themselves
	add(false, p.Started...)
	return all
}

// written returns the paths by which commands could reach, or change, what a path of a configuration leads to: each
// directory on the way may be a link into a workspace, out of it, or within it.
func written(path string) []string {
	all := []string{filepath.Clean(path)}
	if pathname.Real(path) == all[0] {
		return all
	}
	for i, c := range path + "/" {
		if c != '/' || i == 0 {
			continue
		}
		if info, err := os.Lstat(path[:i]); err == nil && info.Mode()&os.ModeSymlink != 0 {
			dir, name := filepath.Split(path[:i])
			all = append(all, filepath.Join(pathname.Real(dir), name))
		}
		all = append(all, filepath.Join(pathname.Real(path[:i]), (path + "/")[i:]))
	}
	return all
}

// hooksIn returns the hooks in a directory of hooks that commands have to be able to change, because it is a workspace.
func (p Policy) hooksIn(dir string) (all []kept) {
	base, name, ok := p.locate(pathname.Real(dir))
	if !ok || name != "." {
		return nil
	}
	for _, hook := range gitHooks() {
		all = append(all, kept{base: base, name: hook})
	}
	return all
}

// gitHooks returns the names of all hooks of git, by githooks(5).
func gitHooks() []string {
	return []string{
		"applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist", "p4-pre-submit",
		"p4-prepare-changelist", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge",
		"post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit",
		"pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive",
		"push-to-checkout", "reference-transaction", "sendemail-validate", "update",
	}
}

// homely makes a path of a configuration absolute, as git does. It does not clean it, since link/.. is not the
// directory of link.
func homely(path, base string) string {
	if rest, found := strings.CutPrefix(path, "%(prefix)/"); found {
		return gitPrefix() + "/" + rest
	}
	switch name, rest, _ := strings.Cut(path, "/"); {
	case filepath.IsAbs(path):
		return path
	case strings.HasPrefix(name, "~"):
		return autorun.ExpandHome(name+"/", base) + "/" + rest
	}
	return base + "/" + path
}

// gitPrefix returns the directory in which git is installed.
func gitPrefix() string {
	program, err := exec.LookPath("git")
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return "/usr"
	}
	return filepath.Dir(filepath.Dir(program))
}

// isData reports whether git only reads the value of a key. By the value of any other key it may run something.
func isData(key string) bool {
	section, name := key[:strings.IndexByte(key, '.')], key[strings.LastIndexByte(key, '.')+1:]
	switch section {
	case "branch", "user", "author", "committer":
		return true
	case "remote", "submodule":
		return slices.Contains([]string{"fetch", "push", "url", "pushurl", "path", "branch"}, name)
	}
	return slices.Contains([]string{
		"blame.ignorerevsfile", "commit.template", "core.excludesfile", "diff.orderfile", "fetch.fsck.skiplist",
		"format.signaturefile", "fsck.skiplist", "mailmap.file", "receive.fsck.skiplist",
	}, key)
}

// setting is a line of a configuration; the key is in lower case.
type setting struct{ key, value string }

// settings returns the settings of the environment. Those that name no key or no value have no effect here.
func (g UserGit) settings() (all []setting) {
	for _, s := range g.Settings {
		if strings.Contains(s.Key, ".") && s.Value != "" {
			all = append(all, setting{strings.ToLower(s.Key), s.Value})
		}
	}
	return all
}

// gitSettings returns the settings of a file. It reads what it can of one that git would not accept.
func gitSettings(path string) (all []setting) {
	file, _, err := workspace.OpenRegular(path) // not a pipe, which a command may have put there
	if err != nil {
		return nil
	}
	defer file.Close()
	data, _ := io.ReadAll(io.LimitReader(file, longestConfig))
	for key, value := range gitconfig.Settings(string(data)) {
		if value != "" {
			all = append(all, setting{strings.ToLower(key), value})
		}
	}
	return all
}
