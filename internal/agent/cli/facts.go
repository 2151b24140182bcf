package cli

import (
	"cmp"
	"reflect"
	"slices"

	"omniagent/internal/event"
)

// difference returns the facts that are set in now and differ from before.
func difference(before, now event.Facts) (change event.Facts, different bool) {
	for _, m := range []struct {
		before, now string
		change      *string
	}{
		{before.Agent, now.Agent, &change.Agent},
		{before.Version, now.Version, &change.Version},
		{before.Model, now.Model, &change.Model},
		{before.Provider, now.Provider, &change.Provider},
		{before.Dir, now.Dir, &change.Dir},
	} {
		if m.now != "" && m.now != m.before {
			*m.change, different = m.now, true
		}
	}
	if now.Mode != "" && now.Mode != before.Mode {
		change.Mode, different = now.Mode, true
	}
	if now.Tools != nil && !slices.Equal(now.Tools, before.Tools) {
		change.Tools, different = now.Tools, true
	}
	if now.Servers != nil && !slices.Equal(now.Servers, before.Servers) {
		change.Servers, different = now.Servers, true
	}
	if now.Helpers != nil && !slices.Equal(now.Helpers, before.Helpers) {
		change.Helpers, different = now.Helpers, true
	}
	if now.Walls != nil && !reflect.DeepEqual(now.Walls, before.Walls) {
		change.Walls, different = now.Walls, true
	}
	if now.Window != 0 && now.Window != before.Window {
		change.Window, different = now.Window, true
	}
	return change, different
}

// SortServers sorts MCP servers by name, so that equal lists compare equal.
func SortServers(list []event.Server) []event.Server {
	slices.SortFunc(list, func(a, b event.Server) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
