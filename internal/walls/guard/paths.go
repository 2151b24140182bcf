package guard

import (
	_ "embed" // the names
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/walls/autorun"
)

// Agent has what guard needs to know about an agent.
type Agent struct {
	Program  string   // its name, without extension
	Package  string   // its name in a package registry; empty: none
	Settings []string // names in a workspace that decide what it does
	Private  []string // below the home directory: its logins and conversations
}

// Agents are the agents of this program.
type Agents []Agent

//go:embed credentials.txt
var credentials string

// Protected lists the names in a workspace that only a person may change: those of package autorun, and the settings of
// agents. A directory stands for all below it.
func (a Agents) Protected() []string { return append(autorun.Names(), a.settings()...) }

func (a Agents) settings() (names []string) {
	for _, one := range a {
		names = append(names, one.Settings...)
	}
	return names
}

// Credentials lists the files and directories below home that no tool may read. A directory stands for everything in
// it.
func (a Agents) Credentials(home string) []string {
	if home == "" {
		return nil
	}
	names := slices.Collect(strings.Lines(credentials))
	for _, one := range a {
		names = append(names, one.Private...)
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(home, filepath.FromSlash(strings.TrimSuffix(name, "\n")))
	}
	return paths
}

// resolve makes a path absolute, relative to dir. It does not follow links.
func resolve(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// physical returns where a path leads through links, also if .. follows a link.
func (p Place) physical(dir, text string) []string {
	if !filepath.IsAbs(text) {
		text = dir + string(filepath.Separator) + text // not cleaned: .. behind a link leaves where that leads
	}
	return p.leads(text)
}

// leads returns where a path leads through links. A path in the workspace is returned as one below Root or More.
func (p Place) leads(path string) []string {
	if p.ResolveLinks == nil {
		return nil
	}
	var all []string
	for _, real := range p.ResolveLinks(path) {
		for _, root := range append([]string{p.Root}, p.More...) {
			at := root // the workspace itself may be named over a link
			if to := p.ResolveLinks(root); len(to) == 1 {
				at = to[0]
			}
			if rel, within := pathname.In(at, real); within {
				real = filepath.Join(root, rel)
			}
		}
		if real != filepath.Clean(path) {
			all = append(all, real)
		}
	}
	return all
}

// foldedWithin is pathname.Within on a file system that ignores case. It compares only the texts, because folding may
// turn a name such as "..:x" into one that leads upwards.
func foldedWithin(dir, path string) bool {
	dir, path = autorun.Fold(dir), autorun.Fold(path)
	separator := string(filepath.Separator)
	return dir != "" && (dir == path || strings.HasPrefix(path, strings.TrimSuffix(dir, separator)+separator))
}

// foreign reports whether a path is written for another system: C:\x and \\host\x name no file here, but do name one
// there.
func foreign(path string) bool {
	if strings.HasPrefix(path, `\`) {
		return true
	}
	return filepath.VolumeName(path) == "" && len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
}

// alias reports whether path leads through the kernel's views of a process: its root, its directory, its files, its
// environment.
func alias(path string) bool {
	elements := strings.Split(filepath.ToSlash(path), "/")
	if len(elements) < 3 || elements[0] != "" || (elements[1] != "proc" && elements[1] != "dev") {
		return false
	}
	if elements[1] == "dev" {
		return elements[2] == "fd" && len(elements) > 3 && elements[3] != "0" && elements[3] != "1" &&
			elements[3] != "2"
	}
	return slices.ContainsFunc(elements[2:], func(e string) bool {
		return slices.Contains([]string{"root", "cwd", "fd", "environ", "mem", "map_files", "exe", "kcore", "task"}, e)
	})
}

// credential reports whether a path is a credential or below one or, with whole, contains one.
func (p Place) credential(path string, whole bool) bool {
	if !foldedWithin(p.Home, path) {
		return whole && p.Home != "" && foldedWithin(path, p.Home)
	}
	return slices.ContainsFunc(p.Agents.Credentials(p.Home), func(secret string) bool {
		return foldedWithin(secret, path) || whole && foldedWithin(path, secret)
	})
}

// Write returns the verdict on a file tool that changes a path. It judges only the place: whether a change in the
// workspace needs a question depends on the mode.
func (s Set) Write(path string, p Place) Verdict {
	switch {
	case strings.TrimSpace(path) == "":
		return one(Ask, path, "no path is named")
	case strings.ContainsFunc(path, control):
		return barred(path, "the path has control characters")
	case foreign(path):
		return barred(path, "the path is outside the workspace")
	}
	full := resolve(p.Dir, path)
	if p.credential(full, false) {
		return barred(path, "credentials are kept there")
	}
	root := p.root(full)
	if root == "" {
		return barred(path, "the path is outside the workspace; --add-dir DIR opens a directory")
	}
	name := p.Agents.protectedName(full, root)
	if name == "" && (inRepository(full, root) || p.InGit != nil && p.InGit(full)) {
		name = ".git"
	}
	why := name + autorun.DecidesLater
	if name == "" {
		if why = p.later(full, true); why == "" {
			return Verdict{}
		}
	}
	v := one(Ask, path, why) // a person may have a reason
	v.Firm = true
	return v
}

// later returns why a path without a protected name is run or obeyed later all the same, or "". With above, a path that
// contains such a path counts too.
func (p Place) later(full string, above bool) string {
	if p.Kept != nil {
		for _, kept := range p.Kept() {
			if foldedWithin(kept, full) || above && foldedWithin(full, kept) {
				return kept + autorun.KeptBecause
			}
		}
	}
	if p.Fresh != nil {
		return p.Fresh(full)
	}
	return ""
}

// protectedName returns the protected name that a path in the workspace has or lies below, or "".
func (a Agents) protectedName(full, root string) string {
	return autorun.Policy{Root: root, Names: a.settings()}.Named(full)
}

// inRepository reports whether a path is in a directory .git: git's own commands write there, and file tools need not.
func inRepository(full, root string) bool {
	rel, err := filepath.Rel(root, full)
	return err == nil && slices.Contains(strings.Split(autorun.Fold(rel), string(filepath.Separator)), ".git")
}

// Read returns the verdict on a file tool that reads a path. It denies credentials.
func (s Set) Read(path string, p Place) Verdict {
	if strings.ContainsFunc(path, control) {
		return barred(path, "the path has control characters")
	}
	full := resolve(p.Dir, path)
	if p.credential(full, false) {
		return barred(path, "credentials are kept there")
	}
	if alias(full) {
		return barred(path, "it is a second way to files and variables of processes")
	}
	return Verdict{}
}

func control(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }

// protectedAnywhere reports whether a path has a name that is protected in every directory.
func (a Agents) protectedAnywhere(path string) bool {
	return a.protectedName(resolve("/", path), "/") != ""
}
