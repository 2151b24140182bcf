package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/ignore"
	"omniagent/internal/sys/workspace"
)

const (
	grepAround = 1000   // lines of context before and after a match
	grepLimit  = 20_000 // lines of an answer, including the skipped ones before it
)

// Grep returns a tool that searches in files.
func Grep(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "Grep", Kind: event.Search, Rule: event.RulePath})
	return s.plan(func(in *input) (a Action, err error) {
		g := readGrep(env, in)
		if g.name, err = searchPath(env, g.path); err != nil {
			return Action{}, err
		}
		return Action{
			Paths: []string{g.name}, Title: "Search for " + text.Name(g.written),
			Run: func(ctx context.Context) Result { return g.run(ctx) },
		}, nil
	})
}

// grepper is one call of Grep.
type grepper struct {
	env     *Env
	written string
	pattern *grepPattern
	path    string // as given
	name    string
	show    grepShow
	globs   *ignore.Rules // rules that ignore the wanted files
	only    bool          // at least one glob selects files
	types   []ignore.Pattern
}

// readGrep reads the input.
func readGrep(env *Env, in *input) *grepper {
	g := &grepper{env: env, written: in.text("pattern", true), path: in.text("path", false)}
	around := in.whole("-C", 0, 0)
	g.show = grepShow{
		mode: grepMode(in.text("output_mode", false)), numbers: in.raw("-n") == nil || in.flag("-n"),
		before: min(in.whole("-B", around, 0), grepAround), after: min(in.whole("-A", around, 0), grepAround),
		offset: in.whole("offset", 0, 0), limit: in.whole("head_limit", 0, 0),
	}
	switch g.show.mode {
	case "":
		g.show.mode = grepContent
	case grepContent, grepFiles, grepCount:
	default:
		in.problem(`"output_mode" must be content, files_with_matches or count, but came %q`, clip(string(g.show.mode)))
	}
	if g.show.offset >= grepLimit {
		in.problem(`"offset" must be less than %d: a narrower pattern, path or glob gives less`, grepLimit)
	}
	if most := grepLimit - g.show.offset; g.show.limit == 0 || g.show.limit > most {
		g.show.limit = most
	}
	if kind := in.text("type", false); kind != "" {
		names := grepType(kind)
		if len(names) == 0 {
			in.problem(`"type" must be one of %s; for other files give "glob"`, grepTypeNames())
		}
		for _, name := range names {
			g.types = append(g.types, ignore.Compile(name, ignore.Bytes))
		}
	}
	g.readGlobs(in)
	if fold, spanning := in.flag("-i"), in.flag("multiline"); len(in.problems) == 0 {
		var err error
		if g.pattern, err = parseGrep(g.written, fold, spanning); err != nil {
			in.problem(`"pattern" cannot be read: %v`, err)
		}
	}
	return g
}

// readGlobs reads patterns of paths, separated by blanks, or by commas outside braces. They work like ripgrep's --glob:
// like lines of a .gitignore that select files.
func (g *grepper) readGlobs(in *input) {
	var lines []string
	for word := range strings.FieldsSeq(in.text("glob", false)) {
		words := []string{word}
		if !strings.Contains(word, "{") {
			words = strings.Split(word, ",")
		}
		for _, glob := range words {
			if glob == "" {
				continue
			}
			all, err := expandBraces(glob)
			if err != nil {
				in.problem(`"glob" cannot be read: %v`, err)
			}
			g.only = g.only || !strings.HasPrefix(glob, "!")
			lines = append(lines, all...)
		}
	}
	g.globs = ignore.Of(lines...)
}

func (g *grepper) run(ctx context.Context) Result {
	info, err := g.env.Files.Stat(g.name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = missing(g.env.Files, g.name)
		}
		return failed(err)
	}
	all := &grepAnswer{show: &g.show}
	missed := 0
	if info.IsDir() {
		missed, err = g.walk(ctx, all)
	} else {
		err = g.file(ctx, all)
	}
	if err != nil {
		return searchFailed(err)
	}
	return Result{Text: all.text() + all.notes() + missedNote(missed)}
}

