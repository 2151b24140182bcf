package fork

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/autorun"
)

// Request describes how Apply brings changes home.
type Request struct {
	DryRun bool
	// Take names files and directories, relative to the workspace, that come home although they are run later by
	// themselves: a person has looked at them.
	Take   []string
	Policy *autorun.Policy // of the workspace; nil: everything comes home
}

// later decides which files of a fork are run later by themselves.
type later struct {
	*Fork
	policy autorun.Policy
	judges bool
	git    map[string]bool // directories, and whether they are git directories in the fork
}

func (f *Fork) later(policy *autorun.Policy) *later {
	l := &later{Fork: f, git: map[string]bool{}}
	if policy == nil {
		return l
	}
	l.policy, l.judges = policy.Once(), true
	var first []string
	if workspace.ReadJSON(filepath.Join(f.dir, ignoredFile), jsonLimit, &first) == nil {
		l.policy = l.policy.IgnoringAs(autorun.Of(first))
	}
	return l
}

// ignoredFile has the policy of the first Apply. A fork may bring home git's ignore rules, which then do not decide
// what else of it is harmless.
const ignoredFile = "policy.json"

// keep records the policy of the first Apply.
func (l *later) keep() error {
	file := filepath.Join(l.dir, ignoredFile)
	if _, err := os.Lstat(file); err == nil || !l.judges {
		return nil
	}
	return writeJSON(file, l.policy.Words())
}

// why returns why a path of the fork is run or obeyed later by itself, or "". m and t are what the workspace and the
// fork have there.
func (l *later) why(name string, m, t *side) string {
	if !l.judges {
		return ""
	}
	full := filepath.Join(l.policy.Root, filepath.FromSlash(name))
	if why := l.policy.Why(full, m == nil); why != "" {
		return why
	}
	if t != nil && !t.isDir() {
		if below := l.policy.Beneath(full); below != "" {
			return below + " lies beneath it, and is protected"
		}
	}
	dir := path.Dir(name)
	if t.isDir() {
		dir = name
	}
	for ; ; dir = path.Dir(dir) {
		if l.isGitDir(dir) {
			return "it lies in the git directory " + dir + ", whose configuration and hooks git obeys"
		}
		if dir == "." {
			return ""
		}
	}
}

// isGitDir reports whether programs of the fork see a git directory.
func (l *later) isGitDir(dir string) bool {
	yes, known := l.git[dir]
	if !known {
		yes = !slices.ContainsFunc([]string{"HEAD", "objects", "refs"}, func(name string) bool {
			_, err := os.Lstat(l.Real(filepath.Join(l.Workspace, filepath.FromSlash(dir), name))) // without a path too
			return err != nil
		})
		l.git[dir] = yes
	}
	return yes
}

// RunsLater returns those of the changes and files in commits of a fork that are run later by themselves.
func (f *Fork) RunsLater(ctx context.Context, policy autorun.Policy, changes []Change) (names []string) {
	l := f.later(&policy)
	for _, c := range changes {
		var was, is *side
		if c.Status != snapshot.Added {
			was = &side{}
		}
		if !c.dir && l.why(c.Path, was, is) != "" {
			names = append(names, c.Path)
		}
	}
	stood, known := f.stood()
	forkHead, err := f.inside().Head()
	if f.GitDir == "" || !known || err != nil || forkHead.Commit == "" {
		return names
	}
	planted, _ := l.planted(ctx, stood.Commit, forkHead.Commit)
	for _, c := range planted {
		if !slices.Contains(names, c.Path) {
			names = append(names, c.Path)
		}
	}
	return names
}

// taken reports whether Request.Take names a path.
func (r Request) taken(name string) bool {
	return slices.ContainsFunc(r.Take, func(take string) bool { return within(take, name) })
}

func within(dir, name string) bool {
	return pathname.Within(filepath.Clean(filepath.FromSlash(dir)), filepath.FromSlash(name))
}

// holdsBack reports whether a path stays in the fork because it is run later by itself, and notes which of those that
// come home are.
func (a *applying) holdsBack(name string, m, t *side) bool {
	why := a.later.why(name, m, t)
	switch taken := a.request.taken(name); {
	case why == "":
		return false
	case t.isDir(): // each file in it is judged by itself, and creates it
		return !taken
	case taken:
		a.out.Later = append(a.out.Later, name)
		return false
	default:
		a.out.Conflicts = append(a.out.Conflicts, Conflict{Path: name, Reason: why, Later: true})
	}
	return true
}
