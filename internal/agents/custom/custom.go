// Package custom creates the agents that a user's own file describes.
//
// They work like the built-in agents, with the same kind of table. The package refuses an agent with the name of
// another, and programs with a relative path, which would depend on the working directory.
package custom

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/acpclient"
	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
	"omniagent/internal/wire/acp"
)

// New creates the agents of a file. Its error is one fault that lists all problems.
func New(file *agentsfile.File, known []agent.Driver) ([]agent.Driver, error) {
	p := &problems{file: file.Path}
	var made []agent.Driver
	for _, t := range file.Targets {
		all := slices.Concat(known, made)
		if _, taken := agent.Find(all, t.ID); taken {
			p.add(t.Pos, "there is an agent "+t.ID+" already, and it cannot be replaced")
			continue
		}
		if d := p.driver(t, known); d != nil {
			made = append(made, d)
		}
	}
	return made, p.fault()
}

func (p *problems) driver(t agentsfile.Target, known []agent.Driver) agent.Driver {
	about := agent.About{Title: cmp.Or(t.DisplayName, t.ID), Custom: true}
	for _, a := range t.Aliases {
		if _, taken := agent.Find(known, a.Text); taken {
			p.add(a.Pos, "there is an agent "+a.Text+" already")
			return nil
		}
		about.Aliases = append(about.Aliases, strings.ToLower(a.Text))
	}
	if t.CLI == nil {
		base, ok := agent.Find(known, t.Inherits.Text)
		if !ok {
			p.add(t.Pos, "it needs cli, or inherits with the name of a built-in agent")
			return nil
		}
		of := base.Describe()
		about.Binary, about.Package, about.InstallCommand, about.Login = of.Binary, of.Package, of.InstallCommand,
			of.Login
		about.Keeps, about.RepoFiles = of.Keeps, of.RepoFiles
		about.Settings, about.OwnSettings, about.Obeys = of.Settings, of.OwnSettings, of.Obeys
		return alias{base, strings.ToLower(t.ID), about}
	}
	for _, call := range []agentsfile.Call{t.CLI.OneShot, t.CLI.Interactive, t.CLI.ACP} {
		if strings.ContainsAny(call.Command, `/\`) && !filepath.IsAbs(call.Command) {
			p.add(call.CommandPos, "a command is a name in PATH or an absolute path")
			return nil
		}
		about.Binary = cmp.Or(about.Binary, call.Command)
		for _, arg := range call.Args {
			if filepath.IsAbs(arg) {
				about.Parts = append(about.Parts, arg)
			}
		}
	}
	adapt(&about, known)
	c := *t.CLI
	return driver{cli.Program{
		ID: strings.ToLower(t.ID), About: about, OneShot: c.OneShot.Args, Interactive: c.Interactive.Args,
		Table: func(string) agent.Matrix { return matrix(c) },
	}, c}
}

// adapt adds the files of the agents that a program adapts. An adapter, such as codex-acp or a script in a package of
// that name, uses the login of the agent in its name, and may read the same files of a repository.
func adapt(about *agent.About, known []agent.Driver) {
	adapts := func(binary string) bool {
		return strings.Contains(nameOf(about.Binary), binary) ||
			slices.ContainsFunc(about.Parts, func(part string) bool {
				above := strings.Split(filepath.ToSlash(part), "/")
				return slices.ContainsFunc(above[max(0, len(above)-3):], func(element string) bool {
					return strings.Contains(element, binary)
				})
			})
	}
	var of []agent.About
	for _, d := range known {
		if one := d.Describe(); one.Keeps != nil && one.Binary != "" && adapts(one.Binary) {
			of = append(of, one)
			about.Settings = append(about.Settings, one.Settings...)
			about.OwnSettings = append(about.OwnSettings, one.OwnSettings...)
			about.RepoFiles = append(about.RepoFiles, one.RepoFiles...)
			about.Obeys = append(about.Obeys, one.Obeys...)
		}
	}
	binary := about.Binary
	about.Keeps = func(env []string) agent.Keeps { return keeps(binary, of, env) }
}

func nameOf(binary string) string { return strings.TrimSuffix(filepath.Base(binary), ".exe") }

// keeps returns the data of the agents that a program adapts, and the directories that a program of its name usually
// has, if they exist.
func keeps(binary string, of []agent.About, env []string) (k agent.Keeps) {
	for _, one := range of {
		its := one.Keeps(env)
		k.Dirs, k.Files = append(k.Dirs, its.Dirs...), append(k.Files, its.Files...)
	}
	name := nameOf(binary)
	for _, dir := range []string{
		cli.InHome(env, "", "", "."+name),
		cli.InHome(env, "XDG_CONFIG_HOME", ".config", name),
		cli.InHome(env, "XDG_DATA_HOME", ".local/share", name),
		cli.InHome(env, "XDG_STATE_HOME", ".local/state", name),
		cli.InHome(env, "XDG_CACHE_HOME", ".cache", name),
	} {
		if dir != "" && cli.Exists(dir) {
			k.Dirs = append(k.Dirs, dir)
		}
	}
	return k
}

// alias is a built-in agent with another name.
type alias struct {
	agent.Driver
	name  string
	about agent.About
}

func (a alias) Name() string          { return a.name }
func (a alias) Describe() agent.About { return a.about }

// driver is an agent with its own command line.
type driver struct {
	cli.Program
	cli agentsfile.CLI
}

// Locate finds a program by its absolute path, or in PATH.
func (d driver) Locate(env agent.Env) (agent.Install, error) { return d.locate(env, d.About.Binary) }

func (d driver) locate(env agent.Env, binary string) (agent.Install, error) {
	p := d.Program
	p.About.Binary = binary
	why := "there is no program " + binary + " in PATH"
	if filepath.IsAbs(binary) {
		if why = cli.Unfit(binary); why == "" {
			return agent.Install{Path: binary, RealPath: binary}, nil
		}
		why = binary + " " + why
	} else if in, err := p.Locate(env); err == nil {
		return in, nil
	}
	return agent.Install{}, fault.New(fault.NotInstalled, "%s is not installed: %s", p.About.Title, why).
		Hint("its command is set by cli.modes in your file of agents")
}

// Command adds the place of the prompt, and the program of the mode.
func (d driver) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	if s.Rehearsal != nil {
		return agent.Launch{}, nil, fault.New(fault.ArgError,
			"%s cannot be rehearsed: there is no known way to point it to another model", d.ID).
			Hint("omniagent agents list shows the built-in agents, which can")
	}
	call := d.cli.OneShot
	if s.Mode == setting.Interactive {
		call = d.cli.Interactive
	}
	if call.Command == "" {
		return agent.Launch{}, nil, d.modeless(s.Mode)
	}
	if err := d.started(&s, call); err != nil {
		return agent.Launch{}, nil, err
	}
	t, err := cli.Translate(d.Matrix(""), s)
	if err != nil {
		return agent.Launch{}, nil, err
	}
	l := d.Launch(s, t)
	if s.Mode == setting.OneShot && d.cli.Prompt.Type != agentsfile.PromptStdin && d.cli.Prompt.Type != "" {
		d.promptArgument(&l, len(d.OneShot))
	}
	return l, t.Warnings, nil
}

func (d driver) modeless(mode setting.Mode) error {
	return fault.New(fault.ArgError, "%s has no %s mode", d.ID, mode).Hint("cli.modes in your file of agents sets it")
}

// started chooses the program of a call.
func (d driver) started(s *agent.Spec, call agentsfile.Call) error {
	if call.Command == d.About.Binary {
		return nil
	}
	in, err := d.locate(agent.Env{
		Dir:    s.Dir,
		Lookup: process.In(s.Env),
	}, call.Command)
	if err == nil {
		s.Install = in
	}
	return err
}

// acp returns the launch of a process that speaks the Agent Client Protocol. All terms go over the wire.
func (d driver) acp(s agent.Spec) (agent.Launch, error) {
	if err := d.started(&s, d.cli.ACP); err != nil {
		return agent.Launch{}, err
	}
	d.OneShot, s.Mode, s.Passthrough = d.cli.ACP.Args, setting.OneShot, nil
	return d.Launch(s, cli.Translation{}), nil
}

// promptArgument adds the place of the prompt, if it is an argument.
func (d driver) promptArgument(l *agent.Launch, base int) {
	l.Prompt = agent.ByArgument
	at := l.Translated
	switch {
	case d.cli.Prompt.Position == agentsfile.First:
		at = base
	case d.cli.Passthrough == agentsfile.PassBeforePrompt:
		at = len(l.Args)
	}
	l.Args = slices.Insert(l.Args, at, d.cli.Prompt.Flag...)
	if at <= l.Translated {
		l.Translated += len(d.cli.Prompt.Flag)
	}
	l.PromptAt = at + len(d.cli.Prompt.Flag)
	l.PromptBare = !guarded(l.Args[:l.PromptAt], d.cli.Prompt.Flag)
}

// guarded reports whether the argument before a prompt keeps it from being read as a flag: it is "--", or a flag that
// takes the prompt as its value. A flag with "=" already has a value.
func guarded(before, flag []string) bool {
	if len(before) > 0 && before[len(before)-1] == "--" {
		return true
	}
	return len(flag) > 0 && strings.HasPrefix(flag[len(flag)-1], "-") && !strings.Contains(flag[len(flag)-1], "=")
}

// Mind returns a Mind over ACP, which some agents have as their only mode, or with a process for every turn.
func (d driver) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	stream := func(s agent.Spec, sv agent.Services) (agent.Mind, error) {
		if d.cli.OneShot.Command == "" {
			return nil, d.modeless(setting.OneShot)
		}
		return cli.TurnMind(d, s, sv)
	}
	switch speaks := d.cli.ACP.Command != ""; {
	case !speaks:
		return stream(s, sv)
	case d.cli.OneShot.Command == "" && s.Terms.Transport != agent.ByStream:
		s.Terms.Transport = agent.ByACP
	}
	return acpclient.Agent{
		Driver: d, Launch: d.acp, Models: true, Unflagged: true, Stream: stream, Offered: acp.Offered{
			Files:     slices.Contains(d.cli.ACP.Offer, agentsfile.OfferFiles),
			Terminals: slices.Contains(d.cli.ACP.Offer, agentsfile.OfferTerminals),
		},
	}.Mind(s, sv)
}

// longestArgument is Linux's limit for one argument.
const longestArgument = 128<<10 - 1

// matrix converts the file's table to a matrix.
func matrix(c agentsfile.CLI) agent.Matrix {
	var m agent.Matrix
	if c.Prompt.Type != agentsfile.PromptStdin && c.Prompt.Type != "" {
		m.Limit = agent.Limit{Bytes: longestArgument, Note: "the prompt is an argument, which holds no more"}
	}
	row := func(feature, value string, args func(mode string) ([]string, bool)) {
		cell := func(mode string) agent.Cell {
			list, ok := args(mode)
			if !ok {
				return agent.Cell{Level: agent.None, Fix: fixOf(c, feature, value, mode)}
			}
			return agent.Cell{Level: agent.Full, Args: list, Note: "as your file of agents says"}
		}
		m.Rows = append(m.Rows, agent.Row{
			Feature: feature, Value: value,
			Interactive: cell(agentsfile.Interactive), OneShot: cell(agentsfile.OneShot),
		})
	}
	flag := func(feature, value string, f agentsfile.Flag) {
		row(feature, value, func(mode string) ([]string, bool) { return f.Args(mode, value) })
	}
	for _, v := range setting.Common() {
		flag(agent.Approval, string(v), c.Approval)
	}
	for _, v := range setting.Sandboxes() {
		flag(agent.Sandbox, string(v), c.Sandbox)
	}
	for _, v := range setting.Outputs() {
		flag(agent.Output, string(v), c.Output)
	}
	in := func(modes []string, mode string) bool { return len(modes) == 0 || slices.Contains(modes, mode) }
	row(agent.Model, "", func(mode string) ([]string, bool) {
		return c.Model.Flag, c.Model.Flag != nil && in(c.Model.Modes, mode)
	})
	web := func(value string, args []string) {
		row(agent.Web, value, func(mode string) ([]string, bool) { return args, args != nil && in(c.Web.Modes, mode) })
	}
	web("on", c.Web.On)
	web("off", c.Web.Off)
	return m
}

// fixOf returns what to add to the file so that the agent supports a value, and which approvals it supports already. It
// returns "" for features other than approval and sandbox.
func fixOf(c agentsfile.CLI, feature, value, mode string) string {
	if feature != agent.Approval && feature != agent.Sandbox {
		return ""
	}
	fix := fmt.Sprintf("add %s = [FLAGS], or [] if it needs none, to cli.flags.%s.values in its file; then "+
		"omniagent run --%[2]s %[1]s starts it", value, feature)
	var has []string
	for _, v := range setting.Common() {
		if _, ok := c.Approval.Args(mode, string(v)); ok && feature == agent.Approval {
			has = append(has, string(v))
		}
	}
	if has != nil {
		fix += "; as it is, --approval " + text.Either(has) + " does"
	}
	return fix
}

// problems collects the problems of a file.
type problems struct {
	file string
	list []fault.Problem
}

func (p *problems) add(at literal.Pos, message string) {
	p.list = append(p.list, fault.Problem{
		Param: p.file + ":" + at.String(), Code: fault.ConfigInvalid, Message: message,
	})
}

func (p *problems) fault() error {
	if len(p.list) == 0 {
		return nil
	}
	f := fault.New(fault.ConfigInvalid, "%s: %s", p.list[0].Param, p.list[0].Message).FixBy("correct "+p.file, "")
	f.Problems = p.list
	return f
}