// file searches one file, even if a rule ignores it.
func (g *grepper) file(ctx context.Context, all *grepAnswer) error {
	f, _, err := g.env.Files.Open(g.name)
	if err != nil {
		return err
	}
	defer f.Close()
	s, out := scanner{pattern: g.pattern}, &grepLines{show: &g.show, path: text.Name(g.name)}
	if err := s.scan(ctx, f, true, out); err != nil {
		return all.failed(err)
	}
	if out.binary && out.hit && g.show.mode == grepContent {
		out.lines = append(out.lines, out.path+": binary, so what matches from here on is not shown")
	}
	if out.hit {
		out.count++
	}
	all.add(g.name, out)
	return nil
}

func (g *grepper) walk(ctx context.Context, all *grepAnswer) (missed int, err error) {
	w := newSearchArea(g.env, g.name, ".rgignore")
	scanners := make([]scanner, workspace.Workers())
	for i := range scanners {
		scanners[i].pattern = g.pattern
	}
	return g.env.Files.Survey(ctx, g.name, w.scope, workspace.Survey{
		Enter: func(f *workspace.Folder, entries []workspace.Entry) {
			if f.Path == "" || !all.beyond(w.displayPath(f, "")) {
				g.enter(w, f, entries)
			}
		},
		File: func(worker int, f *workspace.Folder, name string) {
			path := w.displayPath(f, name)
			if all.beyond(path) {
				return
			}
			file, err := f.Open(name)
			if err != nil {
				_ = all.failed(err)
				return
			}
			defer file.Close()
			out := &grepLines{show: &g.show, path: text.Name(path)}
			if err := scanners[worker].scan(ctx, file, false, out); err != nil {
				_ = all.failed(err)
				return
			}
			if out.binary && g.show.mode == grepCount {
				return // the count would be incomplete
			}
			if out.binary && len(out.lines) > 0 {
				out.lines = append(out.lines, out.path+": binary from here on, and not searched")
			}
			all.add(path, out)
		},
	})
}

// enter collects the files to search. A glob that selects a file overrides a rule that ignores it.
func (g *grepper) enter(w *searchArea, f *workspace.Folder, entries []workspace.Entry) {
	scope, _ := f.State.(*ignore.Scope)
	full := w.full(f)
	if f.First() {
		scope = scope.Enter(full, w.rules(f, scope))
		f.State = scope
	}
	for _, e := range entries {
		switch e.Type {
		case workspace.DirectoryEntry:
			if e.Name != ".git" && g.wants(w, f, full, scope, e.Name, true) {
				f.Descend(e.Name, scope)
			}
		case workspace.FileEntry:
			if g.wants(w, f, full, scope, e.Name, false) {
				f.Take(e.Name)
			}
		}
	}
}

func (g *grepper) wants(w *searchArea, f *workspace.Folder, full string, scope *ignore.Scope, name string,
	dir bool,
) bool {
	if g.globs != nil {
		switch g.globs.Match(w.displayPath(f, name), dir) {
		case ignore.Ignored: // a glob selects it
			return true
		case ignore.Included:
			return false
		}
		if g.only && !dir {
			return false
		}
	}
	verdict := ignore.None
	if scope != nil {
		verdict = scope.Match(below(full, name), dir)
	}
	if verdict == ignore.Ignored {
		return false
	}
	if g.types != nil && !dir {
		return slices.ContainsFunc(g.types, func(p ignore.Pattern) bool { return p.Match(name) })
	}
	return name[0] != '.' || verdict == ignore.Included
}

// failedFiles counts the files that could not be searched.
type failedFiles struct{ unread, large atomic.Int64 }

// failed counts the error of one file, or returns it if it ends the whole search.
func (n *failedFiles) failed(err error) error {
	switch {
	case isStopped(err):
		return err
	case errors.Is(err, errTooLarge):
		n.large.Add(1)
	default:
		n.unread.Add(1)
	}
	return nil
}

func (n *failedFiles) notes() string {
	text := ""
	for _, of := range []struct {
		count int64
		what  string
	}{
		{n.unread.Load(), "could not be read"},
		{n.large.Load(), fmt.Sprintf("are larger than %d MiB, and were not searched for a pattern over several lines",
			scanWhole>>20)},
	} {
		if of.count > 0 {
			text += fmt.Sprintf("\n(files: %d %s)", of.count, of.what)
		}
	}
	return text
}
