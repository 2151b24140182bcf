package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
)

const (
	listedEntries = 1000
	lookedEntries = 20_000 // entries to read of a larger directory
)

// LS returns a tool that lists a directory.
func LS(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "LS", Kind: event.Read, Rule: event.RulePath})
	return s.plan(func(in *input) (Action, error) {
		written, ignore := in.text("path", false), readPatterns(in)
		written = cmp.Or(written, ".")
		name, err := env.Files.Name(written)
		if err != nil {
			return Action{}, err
		}
		return Action{
			Paths: []string{name}, Title: "List " + text.Name(written),
			Run: func(ctx context.Context) Result { return list(ctx, env, name, ignore) },
		}, nil
	})
}

func readPatterns(in *input) []string {
	var patterns []string
	for i, raw := range in.list("ignore", false) {
		var pattern string
		if json.Unmarshal(raw, &pattern) != nil {
			in.wrong(fmt.Sprintf("ignore[%d]", i), "a string", raw)
			continue
		}
		if _, err := path.Match(pattern, ""); err != nil {
			in.problem("%q is not a pattern of names", clip(pattern))
		}
		patterns = append(patterns, strings.TrimPrefix(strings.TrimSuffix(pattern, "/**"), "**/"))
	}
	return patterns
}

func list(ctx context.Context, env *Env, name string, ignore []string) Result {
	entries, more, err := env.Files.ReadDir(name, lookedEntries)
	if err != nil {
		return failed(notListed(env, name, err))
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return slices.ContainsFunc(ignore, func(pattern string) bool {
			ok, _ := path.Match(pattern, e.Name())
			return ok
		})
	})
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int {
		switch {
		case a.IsDir() == b.IsDir():
			return 0
		case a.IsDir():
			return -1
		}
		return 1
	})
	var b strings.Builder
	for _, e := range entries[:min(len(entries), listedEntries)] {
		if err := ctx.Err(); err != nil {
			return failed(fault.New(fault.Interrupted, "listing %s was interrupted", text.Name(name)).Because(err))
		}
		entryLine(&b, env, name, e)
	}
	switch {
	case len(entries) == 0 && !more:
		b.WriteString("(The directory is empty.)")
	case more:
		fmt.Fprintf(&b, "(Some %d of more than %d entries are shown. Use Glob to find files by name.)",
			min(len(entries), listedEntries), lookedEntries)
	case len(entries) > listedEntries:
		fmt.Fprintf(&b, "(%d of %d entries are shown. Use Glob to find files by name.)", listedEntries, len(entries))
	}
	return Result{Text: strings.TrimSuffix(b.String(), "\n")}
}

// entryLine writes one entry. A name with a line feed must not look like two entries.
func entryLine(b *strings.Builder, env *Env, dir string, e fs.DirEntry) {
	kind, size, end := "?", "-", ""
	switch mode := e.Type(); {
	case mode.IsDir():
		kind, end = "d", "/"
	case mode.IsRegular():
		kind = "-"
		if info, err := env.Files.Lstat(path.Join(dir, e.Name())); err == nil {
			size = fmt.Sprint(info.Size())
		}
	case mode&fs.ModeSymlink != 0:
		kind = "l"
		if info, err := env.Files.Stat(path.Join(dir, e.Name())); err == nil && info.IsDir() {
			end = "/"
		}
	case mode&fs.ModeNamedPipe != 0:
		kind = "p"
	case mode&fs.ModeSocket != 0:
		kind = "s"
	case mode&fs.ModeDevice != 0:
		kind = "b"
	}
	fmt.Fprintf(b, "%s %10s %s%s\n", kind, size, text.Name(e.Name()), end)
}

func notListed(env *Env, name string, err error) error {
	f := fault.Of(err)
	if f.Code == fault.FileMissing {
		m := fault.Of(missing(env.Files, name))
		m.Message = strings.Replace(m.Message, "File not found", "Directory not found", 1)
		return m
	}
	if f.Detail["reason"] == "not-directory" {
		return fault.New(fault.Unsafe, "%s is not a directory", text.Name(name)).Hint("Look at it with Read.")
	}
	return err
}
