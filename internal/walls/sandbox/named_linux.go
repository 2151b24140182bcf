package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
)

// mostNamed is how many files may have hidden names. Each takes a mount.
const mostNamed = 1000

// hideNames adds to an order the files that have a hidden name now. It fails if it cannot find or hide all of them.
func (w *Walls) hideNames(o *order) error {
	if len(w.policy.HiddenNames) == 0 || o.Tier != Namespaces {
		return nil
	}
	roots := append([]string{w.policy.Root}, w.policy.Roots...)
	var found []string
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if path == root {
				return err
			}
			name := entry.Name()
			hidden, git := isNamed(w.policy.HiddenNames, name), strings.EqualFold(name, ".git")
			if err != nil { // a command may know names in a directory that cannot be listed
				hidden = true
			}
			if hidden && !git {
				found = append(found, path)
			}
			switch {
			case len(found) > mostNamed:
				return fs.SkipAll
			case (hidden || git) && entry.IsDir():
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return fault.New(fault.Unsafe, "a rule denies reading %s, and %s cannot be searched for it: %s",
				strings.Join(w.policy.HiddenNames, ", "), root, fault.Bare(err)).Because(err).
				Hint("chmod u+r %s", root)
		}
	}
	if len(found) > mostNamed {
		return fault.New(fault.Unsafe, "a rule denies reading %s, and more than %d files have such a name: "+
			"too many to hide", strings.Join(w.policy.HiddenNames, ", "), mostNamed).
			Hint("Name a directory in the rule, such as Read(keys/**).")
	}
	for _, path := range found {
		real, err := filepath.EvalSymlinks(path)
		info, errStat := os.Stat(real)
		if err != nil || errStat != nil {
			continue // a link that leads nowhere
		}
		holds := func(dir string) bool { return pathname.Within(real, dir) }
		if info.IsDir() && (first(roots, filepath.Dir(real)) == "" || slices.ContainsFunc(w.policy.Write, holds)) {
			return fault.New(fault.Unsafe, "a rule denies reading %s, which leads to %s, and that cannot be hidden",
				path, real).With("path", path).Hint("Remove the link.")
		}
		o.Hidden = append(slices.Clip(o.Hidden), path, real)
	}
	return nil
}
