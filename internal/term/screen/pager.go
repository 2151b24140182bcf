package screen

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/term/terminal"
)

// Page shows a text in the pager of the person, $PAGER or less or more, and returns when they leave it. temp is a
// directory for a temporary file. Without a pager it returns fault.NotInstalled.
func Page(ctx context.Context, t *terminal.Terminal, by process.Programs, env []string, temp, content string) error {
	by.Env = append(by.Env, pagerSettings(env)...)
	argv, err := pager(by, env)
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
		return runPager(ctx, by, process.Plan{
			Argv: append(argv, file), Terminal: t.In(), Stdin: t.In(), Stdout: t.Out(), Stderr: t.Out(), Name: argv[0],
		})
	})
}

// PageText shows a text on the terminal of in and out as Page does, for a program that reads no keys itself. Unless the
// person has chosen options, less leaves a text that fits the screen on it.
func PageText(ctx context.Context, in, out *os.File, by process.Programs, env []string, content string) error {
	by.Env = slices.Concat(by.Env, []string{"LESS=FRX"}, pagerSettings(env))
	argv, err := pager(by, env)
	if err != nil {
		return err
	}
	return runPager(ctx, by, process.Plan{
		Argv: argv, Terminal: in, Stdin: strings.NewReader(content), Stdout: out, Stderr: out,
		Name: argv[0],
	})
}

// runPager returns when the person leaves the pager, or ctx ends.
func runPager(ctx context.Context, by process.Programs, plan process.Plan) error {
	child, err := by.Start(plan)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { child.End(os.Interrupt) })()
	child.Wait()
	return nil
}

// pagerSettings returns what pagers read of an environment. LESSOPEN is not among it: less would run a program.
func pagerSettings(env []string) (list []string) {
	for _, name := range []string{
		"TERM", "TERMINFO", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES", "MORE", "LESS", "LESSCHARSET", "LESSHISTFILE",
		"LESSKEY", "LESSKEYIN", "LESSSECURE", "BAT_CONFIG_PATH", "BAT_PAGER", "BAT_STYLE", "BAT_THEME",
	} {
		if value, set := process.Value(env, name); set {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// pager returns the program to show a text with, and its arguments.
func pager(by process.Programs, env []string) (argv []string, err error) {
	chosen, _ := process.Value(env, "PAGER")
	for _, words := range [][]string{strings.Fields(chosen), {"less", "-R"}, {"more"}} {
		if len(words) == 0 {
			continue
		}
		if by.Find(words[0]) != "" {
			return words, nil
		}
	}
	return nil, fault.New(fault.NotInstalled, "there is no pager: neither $PAGER nor less nor more is in PATH")
}
