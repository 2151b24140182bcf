package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/walls/autorun"
)

// Policy says what commands may do. All paths are absolute and clean, except those in Protected.
type Policy struct {
	Root  string   // the workspace, without links; writable except for Protected
	Write []string // further writable directories, without links, such as GitDirs
	// nil: everything is readable except Hidden; else only the system's directories, Root, Write and these are
	Read []string

	Roots []string // the directories in Write that are workspaces: Protected applies there too

	// Protected are names below Root that commands cannot change or create: ".git/hooks", ".mcp.json". If a parent of
	// a name is absent, that parent stays absent. What a repository runs by itself (hooks, configuration) is protected
	// in Root and in Write even if it is not listed.
	Protected []string

	// HiddenNames are names of files in Root and Roots that commands cannot read, if they are there when a command
	// begins; KeptNames are names that commands cannot change or create wherever they may write. Git's own files are
	// exempt. The names are patterns of filepath.Match without escapes, and case does not count. Landlock ignores
	// HiddenNames, and Seatbelt ignores both.
	HiddenNames, KeptNames []string

	Repositories     []string         // work trees below Root and Roots whose git directories are protected too
	MoreRepositories bool             // there may be more repositories
	GitConfig        UserGit          // it may name files of the workspace
	Started          []string         // paths in Root and Roots to which start-up files of the user lead; autorun.Home
	Obeyed           []string         // those names in Protected that agents obey; what they name is protected too
	Fresh            []autorun.Policy // for each of Root and Roots, which new names are refused

	Hidden []string // unreadable; paths that do not exist are ignored
	// Homes are home directories, without links, of which commands see only Places, with the tiers Namespaces and
	// Landlock. The first is that of the environment, where Identity is the git configuration.
	Homes    []string
	Places   []Place
	Identity string
	Caches   []string // variables that name caches; commands get them only if they can write there
	Scratch  string   // a directory of the user (0700), out of reach of commands, for what they write in Copied places
	// a directory of the user (0700): /tmp and /var/tmp of the commands if namespaces work, else their TMPDIR
	Temp    string
	Network Network
	Limits  Limits
}

// UserGit is the configuration of git that the user has outside of repositories.
type UserGit struct {
	Files    []string
	Settings []GitSetting // of the environment
}

// GitSetting is one setting of git, such as core.hooksPath.
type GitSetting struct{ Key, Value string }

// Network says what commands may reach. The zero value is nothing, not even this machine.
type Network struct {
	Open bool // everything
	// Serve gets a listener for each command, which becomes the command's proxy and the only thing that it can reach.
	// stop is called when the command has ended.
	Serve func(net.Listener) (stop func())
}

func (n Network) name() string {
	switch {
	case n.Open:
		return "on"
	case n.Serve != nil:
		return "hosts"
	}
	return "off"
}

// Limits apply to one command and everything that it starts.
type Limits struct {
	Processes int // at a time, including threads; 0: 4096
	// bytes of data per process, at least some 200 MB; 0: none, because programs built with an address sanitizer
	// reserve terabytes
	Memory int64
}

const defaultProcesses = 4096

// check finds contradictions in a policy: mistakes of this program, or directories that no longer exist.
func (p Policy) check() error {
	for _, dir := range append([]string{p.Root}, p.Write...) {
		if err := plainDirectory(dir); err != nil {
			return err
		}
	}
	for _, name := range p.Protected {
		if !filepath.IsLocal(name) || filepath.Clean(name) == "." {
			return fault.New(fault.Unsafe, "%q cannot be protected: it is not a name beneath the workspace", name)
		}
	}
	paths := slices.Concat(p.Hidden, p.Read, p.Homes)
	for _, place := range p.Places {
		paths = append(paths, place.Path)
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return fault.New(fault.Unsafe, "%q has to be an absolute path", path).With("path", path)
		}
	}
	if err := plainDirectory(p.Temp); err != nil {
		return err
	}
	if info, err := os.Stat(p.Temp); err != nil || !private(info) {
		return fault.New(fault.Unsafe, "the temporary directory %s belongs to somebody else or is open to others",
			p.Temp).With("path", p.Temp).
			Hint("Make one with: mktemp -d").Because(err)
	}
	if pathname.Within(p.Temp, p.Root) {
		return fault.New(fault.Unsafe, "the workspace %s lies in the temporary directory of its commands", p.Root).
			With("path", p.Temp)
	}
	return nil
}

func plainDirectory(dir string) error {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
		return fault.New(fault.Unsafe, "%q has to be an absolute path", dir).With("path", dir)
	}
	if filepath.Dir(dir) == dir {
		return fault.New(fault.Unsafe, "everything would be writable: %s cannot be the workspace", dir).With("path",
			dir).
			Hint("Begin in the directory of a project.")
	}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil && real != dir {
		return fault.New(fault.Unsafe, "%s leads over a link to %s", dir, real).With("path", dir).Hint("Use %s.", real)
	}
	info, errStat := os.Stat(dir)
	if err != nil || errStat != nil || !info.IsDir() {
		return fault.New(fault.FileMissing, "%s is not a directory", dir).With("path", dir).Because(err)
	}
	return nil
}

// Effect is what commands may do with a path.
type Effect struct {
	Access  string // "read" or "write"
	Allowed bool
	Why     string // the part of the policy that decides, as a sentence
}

