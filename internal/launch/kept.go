package launch

import (
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/core/event"
)

// notKept returns what the agent has written, since the last call, in places that are removed at the end: the files in
// /tmp or in a home directory, and the directories there that contain files, with a slash at the end.
func (a *AgentWalls) notKept() (all []string) {
	if a.walls == nil {
		return nil
	}
	for _, path := range a.walls.Left() {
		top := path
		for _, place := range append([]string{"/tmp"}, a.homes...) {
			if rest, within := strings.CutPrefix(path, place+string(filepath.Separator)); within {
				first, _, deeper := strings.Cut(rest, string(filepath.Separator))
				if top = filepath.Join(place, first); deeper {
					top += string(filepath.Separator)
				}
			}
		}
		if scratch(a.scratch, filepath.Base(top)) || slices.Contains(a.told, top) {
			continue
		}
		a.told, all = append(a.told, top), append(all, top)
	}
	return all
}

func scratch(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		fits, _ := filepath.Match(pattern, name)
		return fits
	})
}

// tellsLost adds to the end of a turn which files are not kept.
func (a *AgentWalls) tellsLost(e event.Event) event.Event {
	if e.Kind != event.Ended || e.End == nil || e.Parent != "" {
		return e
	}
	a.mu.Lock()
	lost := a.notKept()
	a.mu.Unlock()
	if len(lost) > 0 {
		end := *e.End
		end.NotKept, end.KeptBy, e.End = lost, a.keptBy, &end
	}
	return e
}

// last logs, before the walls are removed, what was written after the last turn, or in a turn without an end.
func (a *AgentWalls) last() {
	a.mu.Lock()
	defer a.mu.Unlock()
	end := event.End{NotKept: a.notKept(), KeptBy: a.keptBy}
	if lost := end.Lost(); lost != "" && a.log != nil {
		a.log("%s", lost)
	}
}
