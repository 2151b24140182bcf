// Package copilot is the driver of GitHub Copilot CLI.
//
// A bypass is never sent if a person chose a sandbox. A session is resumed in the directory that was asked for. What
// happened is read from the event log of the session, from the start of this run on. If the session of a run is
// unknown, so is everything else about it. Runs of the terminal interface have no evidence, since a person saw what
// happened.
package copilot

import (
	"context"
	"runtime"
	"strconv"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
)

type driver struct {
	cli.Program
	// sandboxable returns why this machine cannot run a sandbox, apart from missing programs; empty: it can
	sandboxable func(agent.Machine) string
}

// New returns the driver.
func New() agent.Driver {
	return driver{
		Program: cli.Program{
			ID: "copilot",
			About: agent.About{
				Title:          "GitHub Copilot CLI",
				Binary:         "copilot",
				OverACP:        true,
				Provides:       true,
				Package:        "@github/copilot",
				Traps:          traps,
				Settings:       []string{".copilot"},
				Private:        []string{".copilot", ".config/github-copilot"},
				InstallCommand: "npm install -g @github/copilot@" + measured,
				Login:          "copilot login",
				Variables:      []string{"COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST"},
			},
			Table:      func(string) agent.Matrix { return table(runtime.GOOS) },
			NewDecoder: func() agent.Decoder { return &cli.JSONLines{Parse: (&reader{}).line} },
			Credentials: func(agent.Env) cli.Credentials { // most logins are in the system's keychain
				return cli.Credentials{Variables: tokens(), Elsewhere: true}
			},
		},
		sandboxable: sandboxable,
	}
}

// Mind prepares a conversation: over ACP a lasting process, else a process for every turn.
func (d driver) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	stream := func(s agent.Spec, sv agent.Services) (agent.Mind, error) { return cli.TurnMind(d, s, sv) }
	if s.Terms.Transport != agent.ByACP {
		return stream(s, sv)
	}
	return cli.ACP{Driver: d, Launch: d.acp, Lost: acpLost, Stream: stream}.Mind(s, sv)
}

// acp returns the launch of a process that speaks ACP. It chooses the session over the wire.
func (d driver) acp(s agent.Spec) (agent.Launch, error) {
	d.OneShot = []string{"--acp"}
	s.Mode, s.Resume, s.Fresh = setting.OneShot, "", ""
	l, _, err := d.Command(s)
	return l, err
}

// acpLost returns why a turn failed whose last words are those of the CLI, which calls it done all the same. That the
// turn tells no usage has been seen before.
func acpLost(last string) *fault.Fault {
	message, is := strings.CutPrefix(last, "Error: ")
	if !is {
		return nil
	}
	e := sessionError{Message: message}
	if _, after, ok := strings.Cut(message, "(HTTP "); ok {
		number, _, _ := strings.Cut(after, ")")
		e.Status, _ = strconv.Atoi(number)
	}
	return lost(e, failure{})
}

// traps returns the files of a repository that the CLI may obey.
func traps() map[string]string {
	const (
		hook   = `[{"type":"command","bash":"touch ` + agent.Marks + `/hook"}]`
		server = `{"mcpServers":{"trap":{"type":"local","command":"sh","args":["-c","touch ` + agent.Marks + `/mcp"],` +
			`"tools":["*"],"trust":true}}}`
	)
	return map[string]string{
		".vscode/mcp.json": server, ".github/mcp.json": server, ".copilot/mcp-config.json": server,
		".github/hooks/trap.json": `{"version":1,"hooks":{"sessionStart":` + hook + `,"userPromptSubmitted":` + hook +
			`}}`,
		".env": "COPILOT_ALLOW_ALL=true\n",
	}
}
