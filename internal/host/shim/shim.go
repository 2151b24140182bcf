// Package shim implements one command line for every coding agent.
//
// It promises that flags mean the same for every agent, or that the user is told where they do not; that the agent's
// output is not changed, and a terminal remains one; that prompts are passed as an argument only to agents that are
// defined so; that nothing that a one-shot run started is alive when it returns; and that the exit code is accurate: 0
// it worked, 1 it failed, 2 it was called wrongly, 3 it was blocked by policy, 129, 130 and 143 a signal to us ended
// it. The evidence for that is read from the agent's own records, after the run.
//
// An unknown flag is an error and never passed on, and missing evidence means unknown. It starts no process except the
// agent and the guard that cleans up after it.
package shim

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/touch"
	"omniagent/internal/term/cells"
)

// Exit codes.
const (
	Success     = 0
	Failed      = 1
	Misused     = 2
	Blocked     = 3
	HungUp      = 129
	Interrupted = 130
	Quit        = 131
	Terminated  = 143
)

// Shim holds the dependencies of a call.
type Shim struct {
	Name    string // of the program
	Version string
	// Drivers are the built-in agents, by name.
	Drivers []agent.Driver
	// Settings returns the configuration for a directory.
	Settings func(dir string) Settings
	// Root answers --help, --version and an empty call.
	Root func(args []string) int
	// Events runs the command start with these flags, for --output events. Without a prompt among them it reads the
	// prompt from standard input.
	Events func(args []string, prompted bool, plain Plain, signals <-chan os.Signal) int
	// Remember makes an agent the default. It returns 0, or prints why it cannot.
	Remember func(name string) int
	// Rehearse starts the scripted model. The path may be empty.
	Rehearse func(script, home string) (agent.Rehearsal, func(), error)
}

// Settings is the configuration as the shim needs it.
type Settings struct {
	Set   *config.Set
	Err   error         // a fault with all errors in the configuration
	Trust *config.Trust // which contents of repositories are trusted
	State string        // the directory for our own files; empty: none
	// RecordedVersion returns the recorded version of a program; nil if none are kept.
	RecordedVersion func(program string) string
	Temp            string         // where temporary directories are made
	Custom          []agent.Driver // agents that the configuration defines
	Undo            *undo.Store    // of the snapshots around each run; nil: none are taken
	// OpenWalls builds walls around an agent. It fails if this machine has none.
	OpenWalls func(agent.Driver, agent.Spec, *touch.Log) (Walls, error)
	// Targets turns the targets of a trusted file of a repository into agents.
	Targets func(*agentsfile.File) ([]agent.Driver, error)
}

// Plain describes how a call without a command starts an installed agent.
type Plain struct {
	Shared setting.Shared
	Walls  bool // run it behind our walls
}

// Walls are the walls around the processes of an agent.
type Walls interface {
	Plan(process.Plan) (process.Plan, error)
	Enforced() *event.Walls
	Close()
}

// Host is the process that the call runs in.
type Host struct {
	Args    []string // without the program's name
	Env     []string
	Dir     string
	Stdin   *os.File
	Stdout  *os.File
	Stderr  *os.File
	Signals <-chan os.Signal // INT, TERM and HUP
}

func (h Host) lookup(name string) (string, bool) { return process.Value(h.Env, name) }

// Main runs one call and returns the exit code.
func (s *Shim) Main(h Host) int {
	a, err := Parse(h.Args)
	if err != nil {
		return s.fail(h, err)
	}
	switch {
	case a.Help:
		return s.Root([]string{"--help"})
	case a.Version && a.Shared.Output.Value == setting.JSON:
		return s.Root([]string{"--version", "--output", "json"})
	case a.Version:
		return s.Root([]string{"--version"})
	case len(h.Args) == 0 && hasNoInput(h.Stdin):
		return s.Root(nil)
	}
	c := &shimCall{shim: s, host: h, args: a}
	return c.run()
}

