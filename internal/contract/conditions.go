package contract

import (
	"context"
	"os"
	"slices"
	"strings"

	"omniagent/internal/fault"
)

// conditions checks what a command needs before it may run: a person who can answer, and the configured rights. What
// is merely odd becomes a warning.
func (c *Call) conditions() *fault.Fault {
	command := c.Command
	if command.NeedsPerson && (c.Host.nobody() || c.Bool("non-interactive")) {
		return fault.New(fault.ReplProhibited, "%s is a conversation and needs a terminal",
			command.Path).FixBy("run it on a terminal", "").
			Hint("%s --help lists the commands that need no terminal", c.Program.Name)
	}
	active := c.Config.List("scopes")
	// none configured: the rights are not known
	if missing := lacking(command.Scopes, active); len(active) > 0 && len(missing) > 0 {
		return fault.New(fault.MissingScopes, "%s needs rights that are not configured: %s", command.Path,
			strings.Join(missing, ", ")).
			FixBy("add missing_scopes to the configuration key scopes", "").With("missing_scopes", missing)
	}
	if len(command.Scopes) > 0 &&
		slices.ContainsFunc(active, func(s string) bool { return !slices.Contains(command.Scopes, s) }) {
		c.Warn("OVER_PRIVILEGED", "the configured rights (%s) go beyond what %s needs (%s)", strings.Join(active, ", "),
			command.Path, strings.Join(command.Scopes, ", "))
	}
	c.unknownFields(c.Strings("fields"))
	return nil
}

// lacking returns the needed rights that are not active.
func lacking(needed, active []string) []string {
	return slices.DeleteFunc(slices.Clone(needed), func(s string) bool { return slices.Contains(active, s) })
}

// unconfirmed answers a destructive call that was not confirmed. A dry run finds out what it would touch.
func (c *Call) unconfirmed(ctx context.Context, signals <-chan os.Signal) answer {
	c.preview = true
	tried := c.supervise(ctx, signals)
	if tried.fault != nil {
		return answer{fault: tried.fault}
	}
	target := tried.target
	if target == nil {
		target = map[string]any{}
	}
	command := c.line("--dry-run")
	f := fault.New(fault.ConfirmationRequired, "%s destroys what it touches and was not confirmed", c.Command.Path).
		FixBy("add --confirm-destructive", "").Hint("see what would be lost: %s", command)
	return answer{fault: f.With("requires", "--confirm-destructive").With("preview_command",
		command).With("would_affect", target)}
}

// shellCharacters have a meaning to shells. We never use a shell, but a name or a path that the caller passes to a
// child does not need them.
const shellCharacters = ";|&$()<>`\n\r"

// forChild reports whether a parameter's value becomes an argument of a child.
func (c *Command) forChild(p Param) bool {
	return p.Kind != Text &&
		slices.ContainsFunc(c.Children, func(s Subprocess) bool { return slices.Contains(s.CallerArgs, p.Name) })
}

// systemFault gives failures of the system without a fault of their own the code that callers can act on.
func systemFault(f *fault.Fault) *fault.Fault {
	if f != nil && f.Code == fault.Internal && diskFull(f) {
		f.Code = fault.DiskFull
	}
	return f
}
