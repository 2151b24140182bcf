// Package copilot is the driver of GitHub Copilot CLI.
//
// A bypass is never sent if a person chose a sandbox. A session is resumed in the requested directory. The evidence of
// a run is the part of the session's event log that it added. If the session is unknown, there is no evidence.
// Interactive runs have no evidence either, because a person saw what happened.
package copilot

import (
	"context"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"omniagent/internal/agents/acpclient"
	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/workspace"
)

type driver struct {
	cli.Program
	// sandboxable returns why this machine cannot run a sandbox, apart from missing programs, or ""
	sandboxable func(agent.Machine) string
}

// New returns the driver.
func New() agent.Driver {
	return driver{
		Program: cli.Program{
			ID: "copilot",
			About: agent.About{
				Keeps:      keeps,
				Caches:     []string{"node-compile-cache"}, // without it a start takes 1.4 times as long
				Archive:    archive,
				Servers:    serverEntry,
				Title:      "GitHub Copilot CLI",
				Binary:     "copilot",
				Provides:   true,
				Package:    "@github/copilot",
				RepoEffect: repoEffect,
				RepoFiles:  []string{".github/hooks"},
				Traps:      traps,
				Settings:   []string{".copilot", ".github/copilot", ".github/mcp.json"},
				Obeys: []string{
					".vscode/mcp.json", ".mcp.json", ".github/agents", ".github/extensions", ".github/plugin",
					".github/lsp.json", ".lsp.json", ".claude-plugin", ".claude/settings.json",
					".claude/settings.local.json",
				},
				Private:        []string{".copilot", ".config/github-copilot"},
				InstallCommand: "npm install -g @github/copilot@" + measured,
				Login:          "copilot login",
				LoginKeys:      []string{"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"},
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

// Mind returns a Mind with a lasting process over ACP, or else with a process for every turn.
func (d driver) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	stream := func(s agent.Spec, sv agent.Services) (agent.Mind, error) { return cli.TurnMind(d, s, sv) }
	return acpclient.Agent{
		Driver: d, Launch: d.acp, Unsafe: refuseHooks, Lost: acpLost, Sums: true, Stream: stream,
	}.Mind(s, sv)
}

// acp returns the launch of a process that speaks ACP. It chooses the session over the wire.
func (d driver) acp(s agent.Spec) (agent.Launch, error) {
	d.OneShot = []string{"--acp"}
	s.Mode, s.Resume, s.Fresh = setting.OneShot, "", ""
	l, _, err := d.Command(s)
	return l, err
}

// refuseHooks refuses a repository with hooks that no person reviewed. Over ACP the CLI runs them even in an untrusted
// directory, and only the user's own settings could prevent that.
func refuseHooks(s agent.Spec) error {
	for _, at := range []string{s.Dir, pathname.Real(s.Dir)} {
		for dir := range cli.Upward(at) {
			hooks, _ := filepath.Glob(filepath.Join(dir, ".github", "hooks", "*"))
			for _, path := range hooks {
				data, err := workspace.ReadFile(path, 1<<20)
				if err == nil && s.Trusted != nil && s.Trusted(path, data) {
					continue
				}
				return fault.New(fault.Unsafe,
					"copilot is not started over ACP, because it runs the hooks in %s, which "+
						"is not trusted", path).Hint("omniagent trust %s, or --transport stream", path).With("path",
					path)
			}
		}
	}
	return nil
}

// repoEffect describes what the CLI does with a trusted file.
func repoEffect(file string) string {
	if dir := filepath.Dir(file); filepath.Base(dir) == "hooks" && filepath.Base(filepath.Dir(dir)) == ".github" {
		return "hooks that copilot runs as programs in a conversation over ACP"
	}
	return ""
}

// acpLost returns the fault of a turn that the CLI reports as done although its last text is the CLI's own error
// message. In a turn that used the model before it failed, only a status distinguishes that message from an answer.
func acpLost(last string, used bool) *fault.Fault {
	message, is := strings.CutPrefix(last, "Error: ")
	if !is {
		return nil
	}
	e := sessionError{Message: message}
	for _, before := range []string{"", "(HTTP ", "Last error: "} {
		if _, after, ok := strings.Cut(message, before); ok && len(after) > 3 && e.Status == 0 {
			e.Status, _ = strconv.Atoi(after[:3])
		}
	}
	if used && e.Status == 0 {
		return nil
	}
	return sessionFault(e, failure{})
}

// traps returns repository files that the CLI may obey.
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
