package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

// find returns the first program of that name in PATH. Otherwise it returns "" and what was skipped, as phrases.
func find(env agent.Env, binary string) (path string, passed []string) {
	if env.Lookup == nil {
		return "", nil
	}
	own := places(env.Dir)
	var theirs []string
	for path := range process.Candidates(binary, env.Lookup) {
		if what := own.name(filepath.Dir(path)); what != "" {
			if !slices.Contains(theirs, what) {
				theirs = append(theirs, what)
			}
			continue
		}
		why := Unfit(path)
		if why == "" {
			return path, nil
		}
		if why != absent {
			passed = append(passed, path+" "+why)
		}
	}
	all, _ := env.Lookup("PATH")
	if slices.ContainsFunc(filepath.SplitList(all), func(dir string) bool { return !filepath.IsAbs(dir) }) {
		// Do not examine these; only report the rule.
		passed = append(passed, "the elements of PATH that are relative or empty")
	}
	for _, what := range theirs {
		passed = append(passed, what+", which is in PATH")
	}
	return "", passed
}

// unsafeDirs lists the directories where a repository may plant programs: the working directory of the agent, and the
// root of the repository, which is the nearest parent with .git. Searching the first would be the same as searching
// ".". Directories below them do not count: if a home directory is a repository, or the working directory, ~/bin still
// has the user's own programs.
type unsafeDirs []struct {
	name string
	info os.FileInfo
}

func places(working string) (o unsafeDirs) {
	if working == "" {
		return nil
	}
	add := func(name, dir string) {
		if info, err := os.Stat(dir); err == nil {
			o = append(o, unsafeDirs{{name, info}}...)
		}
	}
	add("the directory where the agent works", working)
	for dir := range Upward(working) {
		if Exists(dir, ".git") {
			add("the root of the repository", dir)
			break
		}
	}
	return o
}

// name describes which of these directories dir is, or returns "".
func (o unsafeDirs) name(dir string) string {
	if len(o) == 0 {
		return ""
	}
	info, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	for _, one := range o {
		if os.SameFile(one.info, info) {
			return one.name
		}
	}
	return ""
}

// trustedPath returns an assignment of PATH for an agent that works in dir, without the elements that find ignores.
// Most agents are scripts that begin with "#!/usr/bin/env node", so a planted node would run in their place. The
// assignment is empty if nothing was left out.
func trustedPath(env []string, dir string) (assignment string, without []string) {
	name, value := "", ""
	for _, entry := range env {
		n, v, ok := strings.Cut(entry, "=")
		if ok && (n == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(n, "PATH")) {
			name, value = n, v
		}
	}
	if name == "" {
		return "", nil
	}
	elements := filepath.SplitList(value)
	if value == "" {
		elements = []string{""} // a shell reads that as the current directory
	}
	var kept []string
	list := places(dir)
	for _, e := range elements {
		if !filepath.IsAbs(e) || list.name(e) != "" {
			without = append(without, e)
			continue
		}
		if strings.ContainsRune(e, filepath.ListSeparator) {
			e = `"` + e + `"` // on Windows, where SplitList removed the quotes
		}
		kept = append(kept, e)
	}
	if without == nil {
		return "", nil
	}
	if kept == nil && runtime.GOOS != "windows" {
		kept = []string{"/usr/bin", "/bin"} // an empty PATH would mean the current directory
	}
	return name + "=" + strings.Join(kept, string(filepath.ListSeparator)), without
}

// path removes the directories that a repository could fill from the agent's PATH, and warns about it.
func (t *Translation) path(s agent.Spec) {
	assignment, without := trustedPath(s.Env, s.Dir)
	if len(without) == 0 {
		return
	}
	for i, e := range without {
		without[i] = strconv.Quote(e)
	}
	names := strings.Join(slices.Compact(without), ", ")
	t.Env = append(t.Env, assignment)
	t.Warnings = append(t.Warnings, agent.Warning{
		Flag: "PATH", Value: names, Kind: agent.Unguarded,
		Message: "it gets PATH without " + names + ", where a repository could put programs",
	})
}

const absent = "is not there"

// Unfit returns why path cannot be started, as a predicate, or "".
func Unfit(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return "is a link that leads nowhere"
		}
		return absent
	case err != nil:
		if link, lerr := os.Lstat(path); lerr != nil {
			return absent // the element of PATH is a file, or is not readable
		} else if link.Mode()&fs.ModeSymlink != 0 {
			return fmt.Sprintf("is a link that cannot be followed (%v)", fault.Bare(err))
		}
		return fmt.Sprintf("cannot be read (%v)", fault.Bare(err))
	case info.IsDir():
		return "is a directory"
	case !info.Mode().IsRegular():
		return "is not a file"
	case !process.MayExecute(path):
		return "is not executable"
	}
	return ""
}
