package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// projectPath is where a project keeps its file, beneath its directory.
func projectPath(dir string) string { return filepath.Join(dir, ".omniagent", "config.toml") }

// ProjectRoot is the repository around dir, or dir itself where there is none. It does not look in a directory that
// everybody shares, such as /tmp: anybody could put a repository there, around the directories of everybody else.
func ProjectRoot(dir string) (root string, repository bool) {
	dir = filepath.Clean(dir)
	for at := dir; ; at = filepath.Dir(at) {
		if at != dir && shared(at) {
			return dir, false
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, true
		}
		if at == filepath.Dir(at) {
			return dir, false
		}
	}
}

// shared reports whether everybody may make files in a directory and nobody may remove those of others.
func shared(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&os.ModeSticky != 0 && info.Mode().Perm()&0o002 != 0
}

// Project is where a directory's project keeps its configuration.
type Project struct {
	Root   string
	File   string // the nearest one that exists, else where one would be made
	Exists bool
	Home   bool // the place is the home directory's, which is no project: nothing there counts
}

// Project finds the project around o.Dir.
func (o Options) Project() Project {
	dir := filepath.Clean(o.Dir)
	root, _ := ProjectRoot(dir)
	p := Project{Root: root, File: projectPath(root), Home: o.belongsToUser(root, projectPath(root))}
	for at := dir; ; at = filepath.Dir(at) {
		path := projectPath(at)
		if _, err := os.Lstat(path); err == nil && !o.belongsToUser(at, path) {
			p.File, p.Exists, p.Home = path, true, false
			return p
		}
		if at == root || at == filepath.Dir(at) {
			return p
		}
	}
}

// findProject looks for the root of the project and for the file nearest to the working directory.
func (l *loader) findProject() {
	if l.options.Dir == "" {
		return
	}
	p := l.options.Project()
	l.set.projectRoot = p.Root
	if p.Exists {
		l.set.projectFile = p.File
	}
}

// belongsToUser is true in the home directory, whose file is no project's, even when the home directory is a
// repository.
func (o Options) belongsToUser(dir, path string) bool {
	if o.UserFile != "" && sameFile(path, o.UserFile) {
		return true
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if o.Getenv == nil {
			break
		}
		if home, ok := o.Getenv(name); ok && home != "" && sameFile(dir, home) {
			return true
		}
	}
	return false
}

func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// trustedProject reads the project file if it may count, and warns if it may not. What is hashed is what is parsed.
func (l *loader) trustedProject() ([]byte, bool) {
	path := l.set.projectFile
	if path == "" {
		return nil, false
	}
	trust := OpenTrust(l.options.TrustFile)
	if w, bad := trust.Warning(); bad {
		l.warn(w)
	}
	untrusted := func(reason, next string) ([]byte, bool) {
		l.warn(Warning{Code: UntrustedConfig, File: path, Message: fmt.Sprintf("%s %s, so it does not count; %s", path,
			reason, next)})
		return nil, false
	}
	if leavesRoot(path, l.set.projectRoot) {
		return untrusted("is a link that leads out of the project",
			"put a file in its place, then run: omniagent trust")
	}
	data, exists, err := readConfig(path)
	switch {
	case err != nil && trust.knows(path):
		l.problems.syntax(path, err)
		l.torn = true
		return nil, false
	case err != nil:
		return untrusted("cannot be trusted: "+err.Error(),
			"when it can be read, look at it, then run: omniagent trust")
	case !exists:
		return nil, false
	case trust.Refuses(path):
		return untrusted("is not trusted, because trust would be recorded in its own repository ("+l.options.TrustFile+
			")", "set XDG_STATE_HOME to another place")
	case !trust.Trusted(path, data):
		reason := "is not trusted"
		if trust.knows(path) {
			reason = "has changed since it was trusted"
		}
		return untrusted(reason, "look at it, then run: omniagent trust")
	}
	return data, true
}

// leavesRoot is true when links take the path out of the root. Nothing stands behind a dangling link, so it leaves too.
func leavesRoot(path, root string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		info, look := os.Lstat(path)
		return look == nil && info.Mode()&os.ModeSymlink != 0
	}
	realRoot, err := filepath.EvalSymlinks(root)
	if err != nil {
		return true
	}
	below, err := filepath.Rel(realRoot, real)
	return err != nil || below == ".." || strings.HasPrefix(below, ".."+string(filepath.Separator))
}
