package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/ignore"
	"omniagent/internal/text"
	"omniagent/internal/toolspec"
	"omniagent/internal/workspace"
)

const globUsual = 100 // paths, where the model gives no limit

const globExample = `{"pattern": "src/**/*.go"}`

// Glob finds files by their names.
func Glob(env *Env) Tool {
	return Tool{
		Tool: toolspec.Tool{
			Name: "Glob", Kind: event.Search, Rule: toolspec.Path,
			Description: "Finds files by name, the newest first. ** is any number of directories: **/*.go finds Go " +
				"files everywhere, *.go only " +
				"in the directory itself. Also ? [a-z] {ts,tsx}. Hidden files and those that .gitignore or .ignore " +
				"names are left out, unless " +
				"the pattern writes their names out: .github/**, node_modules/x/*.js, **/.env. To search in files " +
				"use Grep.",
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"pattern":{"type":"string","description":"Pattern of paths, such as src/**/*.{ts,tsx}"},` +
				`"path":{"type":"string","description":"Directory to search in; the workspace if left out"},` +
				`"limit":{"type":"integer","description":"At most so many paths; 100 if left out"}},"required":["pattern"]}`),
		},
		Plan: func(raw json.RawMessage) (Action, error) {
			others := map[string]string{"directory": "path", "dir": "path", "file_path": "path", "glob": "pattern"}
			in := readInput("Glob", raw, globExample, []string{"pattern", "path", "limit"}, others)
			g := globber{env: env, written: in.text("pattern", true), limit: in.whole("limit", globUsual, 1)}
			directory := in.text("path", false)
			var err error
			if in.err() == nil {
				if g.pattern, err = parseGlob(g.written); err != nil {
					in.problem(`"pattern" cannot be read: %v`, err)
				}
			}
			if err := in.err(); err != nil {
				return Action{}, err
			}
			if g.path, err = searchPath(env, directory); err != nil {
				return Action{}, err
			}
			if g.name, err = g.begin(); err != nil {
				return Action{}, err
			}
			return Action{
				Kind: event.Search, Paths: []string{g.name}, Title: "Find " + text.Name(g.written), Input: in.json(),
				Run: func(ctx context.Context, _ func(string)) Result { return g.run(ctx) },
			}, nil
		},
	}
}

// globber is one call of Glob.
type globber struct {
	env     *Env
	written string
	pattern *globPattern
	path    string // the directory that was given
	name    string // the directory that the search begins in: what the pattern writes out is not searched for
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
		return g.env.Files.Name("./" + g.path + "/" + base + "/") // the blanks at the ends are of the names
	}
}

// globZone is what a folder of the search knows.
type globZone struct {
	scope *ignore.Scope
	spots []globSpot
}

type globFound struct {
	path string
	at   time.Time
}

// globHeap is what one worker has found: the newest of it.
type globHeap struct {
	found []globFound
	count int
}

func (h *globHeap) add(f globFound, limit int) {
	h.count++
	if h.found = append(h.found, f); len(h.found) >= 2*limit+1000 {
		h.found = newest(h.found, limit)
	}
}

// newest sorts and keeps the first; what is of the same time is in the order of its names.
func newest(found []globFound, limit int) []globFound {
	slices.SortFunc(found,
		func(a, b globFound) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.path, b.path)) })
	return found[:min(limit, len(found))]
}

func (g *globber) run(ctx context.Context) Result {
	info, err := g.env.Files.Stat(g.path)
	if err == nil && !info.IsDir() {
		err = fault.New(fault.Unsafe, "%s is a file, not a directory",
			text.Name(g.path)).Hint("Leave path out, and write it into the pattern.")
	}
	if err != nil {
		return failed(notListed(g.env, g.path, err))
	}
	heaps := make([]globHeap, workspace.Workers())
	missed, err := g.walk(ctx, heaps)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return failed(fault.New(fault.Interrupted, "the search was ended before it had finished").Because(err))
	}
	if err != nil && g.name == g.path {
		return failed(err)
	}
	var found []globFound
	count := 0
	for _, h := range heaps {
		found = append(found, h.found...)
		count += h.count
	}
	return g.report(newest(found, g.limit), count, missed)
}

func (g *globber) walk(ctx context.Context, heaps []globHeap) (missed int, err error) {
	w := newGround(g.env, g.name, ".fdignore")
	return g.env.Files.Survey(ctx, g.name, globZone{w.scope, g.pattern.start()}, workspace.Survey{
		Enter: func(f *workspace.Folder, entries []workspace.Entry) { g.enter(w, f, entries) },
		File: func(worker int, f *workspace.Folder, name string) {
			if at, ok := f.Modified(name); ok {
				heaps[worker].add(globFound{w.shown(f, name), at}, g.limit)
			}
		},
	})
}

// enter takes what matches, and the directories in which something may.
func (g *globber) enter(w *ground, f *workspace.Folder, entries []workspace.Entry) {
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
		s := standing{hidden: e.Name[0] == '.', ignored: e.Name == ".git"}
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

func (g *globber) report(found []globFound, count, missed int) Result {
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
