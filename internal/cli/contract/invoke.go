package contract

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/redact"
)

// Run carries out one call and returns its exit status. signals are those that end it; it may be nil.
func (p *Program) Run(ctx context.Context, h Host, signals <-chan os.Signal) int {
	words, rest := p.split(h.Args)
	call := &Call{
		mu: &sync.Mutex{}, kept: &sync.Map{}, Program: p, Host: h, words: h.Args, id: ident.Ordered(),
		started: time.Now(), dir: h.Dir,
		values: map[string][]string{}, Config: emptyConfig(),
	}
	call.out, call.Host.Stderr = &out{w: h.Stdout}, &stderrWriter{w: h.Stderr}
	command, known := p.Find(strings.Join(words, " "))
	if !known || strings.HasPrefix(h.Args[0], "-") { // a call that begins with an option names no command
		return p.root(call, words, rest)
	}
	call.Command = command
	if err := p.checkCommand(command); err != nil {
		return call.finish(answer{fault: fault.New(fault.Internal, "%v", err), pure: true}, signals)
	}
	if command.Serve != nil {
		return p.serve(ctx, call, rest, signals)
	}
	return call.finish(p.invoke(ctx, call, rest, signals), signals)
}

// invoke carries out the lifecycle up to the answer. Before the step "run" nothing is changed; only the lock of an
// idempotency key may be created.
func (p *Program) invoke(ctx context.Context, call *Call, rest []string, signals <-chan os.Signal) (a answer) {
	defer func() { // a Validate may panic as well as a Run
		if r := recover(); r != nil {
			a = answer{fault: call.panicked(r, debug.Stack())}
		}
	}()
	if f := p.parse(call, rest); f != nil {
		return answer{fault: f}
	}
	if call.Bool("help") {
		return call.help()
	}
	if described, ok := call.describe(); ok {
		return described
	}
	call.Debug("arguments %s", appendJSON(nil, names(call.masked())))
	if f := call.prepare(); f != nil {
		return answer{fault: f}
	}
	call.Debug("configuration %s", appendJSON(nil, (&walker{}).tree(call.ShowConfig())))
	if f := call.conditions(); f != nil {
		return answer{fault: f}
	}
	if f := call.fromStdin(ctx, signals); f != nil {
		return answer{fault: f}
	}
	if f := call.validate(); f != nil {
		return answer{fault: f}
	}
	if call.Bool("validate-only") {
		return answer{meta: object{{"validation_only", true}}}
	}
	if !call.confirmed() {
		before := slices.Clip(call.warnings)
		refused, agreed := call.unconfirmed(ctx, signals)
		if !agreed {
			return refused
		}
		call.confirm, call.steps, call.warnings = true, stepLog{}, before // the run repeats those of the dry run
	}
	if call.Command.Instead != nil {
		status, done, err := call.Command.Instead(ctx, call, signals)
		if err != nil {
			return answer{fault: fault.Of(err)}
		}
		if done {
			return answer{answered: &status}
		}
	}
	return call.once(ctx, signals, func() answer { return call.supervise(ctx, signals) })
}

// prepare finds the directory, the configuration and the paths of the call.
func (c *Call) prepare() *fault.Fault {
	var problems []fault.Problem
	// --cwd, --config and the flags that override settings decide what is read next, so they are checked first.
	first := []string{"cwd", "config", "context", "instance-id"}
	for _, key := range c.Program.keys {
		first = append(first, strings.ReplaceAll(key.Name, "_", "-"))
	}
	for _, param := range c.params {
		if param.Global && slices.Contains(first, param.Name) {
			problems = append(problems, c.checkParam(param)...)
		}
	}
	c.instance = c.String("instance-id")
	if env := c.Host.env(prefix + "INSTANCE_ID"); c.instance == "" && env != "" {
		c.instance = env
		for _, problem := range c.params["instance-id"].check(env) {
			problem.Param = prefix + "INSTANCE_ID"
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		c.instance = ""
		return c.furtherInvalid(problems, true)
	}
	if c.Given("cwd") {
		dir := c.Path("cwd")
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return c.invalid(Wrong("cwd", fault.FileMissing, c.String("cwd"), "--cwd %s is not a directory", dir))
		}
		c.dir = dir
	}
	if c.Command.Here && !filepath.IsAbs(c.dir) { // a directory that was removed has no path
		return c.invalid(fault.Problem{Param: "cwd", Fault: CwdRemoved()})
	}
	c.Paths = c.Host.paths(c.Program.Name, c.instance)
	return c.configure()
}

// CwdRemoved returns the error for a current directory that was removed.
func CwdRemoved() *fault.Fault {
	return fault.New(fault.FileMissing, "the current directory was removed").
		Hint("cd to another directory, or name one by its whole path: --cwd DIR")
}

// ProjectAt returns where the project around a directory has its configuration.
func (c *Call) ProjectAt(dir string) config.Project {
	return config.Options{Dir: dir, Getenv: c.Host.Lookup, UserFile: c.Paths.UserConfig()}.Project()
}

