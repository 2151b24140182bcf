package contract

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/shell"
)

// The methods below are the doors through which a command starts programs, reads input and uses the network. A door
// opens only if the command declared it, so the manifest cannot hide what a command does.

// Spawn starts a declared program and waits for it. Arguments are a list: no shell ever reads them.
func (c *Call) Spawn(ctx context.Context, argv ...string) (process.Result, error) {
	return c.SpawnWith(ctx, c.Programs(), process.Spec{Argv: argv})
}

// Programs returns what starts programs other than agents. They get the environment variables that such programs and
// git need, and the ones named in more.
func (c *Call) Programs(more ...string) process.Programs {
	root, _ := config.ProjectRoot(c.dir)
	return shell.Inheritance{
		Roots: []string{c.dir, root}, More: append(more, gitVariables()...), Opens: true,
	}.Programs(os.Environ(), c.Paths.State)
}

// gitVariables returns the variables with which a person tells git where the configuration is and who they are.
func gitVariables() []string {
	return []string{
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL",
		"GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
	}
}

// SpawnWith starts a declared program with away. If s.Env is nil, it gets variables that keep it from waiting for a
// person.
func (c *Call) SpawnWith(ctx context.Context, away process.Programs, s process.Spec) (process.Result, error) {
	argv := s.Argv
	declared := slices.IndexFunc(c.Command.Children, func(s Subprocess) bool {
		return len(argv) > 0 && strings.TrimSuffix(filepath.Base(argv[0]), ".exe") == s.Binary
	})
	if declared < 0 {
		return process.Result{}, c.undeclared("the child " + strings.Join(argv[:min(1, len(argv))], ""))
	}
	c.mu.Lock()
	over := c.over
	c.children = c.children || !over
	c.mu.Unlock()
	if over {
		return process.Result{}, c.ended()
	}
	if !c.DryRun() { // a dry run leaves nothing behind, even if it is killed
		s.Register = c.register()
	}
	c.Debug("spawn %s", appendJSON(nil, (&walker{}).tree(argv)))
	if s.Env == nil {
		s.Env = process.Environment(nil, process.EnvOptions{
			PreserveLocale: c.Command.Children[declared].PreserveLocale, NoColor: true, TraceID: c.trace(),
		})
	}
	s.Grace = c.Config.Duration("grace")
	return away.Run(ctx, s)
}

// pidFile returns the file that records the children of this call while they live. It returns ""
// for a call that starts none, and without a state directory.
func (c *Call) pidFile() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Paths.State == "" || !c.children {
		return ""
	}
	return filepath.Join(c.Paths.State, "sessions", c.id+".jsonl")
}

// Register returns the register of the agents that this call starts without Spawn, or nil if it cannot be written. If
// this process dies, the processes in it can be found and ended.
func (c *Call) Register() *process.Register {
	c.mu.Lock()
	c.children = true
	c.mu.Unlock()
	return c.register()
}