// hasNoInput reports whether standard input is closed or the null device.
func hasNoInput(stdin *os.File) bool {
	info, err := stdin.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

// shimCall is one call in progress.
type shimCall struct {
	touched    *touch.Log // what the agent writes
	shim       *Shim
	host       Host
	args       Arguments
	mode       setting.Mode
	dir        string
	began      time.Time
	settings   Settings
	driver     agent.Driver
	custom     []agent.Driver
	shared     setting.Shared
	install    agent.Install
	prompt     prompt
	unread     bool // the warning about unread input was printed
	schema     *schema
	temp       *temporary
	standby    *process.Standby // nil: nothing will be started
	relay      *tee             // nil: the agent's stderr is not copied
	attempts   int              // with --output-schema
	reportDir  *os.Root         // the directory of the report; nil: no report
	driverSpec agent.Spec       // the spec that the driver got
	snapshot   *snapshot        // nil: none is taken
	walls      Walls            // nil: there are none
}

func (c *shimCall) run() int {
	c.temp = &temporary{}
	defer c.temp.remove()
	// Turn a lost reader into a write error, so that we do not die before the cleanup.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if c.args.Trace != "only" {
		c.standby = process.Prepare(false)
		defer c.standby.Dismiss()
	}
	if err := c.resolve(); err != nil {
		return c.shim.fail(c.host, err)
	}
	if c.args.Events {
		return c.events()
	}
	code, err := c.start()
	if err != nil {
		return c.shim.fail(c.host, err)
	}
	return code
}

