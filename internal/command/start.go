package command

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/agent/native"
	"omniagent/internal/config"
	"omniagent/internal/contract"
	"omniagent/internal/engine"
	"omniagent/internal/fault"
	"omniagent/internal/proto/yume"
	"omniagent/internal/redact"
	"omniagent/internal/setting"
	"omniagent/internal/shell"
	"omniagent/internal/stream"
	"omniagent/internal/text"
)

// start is the native agent for programs: one turn and the end, or a conversation over lines.
func start() *contract.Command {
	return &contract.Command{
		Path: "start", Summary: "run the native agent for a program, in lines of JSON", Class: contract.Stream, Danger: contract.Mutating,
		Detail: "With --prompt, or text on standard input, it answers and ends. With --session-id alone, or frames on standard input, it stays and takes a\n" +
			"frame a line: user, interrupt, set_permission_mode, tool_approval. docs/start.md has the lines.",
		Scopes: []string{},
		Params: []contract.Param{
			{Name: "provider", Short: "P", Kind: contract.Text, Help: "model API: openai, codex, gemini or anthropic"},
			{Name: "model", Short: "m", Kind: contract.Text, Help: "model"},
			{Name: "cwd", Short: "d", Kind: contract.File, Help: "where it works"},
			{Name: "session-id", Short: "s", Kind: contract.Text, Help: "id of a new session"},
			{Name: "prompt", Short: "p", Kind: contract.Text, MaxLen: 8 << 20, Help: "the message"},
			{Name: "resume", Short: "r", Kind: contract.Text, Help: "session to go on with"},
			{Name: "output-format", Kind: contract.Enum, Enum: []string{"stream-json", "json", "text"}, Default: "stream-json", Help: "json: the result alone"},
			{Name: "input-format", Kind: contract.Enum, Enum: []string{"auto", "text", "stream-json"}, Default: "auto", Help: "what stdin is: a message, or frames"},
			{Name: "api-base", Kind: contract.Text, Help: "address of the model API"},
			{Name: "permission-mode", Kind: contract.Enum, Enum: append(yume.Modes(), "prompt", "auto-edit"), Default: "default", Help: "what may run"},
			{Name: "sandbox", Kind: contract.Enum, Enum: []string{string(setting.WorkspaceWrite), string(setting.Off)}, Help: "what commands can change"},
			{Name: "network", Kind: contract.Text, Help: "what commands reach: off, on, or hosts: a.org,b.org"},
			{Name: "protocol-version", Kind: contract.Text, Default: "1", Help: "of the lines; 1"},
			{Name: "history-file", Kind: contract.File, Help: "what was said elsewhere"},
			{Name: "max-turns", Kind: contract.Int, Max: 100_000, Help: "answers of the model"},
			{Name: "web", Kind: contract.Enum, Enum: []string{"on", "off"}, Default: "off", Help: "pages and search"},
			{Name: "verbose", Short: "v", Kind: contract.Bool, Help: "more on stderr"},
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "there is an answer"},
			{Code: contract.GeneralError, When: "the turn failed; its result says why"},
			{Code: contract.ArgError, When: "wrong call, or no such session"},
			contract.BlockedByPolicy("a tool needed approval and nobody could be asked"),
		},
		Network: &contract.Network{Timeout: 5 * time.Minute, Connect: 15 * time.Second},
		Files:   []contract.FileEffect{{Path: "~/.yume/sessions", Type: "state", ClearableWith: "omniagent session delete"}, wallsRecord()},
		Examples: []contract.Example{
			{Description: "One question to a local model", Command: "omniagent start --provider openai --api-base http://127.0.0.1:11434/v1 --model qwen3 -p 'What is in this directory?'"},
			{Description: "A conversation over lines", Command: "omniagent start --provider anthropic --session-id s1"},
		},
		Serve:  quiet(serveStart),
		Refuse: func(c *contract.Call, f *fault.Fault) { refuseStart(c, f) },
	}
}

