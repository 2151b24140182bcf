package shim

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/claim"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/touch"
	"omniagent/internal/walls/policy"
)

// strictEnough returns an error if the approval is stricter than prompt and this agent does not enforce it. A warning
// would not be enough.
func (c *shimCall) strictEnough(launch agent.Launch) error {
	wanted := c.shared.Approval.Value
	if !wanted.Stricter() {
		return nil
	}
	note := ""
	for _, p := range launch.Policies {
		if p.Feature == agent.Approval {
			if p.Enforced == agent.Full {
				return nil
			}
			note = p.Note
		}
	}
	var can []string
	matrix := c.driver.Matrix(c.install.Version)
	for _, v := range setting.Approvals() {
		if matrix.Cell(agent.Approval, string(v), c.mode).Level != agent.None {
			can = append(can, string(v))
		}
	}
	f := fault.New(fault.ArgError, "%s cannot hold --approval %s", c.driver.Name(), wanted)
	if note != "" {
		f = f.Because(errors.New(note))
	}
	if len(can) == 0 {
		return f.Hint("omniagent agents list shows the agents that can")
	}
	return f.Hint("%s can: --approval %s", c.driver.Name(), strings.Join(can, ", --approval "))
}

// start translates the call and runs the agent. An error means that the agent was not started.
func (c *shimCall) start() (code int, err error) {
	if err := c.mayWork(); err != nil {
		return 0, err
	}
	spec, err := c.rehearsed()
	if err != nil {
		return 0, err
	}
	c.driverSpec = spec
	launch, warnings, err := c.driver.Command(spec)
	if err == nil {
		err = c.strictEnough(launch)
	}
	if err != nil {
		return 0, err
	}
	err = c.tell(warnings)
	if c.args.Trace != "" {
		c.trace(launch, warnings)
	}
	if err != nil || c.args.Trace == "only" {
		return Success, err
	}
	if err = c.admit(launch); err == nil {
		err = c.temp.write(launch.Files)
	}
	if err != nil {
		return 0, err
	}
	c.touched = touch.New()
	if c.args.Walls && !c.driver.Describe().BuiltIn { // the native agent has its own
		if c.walls, err = c.settings.OpenWalls(c.driver, spec, c.touched); err != nil {
			return 0, err
		}
		defer c.walls.Close()
	} else {
		c.touched.Unseen(touch.ReasonUnwatched)
	}
	c.snapshotBefore()
	defer c.snapshotAfter("")
	if c.schema != nil {
		return c.runSchema(launch, warnings), nil
	}
	return c.conclude(launch, warnings, c.runOnce(launch, c.host.Stdout)), nil
}

// mayWork returns an error for a workspace that the walls would refuse, before a home for a rehearsal is made.
func (c *shimCall) mayWork() error {
	walled := c.args.Walls
	if c.driver.Describe().BuiltIn {
		walled = c.args.Rehearse != nil && c.shared.Sandbox.Value != setting.Off
	}
	if !walled || c.args.Trace == "only" {
		return nil
	}
	home, _ := c.host.lookup("HOME")
	return policy.CheckWorkspace(home, c.dir, nil)
}

// tell prints warnings about flags that the agent does not honour. With --strict it returns an error.
func (c *shimCall) tell(warnings []agent.Warning) error {
	for _, w := range warnings {
		c.warn("%s: %s", c.driver.Name(), w.Message)
	}
	ofFlags := slices.ContainsFunc(warnings, func(w agent.Warning) bool { return strings.HasPrefix(w.Flag, "--") })
	if *c.args.Strict && ofFlags {
		return fault.New(fault.ArgError, "--strict: %s does not do all that was asked for", c.driver.Name()).
			Hint("omniagent agents show %s lists what it does", c.driver.Name())
	}
	return nil
}

