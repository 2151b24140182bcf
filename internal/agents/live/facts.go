package live

import (
	"cmp"
	"reflect"
	"slices"

	"omniagent/internal/core/event"
)

// difference returns the facts that are set in now and differ from before.
func difference(before, now event.Facts) (change event.Facts, different bool) {
	was, is, diff := reflect.ValueOf(before), reflect.ValueOf(now), reflect.ValueOf(&change).Elem()
	for i := range is.NumField() {
		if f := is.Field(i); !f.IsZero() && !reflect.DeepEqual(f.Interface(), was.Field(i).Interface()) {
			diff.Field(i).Set(f)
			different = true
		}
	}
	return change, different
}

// SortServers sorts MCP servers by name, so that equal lists compare equal.
func SortServers(list []event.Server) []event.Server {
	slices.SortFunc(list, func(a, b event.Server) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
