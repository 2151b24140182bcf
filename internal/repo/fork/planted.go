package fork

import (
	"context"
	"path"
	"slices"
	"strings"
)

// planted returns the files in the commits after another one that are run later by themselves. A checkout of one of
// these commits would write them, even if the last commit has removed them.
func (l *later) planted(ctx context.Context, from, to string) (all []Conflict, err error) {
	if !l.judges {
		return nil, nil
	}
	list := []string{"rev-list", to}
	if from != "" {
		list = append(list, "^"+from)
	}
	commits, err := l.Fork.git(ctx, list...)
	if err != nil {
		return nil, err
	}
	out, _, err := l.call(ctx, []byte(commits+"\n"), nil, "diff-tree", "--stdin", "--root", "-m", "-r", "-z",
		"--no-commit-id", "--no-renames", "--name-status")
	if err != nil {
		return nil, err
	}
	fields := strings.Split(out, "\x00")
	added := map[string]bool{}
	for i := 0; i+1 < len(fields); i += 2 {
		name := fields[i+1]
		added[name] = added[name] || fields[i] == "A"
	}
	for name, isNew := range added {
		was := &side{}
		if isNew {
			was = nil
		}
		why := l.why(name, was, &side{})
		if dir := path.Dir(name); why == "" && path.Base(name) == "HEAD" && holds(added, dir+"/objects/") &&
			holds(added, dir+"/refs/") {
			why = "it belongs to a git directory, whose configuration and hooks git obeys"
		}
		if why != "" {
			all = append(all, Conflict{Path: name, Reason: why, Later: true})
		}
	}
	slices.SortFunc(all, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func holds(names map[string]bool, dir string) bool {
	for name := range names {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
}

// stayPut reports whether commits may not move the branch, because they have files that are run later by themselves and
// that the request does not name. It adds these to the conflicts.
func (a *applying) stayPut(from, to string) (bool, error) {
	planted, err := a.later.planted(a.ctx, from, to)
	held := false
	for _, c := range planted {
		if a.request.taken(c.Path) {
			continue
		}
		held = true
		if !slices.ContainsFunc(a.out.Conflicts, func(o Conflict) bool { return o.Path == c.Path }) {
			a.out.Conflicts = append(a.out.Conflicts, c)
		}
	}
	return held, err
}
