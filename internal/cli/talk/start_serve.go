package talk

import (
	"cmp"
	"context"
	"os"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/parts"
	"omniagent/internal/core/event"
	"omniagent/internal/host/stream"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/wire/claude"
	"omniagent/internal/wire/yume"
)

// claudeDialect is the value of --dialect for Claude Code's lines.
const claudeDialect = "claude"

// dialectOf returns the dialect of the call.
func dialectOf(c *contract.Call) stream.Dialect {
	id := cmp.Or(c.String("resume"), c.String("session-id"))
	if c.String("dialect") != claudeDialect {
		return stream.NewYume(id, modeWord(c))
	}
	e := claude.Encoder{UUID: ident.UUID, Partial: c.Bool("include-partial-messages"), Version: parts.Version}
	e.Know(id, event.Facts{})
	d := stream.NewClaude(e)
	d.Repeats = c.Bool("replay-user-messages")
	return d
}

// modeWord returns the mode of the conversation for yume's lines: --permission-mode as the host wrote it, or the word
// for the mode of other flags.
func modeWord(c *contract.Call) string {
	if word := c.String("permission-mode"); word != "" {
		return word
	}
	mode, _, _ := flags.ApprovalOf(c) // requestOf reports wrong flags
	return yume.ModeWord(cmp.Or(mode, setting.Default))
}

// refuseStart reports in the stream that there is no conversation.
func refuseStart(c *contract.Call, f *fault.Fault) {
	format, d := c.String("output-format"), dialectOf(c)
	if format == string(stream.Text) {
		return
	}
	for _, line := range d.Refuse(f) {
		if format != string(stream.Result) || stream.EndsTurn(line) {
			_, _ = c.Host.Stdout.Write(append(line, '\n'))
		}
	}
}

func (p commands) serveStart(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	log := parts.Logger(c)
	detail := parts.DetailLog(c, log)
	quit := make(chan struct{})
	defer close(quit)
	dialect := dialectOf(c)
	if p.canRelay(c) {
		return p.serveRelay(ctx, c, dialect, log, detail, signals, quit)
	}
	host := stream.New(c.Host.Stdout, dialect, stream.Form(c.String("output-format")))
	host.Log, host.Hint, host.Detail, host.Signals = log, parts.LineWriter(c, "hint: "), detail, signals
	in, err := parts.UntilOpen(ctx, signals,
		func(context.Context) (input, error) { return readInput(c, dialect, quit) })
	if err != nil {
		return 0, err
	}
	r, err := p.requestOf(c, in.stays)
	if err != nil {
		return 0, err
	}
	if r.Forget && r.Agent != native.Name && !c.Bool("rehearse") {
		return 0, fault.New(fault.Unsupported,
			"%s keeps records of its own, so --no-session-persistence cannot be kept", r.Agent).Hint("leave it out")
	}
	host.Frames, host.UntilEOF, r.First = in.frames, in.stays, in.prompt
	if d, ok := dialect.(*stream.Claude); ok {
		var open bool
		if r, open, err = greet(ctx, c, host, d, r, signals); err != nil || !open {
			host.Finish()
			return 0, err
		}
	}
	env := p.openerOf(c, log, detail, r.notes).Env()
	stop, err := parts.OnScript(c, &env, &r.Request, "")
	if err != nil {
		return 0, err
	}
	defer stop()
	opened, err := parts.UntilOpen(ctx, signals, func(ctx context.Context) (*conversation.Conversation, error) {
		return env.Open(ctx, r.Request)
	})
	if err != nil {
		return unopened(host, dialect, r.Spec.Resume, p.firstStart(c, err))
	}
	host.Conversation = opened
	return host.Run(ctx), nil
}

// openerOf logs the notes on a request, and returns an opener for it.
func (p commands) openerOf(c *contract.Call, log, detail func(string, ...any), notes []string) parts.Opener {
	for _, note := range notes {
		detail("%s", note)
	}
	return parts.Opener{Call: c, Log: log, Detail: detail, Parts: p.Parts, Others: delegated}
}

// greet waits for the first frame of a Claude Code host, and if that is an initialize request, applies it to r. open is
// false if the input ends without a frame.
func greet(
	ctx context.Context, c *contract.Call, host *stream.Host, d *stream.Claude, r openRequest, signals <-chan os.Signal,
) (_ openRequest, open bool, err error) {
	d.Encoder.Limits = claude.Limits{Turns: r.Spec.Terms.MaxTurns, USD: r.Spec.Terms.MaxUSD}
	if s := &r.Spec; s.Fresh == "" && (s.Resume == "" && !s.Terms.Continue || s.Terms.Fork) {
		s.Fresh = ident.UUID()
	}
	if host.UntilEOF {
		g, err := parts.UntilOpen(ctx, signals,
			func(ctx context.Context) (stream.Greeting, error) { return d.Greet(ctx, host.Frames), nil })
		if err != nil || !g.Open {
			return r, false, err
		}
		host.Frames = prepend(g.Further, host.Frames)
		if g.Init != nil {
			r.Services.Serve = d.Serve
			if len(g.Init.Hooks) > 0 {
				r.Services.Hook = d.Hook
			}
			deltas, err := stream.Initialize(*g.Init, filesOf(c))
			if err == nil {
				r, err = r.withDeltas(deltas)
			}
			if err != nil {
				d.Deny(fault.Of(err).Sentence())
				return r, false, err
			}
		}
	}
	d.Encoder.Unasked = r.host.Unasked
	if m := r.Spec.Shared.Model.Value; m != "" {
		d.Models = []string{m}
	}
	return r, true, nil
}

// prepend returns a channel with the frames of first, followed by those of rest.
func prepend(first []stream.Input, rest <-chan stream.Input) <-chan stream.Input {
	if len(first) == 0 {
		return rest
	}
	all := make(chan stream.Input, len(first))
	for _, s := range first {
		all <- s
	}
	go func() {
		defer close(all)
		for s := range rest {
			all <- s
		}
	}()
	return all
}

// unopened reports to the host that no conversation was opened. Hosts of Claude Code recognise an unknown session by
// the text and the exit code, so these are the same as Claude Code's.
func unopened(host *stream.Host, d stream.Dialect, id string, err error) (int, error) {
	dialect, ok := d.(*stream.Claude)
	if !ok {
		host.Finish()
		return 0, err
	}
	f := fault.Of(err)
	if id != "" && f.Code == fault.NotFoundCode && f.Detail["session_id"] == id {
		host.Log("%s", claude.NoConversation(id))
		host.Tell(dialect.Encoder.NoConversation(id))
		host.Finish()
		return 1, nil
	}
	dialect.Deny(f.Sentence())
	host.Finish()
	return 0, err
}
