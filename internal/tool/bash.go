package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/shell"
	"omniagent/internal/text"
	"omniagent/internal/toolspec"
)

// Shell is where commands run. *shell.Shell is one.
type Shell interface {
	// Run runs a command to its end. A command that fails is an outcome; an error says that it was not started.
	Run(ctx context.Context, c shell.Command, progress func(string)) (shell.Outcome, error)
	// Start starts one in the background, where it outlives the call.
	Start(c shell.Command) (shell.Job, error)
	// At is where the next one begins, relative to the root.
	At() string
	// Output is what one in the background has printed since it was last asked.
	Output(id string, filter *regexp.Regexp) (shell.Job, error)
	// Kill ends one in the background.
	Kill(id string) (shell.Job, error)
}

const bashExample = `{"command": "go test ./...", "description": "Run the tests"}`

// Bash runs a command.
func Bash(env *Env) Tool {
	return Tool{
		Tool: toolspec.Tool{
			Name: "Bash", Kind: event.Shell, Rule: toolspec.Command, Changes: true,
			Description: "Runs a command in bash and returns what it printed: standard output, then standard error " +
				"after a line [stderr]. " +
				"The working directory stays for the next command as long as it is inside the workspace; variables " +
				"do not. There is no " +
				"terminal and no input: use the flags that keep programs from asking. A command ends after timeout, " +
				"and all that it started " +
				"ends with it, processes with & too; for servers and watchers use run_in_background. Output over " +
				"30000 characters is cut in " +
				"the middle, and the whole is in a file that the result names. To read, search and change files use " +
				"Read, Grep, Glob, Edit " +
				"and Write rather than commands.",
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"command":{"type":"string","description":"The command"},` +
				`"timeout":{"type":"integer","minimum":1,"maximum":600000,"description":"Milliseconds after which it is ended; 120000 if left out"},` +
				`"description":{"type":"string","description":"What the command does, in five to ten words"},` +
				`"run_in_background":{"type":"boolean","description":"Return at once; BashOutput reads what it prints, KillShell ends it"}},` +
				`"required":["command"]}`),
		},
		Plan: func(raw json.RawMessage) (Action, error) {
			others := map[string]string{
				"cmd": "command", "script": "command", "timeout_ms": "timeout",
				"background": "run_in_background",
			}
			in := readInput("Bash", raw, bashExample, []string{
				"command", "timeout", "description",
				"run_in_background",
			}, others)
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
			if err := in.err(); err != nil {
				return Action{}, err
			}
			c := shell.Command{Line: line, Timeout: time.Duration(milliseconds) * time.Millisecond}
			at := func() string {
				if env.Shell != nil {
					c.At = env.Shell.At()
				}
				return c.At
			}
			return Action{
				At: at, Kind: event.Shell, Changes: true, Command: line, Title: commandTitle(line, description),
				Input: in.json(),
				Run: func(ctx context.Context, progress func(string)) Result {
					if background {
						return startInBackground(ctx, env, c)
					}
					return runCommand(ctx, env, c, progress)
				},
			}, nil
		},
	}
}

// commandTitle is the description, or the command's first line.
func commandTitle(line, description string) string {
	for _, said := range []string{description, line} {
		for part := range strings.Lines(said) {
			if words := strings.Join(strings.Fields(part), " "); words != "" {
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
		return failed(fault.New(fault.Interrupted, "the command was not started: the turn was ended").Because(err))
	}
	job, err := env.Shell.Start(c)
	if err != nil {
		return failed(err)
	}
	return Result{
		Text: fmt.Sprintf(
			"The command runs in the background as %s. BashOutput reads what it prints, KillShell ends it.", job.ID),
	}
}

func runCommand(ctx context.Context, env *Env, c shell.Command, progress func(string)) Result {
	if env.Shell == nil {
		return noCommands()
	}
	o, err := env.Shell.Run(ctx, c, progress)
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

// outcomeText is what the model reads of a command that ran.
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
	return b.String()
}

// printedText is standard output, and what came on standard error after a line that says so.
func printedText(o shell.Outcome) string {
	if o.Stderr == "" {
		return o.Stdout
	}
	return o.Stdout + "\n[stderr]\n" + o.Stderr
}

// quoteLine is a path that cannot look like more than one line.
func quoteLine(path string) string {
	if quoted := fmt.Sprintf("%q", path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
