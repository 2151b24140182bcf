package launch

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
)

// outside is a path of a call that the walls hide from the agent, or that is removed with them.
type outside struct {
	path   string
	hidden bool   // it exists, but not for the agent; otherwise, what is written there is not kept
	dir    string // the directory to open for the agent; empty: none can be
}

// beyond returns a path of a call that lies outside the walls, a hidden one if there is any. In a command, it finds
// only the paths that are written out.
func (a *AgentWalls) beyond(c *event.Call) (p outside, found bool) {
	if a.walls == nil || c == nil {
		return p, false
	}
	for _, path := range a.paths(c) {
		effects, err := a.explain(path)
		if err != nil || len(effects) < 2 {
			return p, false
		}
		_, missing := os.Lstat(path)
		private := slices.ContainsFunc(append([]string{"/tmp"}, a.homes...), func(dir string) bool {
			return pathname.Within(dir, path)
		})
		switch {
		case effects[0].Allowed:
		case missing == nil:
			return outside{path, true, a.openable(path)}, true
		case !found && private && (c.Kind == event.Write || c.Kind == event.Shell):
			p, found = outside{path, false, a.openable(path)}, true
		}
	}
	return p, found
}

// paths returns the absolute paths that a call names.
func (a *AgentWalls) paths(c *event.Call) (all []string) {
	words := []string{c.Path}
	if c.Path == "" {
		words = strings.FieldsFunc(c.Command, func(r rune) bool { return strings.ContainsRune(" \t\n;|&<>()'\"`=", r) })
	}
	for _, word := range words {
		if rest, home := strings.CutPrefix(word, "~/"); home && len(a.homes) > 0 {
			word = filepath.Join(a.homes[0], rest)
		}
		if filepath.IsAbs(word) || strings.HasPrefix(word, "../") {
			all = append(all, filepath.Clean(pathname.From(a.dir, word)))
		}
	}
	return all
}

// openable returns the directory to open for a path. It returns "" if the agent cannot get directories, the directory
// does not exist, it is a dot directory of a home, or it contains the workspace, a home or /tmp.
func (a *AgentWalls) openable(path string) string {
	dir := path
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		dir = filepath.Dir(path)
	}
	holds := slices.ContainsFunc(append([]string{"/tmp", a.dir}, a.homes...), func(place string) bool {
		return pathname.Within(dir, place)
	})
	_, missing := os.Stat(dir)
	inHome := slices.ContainsFunc(a.homes, func(home string) bool {
		rest, within := strings.CutPrefix(dir, home+string(filepath.Separator))
		return within && strings.HasPrefix(rest, ".")
	})
	if a.keptBy == "" || holds || missing != nil || inHome {
		return ""
	}
	return dir
}

// tells adds to a question, and to the result of a call that failed, that a path lies outside the walls. To the end of
// a turn it adds which files are not kept.
func (a *AgentWalls) tells(e event.Event) event.Event {
	if a.walls == nil {
		return e
	}
	switch e.Kind {
	case event.ToolCall:
		a.mu.Lock()
		a.calls[e.Call.ID] = e.Call
		a.mu.Unlock()
	case event.Question:
		if e.Ask.Tool != nil {
			a.mu.Lock()
			a.asked[e.Ask.ID] = e.Ask.Tool.ID
			a.mu.Unlock()
		}
		if p, is := a.beyond(e.Ask.Tool); is {
			ask := *e.Ask
			ask.Reason, ask.Opens = cmp.Or(ask.Reason, p.sentence(a.title)), p.dir
			e.Ask = &ask
		}
	case event.ToolResult:
		a.mu.Lock()
		call := a.calls[e.Result.ID]
		delete(a.calls, e.Result.ID)
		a.mu.Unlock()
		if p, is := a.beyond(call); is && p.hidden && e.Result.Failed {
			result := *e.Result
			result.Output = strings.TrimRight(result.Output, "\n") + "\n(" + p.sentence(a.title) + ")"
			e.Result = &result
		}
	}
	return a.tellsLost(e)
}

// answered forgets a call that a person refused, since its result says nothing about a path.
func (a *AgentWalls) answered(r event.Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Option == event.Deny {
		delete(a.calls, a.asked[r.Question])
	}
	delete(a.asked, r.Question)
}

// sentence describes how the agent sees a path.
func (p outside) sentence(agent string) string {
	path := text.Name(p.path)
	if p.hidden {
		return path + " exists, and the walls hide it from " + agent
	}
	return path + " lies behind the walls: what " + agent + " writes there is not kept"
}
