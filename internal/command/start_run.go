package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"omniagent/internal/agent"
	"omniagent/internal/config"
	"omniagent/internal/contract"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/opening"
	"omniagent/internal/proto/claude"
	"omniagent/internal/redact"
	"omniagent/internal/relay"
	"omniagent/internal/setting"
	"omniagent/internal/shell"
	"omniagent/internal/stream"
	"omniagent/internal/text"
)

// plan is what a call of start asks for.
type plan struct {
	prompt []event.Block
	stays  bool
	frames chan stream.Said

	agent    string
	opener   opener
	spec     agent.Spec
	services agent.Services
	chosen   bool // a flag says what may run without a question
	unasked  bool // what would be asked about is denied
	bypass   bool // everything may come to run
	noBypass bool // it must not, whoever says so
}

const nested = "claude" // the name of that dialect

// dialectOf is the one that the call is in.
func dialectOf(c *contract.Call) stream.Dialect {
	if c.String("dialect") != nested {
		y := &stream.Yume{Mode: modeWord(c), Meaning: meaning}
		y.Named(firstOf(c.String("resume"), c.String("session-id")))
		return y
	}
	d := &stream.Claude{Repeats: c.Bool("replay-user-messages")}
	d.Encoder = claude.Encoder{UUID: opening.UUID, Partial: c.Bool("include-partial-messages"), Version: Version}
	d.Encoder.Know(firstOf(c.String("resume"), c.String("session-id")), event.Facts{})
	return d
}

// modeWord is the mode of a conversation in the words of the flat lines: as the host said it, or as it would.
func modeWord(c *contract.Call) string {
	if word := c.String("permission-mode"); word != "" {
		return word
	}
	switch mode, _, _ := approvalOf(c); mode { // what is wrong with the flags is told later
	case "":
		return string(setting.Default)
	case setting.Yolo:
		return "auto"
	case setting.AskAll:
		return "interactive"
	default:
		return string(mode)
	}
}

