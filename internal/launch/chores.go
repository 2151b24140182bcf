package launch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/fsapi"
	"omniagent/internal/walls/shell"
	"omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// terminal is a command that an agent has started.
type terminal struct {
	job       string // id of the shell's job
	most      int    // bytes of output that are kept
	output    string
	truncated bool
}

// Serve carries out a request of an agent to its client, which the caller has already allowed, and returns the result.
// An error is a *jsonrpc.Error, or says why nothing was done.
func (b *Bench) Serve(ctx context.Context, method string, params []byte) (any, error) {
	c, ok := acp.ReadChore(params)
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "%s: it cannot be read", method)
	}
	switch method {
	case acp.ReadFile:
		text, err := b.FS().ReadFile(c.Path, window(c))
		return acp.FileText(text), refused(err)
	case acp.WriteFile:
		_, err := b.FS().WriteFile(c.Path, c.Content, fsapi.Overwrite)
		return acp.Carried(), refused(err)
	case acp.CreateTerminal:
		return b.begin(ctx, c)
	}
	return b.attend(ctx, method, c.Terminal)
}

// window returns the requested lines.
func window(c acp.Chore) fsapi.Window {
	w := fsapi.Window{Start: c.Line}
	if c.Limit > 0 {
		w.End = max(c.Line, 1) + c.Limit - 1
	}
	return w
}

// refused converts the error for a missing file to the one of the protocol.
func refused(err error) error {
	if errors.Is(err, fsapi.NotFound) {
		return jsonrpc.Errorf(acp.NotFound, "%v", err)
	}
	return err
}

// begin starts the command of a terminal.
func (b *Bench) begin(ctx context.Context, c acp.Chore) (any, error) {
	line, err := lineOf(c)
	if err != nil {
		return nil, err
	}
	if c.Cwd != "" {
		dir, err := b.FS().Resolve(c.Cwd)
		if err != nil {
			return nil, err
		}
		if dir, err = syntax.Quote(filepath.Clean(dir), syntax.LangBash); err != nil {
			return nil, fault.New(fault.ArgError, "the directory cannot be written as a word").Because(err)
		}
		line = "cd " + dir + " && " + line
	}
	if line, err = fsapi.CheckCommand(line); err != nil {
		return nil, err
	}
	job, err := b.shell.Start(ctx, shell.Command{Line: "{ " + line + "; } 2>&1"})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.terminals[job.ID] = &terminal{job: job.ID, most: keptOf(c.Bytes)}
	return acp.Begun(job.ID), nil
}

// mostKept is how many bytes of the output of a command are kept, unless the agent wants fewer.
const mostKept = 1 << 20

func keptOf(wanted int) int {
	if wanted <= 0 {
		return mostKept
	}
	return min(wanted, mostKept)
}

// lineOf returns a command as a line for a shell. A command without arguments is already such a line, as most agents
// send it.
func lineOf(c acp.Chore) (string, error) {
	var b strings.Builder
	for _, v := range c.Env {
		value, err := syntax.Quote(v.Value, syntax.LangBash)
		if err != nil || !syntax.ValidName(v.Name) {
			return "", fault.New(fault.ArgError, "a command cannot have the variable %q", v.Name)
		}
		b.WriteString("export " + v.Name + "=" + value + "; ")
	}
	if len(c.Args) == 0 {
		b.WriteString(c.Command)
		return b.String(), nil
	}
	for _, word := range append([]string{c.Command}, c.Args...) {
		quoted, err := syntax.Quote(word, syntax.LangBash)
		if err != nil {
			return "", fault.New(fault.ArgError, "%q cannot be written as a word of a command", word).Because(err)
		}
		b.WriteString(quoted + " ")
	}
	return b.String(), nil
}

// attend carries out a request about an existing terminal.
func (b *Bench) attend(ctx context.Context, method, id string) (any, error) {
	b.mu.Lock()
	t := b.terminals[id]
	if t != nil && method == acp.ReleaseTerminal {
		delete(b.terminals, id)
	}
	b.mu.Unlock()
	if t == nil {
		return nil, jsonrpc.Errorf(acp.NotFound, "there is no terminal %q", id)
	}
	switch method {
	case acp.ReadTerminal:
		return b.read(t)
	case acp.WaitForTerminal:
		b.shell.Wait(ctx, t.job)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return b.exited(t)
	case acp.KillTerminal, acp.ReleaseTerminal:
		_, err := b.shell.Kill(t.job)
		return acp.Carried(), err
	}
	return nil, jsonrpc.Errorf(jsonrpc.MethodNotFound, "%s is not supported", method)
}

// read returns the output that is kept so far, and the exit code if the command has ended.
func (b *Bench) read(t *terminal) (any, error) {
	job, err := b.shell.Output(t.job, nil)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t.output += job.Outcome.Stdout // it includes standard error
	if cut := len(t.output) - t.most; cut > 0 {
		for cut < len(t.output) && !utf8.RuneStart(t.output[cut]) {
			cut++
		}
		t.output, t.truncated = t.output[cut:], true
	}
	var exit any
	if !job.Running {
		exit = exitOf(job.Outcome)
	}
	return acp.Printed(t.output, t.truncated, exit), nil
}

// exited returns how a command ended.
func (b *Bench) exited(t *terminal) (any, error) {
	for _, job := range b.shell.Jobs() {
		if job.ID == t.job && !job.Running {
			return exitOf(job.Outcome), nil
		}
	}
	return nil, fmt.Errorf("nobody saw how %s ended", t.job)
}

// exitOf returns how a command ended. A command that was stopped is reported as ended by SIGTERM, because the exit code
// may be that of our own process.
func exitOf(o shell.Outcome) any {
	switch {
	case o.Signal != "":
		return acp.Exited(nil, o.Signal)
	case o.Reason == shell.Stopped && o.Exit != 0:
		return acp.Exited(nil, "SIGTERM")
	}
	return acp.Exited(&o.Exit, "")
}
