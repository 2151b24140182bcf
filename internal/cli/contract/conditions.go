package contract

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/term/terminal"
)

// conditions checks what a command needs before it may run: the configured rights. What is merely odd becomes a
// warning.
func (c *Call) conditions() *fault.Fault {
	command := c.Command
	active := c.Config.List("scopes")
	// Without configured rights it is unknown which ones the credentials have.
	if missing := Missing(command.Scopes, active); len(active) > 0 && len(missing) > 0 {
		return fault.New(fault.MissingScopes, "%s needs rights that are not configured: %s", command.Path,
			strings.Join(missing, ", ")).
			FixBy("add missing_scopes to the configuration key scopes", "").With("missing_scopes", missing)
	}
	if len(command.Scopes) > 0 && len(Missing(active, command.Scopes)) > 0 {
		c.Warn("OVER_PRIVILEGED", "the configured rights (%s) go beyond what %s needs (%s)", strings.Join(active, ", "),
			command.Path, strings.Join(command.Scopes, ", "))
	}
	c.unknownFields(c.Strings("fields"))
	return nil
}

// Missing returns the rights of the first list that are not in the second.
func Missing(rights, among []string) []string {
	return slices.DeleteFunc(slices.Clone(rights), func(s string) bool { return slices.Contains(among, s) })
}

// unconfirmed answers a destructive call that was not confirmed. A dry run finds out what it would touch, and a person
// at a terminal is asked about that: agreed reports that they want it done.
func (c *Call) unconfirmed(ctx context.Context, signals <-chan os.Signal) (a answer, agreed bool) {
	c.preview = true
	tried := c.supervise(ctx, signals)
	c.preview = false
	if tried.fault != nil {
		return answer{fault: tried.fault}, false
	}
	if asked, yes, f := c.agree(ctx, signals, tried.target); f != nil || yes {
		return answer{fault: f}, yes
	} else if asked {
		return answer{fault: fault.New(fault.ConfirmationRequired, "nothing was done").
			Hint("%s does it without a question", c.line("--confirm-destructive"))}, false
	}
	command := c.line("--dry-run")
	f := fault.New(fault.ConfirmationRequired, "%s cannot be undone; confirm it with --confirm-destructive",
		c.Command.Path).
		FixBy("add --confirm-destructive", "").Hint("see what would be lost: %s", command)
	f.Ways = []string{"to do it: " + c.line("--confirm-destructive")}
	return answer{fault: f.With("requires", "--confirm-destructive").With("preview_command",
		command).With("would_affect", tried.target)}, false
}

// agree asks a person whether what a dry run found may be destroyed. --yes answers for them. asked is false if nobody
// can be asked.
func (c *Call) agree(ctx context.Context, signals <-chan os.Signal, target map[string]any) (asked, yes bool,
	f *fault.Fault,
) {
	if !c.Attended() {
		return false, false, nil
	}
	if c.Bool("yes") {
		return true, true, nil
	}
	var b strings.Builder
	o, _ := (&walker{}).tree(target).(object)
	writeObject(&b, o, "  ", c.screenOf())
	c.say(strings.TrimRight(c.screenOf().flowing(b.String()), "\n"))
	select {
	case yes := <-c.question(text.Sentence(c.Command.Summary)):
		return true, yes, nil
	case s := <-signals:
		_, _ = io.WriteString(c.Host.Stderr, "\n")
		return true, false, cancelled(c, s)
	case <-ctx.Done():
		return true, false, fault.Of(context.Cause(ctx))
	}
}

// Attended reports whether a person can be asked: on a terminal, in a call that is made for people.
func (c *Call) Attended() bool {
	return !c.Host.unattended() && !c.Host.machine() && c.Host.StderrTerminal && !c.Bool("non-interactive") &&
		!c.Bool("quiet") && c.format() == "plain" && c.Host.Stdin != nil
}

// Agree asks the person a yes-or-no question while the command runs. If the terminal ends, the answer is no. Attended
// reports whether there is a person.
func (c *Call) Agree(ctx context.Context, sentence string) (yes bool, err error) {
	line, err := c.Line(ctx, sentence+"? [y/N] ")
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return agreed(line), err
}

// Say prints lines for the person at the terminal while the command runs.
func (c *Call) Say(lines string) { c.say(lines) }

// Line asks the person for a line while the command runs. The error is io.EOF if the terminal ends instead.
func (c *Call) Line(ctx context.Context, sentence string) (string, error) {
	if c.typing != nil {
		select {
		case <-c.typing: // it was typed before this question was shown
			c.typing = nil
		default:
		}
	}
	out, held := c.Host.Stderr.(*stderrWriter)
	if held {
		out.ask(true)
		defer out.ask(false)
	}
	_, _ = io.WriteString(c.Host.Stderr, sentence)
	if held {
		out.prompted(true)
	}
	if c.typing == nil { // otherwise the reader of a question that was given up still waits
		c.typing = c.readLine()
	}
	select {
	case line := <-c.typing:
		if c.typing = nil; held {
			out.prompted(false)
		}
		return line.text, line.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// typed is a line that a person typed.
type typed struct {
	text string
	err  error
}

// readLine begins to read a line and returns the channel that delivers it.
func (c *Call) readLine() chan typed {
	to := make(chan typed, 1)
	go func() {
		line, err := terminal.ReadLine(c.Host.Stdin)
		if line != "" {
			err = nil
		}
		to <- typed{line, err}
	}()
	return to
}

// question asks a yes-or-no question and returns the channel that delivers whether the person agreed.
func (c *Call) question(sentence string) <-chan bool {
	terminal.Forget(c.Host.Stdin)
	_, _ = io.WriteString(c.Host.Stderr, sentence+"? [y/N] ")
	answer := make(chan bool, 1)
	go func() { answer <- agreed((<-c.readLine()).text) }()
	return answer
}

func agreed(line string) bool {
	word := strings.ToLower(strings.TrimSpace(line))
	return word == "y" || word == "yes"
}

// shellCharacters have a meaning to shells. Nothing here uses a shell, but a child may, and a name or a path does not
// need them.
const shellCharacters = ";|&$()<>`\n\r"

// forChild reports whether a parameter's value becomes an argument of a child.
func (c *Command) forChild(p Param) bool {
	return !p.free() &&
		slices.ContainsFunc(c.Children, func(s Subprocess) bool { return slices.Contains(s.CallerArgs, p.Name) })
}

// systemFault gives a failure because of a full disk its own code, so that callers can act on it.
func systemFault(f *fault.Fault) *fault.Fault {
	if f != nil && (f.Code == fault.Internal || f.Code == fault.PermissionDenied) && diskFull(f) {
		f.Code = fault.DiskFull
	}
	return f
}
