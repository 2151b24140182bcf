package tool

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/walls/shell"
)

// Shell runs commands. *shell.Shell is one.
type Shell interface {
	// Run runs a command to its end. A failed command is an outcome; an error means that the command was not started.
	Run(ctx context.Context, c shell.Command) (shell.Outcome, error)
	// Start starts a command in the background, so that it outlives the call.
	Start(ctx context.Context, c shell.Command) (shell.Job, error)
	// At returns the directory in which the next command starts, relative to the root.
	At() string
	// Output returns what a background command has printed since the last call.
	Output(id string, filter *regexp.Regexp) (shell.Job, error)
	// Jobs returns all background commands, the oldest first.
	Jobs() []shell.Job
	// Wait returns when a background command or ctx ends.
	Wait(ctx context.Context, id string)
	// Kill ends a background command.
	Kill(id string) (shell.Job, error)
}

// Bash returns a tool that runs a command.
func Bash(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "Bash", Kind: event.Shell, Rule: event.RuleCommand, Changes: true})
	return s.plan(func(in *input) (Action, error) {
		line, description := in.text("command", true), in.text("description", false)
		milliseconds, background := in.whole("timeout", 0, 0), in.flag("run_in_background")
		if in.raw("command") != nil && len(in.problems) == 0 && strings.TrimSpace(line) == "" {
			in.problem("%q is empty", "command")
		}
		for _, name := range []string{"cwd", "workdir", "working_directory", "directory"} {
			if dir := in.raw(name); dir != nil && string(dir) != `""` {
				in.problem("%q is not known here: begin the command with cd", name)
			}
		}
		c := shell.Command{Line: line, Timeout: time.Duration(milliseconds) * time.Millisecond}
		at := func() string {
			if env.Shell != nil {
				c.At = env.Shell.At()
			}
			return c.At
		}
		return Action{
			At: at, Opens: func() { c.Network = true }, Command: line,
			Title: commandTitle(line, description), Lasts: background,
			Run: func(ctx context.Context) Result {
				if background {
					return startInBackground(ctx, env, c)
				}
				return runCommand(ctx, env, c)
			},
		}, nil
	})
}

// commandTitle returns the description, or the first line of the command.
func commandTitle(line, description string) string {
	for _, candidate := range []string{description, line} {
		for part := range strings.Lines(candidate) {
			if words := strings.TrimSpace(part); words != "" {
				return text.Name(clip(words))
			}
		}
	}
	return "Run a command"
}

func noCommands() Result {
	return failed(fault.New(fault.Unsafe, "commands cannot be run in this conversation"))
}

func startInBackground(ctx context.Context, env *Env, c shell.Command) Result {
	if env.Shell == nil {
		return noCommands()
	}
	if err := ctx.Err(); err != nil {
		return failed(fault.New(fault.Interrupted, "the command was not started: the turn has ended").Because(err))
	}
	job, err := env.Shell.Start(ctx, c)
	if err != nil {
		return failed(err)
	}
	return Result{
		Text: fmt.Sprintf(
			"The command runs in the background as %s. BashOutput reads what it prints, KillShell ends it.", job.ID),
	}
}

func runCommand(ctx context.Context, env *Env, c shell.Command) Result {
	if env.Shell == nil {
		return noCommands()
	}
	o, err := env.Shell.Run(ctx, c)
	if err != nil {
		return failed(err)
	}
	r := Result{Text: outcomeText(o), Masked: o.Masked}
	if o.Reason == shell.ByItself && o.Signal == "" {
		r.Exit = &o.Exit
	}
	r.Failed = r.Exit == nil || o.Exit != 0
	return r
}

// outcomeText returns what the model reads about a command that ran.
func outcomeText(o shell.Outcome) string {
	var b strings.Builder
	switch {
	case o.Reason == shell.OutOfTime:
		fmt.Fprintf(&b,
			"Command did not end within %s and was ended, with all that it had started. Give a longer timeout (at "+
				"most %d), or "+
				"use run_in_background. What it printed until then:\n", o.Limit, shell.MaxTimeout.Milliseconds())
	case o.Reason == shell.Stopped:
		b.WriteString("Command was interrupted before it had ended. What it printed until then:\n")
	case o.Signal != "":
		fmt.Fprintf(&b, "Command was ended by %s\n", o.Signal)
	case o.Exit != 0:
		fmt.Fprintf(&b, "Command exited with code %d\n", o.Exit)
	}
	printed := printedText(o)
	if printed == "" && (b.Len() == 0 || o.Reason != shell.ByItself) {
		printed = "(no output)"
	}
	b.WriteString(printed)
	if o.Moved != "" {
		if !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b,
			"[The command ended in %s, which is outside the workspace: the next one begins in the workspace again.]",
			quoteLine(o.Moved))
	}
	for _, line := range o.Kept {
		if !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[The walls refused: %s. Only a person can change that.]", line)
	}
	return b.String()
}

// printedText returns standard output, and standard error after a heading.
func printedText(o shell.Outcome) string {
	if o.Stderr == "" {
		return o.Stdout
	}
	return o.Stdout + "\n[stderr]\n" + o.Stderr
}

// quoteLine quotes a path so that it cannot look like several lines.
func quoteLine(path string) string {
	if quoted := fmt.Sprintf("%q", path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