// spec returns the spec for the driver.
func (c *shimCall) spec() agent.Spec {
	env := c.host.Env
	switch {
	case !c.driver.Describe().BuiltIn:
	case !c.snapshotsItself():
		env = append(slices.Clip(env), "OMNIAGENT_UNDO_SNAPSHOTS=off")
	case c.args.Undo != "":
		env = append(slices.Clip(env), "OMNIAGENT_UNDO_SNAPSHOTS="+c.args.Undo)
	}
	s := agent.Spec{
		Install: c.install, Mode: c.mode, Shared: c.shared, Passthrough: c.args.Passthrough, Dir: c.dir, Env: env,
		Machine: c.machine(), Fresh: ident.UUID(), Temp: c.temp.path(c.settings.Temp),
		Resume: c.args.Resume, Newest: c.args.Continue, Provider: c.args.Provider, Base: c.args.Base,
		Walled: c.args.Walls,
	}
	if c.schema != nil {
		s.Schema, s.Retries = c.schema.compact, c.retries()
		s.Shared.Output = setting.Chosen[setting.Output]{Value: cli.Readable(c.driver), Origin: setting.Derived}
	}
	return s
}

// rehearsed returns the spec with the model of a rehearsal, if there is one.
func (c *shimCall) rehearsed() (agent.Spec, error) {
	s := c.spec()
	if c.args.Rehearse == nil {
		return s, nil
	}
	home, err := c.temp.home(c.settings.State)
	if err != nil {
		return s, err
	}
	state := filepath.Join(home, ".local", "state", filepath.Base(c.settings.State))
	if err := c.settings.Trust.CopyInto(state); err != nil {
		return s, notMade(state, "XDG_STATE_HOME", err)
	}
	rehearsal, stop, err := c.shim.Rehearse(*c.args.Rehearse, home)
	if err != nil {
		return s, err
	}
	c.temp.later(stop)
	s.Rehearsal = &rehearsal
	return s, nil
}

// outcome is the outcome of a run.
type outcome struct {
	began    time.Time
	took     time.Duration
	exit     agent.Exit
	evidence agent.Evidence
	fault    *fault.Fault // nil: success
}

// runOnce starts the agent, waits for its end and determines the outcome. The agent's stdout goes to out.
func (c *shimCall) runOnce(launch agent.Launch, out io.Writer) outcome {
	observer := c.driver.Observe(launch)
	o := outcome{began: time.Now()}
	tail := &process.Tail{}
	plan := process.Plan{
		Path: launch.Path, Argv: append([]string{c.driver.Describe().Binary}, launch.Args...), Dir: launch.Dir,
		Env: launch.Env,
		// a configured 0 means no grace, not the default
		Stdout: out, Stderr: c.host.Stderr, Grace: max(1, c.settings.Set.Duration("grace")), Standby: c.standby,
		RemoveIfEmpty: agent.Absent(c.driver.Describe(), launch),
	}
	err := c.streams(&plan, launch, tail)
	for anew := true; anew && err == nil; {
		var child *process.Child
		if child, err = c.startAround(plan); err == nil {
			o.exit = c.wait(child)
			anew = c.mode == setting.Interactive && launch.RestartCode != 0 && o.exit.Code == launch.RestartCode &&
				o.exit.EndedBy == ""
		}
	}
	if err != nil {
		o.exit, o.fault = agent.Exit{Failed: err}, fault.Of(err)
		return o
	}
	o.took = time.Since(o.began)
	o.exit.Stderr = tail.Bytes()
	evidence := observer.After(o.exit)
	for _, done := range evidence.Calls {
		for _, one := range claim.Claims(done, c.dir) {
			c.touched.Claim(one)
		}
	}
	if c.mode == setting.OneShot {
		o.evidence = evidence
	}
	o.fault = cli.ProcessFault(o.exit, o.evidence, launch.UsageCodes...)
	if f := o.fault; f != nil && c.mode == setting.OneShot && process.IsReaderGone(out) {
		switch f.Code {
		case fault.NoAnswer: // it could not write its answer
			f.Message = "the agent ended"
			fallthrough
		case fault.AgentFailed:
			o.fault = &fault.Fault{
				Code: fault.OutputFailed, Message: f.Message + ", and nobody reads standard output any more",
				Suggestion: "read standard output to its end, or send it to a file: > FILE", Detail: f.Detail,
			}
		}
	}
	if o.fault != nil && o.fault.Code == fault.Blocked {
		c.allowMore(o.fault, o.evidence.Denials)
	}
	return o
}

