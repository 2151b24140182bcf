package contract

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/redact"
	"omniagent/internal/sys/workspace"
)

// Call is one invocation: its arguments, its directory, and access to what its command declared (the doors).
type Call struct {
	Program *Program
	Command *Command
	Host    Host
	Paths   Paths
	Config  *config.Set // never nil

	params          map[string]Param
	values          map[string][]string // by parameter, as typed or from the payload
	kept            *sync.Map           // values set by Keep, as lists of strings; nil in a call that runs no command
	payloadProblems []fault.Problem     // problems of --raw-payload as a whole
	surplus         []string            // arguments for which there was no place
	words           []string            // the command line as typed, for hints and the record
	id              string
	started         time.Time
	dir             string
	instance        string
	confirm         bool
	keyed           *keyed // nil without an idempotency key, or if an earlier call had the same one
	earlier         string // the job that an earlier call with the same idempotency key began
	preview         bool   // this run only finds out what the call would do

	out    *out
	typing chan typed // delivers the line that a person is typing; nil: no line is read

	mu        *sync.Mutex // an abandoned handler may still be writing
	warnings  []warning
	warned    int // how many warnings there were
	steps     stepLog
	configErr error // the error of the configuration, if the command can run without it
	cleanups  []func()
	temp      string
	children  bool
	recorded  *process.Register
	over      bool // no more resources may be acquired
}

type warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Detail  any    `json:"detail,omitempty"`
}

// Given reports whether the caller gave the parameter, or an earlier call did: see Keep.
func (c *Call) Given(name string) bool { return len(c.given(name)) > 0 }

func (c *Call) given(name string) []string {
	if v := c.values[name]; len(v) > 0 || c.kept == nil {
		return v
	}
	v, _ := c.kept.Load(name)
	list, _ := v.([]string)
	return list
}

// Keep sets a parameter to the value that it had in an earlier call, unless this call gives it.
func (c *Call) Keep(name, value string) {
	if value != "" && !c.Given(name) {
		c.kept.Store(name, []string{value})
	}
}

// String returns the value of a parameter, or its default.
func (c *Call) String(name string) string {
	if v := c.given(name); len(v) > 0 {
		return v[len(v)-1]
	}
	// The lifecycle asks for shared flags that the command may not have. For those this is the zero Param.
	return c.params[name].Default
}

// Strings returns all values of a parameter that may be repeated.
func (c *Call) Strings(name string) []string {
	list := []string{}
	for _, v := range c.given(name) {
		if c.params[name].Kind == Names {
			for item := range strings.SplitSeq(v, ",") {
				if item = strings.TrimSpace(item); item != "" {
					list = append(list, item)
				}
			}
			continue
		}
		list = append(list, v)
	}
	return list
}

// Bool returns the value of a switch.
func (c *Call) Bool(name string) bool { v, _ := strconv.ParseBool(c.String(name)); return v }

// Int returns the value of a number, which was validated.
func (c *Call) Int(name string) int { v, _ := strconv.Atoi(c.String(name)); return v }

// Duration returns the value of a duration, which was validated.
func (c *Call) Duration(name string) time.Duration {
	v, _ := text.Duration(c.String(name))
	return v
}

// Path returns the value of a path, absolute from the directory of the call.
func (c *Call) Path(name string) string {
	v := c.String(name)
	if v == "" {
		return ""
	}
	return c.Abs(v)
}

// Abs makes a path absolute from the directory of the call; the process never changes its own directory.
func (c *Call) Abs(path string) string {
	return filepath.Clean(pathname.From(c.dir, path))
}

// Dir returns the directory of the call.
func (c *Call) Dir() string { return c.dir }

// name returns the name of the call in answers and records.
func (c *Call) name() string {
	if c.Command.Path == "" {
		return c.Program.Name
	}
	return c.Command.Key()
}

// title returns what a person would call the command.
func (c *Call) title() string {
	if c.Command.Path == "" {
		return c.Program.Name
	}
	return c.Command.Path
}

// Instance returns the instance id, which keeps the state of this call apart, or "".
func (c *Call) Instance() string { return c.instance }

// DryRun reports that nothing may be changed.
func (c *Call) DryRun() bool {
	return c.preview || c.Bool("dry-run") || c.Command.SafeDefault && !c.Bool("live")
}

// LockWait returns how long to wait for a lock that another process holds.
func (c *Call) LockWait() time.Duration { return c.Config.Duration("lock_timeout") }

// Warn adds a warning to the answer.
func (c *Call) Warn(code, format string, args ...any) {
	c.warn(warning{Code: code, Message: fmt.Sprintf(format, args...)})
}

func (c *Call) warn(w warning) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.Detail == nil && slices.ContainsFunc(c.warnings, func(known warning) bool {
		return known.Code == w.Code && known.Message == w.Message
	}) {
		return // a handler that repeats its work repeats its warnings
	}
	switch c.warned++; {
	case c.warned < mostWarnings:
		c.warnings = append(c.warnings, w)
	case c.warned == mostWarnings:
		c.warnings = append(c.warnings, warning{Code: "WARNINGS_OMITTED", Message: "there were more warnings"})
	}
}

// mostWarnings bounds the answer of a handler that warns in a loop.
const mostWarnings = 100

// ClearWarnings removes the warnings with a code, because the command has solved their problem.
func (c *Call) ClearWarnings(code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warnings = slices.DeleteFunc(c.warnings, func(w warning) bool { return w.Code == code })
}

