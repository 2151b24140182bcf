package process

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
)

// Lookup reads a variable of an environment.
type Lookup = func(name string) (value string, ok bool)

// In returns the Lookup of an environment in the form of a list.
func In(env []string) Lookup {
	return func(name string) (string, bool) { return Value(env, name) }
}

// Directories returns the absolute elements of PATH: a relative or empty one would mean another program in every
// directory.
func Directories(lookup Lookup) []string {
	var all []string
	path, _ := lookup("PATH")
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) {
			all = append(all, dir)
		}
	}
	return all
}

// Candidates returns the files that a name could stand for, in the order of PATH, whether they exist or not; none for a
// name with a separator.
func Candidates(name string, lookup Lookup) iter.Seq[string] {
	return func(yield func(string) bool) {
		if name == "" || hasSeparator(name) {
			return
		}
		for _, dir := range Directories(lookup) {
			for _, extension := range extensions(name, lookup) {
				if !yield(filepath.Join(dir, name+extension)) {
					return
				}
			}
		}
	}
}

// Find returns the file of a program in PATH, or "".
func Find(name string, lookup Lookup) string {
	for path := range Candidates(name, lookup) {
		if Runs(path) {
			return path
		}
	}
	return ""
}

// Runs reports whether a path is a file that we may execute. On Windows the extension decides, which the caller has
// added.
func Runs(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && MayExecute(path)
}

// Locate finds the program of argv: a name without a separator in PATH of env, and a name with a separator relative to
// dir.
func Locate(argv []string, dir string, env []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", fault.New(fault.MissingArgument, "no program was given")
	}
	name, lookup := argv[0], In(env)
	if !hasSeparator(name) {
		if path := Find(name, lookup); path != "" {
			return path, nil
		}
		return "", missing(argv, Directories(lookup))
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fault.New(fault.NoHome, "the working directory is gone").Because(err)
	}
	for _, extension := range extensions(path, lookup) {
		if Runs(path + extension) {
			return path + extension, nil
		}
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return "", fault.New(fault.NotInstalled, "%s is not a program that can be run", name).
			With("program", name).With("path", path).Hint("Give the path of an executable file.")
	}
	if err := missing(argv, nil); !errors.Is(err, fault.NotInstalled) {
		return "", err
	}
	return "", fault.New(fault.NotInstalled, "there is no program %s", name).With("program", name).
		With("searched", []string{filepath.Dir(path)}).Hint("Give the path of one that exists.")
}

// missing tells a program that does not exist from a whole command line in place of a program.
func missing(argv, searched []string) error {
	if name := argv[0]; len(argv) == 1 && strings.ContainsAny(name, " \t\r\n|&;<>()$`\"'*?[]{}~#!") {
		return fault.New(fault.ShellString, "%q is a command for a shell, and no program has that name", name).
			With("program",
				name).Hint("Give the program and each argument by itself: [\"git\", \"status\"], not [\"git status\"].")
	}
	return fault.New(fault.NotInstalled, "%s is not installed, or not on PATH", argv[0]).
		With("program", argv[0]).With("searched", searched).Hint("Install it, or give its path.")
}

// extensions returns what may follow the name of a program. On Windows a file without an extension is not a program;
// npm writes one for POSIX shells next to NAME.cmd.
func extensions(path string, lookup Lookup) []string {
	if runtime.GOOS != "windows" {
		return []string{""}
	}
	list, _ := lookup("PATHEXT")
	all, path := executables(list), strings.ToLower(path)
	if slices.ContainsFunc(all, func(extension string) bool { return strings.HasSuffix(path, extension) }) {
		return []string{""}
	}
	return all
}

// executables returns the extensions of PATHEXT in order, each with its dot.
func executables(pathext string) []string {
	var all []string
	for extension := range strings.SplitSeq(strings.ToLower(pathext), ";") {
		if extension = strings.TrimSpace(extension); extension != "" {
			all = append(all, "."+strings.TrimPrefix(extension, "."))
		}
	}
	if all == nil {
		return []string{".com", ".exe", ".bat", ".cmd"} // what exec.LookPath assumes
	}
	return all
}

func hasSeparator(name string) bool {
	return strings.ContainsRune(name, '/') || runtime.GOOS == "windows" && strings.ContainsAny(name, `\:`)
}