// resolve determines everything that can be known before the agent is started, the cheapest first.
func (c *shimCall) resolve() error {
	defer c.ineffective()
	c.mode = setting.Interactive
	if c.args.Prompt != nil || !term.IsTerminal(int(c.host.Stdin.Fd())) {
		c.mode = setting.OneShot
	}
	if err := c.args.compatible(c.mode); err != nil {
		return err
	}
	for _, step := range []func() error{
		c.directory, c.configure, c.chooseAgent, c.compileSchema, c.reportable,
		c.eventsAlone, c.locate, c.readPrompt,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *shimCall) directory() error {
	c.began = time.Now()
	if c.host.Dir == "" && !filepath.IsAbs(c.args.Dir) {
		return fault.New(fault.ArgError, "the working directory does not exist any more").Hint(
			"cd to another, or name one by its whole path: --cwd=DIR")
	}
	c.dir = c.host.Dir
	if c.args.Dir != "" {
		c.dir = filepath.Clean(pathname.From(c.host.Dir, c.args.Dir))
	}
	info, err := os.Stat(c.dir)
	switch {
	case err != nil && os.IsNotExist(err):
		return fault.New(fault.ArgError, "there is no directory %s", printable(c.dir)).
			Hint("make it first: mkdir -p %q", printable(c.dir))
	case err != nil:
		return fault.New(fault.ArgError, "%s cannot be used as a directory", printable(c.dir)).
			Because(fault.Bare(err)).Hint("--cwd DIR chooses another")
	case !info.IsDir():
		return fault.New(fault.ArgError, "%s is not a directory", printable(c.dir)).Hint("--cwd=%s",
			printable(filepath.Dir(c.dir)))
	}
	return nil
}

func (c *shimCall) configure() error {
	c.settings = c.shim.Settings(c.dir)
	// TMPDIR may be relative, and the agent works elsewhere
	c.settings.Temp = pathname.From(c.host.Dir, c.settings.Temp)
	if c.settings.Err != nil {
		return c.settings.Err
	}
	return c.defaults()
}

// ineffective warns about configuration that has no effect. The native agent is this program, and warns about untrusted
// configuration itself.
func (c *shimCall) ineffective() {
	if c.settings.Set == nil {
		return
	}
	itself := c.driver != nil && c.driver.Describe().BuiltIn && c.args.Trace != "only"
	for _, w := range c.settings.Set.Warnings() {
		if w.Code == config.UnknownConfigKey || w.Code == config.UntrustedConfig && !itself {
			c.warn("%s", w.Message)
		}
	}
}

// defaults applies the configuration to what the command line does not set.
func (c *shimCall) defaults() error {
	c.shared = c.args.Shared
	set := c.settings.Set
	configured(set, "shim.approval", &c.shared.Approval,
		func(v config.Value) setting.Approval { return setting.Approval(v.Text) })
	configured(set, "shim.sandbox", &c.shared.Sandbox,
		func(v config.Value) setting.Sandbox { return setting.Sandbox(v.Text) })
	configured(set, "shim.model", &c.shared.Model, func(v config.Value) string { return v.Text })
	configured(set, "shim.web", &c.shared.Web, func(v config.Value) bool { on, _ := v.Raw.(bool); return on })
	if slices.Contains(c.args.Declined, c.shared.Approval.Value) {
		c.shared.Approval = setting.AsTyped(setting.Prompt)
	}
	if c.args.Timeout == nil {
		c.args.Timeout = new(set.Limit("shim.timeout", "timeout"))
	}
	if c.args.Strict == nil {
		c.args.Strict = new(set.Bool("shim.strict"))
	}
	c.shared = c.shared.Derive()
	return nil
}

func configured[T any](set *config.Set, key string, to *setting.Chosen[T], read func(config.Value) T) {
	if v, ok := set.Lookup(key); ok && v.Source != "default" && v.Text != "" && !to.Typed() {
		*to = setting.Chosen[T]{Value: read(v), Origin: setting.Configured}
	}
}

// Keys returns the settings of the shim.
func Keys() []config.Key {
	return []config.Key{
		{Name: "agent", Type: config.String, Env: "OMNIAGENT_AGENT", Help: "agent that is used when none is named"},
		{
			Name: "shim.approval", Type: config.Enum, Enum: text.Words(setting.Approvals()), Flag: "approval",
			Also: setting.Elsewhere(),
			Help: "what an agent may do without asking",
		},
		{
			Name: "shim.sandbox", Type: config.Enum, Enum: text.Words(setting.Sandboxes()), Flag: "sandbox",
			Also: setting.SandboxElsewhere(),
			Help: "what an agent's commands can reach; yolo leaves it as it is",
		},
		{Name: "shim.model", Type: config.String, Flag: "model", Help: "model, in the agent's own words"},
		{Name: "shim.web", Type: config.Bool, Flag: "web", Help: "may an agent search the web"},
		{Name: "shim.timeout", Type: config.Duration, Flag: "timeout", Help: "time limit of an agent"},
		{Name: "shim.strict", Type: config.Bool, Flag: "strict", Help: "fail where a flag would be ignored"},
	}
}

func (c *shimCall) locate() error {
	install, err := c.driver.Locate(agent.Env{Lookup: c.host.lookup, Dir: c.dir, Printed: c.settings.RecordedVersion})
	if err != nil {
		return err
	}
	c.install = install
	return nil
}

func (c *shimCall) machine() agent.Machine {
	return agent.Machine{
		Root: os.Geteuid() == 0, OS: runtime.GOOS,
		Has: func(program string) bool { return process.Find(program, c.host.lookup) != "" },
	}
}

// fail prints the fault and returns its exit code.
func (s *Shim) fail(h Host, err error) int {
	f := fault.Of(err)
	s.explain(h, f)
	return exitCode(f)
}

// explain prints a fault as one line, then its hints.
func (s *Shim) explain(h Host, f *fault.Fault) {
	message := f.Message
	if f.Cause != nil {
		message = joined(message, f.Cause.Error())
	}
	if len(f.Problems) > 0 && f.Code == fault.ConfigInvalid {
		for _, p := range f.Problems {
			place := p.Param + ": "
			h.say(s.Name + ": " + strings.TrimSuffix(text.Flat(place+strings.TrimPrefix(p.Message, place)), "."))
		}
	} else {
		h.say(s.Name + ": " + strings.TrimSuffix(text.Flat(message), "."))
	}
	for _, hint := range f.Hints() {
		h.say("hint: " + text.Flat(hint))
	}
	for _, way := range f.Ways {
		fmt.Fprintf(h.Stderr, "  %s\n", way)
	}
}

// say prints a line, wrapped between words on a terminal.
func (h Host) say(line string) {
	if columns, _, err := term.GetSize(int(h.Stderr.Fd())); err == nil && columns > 0 {
		line = strings.Join(cells.Rows(line, columns), "\n")
	}
	fmt.Fprintln(h.Stderr, line)
}

// joined joins sentences to one line, with colons in place of the full stops between them.
func joined(parts ...string) string {
	line := ""
	for _, part := range parts {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if line != "" {
			line = strings.TrimRight(line, ".:") + ": "
		}
		line += part
	}
	return line
}

func (c *shimCall) warn(format string, args ...any) {
	c.note("warning: "+format, args...)
}

func (c *shimCall) note(format string, args ...any) {
	c.host.say(c.shim.Name + ": " + text.Flat(fmt.Sprintf(format, args...)))
}

// exitCode returns the shim's exit code for a fault; nil is success.
func exitCode(f *fault.Fault) int {
	if f == nil {
		return Success
	}
	switch f.Code {
	case fault.Blocked:
		return Blocked
	case fault.AgentUsage, fault.Unsafe:
		return Misused
	case fault.Interrupted:
		switch f.Detail["signal"] {
		case "SIGHUP":
			return HungUp
		case "SIGQUIT":
			return Quit
		case "SIGTERM":
			return Terminated
		}
		return Interrupted
	}
	if f.Kind() == fault.Input {
		return Misused
	}
	return Failed
}
