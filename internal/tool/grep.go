package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/ignore"
	"omniagent/internal/text"
	"omniagent/internal/toolspec"
	"omniagent/internal/workspace"
)

const (
	grepAround = 1000   // lines of context before and after a match
	grepLimit  = 20_000 // lines of an answer together with those that are left out before it
)

const grepExample = `{"pattern": "func \\w+Error\\(", "path": "src", "glob": "*.go"}`

// Grep searches in files.
func Grep(env *Env) Tool {
	return Tool{
		Tool: toolspec.Tool{
			Name: "Grep", Kind: event.Search, Rule: toolspec.Path, Description: grepDescription(), Input: grepInput(),
		},
		Plan: func(raw json.RawMessage) (Action, error) {
			g, in := readGrep(env, raw)
			if err := in.err(); err != nil {
				return Action{}, err
			}
			var err error
			if g.name, err = searchPath(env, g.path); err != nil {
				return Action{}, err
			}
			return Action{
				Kind: event.Search, Paths: []string{g.name}, Title: "Search for " +
					text.Name(g.written), Input: in.json(),
				Run: func(ctx context.Context, _ func(string)) Result { return g.run(ctx) },
			}, nil
		},
	}
}

func grepDescription() string {
	return "Searches the lines of all files for a regular expression and answers path:line:content, sorted by path. " +
		"Case matters unless -i is " +
		"true. The syntax is that of ripgrep and RE2: no lookaround, no backreferences; \\w \\d \\s \\b know ASCII " +
		"only; write \\{ for a brace. " +
		"Hidden files, those that .gitignore or .ignore names and binary files are left out; a path that is given is " +
		"searched even so."
}

func grepInput() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` +
		`"pattern":{"type":"string","description":"Regular expression"},` +
		`"path":{"type":"string","description":"File or directory to search in; the workspace if left out"},` +
		`"glob":{"type":"string","description":"Only files whose paths match, such as *.{ts,tsx} or src/**/*.go; with ! before it, only others"},` +
		`"type":{"type":"string","description":"Only files of a type: go js ts py rust java c cpp …"},` +
		`"output_mode":{"type":"string","enum":["content","files_with_matches","count"],"description":"content if left out"},` +
		`"-i":{"type":"boolean","description":"Case does not matter"},` +
		`"-n":{"type":"boolean","description":"Show line numbers; true if left out"},` +
		`"-A":{"type":"integer","description":"Show so many lines after each match"},` +
		`"-B":{"type":"integer","description":"Show so many lines before each match"},` +
		`"-C":{"type":"integer","description":"Show so many lines before and after each match"},` +
		`"multiline":{"type":"boolean","description":"The pattern may match several lines, and . matches their ends"},` +
		`"head_limit":{"type":"integer","description":"Show at most so many lines of the answer"},` +
		`"offset":{"type":"integer","description":"Leave out so many lines of the answer first"}},"required":["pattern"]}`)
}

// grepper is one call of Grep.
type grepper struct {
	env     *Env
	written string
	pattern *grepPattern
	path    string // as it was given
	name    string
	show    grepShow
	globs   *ignore.Rules // what the model wants is what these rules ignore
	only    bool          // some glob says what is wanted, not only what is not
	types   []ignore.Pattern
}

// readGrep reads the input. What is wrong stands in it.
func readGrep(env *Env, raw json.RawMessage) (*grepper, *input) {
	in := readInput("Grep", raw, grepExample, []string{
		"pattern", "path", "glob", "type", "output_mode", "-i", "-n", "-A", "-B", "-C", "multiline", "head_limit",
		"offset",
	}, map[string]string{
		"file_path": "path", "directory": "path", "include": "glob", "query": "pattern", "regex": "pattern",
		"context":          "-C",
		"case_insensitive": "-i", "ignore_case": "-i", "line_number": "-n", "limit": "head_limit",
		"mode": "output_mode",
	})
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
	return g, in
}

// readGlobs reads patterns of paths, divided by blanks, or by commas outside braces. They are read as ripgrep's --glob:
// as the lines of a .gitignore, but for what is wanted.
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

// grepZone is what a folder of the search knows.
type grepZone struct{ scope *ignore.Scope }

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
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return failed(fault.New(fault.Interrupted, "the search was ended before it had finished").Because(err))
	}
	if err != nil {
		return failed(err)
	}
	return Result{Text: all.text() + all.notes() + missedNote(missed)}
}

// file searches one file, whatever the rules say of it.
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
	w := newGround(g.env, g.name, ".rgignore")
	scanners := make([]scanner, workspace.Workers())
	for i := range scanners {
		scanners[i].pattern = g.pattern
	}
	return g.env.Files.Survey(ctx, g.name, grepZone{w.scope}, workspace.Survey{
		Enter: func(f *workspace.Folder, entries []workspace.Entry) {
			if f.Path == "" || !all.beyond(w.shown(f, "")) {
				g.enter(w, f, entries)
			}
		},
		File: func(worker int, f *workspace.Folder, name string) {
			path := w.shown(f, name)
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
				return // the number would be that of a part
			}
			if out.binary && len(out.lines) > 0 {
				out.lines = append(out.lines, out.path+": binary from here on, and not searched")
			}
			all.add(path, out)
		},
	})
}

// enter takes the files that are to be searched. A glob that wants a file is stronger than a rule that ignores it.
func (g *grepper) enter(w *ground, f *workspace.Folder, entries []workspace.Entry) {
	zone, _ := f.State.(grepZone)
	full := w.full(f)
	if f.First() {
		zone.scope = zone.scope.Enter(full, w.rules(f, zone.scope))
		f.State = zone
	}
	for _, e := range entries {
		switch e.Type {
		case workspace.DirectoryEntry:
			if e.Name != ".git" && g.wants(w, f, full, zone.scope, e.Name, true) {
				f.Descend(e.Name, zone)
			}
		case workspace.FileEntry:
			if g.wants(w, f, full, zone.scope, e.Name, false) {
				f.Take(e.Name)
			}
		}
	}
}

func (g *grepper) wants(w *ground, f *workspace.Folder, full string, scope *ignore.Scope, name string, dir bool) bool {
	if g.globs != nil {
		switch g.globs.Match(w.shown(f, name), dir) {
		case ignore.Ignored: // the wanted ones are those that the rules match
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

// failedFiles counts what could not be searched.
type failedFiles struct{ unread, large atomic.Int64 }

// failed takes the failure of one file. The end of the whole search is handed back.
func (n *failedFiles) failed(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
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