// refuseStart tells in the stream that there is none.
func refuseStart(c *contract.Call, f *fault.Fault) {
	format, d := c.String("output-format"), dialectOf(c)
	if format == string(stream.Text) {
		return
	}
	for _, line := range d.Refuse(f) {
		if format != string(stream.Result) || d.Ends(line) {
			_, _ = c.Host.Stdout.Write(append(line, '\n'))
		}
	}
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

func serveStart(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	log := logger(c)
	detail := func(string, ...any) {}
	if c.Bool("verbose") {
		detail = log
	}
	if v := c.String("protocol-version"); v != "1" {
		return 0, fault.New(fault.ArgError, "--protocol-version %s is not spoken here; 1 is", v)
	}
	p := plan{frames: make(chan stream.Said, stream.Ahead)}
	quit := make(chan struct{})
	defer close(quit)
	dialect := dialectOf(c)
	if p.passes(c) {
		return p.relay(ctx, c, dialect, log, detail, signals, quit)
	}
	host := stream.New(c.Host.Stdout, dialect, stream.Form(c.String("output-format")))
	host.Log, host.Detail, host.Signals = log, detail, signals
	if _, err := attended(ctx, signals, func(context.Context) (any, error) { return nil, p.listen(c, dialect, quit) }); err != nil {
		return 0, err
	}
	if err := p.choose(c, log, detail); err != nil {
		return 0, err
	}
	host.Frames, host.Stays, host.First = p.frames, p.stays, p.prompt
	if d, ok := dialect.(*stream.Claude); ok {
		if open, err := p.greet(ctx, c, host, d, signals); err != nil || !open {
			host.Finish()
			return 0, err
		}
	}
	conversation, err := p.open(ctx, signals)
	if err != nil {
		return p.unopened(c, host, dialect, err)
	}
	defer conversation.Close(ctx)
	host.Session, host.Quiet = conversation, p.spec.Terms.Mode == setting.DenyAll
	return host.Run(ctx), nil
}

// passes says whether the lines of host and agent can pass as they are: both speak the same, and nothing is asked for that needs us in between.
func (p *plan) passes(c *contract.Call) bool {
	if c.String("dialect") != nested || c.String("output-format") != string(stream.Lines) || c.Bool("replay-user-messages") {
		return false
	}
	i := slices.IndexFunc(drivers(), func(d agent.Driver) bool { return d.Name() == c.String("agent") })
	if i < 0 {
		return false
	}
	_, speaks := drivers()[i].(relay.Speaker)
	for _, flag := range []string{"settings", "setting-sources", "agents", "timeout", "connect-timeout"} { // read by us, and held by us
		speaks = speaks && !c.Given(flag)
	}
	return speaks && (c.String("input-format") == "stream-json" || c.Given("prompt"))
}

// relay passes the lines between host and agent.
func (p *plan) relay(
	ctx context.Context, c *contract.Call, d stream.Dialect, log, detail func(string, ...any), signals <-chan os.Signal, quit <-chan struct{},
) (int, error) {
	in := c.Host.Stdin
	if p.stays = !c.Given("prompt"); !p.stays {
		if _, err := attended(ctx, signals, func(context.Context) (any, error) { return nil, p.listen(c, d, quit) }); err != nil {
			return 0, err
		}
		var said strings.Builder
		for _, block := range p.prompt {
			said.WriteString(block.Text)
		}
		in = bytes.NewReader(relay.Message(said.String()))
	} else if in == nil || c.Host.StdinTerminal {
		return 0, fault.New(fault.ArgError, "there is no message: give --prompt, or a message or frames on standard input").
			Hint("omniagent start -p 'What is in this directory?'")
	}
	if err := p.choose(c, log, detail); err != nil {
		return 0, err
	}
	w := relay.Wishes{CanAsk: p.services.CanAsk, Denied: p.unasked, Pieces: c.Bool("include-partial-messages")}
	return p.opener.relay(ctx, p.agent, p.spec, w, relay.Relay{
		In: in, Out: c.Host.Stdout, Signals: signals, Stays: p.stays, Quiet: true, // the codes are Claude Code's: a denial is none
	})
}

// unopened tells that there is no conversation. A host of Claude Code's knows one reason by its words and its code.
func (p *plan) unopened(c *contract.Call, host *stream.Host, d stream.Dialect, err error) (int, error) {
	nest, ok := d.(*stream.Claude)
	if !ok {
		host.Finish()
		return 0, err
	}
	f := fault.Of(err)
	if id := p.spec.Resume; id != "" && f.Code == fault.NotFoundCode && f.Detail["session_id"] == id {
		host.Log("%s", claude.NoConversation(id))
		host.Tell(nest.Encoder.NoConversation(id))
		host.Finish()
		return 1, nil
	}
	nest.Deny(f.Sentence())
	host.Finish()
	return 0, err
}

// attended does what has to be done before a conversation can hear signals itself. One that comes meanwhile ends the call; what cannot be
// stopped, such as a read of standard input, ends with the process.
func attended[T any](ctx context.Context, signals <-chan os.Signal, do func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	life, cancel := context.WithCancel(ctx)
	context.AfterFunc(ctx, cancel)
	done := make(chan outcome, 1)
	go func() {
		value, err := do(life) // what it opens lives as long
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case s := <-signals:
		cancel()
		names := map[os.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"}
		var none T
		return none, fault.New(fault.Interrupted, "ended by %s before there was a conversation", names[s]).With("signal", names[s])
	}
}

// workspaceOf tells what comes with the workspace from what is the user's.
func workspaceOf(c *contract.Call) shell.Inheritance {
	root, _ := config.ProjectRoot(c.Dir())
	return shell.Inheritance{Roots: []string{c.Dir(), root}}
}

// ownPrograms is the environment for who looks for a program that may be asked for a login: without what the workspace has put into PATH.
func ownPrograms(c *contract.Call, home string) func(string) (string, bool) {
	walls := workspaceOf(c)
	return func(name string) (string, bool) {
		value, ok := c.Host.Lookup(name)
		if name == "PATH" && ok {
			value = strings.TrimPrefix(walls.Of([]string{"PATH=" + value, "HOME=" + home})[0], "PATH=")
		}
		return value, ok
	}
}

// logger says lines without the secrets of the environment.
func logger(c *contract.Call) func(format string, args ...any) {
	known := redact.Known(redact.Secrets(os.Environ())...)
	return func(format string, args ...any) { sayLine(c, "%s", known.String(fmt.Sprintf(format, args...))) }
}

// quiet keeps the secrets of the environment out of an error.
func quiet(serve func(context.Context, *contract.Call, <-chan os.Signal) (int, error)) func(context.Context, *contract.Call, <-chan os.Signal) (int, error) {
	return func(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
		code, err := serve(ctx, c, signals)
		if err == nil {
			return code, nil
		}
		plain, known := *fault.Of(err), redact.Known(redact.Secrets(os.Environ())...)
		plain.Message = known.String(plain.Message)
		return code, &plain
	}
}

func sayLine(c *contract.Call, format string, args ...any) {
	clean, _ := text.Clean(fmt.Sprintf(format, args...))
	_, _ = io.WriteString(c.Host.Stderr, "omniagent: "+strings.Join(strings.Fields(clean), " ")+"\n")
}

// open opens the conversation that was chosen. A signal that comes meanwhile ends it.
func (p *plan) open(ctx context.Context, signals <-chan os.Signal) (agent.Session, error) {
	return attended(ctx, signals, func(ctx context.Context) (agent.Session, error) {
		return p.opener.open(ctx, p.agent, p.spec, p.services)
	})
}

func typed[T comparable](v T) setting.Chosen[T] {
	var none T
	if v == none {
		return setting.Chosen[T]{}
	}
	return setting.Chosen[T]{Value: v, Origin: setting.Typed}
}