// refuseStart tells in the stream that there is none.
func refuseStart(c *contract.Call, f *fault.Fault) {
	format := c.String("output-format")
	if format == string(stream.Text) {
		return
	}
	for _, line := range (&yume.Encoder{Session: firstOf(c.String("resume"), c.String("session-id"))}).Refuse(f) {
		if format == string(stream.Result) && !bytes.HasPrefix(line, []byte(`{"type":"result"`)) {
			continue
		}
		_, _ = c.Host.Stdout.Write(append(line, '\n'))
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

// engineMode is a permission mode of the lines as the engine calls it.
func engineMode(mode string) engine.Mode {
	switch mode {
	case "interactive":
		return engine.AskAll
	case "auto":
		return engine.Yolo
	case "auto-edit":
		return engine.AutoEdit
	case "deny":
		return engine.DenyAll
	case "prompt":
		return engine.Prompt
	}
	return engine.Default
}

// plan is what a call of start asks for.
type plan struct {
	prompt []agent.Block
	stays  bool
	frames chan stream.Said

	opener   opener
	spec     agent.Spec
	services agent.Services
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
	p := plan{frames: make(chan stream.Said)}
	quit := make(chan struct{})
	defer close(quit)
	if _, err := attended(ctx, signals, func(context.Context) (any, error) { return nil, p.listen(c, quit) }); err != nil {
		return 0, err
	}
	if err := p.choose(c, log, detail); err != nil {
		return 0, err
	}
	conversation, err := p.open(ctx, signals)
	if err != nil {
		return 0, err
	}
	defer conversation.Close(ctx)
	facts := conversation.Facts()
	host := &stream.Host{
		Session: conversation, Form: stream.Form(c.String("output-format")), Out: c.Host.Stdout, Log: log, Detail: detail,
		Encoder: &yume.Encoder{
			Session: conversation.ID(), Model: facts.Model, Dir: facts.Dir, Mode: c.String("permission-mode"), Tools: facts.Tools, Window: facts.Window,
			Walls: facts.Walls,
		},
		Frames: p.frames, Stays: p.stays, First: p.prompt, Quiet: p.spec.Terms.Mode == agent.DenyAll, Signals: signals,
		Mode: engineMode,
	}
	return host.Run(ctx), nil
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

// listen finds out what is said, and how: a message for one turn, or frames for as long as they come.
func (p *plan) listen(c *contract.Call, quit <-chan struct{}) error {
	in, open := c.Host.Stdin, c.Host.Stdin != nil
	if c.Given("prompt") {
		if strings.TrimSpace(c.String("prompt")) == "" {
			return fault.New(fault.ArgError, "--prompt is empty").Hint("say what is to be done")
		}
		p.prompt = []agent.Block{{Text: c.String("prompt")}}
		p.hear(in, open && !c.Host.StdinTerminal, quit)
		return nil
	}
	if c.Host.StdinTerminal || !open {
		return fault.New(fault.ArgError, "there is no message: give --prompt, or a message or frames on standard input").
			Hint("omniagent start -p 'What is in this directory?'")
	}
	if form := c.String("input-format"); form == "stream-json" || form == "auto" && c.Given("session-id") {
		p.stays = true
		p.hear(in, open, quit)
		return nil
	}
	silent := time.AfterFunc(2*time.Second, func() { sayLine(c, "the message is read from standard input") })
	defer silent.Stop()
	reader := bufio.NewReaderSize(in, 64<<10)
	line, rest, err := firstLine(reader)
	switch {
	case err != nil:
		return err
	case line != nil && c.String("input-format") == "auto":
		p.stays = true
		p.hear(io.MultiReader(bytes.NewReader(line), reader), true, quit)
		return nil
	case len(bytes.TrimSpace(rest)) == 0:
		return fault.New(fault.ArgError, "standard input is empty, and there is no --prompt").Hint("omniagent start -p 'What is in this directory?'")
	}
	p.prompt = []agent.Block{{Text: string(rest)}}
	close(p.frames)
	return nil
}

// hear takes frames from now on.
func (p *plan) hear(in io.Reader, open bool, quit <-chan struct{}) {
	if !open {
		close(p.frames)
		return
	}
	go stream.Read(in, p.frames, quit)
}

// longestMessage is the longest one that is taken from standard input.
const longestMessage = 64 << 20

// firstLine reads up to the end of the first line that is not blank. If it is no frame, rest is all that there is.
func firstLine(in *bufio.Reader) (line, rest []byte, err error) {
	for {
		part, err := in.ReadBytes('\n')
		rest = append(rest, part...)
		if len(bytes.TrimSpace(part)) > 0 && bytes.HasPrefix(bytes.TrimSpace(part), []byte("{")) && stream.IsFrame(part) {
			return part, rest, nil
		}
		if err != nil || len(bytes.TrimSpace(part)) > 0 {
			break
		}
	}
	more, err := io.ReadAll(io.LimitReader(in, longestMessage+1))
	if err != nil {
		return nil, nil, fault.New(fault.Internal, "standard input cannot be read").Because(err)
	}
	if rest = append(rest, more...); len(rest) > longestMessage {
		return nil, nil, fault.New(fault.PromptTooLong, "the message on standard input has more than %d MiB", longestMessage>>20)
	}
	return nil, rest, nil
}

// choose fills in with what the conversation begins.
func (p *plan) choose(c *contract.Call, log, detail func(string, ...any)) error {
	mode := engineMode(c.String("permission-mode"))
	p.opener = opener{call: c, log: log, detail: detail, drivers: drivers(), provider: c.String("provider"), base: c.String("api-base")}
	p.spec = agent.Spec{
		Dir: c.Dir(), Fresh: c.String("session-id"), Resume: c.String("resume"),
		Shared: setting.Shared{
			Model:   typed(c.String("model")),
			Sandbox: typed(setting.Sandbox(c.String("sandbox"))),
			Web:     typed(c.String("web") == "on"),
		},
		Terms: agent.Terms{Mode: mode, MaxTurns: int(c.Int("max-turns")), Network: c.String("network")},
	}
	p.services = agent.Services{CanAsk: p.stays || mode == agent.AskAll}
	if c.Given("history-file") {
		p.opener.history = c.Path("history-file")
	}
	s := &p.spec
	if s.Resume != "" && s.Fresh == s.Resume { // a host may name the session both ways
		s.Fresh = ""
	}
	if s.Fresh == "" || s.Resume == "" || p.opener.history != "" {
		return nil
	}
	return fault.New(fault.ArgError, "--resume %s goes on with a session, --session-id %s begins one", s.Resume, s.Fresh).
		Hint("omniagent session fork makes a session of another")
}

// open opens the conversation that was chosen. A signal that comes meanwhile ends it.
func (p *plan) open(ctx context.Context, signals <-chan os.Signal) (agent.Session, error) {
	return attended(ctx, signals, func(ctx context.Context) (agent.Session, error) {
		return p.opener.open(ctx, native.Name, p.spec, p.services)
	})
}

func typed[T comparable](v T) setting.Chosen[T] {
	var none T
	if v == none {
		return setting.Chosen[T]{}
	}
	return setting.Chosen[T]{Value: v, Origin: setting.Typed}
}
