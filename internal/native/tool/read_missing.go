package tool

import (
	"path"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/workspace"
)

// missing returns the error for a file that does not exist. It lists similar names nearby.
func missing(files *workspace.Dir, name string) error {
	shown := name
	if !path.IsAbs(name) {
		shown = path.Join(files.Path(), name)
	}
	f := fault.New(fault.FileMissing, "File not found: %s", text.Name(shown)).With("path", name).With("reason",
		"missing")
	// The directory may be the wrong one: find the element at which the path stops existing.
	dir, word, rest := path.Dir(name), path.Base(name), ""
	for {
		if info, err := files.Stat(dir); err == nil && info.IsDir() {
			break
		}
		above := path.Dir(dir)
		if above == dir {
			return f
		}
		dir, word, rest = above, path.Base(dir), path.Join(word, rest)
	}
	if like := nearestNames(files, dir, word); len(like) > 0 {
		for i, there := range like {
			if _, err := files.Lstat(path.Join(there, rest)); err == nil {
				there = path.Join(there, rest)
			}
			like[i] = text.Name(there)
		}
		return f.Hint("Did you mean %s?", strings.Join(like, " or "))
	}
	if word != path.Base(name) {
		return f.Hint("There is no directory %s; look with LS or Glob.", text.Name(path.Join(dir, word)))
	}
	return f.Hint("Look for it with Glob.")
}

// nearestNames returns at most three similar names in a directory.
func nearestNames(files *workspace.Dir, dir, word string) []string {
	const looked, most = 5000, 3
	entries, _, err := files.ReadDir(dir, looked)
	if err != nil {
		return nil
	}
	stem := func(name string) string { return strings.ToLower(strings.TrimSuffix(name, path.Ext(name))) }
	names := make([]string, 0, len(entries))
	var like []string
	for _, e := range entries {
		names = append(names, e.Name())
		if s := stem(e.Name()); s != "" && s == stem(word) {
			like = append(like, e.Name())
		}
	}
	if near := text.Nearest(word, names); near != "" && !slices.Contains(like, near) {
		like = append([]string{near}, like...)
	}
	like = like[:min(len(like), most)]
	for i, name := range like {
		like[i] = path.Join(dir, name)
	}
	return like
}
