package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"omniagent/internal/fault"
)

// locate finds the program of argv. It looks for a name without a separator in the absolute directories of PATH in env:
// a relative one would mean another program in every directory. A name with a separator is relative to dir.
func locate(argv []string, dir string, env []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", fault.New(fault.MissingArgument, "no program was given")
	}
	name := argv[0]
	if hasSeparator(name) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if !filepath.IsAbs(path) {
			abs, err := filepath.Abs(path)
			if err != nil {
				return "", fault.New(fault.NoHome, "the working directory is gone").Because(err)
			}
			path = abs
		}
		found, denied := executable(path, env)
		if found != "" {
			return found, nil
		}
		if denied {
			return "", fault.New(fault.PermissionDenied, "%s may not be executed", path).With("program",
				name).With("path", path)
		}
		return "", missing(argv, []string{filepath.Dir(path)})
	}
	searched := []string{}
	for _, dir := range filepath.SplitList(valueOf(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		searched = append(searched, dir)
		if found, _ := executable(filepath.Join(dir, name), env); found != "" {
			return found, nil
		}
	}
	return "", missing(argv, searched)
}

// missing tells a program that does not exist from a whole command line in place of a program.
func missing(argv, searched []string) error {
	if name := argv[0]; len(argv) == 1 && strings.ContainsAny(name, " \t\r\n|&;<>()$`\"'*?[]{}~#!") {
		return fault.New(fault.ShellString, "%q is a command for a shell, and no program has that name", name).
			With("program",
				name).Hint("Give the program and each argument by itself: [\"git\", \"status\"], not [\"git status\"].")
	}
	return fault.New(fault.NotInstalled, "%s is not installed, or not on PATH", argv[0]).
		With("program", argv[0]).With("searched", searched)
}

// executable returns path, on Windows with its extension, if it can be executed. denied: it is a file, but we may not
// execute it.
func executable(path string, env []string) (found string, denied bool) {
	for _, extension := range extensions(path, env) {
		info, err := os.Stat(path + extension)
		if err != nil || info.IsDir() {
			continue
		}
		if runtime.GOOS == "windows" || info.Mode().IsRegular() && mayExecute(path, info) {
			return path + extension, false
		}
		denied = true
	}
	return "", denied
}

// extensions returns what may follow the name of a program.
func extensions(path string, env []string) []string {
	if runtime.GOOS != "windows" {
		return []string{""}
	}
	list := valueOf(env, "PATHEXT")
	if list == "" {
		list = ".com;.exe;.bat;.cmd"
	}
	var all []string
	for _, extension := range strings.Split(strings.ToLower(list), ";") {
		if extension != "" && strings.HasSuffix(strings.ToLower(path), extension) {
			return []string{""}
		}
		all = append(all, extension)
	}
	return all
}

func mayExecute(path string, info fs.FileInfo) bool {
	return info.Mode().Perm()&0o111 != 0 && allowedToExecute(path)
}

func hasSeparator(name string) bool {
	return strings.ContainsRune(name, '/') || runtime.GOOS == "windows" && strings.ContainsAny(name, `\:`)
}
