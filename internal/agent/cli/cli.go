// Package cli is what all drivers of installed command-line agents share. A Program is a whole driver, made of data;
// the drivers of single agents embed one and override what differs.
//
// It promises to find a program and read its version without starting anything: starting one takes up to two seconds,
// and some run code of the repository in which they are started. It searches only the absolute directories of PATH. It
// ignores relative and empty elements, although a shell would use them, and two directories where a repository could
// plant a program: the one in which the agent will work, and the root of the repository around it. The agent itself
// gets PATH without them, which protects the interpreter of its script too. Directories beneath those two are searched,
// because a home directory with its bin may be a git repository.
//
// The version comes from a package.json of the agent's own package, or from the program's own answer the last time it
// was asked (see Versions). Otherwise it is unknown; it is never guessed.
package cli

import (
	"path/filepath"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/fault"
)

// Program is the driver of an agent that is installed from npm.
type Program struct {
	ID    string // the agent's name
	About agent.About

	NewDecoder  func() agent.Decoder        // for both JSON forms of output; nil: it prints none
	Credentials func(agent.Env) Credentials // nil: it is not known where it keeps a login

	// Table returns what a version can do; see agent.Driver.
	Table func(version string) agent.Matrix
	// OneShot and Interactive are the arguments that choose the mode; they come first.
	OneShot, Interactive []string
	// UsageCodes are the exit codes with which the agent rejects its arguments.
	UsageCodes []int

	// Native is the prefix of the agent's platform packages, if that is not About.Package: "opencode" for
	// opencode-linux-x64. Their versions are the agent's own.
	Native string
}

// Name is the agent's name.
func (p Program) Name() string { return p.ID }

// Describe returns About.
func (p Program) Describe() agent.About { return p.About }

// Locate finds the program that a shell would start, except in the directories of PATH that are refused.
func (p Program) Locate(env agent.Env) (agent.Install, error) {
	path, passed := find(env, p.About.Binary)
	if path == "" {
		return agent.Install{}, p.missing(passed)
	}
	in := agent.Install{Path: path, RealPath: path}
	// It exists and may be executed. If its links cannot be followed (on Windows some kinds of reparse
	// point cannot), the path is as real as we can tell.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		in.RealPath = real
	}
	if in.Version = p.version(in.RealPath); in.Version != "" {
		in.VersionFrom = agent.FromPackageJSON
	} else if env.Printed != nil {
		if in.Version = env.Printed(in.RealPath); in.Version != "" {
			in.VersionFrom = agent.FromProgram
		}
	}
	return in, nil
}

func (p Program) missing(passed []string) error {
	f := fault.New(fault.NotInstalled, "%s is not installed: there is no program %s in PATH.", p.About.Title,
		p.About.Binary).
		FixBy("Install "+p.About.Title+".", p.About.InstallCommand)
	if len(passed) > 0 {
		f.Hint("Passed over: %s.", strings.Join(passed, "; ")).With("passed_over", passed)
	}
	return f
}
