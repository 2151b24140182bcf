package native

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/shell"
)

// leftovers finds the files that commands leave in their temporary directory, which is deleted with the walls. It
// reports only names that a command contains, because other files are caches of programs.
type leftovers struct {
	dir    string // its real path; empty: there are no walls
	as     string // its path for commands
	places []string

	mu    sync.Mutex
	words map[string]bool // words of the commands
	told  []string
}

// follow returns a starter that also records the words of the commands that it starts.
func (l *leftovers) follow(start shell.Starter) shell.Starter {
	if start == nil || l.dir == "" {
		return start
	}
	return func(line, dir string, env []string) (process.Plan, error) {
		l.mu.Lock()
		for _, word := range strings.FieldsFunc(line, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-+@", r)
		}) {
			l.words[word] = true
		}
		l.mu.Unlock()
		return start(line, dir, env)
	}
}

// take returns the files and directories that a command has named and that no earlier call returned.
func (l *leftovers) take() (paths []string) {
	if l.dir == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range policy.Left(l.dir, l.as, l.places) {
		if l.words[filepath.Base(path)] && !slices.Contains(l.told, path) {
			l.told, paths = append(l.told, path), append(paths, path)
		}
	}
	return paths
}

// tells returns a function that adds the paths that are not kept to the end of a turn.
func (l *leftovers) tells(tell func(event.Event)) func(event.Event) {
	if tell == nil {
		return nil
	}
	return func(e event.Event) {
		if e.Kind == event.Ended && e.End != nil && e.Parent == "" {
			if lost := l.take(); len(lost) > 0 {
				end := *e.End
				end.NotKept, end.KeptBy, e.End = lost, "--add-dir DIR", &end
			}
		}
		tell(e)
	}
}

// leaves begins to record what commands behind walls leave in their temporary directory.
func (m *Mind) leaves(o *Options, walls *policy.Walls, temp string) {
	m.left.dir, m.left.as, m.left.words = temp, walls.SeenTemp(temp), map[string]bool{}
	for _, place := range append([]string{o.Dir, o.Walls.Home}, o.Terms.Dirs...) {
		m.left.places = append(m.left.places, pathname.Real(place))
	}
}