// startAround starts the agent, behind our walls if there are any.
func (c *shimCall) startAround(p process.Plan) (*process.Child, error) {
	if c.walls != nil {
		var err error
		if p, err = c.walls.Plan(p); err != nil {
			return nil, err
		}
	}
	return process.Start(p)
}

// allowMore adds a hint with the next freer setting, or else with the reason of the denial, if there is one.
func (c *shimCall) allowMore(f *fault.Fault, denials []event.Denial) {
	switch {
	case c.driver.Describe().BuiltIn && c.shared.Approval.Value == setting.Prompt:
		f.Hint("--approval default runs what can be contained and taken back, as chat, start and run do; " +
			"--auto-edit and --yolo allow more")
	case c.shared.Approval.Value == setting.AutoEdit:
		f.Hint("--approval yolo allows more")
	case c.shared.Approval.Value != setting.Yolo:
		f.Hint("--approval auto-edit or --approval yolo may allow more")
	case c.shared.Sandbox.Value != setting.Off:
		f.Hint("--sandbox off allows more")
	case len(denials) > 0 && denials[0].Reason != "":
		f.Hint("the reason: %s", text.OneLine(denials[0].Reason, longestReason))
	}
}

const longestReason = 500 // bytes

// streams connects the agent's streams with ours. It keeps a copy of stderr unless a person sees it directly.
func (c *shimCall) streams(plan *process.Plan, launch agent.Launch, tail *process.Tail) error {
	if c.mode == setting.Interactive {
		plan.Stdin, plan.Terminal, plan.Detach = c.host.Stdin, c.host.Stdin, true
		return nil
	}
	input, err := c.prompt.again()
	if err != nil {
		return unreadable(err)
	}
	plan.Stdin = input
	if launch.Prompt == agent.ByArgument {
		if err := c.promptArgument(plan, launch, input); err != nil {
			return err
		}
	}
	// If stdout and stderr go to the same place, their order matters more than a copy.
	if !term.IsTerminal(int(c.host.Stderr.Fd())) && !sameFile(c.host.Stdout, c.host.Stderr) {
		c.relay = &tee{tail: tail, to: c.host.Stderr}
		plan.Stderr = c.relay
	}
	return nil
}

const longestArgument = 128<<10 - 1 // Linux's limit for one argument

// promptArgument passes the prompt as an argument.
func (c *shimCall) promptArgument(plan *process.Plan, launch agent.Launch, input io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(interruptible{input, c}, longestArgument+1))
	if err != nil {
		return unreadable(err)
	}
	if len(text) > longestArgument {
		return fault.New(fault.PromptTooLong, "the prompt is too long for an argument, which is how %s takes it",
			c.driver.Name()).
			Hint(`define the agent with prompt = "stdin"`)
	}
	args, err := cli.WithPrompt(launch, c.driver.Name(), string(text))
	if err != nil {
		return err
	}
	plan.Argv = append(plan.Argv[:1:1], args...)
	plan.Stdin = nil
	return nil
}

