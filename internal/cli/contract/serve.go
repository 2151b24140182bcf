package contract

import (
	"context"
	"os"
	"runtime/debug"
	"slices"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
)

// BlockedByPolicy declares the exit code for a tool that a policy denied, for commands that speak as an agent does.
func BlockedByPolicy(when string) Exit {
	return Exit{Code: "BLOCKED_BY_POLICY", When: when, number: blockedNumber}
}

// blockedNumber is 3, as in a call that goes straight to an agent. Commands with an envelope use 3 for something else.
const blockedNumber = 3

// serve carries out a command whose standard output is its own protocol: no envelope, no clock, no heartbeat. It
// reports what is wrong with the call on standard error, and the command itself reports it in its protocol.
func (p *Program) serve(ctx context.Context, call *Call, rest []string, signals <-chan os.Signal) (status int) {
	command := call.Command
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
		for _, w := range call.warnings {
			call.say("warning: " + text.Flat(w.Message))
		}
		call.warnings = nil
		status, f = call.callServe(ctx, signals)
	}
	if f != nil && f.Code == fault.OutputFailed && command.Danger == Safe && readerGone(f) {
		f = nil // as for an envelope: the reader wanted no more
	}
	if f != nil && command.Class == Printout {
		return call.finish(answer{fault: f}, signals)
	}
	if f != nil {
		status = call.refuse(f)
	}
	call.cleanup()
	call.record(answer{fault: f}, status)
	return status
}

// callServe runs the command. A panic becomes a fault, so that the command can still end its protocol.
func (c *Call) callServe(ctx context.Context, signals <-chan os.Signal) (status int, f *fault.Fault) {
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

// refuse reports why the call failed, and returns the exit status. A stream exits with 2 for a wrong call and otherwise
// with 1, as agents do. Only a signal keeps its own code, and NotFound where the command declares it.
func (c *Call) refuse(f *fault.Fault) int {
	for _, line := range c.errorLines(f) {
		c.say(line)
	}
	if c.Command.Refuse != nil {
		c.Command.Refuse(c, f)
	}
	code, kind := codeFor(f), f.Kind()
	declared := slices.ContainsFunc(c.Command.Exits, func(e Exit) bool { return e.Code == code })
	switch {
	case c.Command.Class == Terminal, kind == fault.Cancelled, kind == fault.NotFound && declared:
		status, _ := c.Command.number(code)
		return status
	case kind == fault.Input, kind == fault.NotFound:
		return 2
	}
	return 1
}
