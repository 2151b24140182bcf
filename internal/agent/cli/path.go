package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"omniagent/internal/agent"
)

// find returns the first program of that name in PATH, or "" and what stood in its place, as sentences without a stop.
func find(env agent.Env, binary string) (path string, passed []string) {
	names := []string{binary}
	if runtime.GOOS == "windows" {
		names = names[:0]
		for _, ext := range extensions(variable(env, "PATHEXT")) {
			names = append(names, binary+ext)
		}
	}
	relative, working := false, false
	for _, dir := range filepath.SplitList(variable(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			relative = true
			continue
		}
		if isWorking(dir, env.Dir) {
			working = true
			continue
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			why := Unfit(path)
			if why == "" {
				return path, nil
			}
			if why != absent {
				passed = append(passed, path+" "+why)
			}
		}
	}
	if relative {
		// Not looked at, not even to see what is there: only the rule is told.
		passed = append(passed, "the elements of PATH that are relative or empty")
	}
	if working {
		passed = append(passed, "the directory where the agent works, which is in PATH")
	}
	return "", passed
}

// isWorking says whether dir is the directory where the agent works: to search it there is the same as to search ".". What lies beneath
// it is another matter: somebody who works in the home directory has programs of their own there.
func isWorking(dir, working string) bool {
	if working == "" {
		return false
	}
	a, err := os.Stat(dir)
	if err != nil {
		return false
	}
	b, err := os.Stat(working)
	return err == nil && os.SameFile(a, b)
}

func variable(env agent.Env, name string) string {
	if env.Lookup == nil {
		return ""
	}
	value, _ := env.Lookup(name)
	return value
}

const absent = "is not there"

// Unfit says why path cannot be started, as the end of a sentence about it, or nothing if it can.
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
			return absent // an element of PATH that is a file, or closed to us: nothing is known of a program there
		} else if link.Mode()&fs.ModeSymlink != 0 {
			return fmt.Sprintf("is a link that cannot be followed (%v)", cause(err))
		}
		return fmt.Sprintf("cannot be read (%v)", cause(err))
	case info.IsDir():
		return "is a directory"
	case !info.Mode().IsRegular():
		return "is not a file"
	case !executable(path):
		return "is not executable"
	}
	return ""
}

// cause is the error without the operation and the path, which the sentence around it names.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// extensions are those of PATHEXT in its order, each with its dot. Windows starts a file by its extension, so the one without any,
// which npm writes for POSIX shells beside NAME.cmd, is no program there.
func extensions(pathext string) []string {
	var list []string
	for ext := range strings.SplitSeq(strings.ToLower(pathext), ";") {
		if ext = strings.TrimSpace(ext); ext == "" {
			continue
		}
		list = append(list, "."+strings.TrimPrefix(ext, "."))
	}
	if list == nil {
		return []string{".com", ".exe", ".bat", ".cmd"} // what exec.LookPath assumes
	}
	return list
}