func sameFile(a, b *os.File) bool {
	x, err1 := a.Stat()
	y, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// wait waits for the end, a signal or the time limit.
//
//	running ─┬─ the agent ends ─────────────────────────────▶ Exit
//	         ├─ SIGINT, in a session ─▶ forwarded; running
//	         ├─ another signal ───────▶ ending ─┬─ the agent ends ────────────▶ Exit, by us
//	         │                                  └─ a second one, 500 ms later ─▶ killed ─▶ Exit, by us
//	         └─ time limit ───────────▶ ending
func (c *shimCall) wait(child *process.Child) agent.Exit {
	ended := make(chan process.Ending, 1)
	go func() { ended <- child.Wait() }()
	var over <-chan time.Time
	if *c.args.Timeout > 0 {
		over = time.After(*c.args.Timeout)
	}
	byUs, since := "", time.Time{}
	for {
		select {
		case e := <-ended:
			x := agent.Exit{Code: e.ExitCode, Signal: e.Signal}
			if e.Ended || byUs == forwardedInterrupt && (x.Signal == "SIGINT" || x.Code == Interrupted) {
				x.EndedBy = byUs
			}
			return x
		case s := <-c.host.Signals:
			// At a terminal the agent decides what an interrupt means, so pass it on.
			if s == os.Interrupt && c.mode == setting.Interactive {
				child.Signal(s)
				byUs = cmp.Or(byUs, forwardedInterrupt)
				continue
			}
			switch {
			case byUs == "" || byUs == forwardedInterrupt && s != os.Interrupt:
				byUs, since = process.SignalName(s), time.Now()
			case time.Since(since) < repeatWindow:
				continue
			}
			child.End(s)
		case <-over:
			if byUs == "" || byUs == forwardedInterrupt {
				byUs = "timeout"
			}
			child.End(syscall.SIGTERM)
			over = nil
		}
	}
}

// repeatWindow is the time after which a second signal kills the agent. One key, or a closed window, often causes two
// signals: from the terminal, and from the shell or another parent.
const repeatWindow = 500 * time.Millisecond

// forwardedInterrupt is the Exit.EndedBy of an agent that died of an interrupt that we passed on.
const forwardedInterrupt = "SIGINT"

// conclude reports the outcome, writes the report and returns the exit code.
func (c *shimCall) conclude(launch agent.Launch, warnings []agent.Warning, o outcome) int {
	code := exitCode(o.fault)
	c.warnUnread() // the program before the pipe may have written only now
	c.snapshotAfter(cmp.Or(o.evidence.Session, launch.Session))
	c.explainOutcome(launch, o)
	if c.args.Report != "" {
		if err := c.report(launch, warnings, o, code); err != nil {
			c.note("the report cannot be written: %v", err)
			if code == Success {
				code = Failed
			}
		}
	}
	return code
}

// explainOutcome prints what the agent itself may not have said.
func (c *shimCall) explainOutcome(launch agent.Launch, o outcome) {
	f := o.fault
	if f == nil {
		return
	}
	name := c.driver.Name()
	c.relay.endLine()
	switch f.Code {
	case fault.Interrupted:
		return
	case fault.TimedOut:
		c.note("%s did not end within %s", name, *c.args.Timeout)
	case fault.AgentFailed, fault.AgentUsage:
		// The agent has said why. At a terminal that is enough; elsewhere we name the program.
		if c.mode == setting.OneShot {
			c.note("%s: %s", name, strings.TrimPrefix(f.Message, "the agent "))
		}
	default:
		c.shim.explain(c.host, &fault.Fault{
			Code: f.Code, Message: name + ": " + strings.TrimPrefix(f.Message, "the agent "), Cause: f.Cause,
			Suggestion: f.Suggestion, FixCommand: f.FixCommand,
		})
	}
	switch f.Code {
	case fault.Blocked, fault.TimedOut, fault.SchemaUnmet, fault.OutputFailed:
		return // its settings did not prevent the run
	}
	for _, r := range launch.Refusals {
		if !r.Explains(o.exit) {
			continue
		}
		c.host.say("hint: " + text.Flat(joined(r.Reason, r.Fix, r.Command)))
	}
}

// tee passes the agent's stderr on and keeps its end. A write error does not end the agent.
type tee struct {
	tail   *process.Tail
	to     io.Writer
	broken bool
	inLine bool // the last line is incomplete
}

// endLine begins a new line for our own message.
func (t *tee) endLine() {
	if t != nil && t.inLine && !t.broken {
		_, _ = t.to.Write([]byte("\n"))
		t.inLine = false
	}
}

func (t *tee) Write(p []byte) (int, error) {
	n, _ := t.tail.Write(p)
	if !t.broken {
		_, err := t.to.Write(p)
		t.broken, t.inLine = err != nil, len(p) > 0 && p[len(p)-1] != '\n'
	}
	return n, nil
}
