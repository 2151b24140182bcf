package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
)

// Programs starts the programs that are not agents: git, pagers, keyrings, a person's hooks and MCP servers. The
// current directory, PATH and the paths in variables decide which code such a program runs, and a repository can choose
// all three. So it gets an empty directory, PATH without the directories of the workspace, and only the listed
// variables, without those that lead into the workspace. Without Env it finds no program by name.
type Programs struct {
	Env   []string // all variables that the programs may get
	Roots Roots    // workspaces and their repositories
	Temp  string   // where the empty directories are made; empty: where temporary files go
}

// Also returns a with further workspaces.
func (a Programs) Also(roots ...string) Programs {
	a.Roots = append(slices.Clone(a.Roots), roots...)
	return a
}

// Find returns the file of a program, given its name or an absolute path, or "". It ignores files in a workspace.
func (a Programs) Find(name string) string {
	env := a.environment(nil)
	if filepath.IsAbs(name) && Runs(name) && !a.Roots.Hold(name, env) {
		return name
	}
	for path := range Candidates(name, In(env)) {
		if Runs(path) && !a.Roots.Hold(path, env) {
			return path
		}
	}
	return ""
}

// Run runs a program to its end. A non-zero exit is a Result, not an error. An error means that the program could not
// be started, or that ctx ended (fault.TimedOut, fault.Interrupted): then it was asked to end and killed after Grace,
// and the Result has what there was.
func (a Programs) Run(ctx context.Context, s Spec) (Result, error) {
	return run(ctx, s, a.Start)
}

// Start starts a program. p.Dir is a directory that the person has named for exactly this program, or that the caller
// has created; if it is empty, as usual, the program gets an empty directory that is removed when it has ended. p.Env
// is added to the variables, and p.Path is looked up.
func (a Programs) Start(p Plan) (*Child, error) {
	p.Env = a.environment(p.Env)
	own := ""
	if p.Dir == "" {
		var err error
		if own, err = a.empty(p.Env); err != nil {
			return nil, fault.New(fault.PermissionDenied, "there is no place for the directory of %s",
				strings.Join(p.Argv[:min(1, len(p.Argv))], "")).Because(err)
		}
		p.Dir = own
	}
	remove := func() {
		if own != "" {
			_ = os.RemoveAll(own) // or the next start does
		}
	}
	var err error
	if p.Path, err = a.locate(p.Argv, p.Dir, p.Env); err != nil {
		remove()
		return nil, err
	}
	after := p.After
	p.After = func(e *Ending) {
		remove()
		if after != nil {
			after(e)
		}
	}
	return Start(p)
}

// locate is Locate without files in a workspace, unless a path was given.
func (a Programs) locate(argv []string, dir string, env []string) (string, error) {
	path, err := Locate(argv, dir, env)
	if err != nil || hasSeparator(argv[0]) || !a.Roots.Hold(path, env) {
		return path, err
	}
	for other := range Candidates(argv[0], In(env)) {
		if Runs(other) && !a.Roots.Hold(other, env) {
			return other, nil
		}
	}
	return "", fault.New(fault.NotInstalled, "the only %s in PATH comes with the workspace: %s", argv[0], path).
		With("program", argv[0]).With("path", path).Hint("Install it, or give its path.")
}

// environment returns the variables of a program, with more added.
func (a Programs) environment(more []string) []string {
	all := once(slices.Concat(a.Env, more))
	homes := homesIn(all)
	kept := make([]string, 0, len(all)) // not nil, which would stand for all of ours
	for _, entry := range all {
		name, value, _ := cut(entry)
		given := slices.Contains(more, entry)
		switch {
		case fold(name) == "PATH":
			entry = name + "=" + a.Roots.path(value, homes)
		case !given && a.Roots.lead(value, homes):
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}

const (
	emptyPrefix = "empty-"
	emptyLives  = 30 * 24 * time.Hour // of a directory whose program was killed together with us
)

// empty creates an empty directory. No directory around it is a workspace or, if there is another place, one that other
// users may write: programs look for their configuration there too.
func (a Programs) empty(env []string) (string, error) {
	var bases []string
	if a.Temp != "" {
		bases = append(bases, a.Temp)
		for _, home := range homesIn(env) {
			bases = append(bases, filepath.Join(home, ".cache", "omniagent"))
		}
	}
	err := errors.New("all places for temporary files lie in the workspace")
	for _, base := range append(bases, os.TempDir()) {
		if a.Roots.Hold(base, env) {
			continue
		}
		if err = os.MkdirAll(base, 0o700); err != nil {
			continue
		}
		a.sweep(base)
		var dir string
		if dir, err = os.MkdirTemp(base, emptyPrefix); err == nil {
			return pathname.Real(dir), nil
		}
	}
	return "", err
}

// sweep removes the empty directories that killed programs have left.
func (a Programs) sweep(base string) {
	if base != a.Temp {
		return
	}
	left, _ := filepath.Glob(filepath.Join(base, emptyPrefix+"*"))
	for _, dir := range left {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && time.Since(info.ModTime()) > emptyLives {
			_ = os.Remove(dir) // another process may have done it
		}
	}
}

// Roots are workspaces and their repositories, absolute. An empty one does not count.
type Roots []string

// Hold reports whether a file belongs to a workspace, by its name or by its links. A workspace that contains the home
// directory, which env names, is not a cloned repository: there the user's own programs stay.
func (r Roots) Hold(path string, env []string) bool { return r.hold(path, homesIn(env)) }

func (r Roots) hold(path string, homes []string) bool {
	return slices.ContainsFunc(r, func(root string) bool {
		return root != "" && within(path, root) &&
			!slices.ContainsFunc(homes, func(home string) bool { return within(home, root) })
	})
}

// Path returns a value of PATH without directories that depend on the current directory, and without those of the
// workspaces, where a repository could plant a git or an ls.
func (r Roots) Path(value string, env []string) string { return r.path(value, homesIn(env)) }

func (r Roots) path(value string, homes []string) string {
	var dirs []string
	for _, dir := range filepath.SplitList(value) {
		if filepath.IsAbs(dir) && !r.hold(dir, homes) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 && runtime.GOOS != "windows" {
		return "/usr/local/bin:/usr/bin:/bin"
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// lead reports whether the value of a variable names a place in a workspace.
func (r Roots) lead(value string, homes []string) bool {
	return slices.ContainsFunc(filepath.SplitList(value), func(path string) bool {
		return filepath.IsAbs(path) && r.hold(path, homes)
	})
}

// within reports whether a directory is root or below it, by its name or by its links.
func within(dir, root string) bool {
	return pathname.Within(filepath.Clean(root), filepath.Clean(dir)) ||
		pathname.Within(pathname.Real(root), pathname.Real(dir))
}

func homesIn(env []string) []string {
	var homes []string
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, _ := Value(env, name); filepath.IsAbs(home) {
			homes = append(homes, home)
		}
	}
	return homes
}
