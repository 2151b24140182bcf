package talk

import (
	"bytes"
	"context"
	"os"
	"slices"

	"omniagent/internal/agents/relay"
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/parts"
	"omniagent/internal/core/agent"
	"omniagent/internal/host/stream"
	"omniagent/internal/wire/claude"
)

// canRelay reports whether lines can be relayed unchanged between host and agent: both use Claude Code's dialect, and
// no flag needs a change of the lines. A rehearsal is never relayed, because the agent would report a price for the
// scripted model.
func (p commands) canRelay(c *contract.Call) bool {
	if c.String("dialect") != claudeDialect || c.String("output-format") != string(stream.Lines) ||
		c.Bool("replay-user-messages") || c.Bool("rehearse") {
		return false
	}
	i := slices.IndexFunc(p.Agents, func(d agent.Driver) bool { return d.Name() == c.String("agent") })
	if i < 0 {
		return false
	}
	_, speaks := p.Agents[i].(relay.Speaker)
	// this program enforces these flags, not the agent
	speaks = speaks && flags.TurnOf(c) == 0
	for _, flag := range []string{"settings", "setting-sources", "agents", "connect-timeout"} {
		speaks = speaks && !c.Given(flag)
	}
	return speaks && (c.String("input-format") == "stream-json" || c.Given("prompt"))
}

// serveRelay relays the lines between host and agent.
func (p commands) serveRelay(
	ctx context.Context, c *contract.Call, d stream.Dialect, log, detail func(string, ...any), signals <-chan os.Signal,
	quit <-chan struct{},
) (int, error) {
	in, stays := c.Host.Stdin, !c.Given("prompt")
	if !stays {
		prompt, err := parts.UntilOpen(ctx, signals,
			func(context.Context) (input, error) { return readInput(c, d, quit) })
		if err != nil {
			return 0, err
		}
		line, err := claude.UserLine("", "", prompt.prompt)
		if err != nil {
			return 0, err
		}
		in = bytes.NewReader(append(line, '\n'))
	} else if in == nil || c.Host.StdinTerminal {
		return 0, noMessage(c)
	}
	r, err := p.requestOf(c, stays)
	if err != nil {
		return 0, err
	}
	w := relay.Wishes{
		CanAsk: r.Services.CanAsk, Denied: r.host.Unasked, Forget: r.Forget, Pieces: c.Bool("include-partial-messages"),
	}
	return p.openerOf(c, log, detail, r.notes).Relay(ctx, r.Request, w, relay.Relay{
		// Claude Code has no exit code for a denial, so Quiet
		In: in, Out: c.Host.Stdout, Signals: signals, UntilEOF: stays, Quiet: true,
	})
}
