package tool

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/ignore"
	"omniagent/internal/sys/workspace"
)

const globUsual = 100 // the default limit

// Glob returns a tool that finds files by name.
func Glob(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "Glob", Kind: event.Search, Rule: event.RulePath})
	return s.plan(func(in *input) (Action, error) {
		g := globber{env: env, written: in.text("pattern", true), limit: in.whole("limit", globUsual, 1)}
		directory := in.text("path", false)
		if in.err() != nil {
			return Action{}, nil
		}
		var err error
		if g.pattern, err = parseGlob(g.written); err != nil {
			in.problem(`"pattern" cannot be read: %v`, err)
			return Action{}, nil
		}
		if g.path, err = searchPath(env, directory); err != nil {
			return Action{}, err
		}
		if g.name, err = g.begin(); err != nil {
			return Action{}, err
		}
		return Action{
			Paths: []string{g.name}, Title: "Find " + text.Name(g.written),
			Run: func(ctx context.Context) Result { return g.run(ctx) },
		}, nil
	})
}

// globber is one call of Glob.
type globber struct {
	env     *Env
	written string
	pattern *globPattern
	path    string // the given directory
	name    string // where the search starts: after the literal directories of the pattern
	limit   int
}

func (g *globber) begin() (string, error) {
	switch base := g.pattern.base; {
	case base == "":
		return g.path, nil
	case path.IsAbs(base) || strings.Contains(base, ":"):
		return g.env.Files.Name(base)
	case path.IsAbs(g.path):
		return g.env.Files.Name(g.path + "/" + base + "/")
	default:
		return g.env.Files.Name("./" + g.path + "/" + base + "/") // keep blanks at both ends of the names
	}
}

// globZone is the state of a folder in the search.
type globZone struct {
	scope *ignore.Scope
	spots []globSpot
}

type globMatch struct {
	path string
	at   time.Time
}

// globHeap holds the newest files that one worker has found.
type globHeap struct {
	matches []globMatch
	count   int
}

func (h *globHeap) add(f globMatch, limit int) {
	h.count++
	if h.matches = append(h.matches, f); len(h.matches) >= 2*limit+1000 {
		h.matches = newest(h.matches, limit)
	}
}

// newest sorts by time, then name, and keeps the first ones.
func newest(found []globMatch, limit int) []globMatch {
	slices.SortFunc(found,
		func(a, b globMatch) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.path, b.path)) })
	return found[:min(limit, len(found))]
}

func (g *globber) run(ctx context.Context) Result {
	info, err := g.env.Files.Stat(g.path)
	if err == nil && !info.IsDir() {
		err = fault.New(fault.Unsafe, "%s is a file, not a directory", text.Name(g.path)).
			Hint("Leave path out, and write it into the pattern.")
	}
	if err != nil {
		return failed(notListed(g.env, g.path, err))
	}
	heaps := make([]globHeap, workspace.Workers())
	missed, err := g.walk(ctx, heaps)
	if err != nil && (isStopped(err) || g.name == g.path) {
		return searchFailed(err)
	}
	var found []globMatch
	count := 0
	for _, h := range heaps {
		found = append(found, h.matches...)
		count += h.count
	}
	return g.report(newest(found, g.limit), count, missed)
}

func (g *globber) walk(ctx context.Context, heaps []globHeap) (missed int, err error) {
	w := newSearchArea(g.env, g.name, ".fdignore")
	return g.env.Files.Survey(ctx, g.name, globZone{w.scope, g.pattern.start()}, workspace.Survey{
		Enter: func(f *workspace.Folder, entries []workspace.Entry) { g.enter(w, f, entries) },
		File: func(worker int, f *workspace.Folder, name string) {
			if at, ok := f.Modified(name); ok {
				heaps[worker].add(globMatch{w.displayPath(f, name), at}, g.limit)
			}
		},
	})
}

// enter collects the files that match, and the directories that may contain matches.
func (g *globber) enter(w *searchArea, f *workspace.Folder, entries []workspace.Entry) {
	zone, _ := f.State.(globZone)
	full := w.full(f)
	if f.First() {
		zone.scope = zone.scope.Enter(full, w.rules(f, zone.scope))
		f.State = zone
	}
	for _, e := range entries {
		if e.Type == workspace.OtherEntry {
			continue
		}
		isDir := e.Type == workspace.DirectoryEntry
		s := entryFlags{hidden: e.Name[0] == '.', ignored: e.Name == ".git"}
		if zone.scope != nil && !s.ignored {
			verdict := zone.scope.Match(below(full, e.Name), isDir)
			s.ignored = verdict == ignore.Ignored
			s.hidden = s.hidden && verdict != ignore.Included
		}
		if !isDir {
			if g.pattern.file(zone.spots, e.Name, s) {
				f.Take(e.Name)
			}
			continue
		}
		if spots := g.pattern.directory(zone.spots, e.Name, s); len(spots) > 0 {
			next := globZone{zone.scope, spots}
			if s.ignored {
				next.scope = lifted(zone.scope, below(full, e.Name))
			}
			f.Descend(e.Name, next)
		}
	}
}

func (g *globber) report(found []globMatch, count, missed int) Result {
	if count == 0 {
		return Result{Text: "No files found matching pattern: " + text.Name(g.written) + missedNote(missed)}
	}
	var b strings.Builder
	shown := 0
	for _, f := range found {
		if b.Len()+len(f.path) > resultLimit {
			break
		}
		if shown++; shown > 1 {
			b.WriteByte('\n')
		}
		b.WriteString(text.Name(f.path))
	}
	if shown < count {
		fmt.Fprintf(&b,
			"\n(these are the newest %d of %d files; a narrower pattern, or a larger limit, shows the others)", shown,
			count)
	}
	b.WriteString(missedNote(missed))
	return Result{Text: b.String()}
}

func missedNote(missed int) string {
	switch missed {
	case 0:
		return ""
	case 1:
		return "\n(one directory could not be read)"
	}
	return fmt.Sprintf("\n(%d directories could not be read)", missed)
}