// configure loads the configuration. A command that must work with an invalid one reads none of it (NoConfig), or the
// layers that can be read (LooseConfig).
func (c *Call) configure() *fault.Fault {
	options := config.Options{
		Keys: c.Program.keys, Getenv: c.Host.Lookup, Dir: c.dir, Context: c.String("context"),
		None: c.Bool("no-config") || c.Command.NoConfig, Unchecked: c.Command.NoConfig, Overrides: map[string]string{},
		UserFile: c.Paths.UserConfig(), TrustFile: c.TrustFile(),
	}
	if c.Given("config") {
		options.Explicit = c.Path("config")
	}
	for _, key := range c.Program.keys {
		if flag := strings.ReplaceAll(key.Name, "_", "-"); c.params[flag].Global && c.Given(flag) {
			options.Overrides[key.Name] = c.String(flag)
		}
	}
	set, err := config.Load(options)
	if set != nil {
		c.Config = set
	}
	for _, w := range c.Config.Warnings() {
		c.Warn(w.Code, "%s", w.Message)
	}
	if err == nil {
		return nil
	}
	if c.Command.LooseConfig {
		c.configErr = err
		c.Warn(string(fault.ConfigInvalid), "%s", err.Error())
		return nil
	}
	return fault.Of(err)
}

// Settings returns the configuration of a directory, for code outside of commands. The Set is usable even with an
// error.
func (p *Program) Settings(h Host, dir string) (*config.Set, Paths, error) {
	paths := h.paths(p.Name, h.env(prefix+"INSTANCE_ID"))
	set, err := config.Load(config.Options{
		Keys: p.keys, Getenv: h.Lookup, Dir: dir, UserFile: paths.UserConfig(), TrustFile: h.trustFile(p.Name),
	})
	return set, paths, err
}

// UserState returns the directory of a program's state that belongs to the user and not to an instance, or "" without a
// home directory.
func (h Host) UserState(name string) string { return h.paths(name, "").State }

func (h Host) trustFile(name string) string { return inDir(h.UserState(name), "trust.json") }

// Trusted returns the record of contents that a person trusts.
func (p *Program) Trusted(h Host) *config.Trust { return config.OpenTrust(h.trustFile(p.Name)) }

// TrustFile returns the file that records trust in repositories, or "" without a home directory. It belongs to the
// user, not to an instance.
func (c *Call) TrustFile() string { return c.Host.trustFile(c.Program.Name) }

// LockDir returns the directory of locks on other files, or "" without a home directory: then the locks are beside
// those files.
func (c *Call) LockDir() string { return inDir(c.Host.UserState(c.Program.Name), "locks") }

func emptyConfig() *config.Set {
	set, _ := config.Load(config.Options{
		Keys: Keys(), Getenv: func(string) (string, bool) { return "", false }, None: true,
	})
	return set
}

// limit returns the call's time limit, or 0 for none. A Clock of the command counts first, then the flag, the
// configuration and Command.Timeout, whose default is 30 s. A batch has a limit only if one was set.
func (c *Call) limit() time.Duration {
	switch {
	case c.Command.Clock != nil:
		return c.Command.Clock(c)
	case c.Given("timeout"):
		return c.Duration("timeout")
	case c.Config.String("timeout") != "":
		return c.Config.Duration("timeout")
	case c.Command.Dispatches:
		return 0
	}
	return cmp.Or(c.Command.Timeout, defaultTimeout)
}

// confirms reports whether a call needs the caller's agreement. A batch does not: each of its lines does.
func (c *Command) confirms() bool { return c.Danger == Destructive && !c.Dispatches }

// confirmed reports whether the call may go on: a destructive one needs the caller's agreement, unless it is a dry run.
func (c *Call) confirmed() bool {
	c.confirm = c.Bool("confirm-destructive") || c.Bool("live") && c.Command.SafeDefault
	return !c.Command.confirms() || c.confirm || c.DryRun()
}

// masked returns the words of the call without secrets: those that look like one, and those that stand where somebody
// would type the value of a secret parameter.
func (c *Call) masked() []string {
	words := redact.Args(c.words)
	if c.Command == nil {
		return words
	}
	for i, w := range c.words {
		name, _, joined := strings.Cut(strings.TrimPrefix(w, "--"), "=")
		switch {
		case slices.Contains(c.surplus, w):
			words[i] = c.surplusValue(w)
		case !strings.HasPrefix(w, "--") || !c.Command.hasSecret(name):
		case joined:
			words[i] = "--" + name + "=" + redact.Mask
		case i+1 < len(words):
			words[i+1] = redact.Mask
		}
	}
	return words
}

// hasSecret reports whether the command has a secret parameter of that name, which no flag takes.
func (c *Command) hasSecret(name string) bool {
	return slices.ContainsFunc(c.Params, func(p Param) bool { return p.Secret && p.Name == name })
}

// surplusValue returns an argument for which there is no place, as messages show it. If the command takes a secret, the
// argument is masked, because people type the secret there.
func (c *Call) surplusValue(word string) string {
	if slices.ContainsFunc(c.Command.Params, func(p Param) bool { return p.Secret }) {
		return redact.Mask
	}
	return redact.String(word)
}

// line returns the call as typed, with more arguments: the command to run next.
func (c *Call) line(more ...string) string {
	words := c.masked()
	end := slices.Index(words, "--") // everything after it is an argument
	if end < 0 {
		end = len(words)
	}
	return text.Shell(slices.Concat([]string{c.Program.Name}, words[:end], more, words[end:])...)
}
