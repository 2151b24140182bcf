// Package agentsfile reads the file in which a directory of agents defines the default agent and further agents.
//
// It promises that the file is never run, whatever its language; that the first of Names that exists is used; and that
// all errors are reported at once, with line and column.
//
// It refuses files that are not regular or larger than 1 MiB, and code in place of a literal. It does not know which
// agents exist. It does not check whether the content is trusted: the caller has to, before it starts an agent of the
// file.
package agentsfile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/sys/workspace"
)

const (
	// Default is the default directory.
	Default = "agents"

	maxFile = 1 << 20
)

// Names returns the names that the file may have. The first that exists is used.
func Names() []string {
	names := []string{}
	for _, ending := range []string{"ts", "mts", "cts", "js", "mjs", "cjs", "json", "toml"} {
		names = append(names, "omniagent.config."+ending)
	}
	return names
}

// File is the content of such a file.
type File struct {
	Path            string
	Content         []byte // exactly what was read, to decide about trust
	DefaultAgent    string // empty when the file names none
	DefaultAgentPos literal.Pos
	Targets         []Target
}

// Resolve returns the absolute path of the directory of agents. A blank agentsDir is the default; a relative one is
// below the root of the repository: the nearest directory upwards with .git, else the nearest with package.json, else
// cwd.
func Resolve(cwd, agentsDir string) string {
	dir := cmp.Or(strings.TrimSpace(agentsDir), Default)
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	if absolute, err := filepath.Abs(cwd); err == nil {
		cwd = absolute
	}
	for _, sign := range []string{".git", "package.json"} {
		if root, ok := above(cwd, sign); ok {
			return filepath.Join(root, dir)
		}
	}
	return filepath.Join(cwd, dir)
}

// above returns the nearest directory, from dir upwards, that has an entry of the name.
func above(dir, name string) (string, bool) {
	for {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

// Read reads the file in dir, which is absolute. It returns nil if there is none, or if it exports null. An explicit
// directory must exist; the default may be missing, or be something else of that name.
func Read(dir string, explicit bool) (*File, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "stat", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, unusable(dir, explicit, err)
	}
	for _, name := range Names() {
		path := filepath.Join(dir, name)
		switch _, err := os.Lstat(path); {
		case err == nil:
			return readFile(path)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, unusable(dir, explicit, err)
		}
	}
	return nil, nil
}

// unusable returns the fault for a directory that cannot be read, or nil if it is the default and does not exist.
func unusable(dir string, explicit bool, err error) error {
	if workspace.Absent(err) && !explicit {
		return nil
	}
	shown := clean(dir)
	var f *fault.Fault
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f = fault.New(fault.ArgError, "the agents directory %s does not exist", shown).
			Hint("Create it, or give another one with --agentsDir")
	case errors.Is(err, syscall.ENOTDIR):
		f = fault.New(fault.ArgError, "the agents directory %s is not a directory", shown).
			Hint("Give a directory with --agentsDir")
	case errors.Is(err, fs.ErrPermission):
		f = fault.New(fault.ArgError, "the agents directory %s cannot be searched: the system refuses access", shown).
			Hint("Check its permissions, or give another directory with --agentsDir")
	default:
		f = fault.New(fault.ArgError, "the agents directory %s cannot be read: %s", shown, clean(err.Error())).
			Hint("Put it right, or give another directory with --agentsDir")
	}
	return f.With("path", dir)
}

func readFile(path string) (*File, error) {
	data, err := workspace.ReadFile(path, maxFile)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return Parse(path, data)
}

func unreadable(path string, err error) error {
	reason, remedy := "it cannot be read: "+err.Error(), "Put it right, or remove it"
	switch {
	case errors.Is(err, fault.FileMissing):
		reason, remedy = "it is a symbolic link that leads nowhere", "Remove the link, or make the file that it names"
	case errors.Is(err, fault.FieldTooLarge):
		reason, remedy = "it is larger than 1 MiB", "Make it smaller, or remove it"
	case errors.Is(err, fault.SymlinkLoop):
		reason, remedy = "its symbolic links lead in a circle", "Remove the link"
	case errors.Is(err, fault.Unsafe):
		reason, remedy = "it is not a regular file", "Remove it, or put a file in its place"
	case errors.Is(err, fault.PermissionDenied):
		reason, remedy = "the system does not allow to read it", "Check its permissions"
	}
	p := problems{path: path}
	p.add(literal.Pos{}, reason, "", "")
	return p.fault(remedy)
}

// Parse reads the content of a file, in the language of its name.
func Parse(path string, data []byte) (*File, error) {
	var v literal.Value
	var err error
	js := false
	switch filepath.Ext(path) {
	case ".json":
		v, err = literal.ParseJSON5(data)
	case ".toml":
		v, err = literal.ParseTOML(data)
	default:
		js = true
		v, err = literal.ParseJS(data)
	}
	p := problems{path: path}
	if err != nil {
		p.syntax(err)
		remedy := "Correct " + clean(path) + " at that place"
		if js {
			remedy += ", or write it as omniagent.config.json or omniagent.config.toml"
		}
		return nil, p.fault(remedy)
	}
	if v.Kind == literal.Null {
		return nil, nil
	}
	f := &File{Path: path, Content: data}
	r := reader{problems: &p}
	r.file(f, v)
	if err := p.fault("Correct " + clean(path) + " at the places that are named"); err != nil {
		return nil, err
	}
	return f, nil
}