// OnCleanup registers f to run when the call ends, however it ends, in reverse order. If it has ended already, f runs
// at once.
func (c *Call) OnCleanup(f func()) {
	c.mu.Lock()
	over := c.over
	if !over {
		c.cleanups = append(c.cleanups, f)
	}
	c.mu.Unlock()
	if over {
		f()
	}
}

// cleanup runs the hooks once. It abandons a hook that hangs: the process is about to end.
func (c *Call) cleanup() {
	c.mu.Lock()
	hooks := c.cleanups
	c.cleanups, c.over = nil, true
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := len(hooks) - 1; i >= 0; i-- {
			c.runHook(hooks[i])
		}
	}()
	select {
	case <-done:
	case <-time.After(cleanupLimit):
		c.Log("a cleanup did not end in time")
	}
}

// snapshot returns a copy of the call for making the answer. An abandoned handler keeps the original, and its changes
// have no effect any more.
func (c *Call) snapshot() *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := *c
	left.mu, left.warnings, left.warned = &sync.Mutex{}, slices.Clone(c.warnings), 0
	return &left
}

// runHook runs one hook. A panic does not affect the other hooks or the answer.
func (c *Call) runHook(hook func()) {
	defer func() {
		if r := recover(); r != nil {
			c.Warn("CLEANUP_FAILED", "a cleanup of %s failed: %v", c.title(), r)
		}
	}()
	hook()
}

const cleanupLimit = time.Second

// Log writes a line to standard error while a call runs, unless --quiet is given.
func (c *Call) Log(format string, args ...any) {
	if !c.Bool("quiet") {
		c.say(fmt.Sprintf(format, args...))
	}
}

// Progress reports progress to a person, with --verbose.
func (c *Call) Progress(format string, args ...any) {
	if c.Bool("verbose") || c.Bool("debug") {
		c.Log(format, args...)
	}
}

// Debug writes a line of the trace, with --debug.
func (c *Call) Debug(format string, args ...any) {
	if c.Bool("debug") {
		c.Log(format, args...)
	}
}

// say writes lines to standard error in one write: cleaned, without secrets, wrapped, each with the trace id. On a
// terminal it does not wrap a line that has a command, so that the command can be copied.
func (c *Call) say(lines string) {
	clean, _ := text.Clean(lines)
	lines = redact.String(clean)
	width := c.Int("width")
	if !c.Given("width") && c.Host.StderrTerminal && !c.Host.ci() &&
		!hasCommand(c.Program.Name, lines) && !strings.HasPrefix(lines, " ") {
		width, _ = c.Host.size()
	}
	lines = wrap(lines, width)
	if trace := c.trace(); trace != "" {
		mark := "[TRACE " + trace + "] "
		lines = mark + strings.ReplaceAll(lines, "\n", "\n"+mark)
	}
	_, _ = io.WriteString(c.Host.Stderr, lines+"\n")
}

func (c *Call) trace() string {
	for _, name := range []string{prefix + "TRACE_ID", "TOOL_TRACE_ID"} {
		if v := c.Host.env(name); v != "" && len(v) <= 128 {
			return redact.String(text.Flat(v))
		}
	}
	return ""
}

// Temp returns a directory of this call, which is removed when the call ends.
func (c *Call) Temp() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.temp != "" {
		return c.temp, nil
	}
	if c.over {
		return "", c.ended()
	}
	name := c.id
	if session := c.values["session-id"]; len(session) > 0 {
		name = session[0] + "-" + c.id
	}
	dir := filepath.Join(c.Paths.Temp, c.Program.Name+"-"+name)
	if err := makeTemp(dir, c.id); err != nil {
		return "", err
	}
	c.temp = dir
	c.cleanups = append(c.cleanups, func() { _ = os.RemoveAll(dir) })
	return dir, nil
}

// ShortTemp returns another directory of this call with a short path, for programs that create sockets in it.
func (c *Call) ShortTemp() (string, error) {
	id := ident.Hex(4)
	dir := filepath.Join(c.Paths.Temp, c.Program.Name+"-"+id)
	err := makeTemp(dir, id)
	if err == nil {
		c.OnCleanup(func() { _ = os.RemoveAll(dir) })
	}
	return dir, err
}

// makeTemp makes a directory with the mark by which OwnsTemp recognises it.
func makeTemp(dir, id string) error {
	if err := workspace.MakeTemp(dir, id); err != nil {
		return fault.New(fault.PermissionDenied, "the temporary directory %s cannot be made", dir).Because(err).
			Hint("set TMPDIR to a directory that can be written")
	}
	return nil
}

// OwnsTemp reports whether a directory is a temporary one of this program: it has the name and the mark, and is not a
// link.
func (p *Program) OwnsTemp(path string) bool {
	name, ours := strings.CutPrefix(filepath.Base(path), p.Name+"-")
	info, err := os.Lstat(path)
	if !ours || err != nil || !info.IsDir() {
		return false
	}
	mark, err := os.ReadFile(filepath.Join(path, workspace.TempMark))
	return err == nil && len(mark) > 0 && strings.HasSuffix(name, string(mark))
}

// ended returns the error for a handler that goes on after its call has ended.
func (c *Call) ended() *fault.Fault {
	return fault.New(fault.Interrupted, "the call of %s is over", c.title())
}

// ConfigError returns the error of the configuration, for commands that can run without it.
func (c *Call) ConfigError() error { return c.configErr }

func (c *Call) undeclared(what string) *fault.Fault {
	return fault.New(fault.UndeclaredCapability, "the command %s uses %s without having declared it", c.Command.Path,
		what)
}
