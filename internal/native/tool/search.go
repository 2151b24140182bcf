package tool

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/ignore"
	"omniagent/internal/sys/workspace"
)

const (
	rulesLimit  = 1 << 20   // bytes of a file of rules; a larger one is ignored
	resultLimit = 100 << 10 // bytes of an answer
)

// searchArea is the area that Glob and Grep search: a directory of the workspace, and the rules that exclude files.
type searchArea struct {
	own   string // the file of rules that takes precedence
	user  *ignore.Rules
	name  string // the starting directory, for workspace.Dir
	above string // the absolute path of that directory, without the first slash
	scope *ignore.Scope
}

// newSearchArea reads the rules of all parents of name, up to the root of the file system, as ripgrep and fd do. Some
// may be outside the workspace. Nothing else is read there, and only the effect of the rules is visible.
//
// If a rule excludes name itself, name is searched anyway, without the rules from above, because the caller named it.
func newSearchArea(env *Env, name, own string) *searchArea {
	g := &searchArea{own: own, name: name}
	if env.Excludes != "" {
		if data, err := workspace.ReadFile(env.Excludes, rulesLimit); err == nil {
			g.user = ignore.Parse(data)
		}
	}
	named := func(at string) {
		if at != "" && g.scope.Match(at, true) == ignore.Ignored {
			g.scope = lifted(g.scope, at)
		}
	}
	g.above = fromTop(env.Files.Above(name, func(dir *workspace.Parent) {
		at := fromTop(dir.Path)
		named(at)
		g.scope = g.scope.Enter(at, g.rules(dir, g.scope))
	}))
	named(g.above)
	return g
}

// fromTop returns an absolute path with slashes, without the first one.
func fromTop(full string) string {
	return strings.TrimPrefix(filepath.ToSlash(full[len(filepath.VolumeName(full)):]), "/")
}

// lifted returns the scope of a directory that the caller named although a rule excludes it.
func lifted(scope *ignore.Scope, full string) *ignore.Scope {
	if !scope.InGit() {
		return nil
	}
	var none *ignore.Scope
	return none.Enter(full, ignore.Files{Repository: true})
}

// ruleDir is a directory that may contain files of rules.
type ruleDir interface {
	Has(name string) bool
	ReadFile(name string, limit int64) ([]byte, error)
}

// rules reads the rules in a directory. It reads git's rules only in a repository.
func (g *searchArea) rules(d ruleDir, above *ignore.Scope) ignore.Files {
	read := func(name string, there bool) *ignore.Rules {
		if !there && !d.Has(name) {
			return nil
		}
		data, err := d.ReadFile(name, rulesLimit)
		if err != nil {
			return nil
		}
		return ignore.Parse(data)
	}
	f := ignore.Files{Own: read(g.own, false), Ignore: read(".ignore", false), Repository: d.Has(".git")}
	if f.Repository || above.InGit() {
		f.Git = read(".gitignore", false)
	}
	if f.Repository {
		f.Exclude, f.User = read(".git/info/exclude", true), g.user
	}
	return f
}

// full returns the path of a folder in the form that scopes use.
func (g *searchArea) full(f *workspace.Folder) string {
	if f.Path == "" {
		return g.above
	}
	return below(g.above, f.Path)
}

func below(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// displayPath returns the path of a file for the model: relative to the workspace, or absolute in a further directory.
func (g *searchArea) displayPath(f *workspace.Folder, name string) string {
	if g.name == "." {
		return f.Join(name)
	}
	return g.name + "/" + f.Join(name)
}

// isStopped reports whether an error means that the call was cancelled.
func isStopped(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func searchFailed(err error) Result {
	if isStopped(err) {
		err = fault.New(fault.Interrupted, "the search was ended before it had finished").Because(err)
	}
	return failed(err)
}

// searchPath returns the directory or file where a search starts.
func searchPath(env *Env, written string) (string, error) {
	if written == "" {
		return ".", nil
	}
	return env.Files.Name(written)
}

// ExcludesFile returns git's default file of a user's rules for all repositories, or "". It ignores core.excludesFile.
// variable reads the environment.
func ExcludesFile(variable func(string) string) string {
	dir := variable("XDG_CONFIG_HOME")
	if home := variable("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "git", "ignore")
}
