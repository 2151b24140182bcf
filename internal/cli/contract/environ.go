package contract

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/term"
)

// Host is the environment of a call: arguments, variables, streams, directory. Tests and the batch pass their own.
type Host struct {
	Args   []string // without the program's name
	Lookup func(string) (string, bool)
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Dir    string

	StdinTerminal, StdoutTerminal, StderrTerminal bool

	Merged     bool // standard output and standard error lead to the same place
	StdinPiped bool // standard input is a pipe or a file

	line  object        // in a batch: the command and the number of this line, for meta
	stray func() string // what other code wrote to standard output; nil if it is not guarded
}

// Process returns the host of a real process.
func Process() Host {
	dir, _ := os.Getwd()
	return Host{
		Args: os.Args[1:], Lookup: lookupEnv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Dir: dir,
		StdinTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		StdinPiped:     piped(os.Stdin),
		StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Merged:         oneStream(os.Stdout, os.Stderr),
	}
}

// oneStream reports whether two streams are the same file, as after 2>&1.
func oneStream(a, b *os.File) bool {
	one, err := a.Stat()
	other, wrong := b.Stat()
	return err == nil && wrong == nil && os.SameFile(one, other)
}

// lookupEnv is os.LookupEnv, but leaves out a HOME that is not absolute: it would be another one in each directory.
func lookupEnv(name string) (string, bool) {
	value, set := os.LookupEnv(name)
	if name == "HOME" && !filepath.IsAbs(value) {
		return "", false
	}
	return value, set
}

// size returns the size of the terminal on standard output, or zeros if it has none.
func (h Host) size() (columns, rows int) {
	if out, isFile := h.Stdout.(*os.File); isFile && h.StdoutTerminal {
		columns, rows, _ = term.GetSize(int(out.Fd()))
	}
	return columns, rows
}

// Home returns the user's home directory, or "".
func (h Host) Home() string { return h.env("HOME") }

func (h Host) env(name string) string {
	v, _ := h.Lookup(name)
	return v
}

func (h Host) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return h.env(name) != "" })
}

// ci reports that no person watches, even if there is a terminal.
func (h Host) ci() bool { return h.has("CI", "GITHUB_ACTIONS", "JENKINS_URL") }

// machine reports that a program reads the output, so that it is JSON by default.
func (h Host) machine() bool { return !h.StdoutTerminal || h.ci() }

// piped reports whether f is a pipe or a file. A closed standard input is neither: Go opens the null device there.
func piped(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0)
}

// unattended reports that no question can be answered.
func (h Host) unattended() bool { return !h.StdinTerminal || h.ci() }

// headless reports that no window can be opened.
func (h Host) headless() bool {
	if h.machine() || h.has("SSH_TTY") {
		return true
	}
	return runtime.GOOS == "linux" && !h.has("DISPLAY", "WAYLAND_DISPLAY")
}

// Paths are the directories of the program's files. One is empty if there is no home directory.
type Paths struct {
	Config string // shared by all instances, because the user wrote it
	State  string
	Data   string
	Cache  string
	Temp   string // directory for temporary directories
}

// UserConfig returns the file of the user's own configuration, or "".
func (p Paths) UserConfig() string { return inDir(p.Config, "config.toml") }

// inDir returns the path of a name in a directory, or "" without one.
func inDir(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// paths follows the XDG rules on Unix and the system's own on Windows. Each instance has its own state, data and cache.
func (h Host) paths(name, instance string) Paths {
	home := h.Home()
	windows := runtime.GOOS == "windows"
	if windows && home == "" {
		home = h.env("USERPROFILE")
	}
	place := func(variable, windowsVariable string, below ...string) string {
		base := h.env(variable)
		if base == "" && windows {
			base = h.env(windowsVariable)
		}
		if !filepath.IsAbs(base) { // a relative one would depend on the directory: the rules say to ignore it
			if !filepath.IsAbs(home) { // so would a relative home
				return ""
			}
			base = filepath.Join(append([]string{home}, below...)...)
		}
		return filepath.Join(base, name)
	}
	p := Paths{
		Config: place("XDG_CONFIG_HOME", "APPDATA", ".config"),
		State:  place("XDG_STATE_HOME", "LOCALAPPDATA", ".local", "state"),
		Data:   place("XDG_DATA_HOME", "LOCALAPPDATA", ".local", "share"),
		Cache:  place("XDG_CACHE_HOME", "LOCALAPPDATA", ".cache"),
	}
	if p.Temp = h.env("TMPDIR"); !filepath.IsAbs(p.Temp) {
		p.Temp = os.TempDir()
	}
	if instance != "" {
		for _, dir := range []*string{&p.State, &p.Data, &p.Cache} {
			if *dir != "" {
				*dir = filepath.Join(*dir, "instances", instance)
			}
		}
	}
	return p
}
