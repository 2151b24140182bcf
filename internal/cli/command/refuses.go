package command

import (
	"context"
	"os"

	"omniagent/internal/cli/contract"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch"
	"omniagent/internal/launch/allow"
)

// refusesRun returns what a call of run fails with before anything is done, as far as that is known without its
// standard input.
func (p Parts) refusesRun(ctx context.Context, c *contract.Call) error {
	task, err := p.baseTask(c)
	if err == nil && c.Given("task") {
		err = checkTask(c.String("task"))
	}
	if err == nil {
		_, err = answersOf(c)
	}
	if err == nil {
		err = p.checkUnwalled(c)
	}
	if err != nil {
		return err
	}
	if task.Rehearse { // in which no agent needs a login or leave to start
		return nil
	}
	var first error
	for _, name := range task.Agents { // each is there for when those before it cannot start
		err := p.refuses(ctx, c, launch.Request{
			Agent: name, Provider: c.String("provider"), Base: c.String("api-base"),
			Spec: agent.Spec{Env: os.Environ(), Dir: task.Dir, Shared: setting.Shared{Model: fromFlag(task.Model)}},
		}, true)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// refusesTalk is refusesRun for start and chat.
func (p Parts) refusesTalk(ctx context.Context, c *contract.Call) error {
	if c.Command.Path == "chat" {
		if err := needsTerminal(c); err != nil {
			return err
		}
	}
	r := openRequest{Request: launch.Request{Agent: c.String("agent")}}
	if !p.passes(c) {
		var err error
		if r, err = p.requestOf(c, true); err != nil {
			return err
		}
	}
	if c.Bool("rehearse") || c.Given("resume") || c.Bool("continue") { // a session knows its agent
		return nil
	}
	return p.firstStart(c, p.refuses(ctx, c, r.Request, false))
}

// refuses returns why an agent cannot be started. It changes nothing.
func (p Parts) refuses(ctx context.Context, c *contract.Call, r launch.Request, closed bool) error {
	quiet := p.quietOpener(c)
	quiet.closed = closed
	env := quiet.env()
	gate := env.Gate
	env.Register, env.Gate = nil, func(a launch.Agent, dir string) allow.Gate {
		g := gate(a, dir)
		g.Record = nil
		return g
	}
	_, err := env.Plan(ctx, r)
	return err
}
