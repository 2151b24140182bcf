// Package cli has the code that the drivers of command-line agents share. A Program is a complete driver made of data.
// The driver of an agent embeds one and overrides what differs.
//
// It finds a program and reads its version without starting anything: starting an agent takes up to two seconds, and
// some agents run code of the repository they are started in. It searches only the absolute directories of PATH. It
// ignores relative and empty elements, although a shell would use them, and two directories where a repository could
// plant a program: the agent's working directory, and the root of the repository around it. The agent itself gets a
// PATH without them, which also protects the interpreter of its script. Directories below those two are searched,
// because a home directory with its bin may be a git repository.
//
// The version comes from the package.json of the agent's own package, or from what the program last printed (see
// Versions). It is never guessed.
package cli

import (
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
)

// Program is the driver of an agent that is made of data.
type Program struct {
	ID    string // the agent's name
	About agent.About

	NewDecoder  func() agent.Decoder        // for both JSON forms of output; nil if it has none
	Credentials func(agent.Env) Credentials // nil if the places of its login are unknown

	// Table returns the matrix of a version; see agent.Driver.
	Table func(version string) agent.Matrix
	// OneShot and Interactive are the arguments that choose the mode; they come first.
	OneShot, Interactive []string
	// UsageCodes are the exit codes with which the agent rejects its arguments.
	UsageCodes []int

	// Native is the prefix of the agent's platform packages, if that is not About.Package: "opencode" for
	// opencode-linux-x64. Their versions are the agent's own.
	Native string
}

// Name returns ID.
func (p Program) Name() string { return p.ID }

// Describe returns About.
func (p Program) Describe() agent.About { return p.About }

// Locate finds the program that a shell would start, except in the directories of PATH that are refused.
func (p Program) Locate(env agent.Env) (agent.Install, error) {
	path, passed := find(env, p.About.Binary)
	if path == "" {
		return agent.Install{}, p.missing(passed)
	}
	in := agent.Install{Path: path, RealPath: pathname.Real(path)}
	if in.Version = p.version(in.RealPath); in.Version == "" && env.Printed != nil {
		in.Version = env.Printed(in.RealPath)
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
