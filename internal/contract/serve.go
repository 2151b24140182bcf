package contract

import (
	"context"
	"os"
	"runtime/debug"

	"omniagent/internal/fault"
	"omniagent/internal/text"
)

// BlockedByPolicy declares the exit code for a tool that a policy denied, for commands that speak as an agent does.
func BlockedByPolicy(when string) Exit {
	return Exit{Code: "BLOCKED_BY_POLICY", When: when, number: blockedNumber}
}

// blockedNumber is 3, as in a call that goes straight to an agent. Commands with an envelope use 3 for something else.
const blockedNumber = 3

// serve carries out a command whose standard output is its own protocol: no envelope, no clock, no heartbeat. What is
// wrong with the call is told on standard error and, by the command itself, in its protocol.
func (p *Program) serve(ctx context.Context, call *Call, rest []string, signals <-chan os.Signal) (status int) {
	f := p.parse(call, rest)
	if f == nil {
		if call.Bool("help") {
			return call.finish(call.help(), signals)
		}
		if described, ok := call.describe(); ok {
			return call.finish(described, signals)
		}
		f = call.prepare()
	}
	if f == nil {
		f = call.validate()
	}
	if f == nil {
		if call.Config == nil {
			call.Config = emptyConfig()
		}
		for _, w := range call.warnings {
			call.say("warning: " + text.Flat(w.Message))
		}
		call.warnings = nil
		status, f = call.served(ctx, signals)
	}
	if f != nil {
		status = call.refuse(f)
	}
	call.cleanup()
	call.record(answer{fault: f}, status)
	return status
}

// served runs the command. If that panics, it still ends its protocol.
func (c *Call) served(ctx context.Context, signals <-chan os.Signal) (status int, f *fault.Fault) {
	defer func() {
		if r := recover(); r != nil {
			f = c.panicked(r, debug.Stack())
		}
	}()
	status, err := c.Command.Serve(ctx, c, signals)
	if err != nil {
		return status, fault.Of(err)
	}
	return status, nil
}

// refuse reports why the call cannot begin. In a stream the status of a wrong call is 2, as for an agent, otherwise 1.
func (c *Call) refuse(f *fault.Fault) int {
	for _, line := range c.errorLines(f) {
		c.say(line)
	}
	if c.Command.Refuse != nil {
		c.Command.Refuse(c, f)
	}
	if c.Command.Class == Terminal {
		status, _ := c.Command.number(codeFor(f))
		return status
	}
	if f.Kind() == fault.Cancelled {
		status, _ := c.Command.number(codeFor(f))
		return status
	}
	if k := f.Kind(); k == fault.Input || k == fault.NotFound {
		return 2
	}
	return 1
}
