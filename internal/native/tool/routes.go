package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"omniagent/internal/core/event"
	"omniagent/internal/sys/fsapi"
	"omniagent/internal/walls/shell"
)

// Namespace is the namespace of the routes of seed 2, which are offered to models without native tool calls.
const Namespace = "SysBuiltIn"

// RejectedName is the tool that answers an invalid call in a model's text.
const RejectedName = "tool_call"

// route is a tool of seed 2, and the tools that it replaces.
type route struct {
	name string
	of   []string
	make func(*Env, fsapi.FS) Tool
}

func routes() []route {
	return []route{
		{"bash", []string{"Bash", "BashOutput", "KillShell"}, bashRoute},
		{"read_file", []string{"Read"}, readRoute},
		{"write_file", []string{"Write"}, writeRoute},
		{"edit_text", []string{"Edit", "MultiEdit"}, editRoute},
		{"todo_write", []string{"TodoWrite"}, todoRoute},
	}
}

// Routes replaces tools with the routes of seed 2 that do the same, and puts the routes first. A route is included only
// if the first tool that it replaces is. The last tool answers invalid calls.
func Routes(env *Env, all []Tool) []Tool {
	fs := env.FS()
	var routed []Tool
	rest := slices.Clone(all)
	for _, r := range routes() {
		named := func(t Tool) bool { return t.Name == r.of[0] }
		if slices.ContainsFunc(all, named) {
			routed = append(routed, r.make(env, fs))
		}
		rest = slices.DeleteFunc(rest, func(t Tool) bool { return slices.Contains(r.of, t.Name) })
	}
	routed = append(routed, rest...)
	if len(routed) == 0 {
		return nil
	}
	return append(routed, rejected())
}

// Routed describes the tools of a list, after Routes.
func (l List) Routed() (all []event.ToolSpec) {
	for _, r := range routes() {
		all = append(all, r.make(&Env{}, nil).ToolSpec)
	}
	for _, t := range l.Specs() {
		if t.Name != SearchName && RouteOf(t.Name) == t.Name {
			all = append(all, t)
		}
	}
	return all
}

// RouteOf returns the route that replaces a tool, or else the tool's name.
func RouteOf(name string) string {
	for _, r := range routes() {
		if slices.Contains(r.of, name) {
			return Namespace + "." + r.name
		}
	}
	return name
}

// RouteNamed returns the route with a plain name, such as bash, in upper or lower case, or "".
func RouteNamed(plain string) string {
	for _, r := range routes() {
		if strings.EqualFold(r.name, plain) {
			return Namespace + "." + r.name
		}
	}
	return ""
}

// rejected returns a tool that never runs. Its input has the reason, which the model gets as the result.
func rejected() Tool {
	return Tool{
		ToolSpec: event.ToolSpec{Name: RejectedName, Kind: event.Other},
		Plan: func(input json.RawMessage) (Action, error) {
			var why struct{ Problem string }
			_ = json.Unmarshal(input, &why)
			why.Problem = cmp.Or(why.Problem, "this cannot become a call")
			return Action{}, errors.New(why.Problem)
		},
	}
}

// FS returns the files and commands of the environment, in the form that routes use.
func (env *Env) FS() fsapi.FS { return fsapi.New(env.Files, env.runner()) }

func (env *Env) runner() fsapi.Run {
	if env.Shell == nil {
		return nil
	}
	return Runner(env.Shell)
}

// Runner runs commands for an fsapi.FS.
func Runner(commands Shell) fsapi.Run {
	return func(ctx context.Context, c fsapi.Command) (fsapi.Output, error) {
		o, err := commands.Run(ctx, shell.Command{
			Line: c.Line, At: c.At, Timeout: c.Timeout, Network: c.Network,
		})
		if err != nil {
			return fsapi.Output{}, err
		}
		out := fsapi.Output{Stdout: o.Stdout, Stderr: o.Stderr, ExitCode: o.Exit, Masked: o.Masked}
		switch {
		case o.Reason == shell.OutOfTime:
			out.ExitCode, out.Ended = -1, "Command timed out after "+o.Limit.String()
		case o.Reason == shell.Stopped:
			out.ExitCode, out.Ended = -1, "Command was interrupted"
		case o.Signal != "":
			out.ExitCode, out.Ended = -1, "Command was ended by "+o.Signal
		}
		return out, nil
	}
}

// routeOf returns the description of a route for its input.
func routeOf(name string, t event.ToolSpec) *spec {
	t.Name = Namespace + "." + name
	return specOf(t)
}

// done returns the result of a route that changed a file.
func done(text string, c fsapi.Change) Result {
	r := Result{Text: text}
	shown := func(s string) bool { return len(s) <= longestShown && utf8.ValidString(s) }
	if shown(c.New) && (c.Old == nil || shown(*c.Old)) {
		r.Change = &event.Change{Path: c.Path, Old: c.Old, New: c.New}
	}
	return r
}

// routeFailed returns the result of a route that failed. Unlike failed, it keeps the words of seed 2.
func routeFailed(err error) Result { return Result{Text: err.Error(), Failed: true} }

const (
	routeTimeout    = 30 * time.Second
	longestTimeout  = 120 * time.Second
	shortestTimeout = time.Second
)

func bashRoute(env *Env, fs fsapi.FS) Tool {
	s := routeOf("bash", event.ToolSpec{Kind: event.Shell, Rule: event.RuleCommand, Changes: true})
	return s.plan(func(in *input) (Action, error) {
		written, milliseconds := in.text("command", false), in.whole("timeoutMs", 0, 0)
		line, err := fsapi.CheckCommand(written)
		if err != nil {
			return Action{}, err
		}
		c := fsapi.Command{Line: line, Timeout: routeTimeout}
		if milliseconds > 0 {
			c.Timeout = min(max(time.Duration(milliseconds)*time.Millisecond, shortestTimeout), longestTimeout)
		}
		at := func() string {
			c.At = env.Shell.At()
			return c.At
		}
		return Action{
			At: at, Opens: func() { c.Network = true }, Command: line, Title: commandTitle("", line),
			Run: func(ctx context.Context) Result {
				out, err := fs.RunCommand(ctx, c)
				if err != nil {
					return routeFailed(err)
				}
				return commandResult(out)
			},
		}, nil
	})
}

// commandResult returns what a command printed, with standard error after an empty line, and how it ended unless it
// succeeded. A failed command does not fail the call, unless it was ended.
func commandResult(out fsapi.Output) Result {
	text := strings.TrimSpace(out.Stdout + "\n" + out.Stderr)
	r := Result{Text: text, Masked: out.Masked}
	switch {
	case out.Ended != "":
		r.Failed = true
		r.Text = strings.TrimSpace(out.Ended + "\n" + text)
		return r
	case out.ExitCode != 0:
		r.Text = strings.TrimSpace(text + fmt.Sprintf("\n[exit code %d]", out.ExitCode))
	}
	r.Exit = &out.ExitCode
	return r
}