// Explain returns whether commands may read and write a path in a sandbox of the report's tier, and why. It looks only
// at names, not at permissions of files.
func (p Policy) Explain(path string, r Report) []Effect {
	path = pathname.Real(path)
	if r.Tier == None {
		why := "there are no walls here: the rights of the user decide"
		return []Effect{{"read", true, why}, {"write", true, why}}
	}
	return []Effect{p.reads(path, r.Tier), p.writes(path, r.Tier)}
}

func (p Policy) reads(path string, t Tier) Effect {
	dir := p.writable(path)
	switch hidden := first(p.Hidden, path); {
	case hidden != "" && dir != "" && t == Landlock:
		const but = "%s is hidden, but lies where commands may write, and these walls cannot hide it there"
		return Effect{"read", true, fmt.Sprintf(but, hidden)}
	case hidden != "":
		return Effect{"read", false, fmt.Sprintf("%s is hidden", hidden)}
	case dir != "" && t == Namespaces && named(p.HiddenNames, path, dir) != "":
		return Effect{"read", false, fmt.Sprintf(hiddenName, named(p.HiddenNames, path, dir))}
	case dir != "":
		return Effect{"read", true, fmt.Sprintf("it lies in %s, which commands may read and write", dir)}
	}
	if e, ok := p.readsHome(path, t); ok {
		return e
	}
	if e, ok := p.readsRun(path, t); ok {
		return e
	}
	if why, known := device(path, t); known {
		return Effect{"read", why == usable, why}
	}
	if dir := first(temporaryDirs(), path); dir != "" && t != Seatbelt && first(p.Read, path) == "" {
		return Effect{"read", false, fmt.Sprintf("commands see a directory of their own in place of %s", dir)}
	}
	if p.Read == nil {
		return Effect{"read", true, "everything may be read that is not hidden"}
	}
	if dir := first(slices.Concat(p.Read, systemDirs()), path); dir != "" {
		return Effect{"read", true, fmt.Sprintf("%s may be read", dir)}
	}
	return Effect{"read", false, "it is not among the readable paths"}
}

func (p Policy) writes(path string, t Tier) Effect {
	e := Effect{Access: "write"}
	dir := p.writable(path)
	if dir == "" {
		if e, ok := p.writesHome(path, t); ok {
			return e
		}
		if why, known := device(path, t); known {
			return Effect{"write", why == usable, why}
		}
		own := first(append(temporaryDirs(), "/dev/shm"), path)
		if own != "" && t == Namespaces && first(p.Homes, path) == "" {
			return Effect{"write", true, fmt.Sprintf("commands have a directory of their own in place of %s", own)}
		}
		const neither = "it is neither in the workspace %s nor in another directory that may be written"
		return Effect{"write", false, fmt.Sprintf(neither, p.Root)}
	}
	if pathname.Within(p.Temp, path) {
		return Effect{"write", true, "the temporary directory may be written"}
	}
	if hidden := first(p.Hidden, path); hidden != "" && t != Landlock {
		return Effect{"write", false, fmt.Sprintf("%s is hidden", hidden)}
	}
	if name := named(p.HiddenNames, path, dir); name != "" && t == Namespaces {
		return Effect{"write", false, fmt.Sprintf(hiddenName, name)}
	}
	explained := false // by a name below it; one that exists says more than one that does not
	for _, name := range p.protectedPaths() {
		folded := strings.EqualFold(name, path) || len(path) > len(name) &&
			strings.EqualFold(name+string(filepath.Separator), path[:len(name)+1])
		if !folded && !pathname.Within(path, name) {
			continue
		}
		if folded {
			return Effect{"write", false, fmt.Sprintf("%s is protected", name)}
		}
		if _, err := os.Lstat(name); explained && err != nil {
			continue
		}
		explained = true
		e.Allowed, e.Why = true, fmt.Sprintf("%s may be written, but not moved or removed: %s is protected", dir, name)
	}
	if name := named(p.KeptNames, path, dir); name != "" && t != Seatbelt {
		return Effect{"write", false, fmt.Sprintf("%s is protected in every directory", name)}
	}
	if e.Why == "" {
		e.Allowed, e.Why = true, fmt.Sprintf("it lies in %s, which commands may write", dir)
	}
	return e
}

// usable is why a device may be used.
const usable = "every program may use this device"

// device says what commands can do with a device; known is false for other files.
func device(path string, t Tier) (why string, known bool) {
	name, found := strings.CutPrefix(path, "/dev/")
	switch {
	case !found || t == Seatbelt || first([]string{"/dev/shm", "/dev/pts", "/dev/fd"}, path) != "":
		return "", false
	case slices.Contains(deviceNames(), name) || name == "ptmx":
		return usable, true
	}
	return "commands have only devices that do no harm", true
}

// deviceNames returns the devices that commands may use, besides terminals of their own.
func deviceNames() []string { return []string{"null", "zero", "full", "random", "urandom", "tty"} }

// writable returns the directory of the policy that makes a path writable, or "".
func (p Policy) writable(path string) string {
	return first(append([]string{p.Root, p.Temp}, p.Write...), path)
}

func first(dirs []string, path string) string {
	for _, dir := range dirs {
		if pathname.Within(dir, path) {
			return dir
		}
	}
	return ""
}

// systemDirs returns the directories of programs, of what they need, and of what they ask about the machine.
func systemDirs() []string {
	return []string{
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/nix", "/gnu", "/snap", "/dev",
		"/proc", "/sys",
		"/run/systemd/resolve", "/run/current-system", "/var/lib/dpkg", "/var/lib/alternatives",
	}
}
