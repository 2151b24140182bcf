// Package cli is what all drivers of installed command-line agents share. A Program is a whole driver by itself, made
// of data: those of single agents embed one and replace what is different with them.
//
// It promises that a program is found, and its version read, without starting anything: starting one takes up to two
// seconds, and some of them run code of the repository they are started in. It searches the absolute directories of
// PATH only. It refuses relative and empty elements, also where a shell would take them, and two directories: the one
// in which the agent will work, and the root of the repository around it. A repository could plant a program there. The
// agent itself gets PATH without them, so that this holds for the interpreter of its script too. What lies beneath
// those two is searched: somebody may keep a home directory, with its bin, in git.
//
// A version is told when a package.json of the agent's own package says it, or when the program said it of itself the
// last time that somebody asked, see Versions; else it is unknown; it is never guessed.
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

	// Table is what that version can do; see agent.Driver.
	Table func(version string) agent.Matrix
	// OneShot and Interactive are the arguments that choose the mode; they come first.
	OneShot, Interactive []string
	// UsageCodes are the exit codes with which it rejects its arguments.
	UsageCodes []int

	// Native is what the names of its platform packages begin with, where that is not About.Package: "opencode" for
	// opencode-linux-x64. Their versions are the agent's own.
	Native string
}

// Name is the agent's name.
func (p Program) Name() string { return p.ID }

// Describe returns About.
func (p Program) Describe() agent.About { return p.About }

// Locate finds the program that a shell would start, but for the elements of PATH that are refused.
func (p Program) Locate(env agent.Env) (agent.Install, error) {
	path, passed := find(env, p.About.Binary)
	if path == "" {
		return agent.Install{}, p.missing(passed)
	}
	in := agent.Install{Path: path, RealPath: path}
	// It exists and may be executed. If the links cannot be followed all the same (on Windows some kinds of reparse
	// point cannot), the path is as real as we can tell.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		in.RealPath = real
	}
	if in.Version = p.version(in.RealPath); in.Version != "" {
		in.VersionFrom = agent.FromPackageJSON
	} else if env.Said != nil {
		if in.Version = env.Said(in.RealPath); in.Version != "" {
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