// register returns the register of the children of this call, or nil if it cannot be written.
func (c *Call) register() *process.Register {
	file := c.pidFile()
	if file == "" {
		return nil
	}
	if err := workspace.MkdirAll(filepath.Dir(file)); err != nil {
		c.Warn("CHILDREN_NOT_RECORDED", "%v", err)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recorded == nil {
		c.recorded = process.NewRegister(file)
	}
	return c.recorded
}

// Connections returns the limits of every connection of the call.
func (c *Call) Connections() (Network, error) {
	if c.Command.Network == nil {
		return Network{}, c.undeclared("the network")
	}
	n := *c.Command.Network
	if c.Given("connect-timeout") {
		n.Connect = c.Duration("connect-timeout")
	}
	return n, nil
}

// Input returns what the command reads: --input-file, of any size, or standard input up to its limit, which applies to
// each line if the command reads lines. It never reads from a terminal.
func (c *Call) Input(ctx context.Context) (io.ReadCloser, error) {
	if c.Command.Stdin == nil {
		return nil, c.undeclared("standard input")
	}
	if name := c.String("input-file"); name != "" && name != "-" {
		path := c.Path("input-file")
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return nil, c.invalid(Wrong("input-file", fault.ArgError, path, "the input file %s is a directory", path))
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, fault.New(fault.FileMissing, "the input file %s cannot be opened", c.Path("input-file")).
				Because(err).Hint("check the path; relative paths start at %s", c.dir)
		}
		return f, nil
	}
	if limit := c.limit(); c.Command.Clock != nil && limit > 0 { // the clock of the command has not begun yet
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, c.expired(limit))
		c.OnCleanup(stop)
	}
	if c.Command.Stdin.Lines && !c.Host.StdinTerminal && c.Host.Stdin != nil {
		return io.NopCloser(c.lineInput(ctx)), nil
	}
	text, err := c.readStdin(ctx)
	if err != nil {
		return nil, err
	}
	if stdin := c.Command.Stdin; len(text) == 0 && stdin.Required && !(stdin.Empty && c.Host.StdinPiped) {
		return nil, fault.New(fault.StdinRequired, "%s reads standard input, and it is empty", c.Command.Path).
			FixBy("pipe the input in, or give --input-file", "").Hint("%s", c.line("--input-file", "FILE"))
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// lineInput is standard input as it arrives, in whole lines. The size limit of standard input applies to each line. A
// longer line ends the input, after the lines before it. The end of the run ends the wait for more.
type lineInput struct {
	ctx    context.Context
	call   *Call
	blocks chan block
	ready  []byte // whole lines, or the end of the input
	part   []byte // a line whose end has not arrived yet
	err    error  // comes after ready
}

type block struct {
	data []byte
	err  error
}

func (c *Call) lineInput(ctx context.Context) *lineInput {
	r := &lineInput{ctx: ctx, call: c, blocks: make(chan block)}
	in := c.stdinWithNotice()
	go func() {
		for {
			b := block{data: make([]byte, 32<<10)}
			n, err := in.Read(b.data)
			b.data, b.err = b.data[:n], err
			select {
			case r.blocks <- b:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return r
}

func (r *lineInput) Read(into []byte) (int, error) {
	for len(r.ready) == 0 && r.err == nil {
		select {
		case b := <-r.blocks:
			r.take(b)
		case <-r.ctx.Done():
			return 0, context.Cause(r.ctx)
		}
	}
	n := copy(into, r.ready)
	if r.ready = r.ready[n:]; n > 0 {
		return n, nil
	}
	return 0, r.err
}

// take divides what has arrived into lines.
func (r *lineInput) take(b block) {
	limit := int(r.call.Config.Int("max_stdin_bytes"))
	r.err = b.err
	for data := b.data; len(data) > 0; {
		_, rest, ends := bytes.Cut(data, []byte("\n"))
		if r.part = append(r.part, data[:len(data)-len(rest)]...); len(r.part) > limit {
			r.err = r.call.tooMuchStdin(len(r.part)+len(rest)+r.rest(), limit)
			return
		}
		if ends {
			r.ready, r.part = append(r.ready, r.part...), r.part[:0]
		}
		data = rest
	}
	if r.err != nil {
		r.ready, r.part = append(r.ready, r.part...), nil
	}
}

// rest drops the remaining input, so that the writer does not get a broken pipe, and returns its length.
func (r *lineInput) rest() (n int) {
	for err := r.err; err == nil && n < 64<<20; {
		select {
		case b := <-r.blocks:
			n, err = n+len(b.data), b.err
		case <-r.ctx.Done():
			return n
		}
	}
	return n
}

// stdinWithNotice returns standard input. If nothing comes from it for a while, a line on standard error says that the
// command waits for it.
func (c *Call) stdinWithNotice() io.Reader {
	stderr, what := c.Host.Stderr, "what "+c.title()+" takes"
	if c.Bool("quiet") {
		return c.Host.Stdin
	}
	return lines.Awaited(c.Host.Stdin, what, lines.EndsWait, func(words string) {
		_, _ = io.WriteString(stderr, c.Program.Name+": "+words+"\n")
	})
}

// readStdin reads all of standard input up to the limit. It refuses a terminal, because it would wait for a person.
func (c *Call) readStdin(ctx context.Context) (string, error) {
	if c.Host.StdinTerminal || c.Host.Stdin == nil {
		return "", fault.New(fault.StdinRequired, "%s reads standard input, and that is a terminal", c.Command.Path).
			FixBy("pipe the input in", "").Hint("%s < FILE", c.line())
	}
	limit := int(c.Config.Int("max_stdin_bytes"))
	type read struct {
		data []byte
		err  error
	}
	done, in := make(chan read, 1), c.stdinWithNotice()
	go func() {
		data, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
		if len(data) > limit {
			// so that the writer is not left with a broken pipe
			rest, _ := io.Copy(io.Discard, io.LimitReader(c.Host.Stdin, 64<<20))
			err = c.tooMuchStdin(len(data)+int(rest), limit)
		}
		done <- read{data, err}
	}()
	select {
	case r := <-done:
		var f *fault.Fault
		if r.err != nil && !errors.As(r.err, &f) {
			return "", fault.New(fault.StdinRequired, "standard input cannot be read").Because(r.err)
		}
		return string(r.data), r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (c *Call) tooMuchStdin(received, limit int) error {
	f := fault.New(fault.StdinTooLarge, "standard input has %d bytes; the limit is %d", received, limit).
		With("context", map[string]any{"received_bytes": received, "limit_bytes": limit})
	if c.Command.Stdin == nil {
		return f.FixBy("give the values as arguments", "")
	}
	return f.FixBy("write it to a file and give --input-file", "").Hint("--input-file FILE takes any size")
}

// fromStdin replaces a parameter given as "-" by the words of standard input, one value a word.
func (c *Call) fromStdin(ctx context.Context, signals <-chan os.Signal) *fault.Fault {
	for _, p := range c.Command.Params {
		if values := c.values[p.Name]; !p.Stdin || len(values) != 1 || values[0] != "-" {
			continue
		}
		attended, stop := c.interruptible(ctx, signals)
		text, err := c.readStdin(attended)
		if f := stop(); f != nil {
			return f
		}
		if err != nil {
			return fault.Of(err)
		}
		values := strings.Fields(text)
		if len(values) == 0 {
			return c.invalid(Wrong(p.Name, fault.StdinEmpty, "-", "%s - reads standard input, and it is empty",
				p.shown()))
		}
		c.values[p.Name] = values
	}
	return nil
}

// Secret returns the value of a secret parameter, from the variable or the file that the caller named.
func (c *Call) Secret(name string) (string, error) {
	if variable := c.String(name + "-from-env"); variable != "" {
		if v, ok := c.Host.Lookup(variable); ok && v != "" {
			return v, nil
		}
		return "", c.invalid(Wrong(name+"-from-env", fault.ArgError, variable, "the variable %s is not set",
			variable))
	}
	if path := c.Path(name + "-from-file"); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", c.invalid(Wrong(name+"-from-file", fault.FileMissing, path, "the file %s cannot be read",
				path))
		}
		// editors end a file with a line break
		return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
	}
	return "", nil
}

// Ask asks the person at the terminal for a secret, which is not shown while it is typed. It returns false if nobody
// can be asked.
func (c *Call) Ask(ctx context.Context, question string) (answer string, asked bool, err error) {
	if !c.Command.Interactive {
		return "", false, c.undeclared("a question")
	}
	in, ok := c.Host.Stdin.(*os.File)
	if !ok || c.Host.unattended() || c.Bool("non-interactive") || c.Bool("headless") {
		return "", false, nil
	}
	fd := int(in.Fd())
	state, err := term.MakeRaw(fd) // before the question is there, so that nothing typed is ever shown
	if err != nil {
		return "", false, nil
	}
	restore := func() { _ = term.Restore(fd, state) }
	stop := context.AfterFunc(ctx, restore) // the read does not end with ctx
	defer stop()
	defer restore()
	typed, err := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, c.Host.Stderr}, "").ReadPassword(question)
	if err != nil { // Ctrl-C or Ctrl-D
		_, _ = io.WriteString(c.Host.Stderr, "\r\n") // ends the line of the question; nothing depends on it
		f := fault.New(fault.Interrupted, "nothing was typed").With("signal", "SIGINT")
		f.Phase = fault.Validation
		return "", true, f.Hint("Nothing was stored or changed.")
	}
	return typed, true, nil
}
