package screen

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/fault"
	"omniagent/internal/process"
	"omniagent/internal/terminal"
	"omniagent/internal/workspace"
)

// Page shows a text in the pager of the person, $PAGER or less or more, and returns when they leave it. temp is a
// directory for a file that is removed then. Without a pager it is fault.NotInstalled.
func Page(ctx context.Context, t *terminal.Terminal, env []string, temp, content string) error {
	argv, path, err := pager(env)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(temp, "page-")
	if err != nil {
		return fault.New(fault.Internal, "there is no place for the text to page: %v", err).Because(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "text")
	if err := workspace.WriteDerived(file, []byte(content), 0o600); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "nothing was shown").Because(ctx.Err())
	}
	return t.Lend(func() error {
		return runPager(ctx, process.Plan{
			Argv: append(argv, file), Path: path, Env: env, Terminal: t.In(), Stdin: t.In(), Stdout: t.Out(),
			Stderr: t.Out(), Name: argv[0],
		})
	})
}

// PageText shows a text on the terminal of in and out as Page does, for a program that reads no keys itself. Where the
// person has chosen nothing else, less leaves a text that fits the screen on it.
func PageText(ctx context.Context, in, out *os.File, env []string, content string) error {
	argv, path, err := pager(env)
	if err != nil {
		return err
	}
	if _, chosen := process.Value(env, "LESS"); !chosen {
		env = append(slices.Clone(env), "LESS=FRX")
	}
	return runPager(ctx, process.Plan{
		Argv: argv, Path: path, Env: env, Terminal: in, Stdin: strings.NewReader(content), Stdout: out, Stderr: out,
		Name: argv[0],
	})
}

// runPager returns when the person leaves the pager, or ctx ends.
func runPager(ctx context.Context, plan process.Plan) error {
	child, err := process.Start(plan)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { child.End(os.Interrupt) })()
	child.Wait()
	return nil
}

// pager returns the program to show a text with, and its arguments.
func pager(env []string) (argv []string, path string, err error) {
	chosen, _ := process.Value(env, "PAGER")
	for _, words := range [][]string{strings.Fields(chosen), {"less", "-R"}, {"more"}} {
		if len(words) == 0 {
			continue
		}
		if path, err := process.Locate(words, "", env); err == nil {
			return words, path, nil
		}
	}
	return nil, "", fault.New(fault.NotInstalled, "there is no pager: neither $PAGER nor less nor more is in PATH")
}
