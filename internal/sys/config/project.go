package config

import (
	"fmt"
	"os"
	"path/filepath"

	"omniagent/internal/kit/pathname"
)

// projectPath returns the path of a project's file below its directory.
func projectPath(dir string) string { return filepath.Join(dir, ".omniagent", "config.toml") }

// ProjectRoot returns the repository around dir, or dir itself. It skips directories that all users share, such as
// /tmp: anyone could put a repository there, around the directories of others.
func ProjectRoot(dir string) (root string, repository bool) {
	dir = filepath.Clean(dir)
	for at := dir; ; at = filepath.Dir(at) {
		if at != dir && isShared(at) {
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

// isShared reports whether everyone may create files in a directory, but not remove those of others.
func isShared(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&os.ModeSticky != 0 && info.Mode().Perm()&0o002 != 0
}

// Project is where a directory's project keeps its configuration.
type Project struct {
	Root   string
	File   string // the nearest one that exists, else where one would be created
	Exists bool
	Home   bool // the home directory, which is not a project: nothing there counts
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

// findProject finds the root of the project and the file nearest to the working directory.
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

// belongsToUser reports whether the file is in the home directory, which does not count as a project even if it is a
// repository.
func (o Options) belongsToUser(dir, path string) bool {
	if o.UserFile != "" && pathname.Same(path, o.UserFile) {
		return true
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if o.Getenv == nil {
			break
		}
		if home, ok := o.Getenv(name); ok && home != "" && pathname.Same(dir, home) {
			return true
		}
	}
	return false
}

// trustedProject reads the project file if it is trusted, and warns otherwise. The bytes that are hashed are the ones
// parsed.
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
		l.warn(Warning{
			Code: UntrustedConfig, Message: fmt.Sprintf("%s %s, so it does not count; %s", path, reason, next),
		})
		return nil, false
	}
	if leavesRoot(path, l.set.projectRoot) {
		return untrusted("is a link that leads out of the project",
			"put a file in its place, then run: omniagent trust")
	}
	_, known := trust.Recorded(path)
	data, exists, err := readConfig(path)
	switch {
	case err != nil && known:
		l.problems.syntax(path, err)
		l.unreadable = true
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
		if known {
			reason = "has changed since it was trusted"
		}
		return untrusted(reason, "look at it, then run: omniagent trust")
	}
	return data, true
}

// leavesRoot reports whether links take the path out of the root. A dangling link counts as leaving.
func leavesRoot(path, root string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		info, look := os.Lstat(path)
		return look == nil && info.Mode()&os.ModeSymlink != 0
	}
	realRoot, err := filepath.EvalSymlinks(root)
	return err != nil || !pathname.Within(realRoot, real)
}
