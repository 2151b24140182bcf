package tool

import (
	"path/filepath"
	"strings"

	"omniagent/internal/ignore"
	"omniagent/internal/workspace"
)

const (
	rulesLimit  = 1 << 20   // bytes of a file of rules; a larger one is none
	resultLimit = 100 << 10 // bytes of what a search answers
)

// ground is where Glob and Grep look: a directory of the workspace, and the rules that say what to leave alone in it.
type ground struct {
	env   *Env
	own   string // the file of rules that is read before the others
	user  *ignore.Rules
	name  string // of the directory where it begins, for workspace.Dir
	above string // the whole path of that directory, without the first slash
	scope *ignore.Scope
}

// newGround reads the rules of the directories that lead to name, up to the top of the file system, as ripgrep and fd
// do. They lie outside the workspace where it is a part of a repository; only these files are read there, and nobody
// sees more of them than what they hide.
//
// name itself is looked at even if a rule hides it: somebody has named it. The rules from above do not count in it
// then.
func newGround(env *Env, name, own string) *ground {
	g := &ground{env: env, own: own, name: name}
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
	g.above = fromTop(env.Files.Above(name, func(dir *workspace.Above) {
		at := fromTop(dir.Path)
		named(at)
		g.scope = g.scope.Enter(at, g.rules(dir, g.scope))
	}))
	named(g.above)
	return g
}

// fromTop is a whole path with slashes, without the first one.
func fromTop(full string) string {
	return strings.TrimPrefix(filepath.ToSlash(full[len(filepath.VolumeName(full)):]), "/")
}

// lifted is the scope of a directory that the rules of scope hide, but that somebody has named.
func lifted(scope *ignore.Scope, full string) *ignore.Scope {
	if !scope.InGit() {
		return nil
	}
	var none *ignore.Scope
	return none.Enter(full, ignore.Files{Repository: true})
}

// drawer is a directory in which files of rules may lie.
type drawer interface {
	Has(name string) bool
	ReadFile(name string, limit int64) ([]byte, error)
}

// rules reads what a directory brings. Rules for git are read only in a repository.
func (g *ground) rules(d drawer, above *ignore.Scope) ignore.Files {
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

// full is the path of a folder as the scopes know it.
func (g *ground) full(f *workspace.Folder) string {
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

// shown is the path of a file as the model sees it: relative to the workspace, or absolute where it lies in a further
// directory.
func (g *ground) shown(f *workspace.Folder, name string) string {
	if g.name == "." {
		return f.Join(name)
	}
	return g.name + "/" + f.Join(name)
}

// searchPath is the directory, or the file, that a search is to begin with.
func searchPath(env *Env, written string) (string, error) {
	if written == "" {
		return ".", nil
	}
	return env.Files.Name(written)
}

// ExcludesFile is where git keeps a user's own rules for all repositories, "" where that cannot be told. Another place
// that git was configured to is not looked for. variable reads the environment.
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
