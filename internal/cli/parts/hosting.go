package parts

import (
	"context"
	"fmt"
	"os"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/redact"
	"omniagent/internal/walls/shell"
)

// UntilOpen runs do, which opens a conversation. An open conversation handles signals itself; until then a signal ends
// the call here. What cannot be interrupted, such as a read of standard input, ends with the process.
func UntilOpen[T any](ctx context.Context, signals <-chan os.Signal, do func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	life, cancel := context.WithCancel(ctx)
	context.AfterFunc(ctx, cancel)
	done := make(chan outcome, 1)
	go func() {
		value, err := do(life) // what it opens has the same lifetime
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case s := <-signals:
		cancel()
		name := process.SignalName(s)
		var none T
		return none, fault.New(fault.Interrupted, "ended by %s before there was a conversation", name).
			With("signal", name)
	}
}

// WorkspaceOf returns what separates the variables and programs of the workspace from those of the user.
func WorkspaceOf(c *contract.Call) shell.Inheritance {
	root, _ := config.ProjectRoot(c.Dir())
	return shell.Inheritance{Roots: []string{c.Dir(), root}}
}

// HookPrograms returns what starts the user's hooks and notifiers of runs.
func HookPrograms(c *contract.Call) process.Programs {
	return c.Programs(c.Config.List("run.hooks.env")...)
}

// OwnPrograms returns the lookup of variables for finding a program that provides a login: PATH is without the
// workspace's directories, so that the workspace cannot supply that program.
func OwnPrograms(c *contract.Call) func(string) (string, bool) {
	walls := WorkspaceOf(c)
	return func(name string) (string, bool) {
		value, ok := c.Host.Lookup(name)
		if name == "PATH" && ok {
			value = strings.TrimPrefix(walls.Of([]string{"PATH=" + value, "HOME=" + c.Host.Home()})[0], "PATH=")
		}
		return value, ok
	}
}

// Logger returns a function that writes lines for people to standard error, without the secrets of the environment.
func Logger(c *contract.Call) func(format string, args ...any) { return LineWriter(c, "omniagent: ") }

// DetailLog returns the log for people who want to know more: log with --verbose, NoLog without.
func DetailLog(c *contract.Call, log func(string, ...any)) func(string, ...any) {
	if c.Bool("verbose") {
		return log
	}
	return NoLog
}

// NoLog drops a line.
func NoLog(string, ...any) {}

// LineWriter does the same as Logger, with another beginning of each line.
func LineWriter(c *contract.Call, prefix string) func(format string, args ...any) {
	known := redact.Known(redact.Secrets(os.Environ())...)
	return func(format string, args ...any) { writeLine(c, prefix, known.String(fmt.Sprintf(format, args...))) }
}

// RedactErrors returns serve with the secrets of the environment removed from its error.
func RedactErrors(serve contract.Serve) contract.Serve {
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

// LogLine writes a line for people to standard error.
func LogLine(c *contract.Call, format string, args ...any) {
	writeLine(c, "omniagent: ", fmt.Sprintf(format, args...))
}

// writeLine writes words as one line to standard error. A terminal gets it wrapped between words.
func writeLine(c *contract.Call, prefix, words string) {
	c.Say(prefix + text.Flat(words))
}

// FromFlag returns a value of a flag as one that the user typed. For the zero value nothing was chosen.
func FromFlag[T comparable](v T) setting.Chosen[T] {
	var none T
	if v == none {
		return setting.Chosen[T]{}
	}
	return setting.AsTyped(v)
}

// FileExists reports whether something has that path.
func FileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// SandboxMeta returns the walls for the answer's meta, in the form that a stream, a session and a report of a run have
// too.
func SandboxMeta(walls *event.Walls) map[string]any {
	if walls == nil {
		return nil
	}
	return map[string]any{"sandbox": walls}
}
