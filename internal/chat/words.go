package chat

import (
	"strings"

	"omniagent/internal/event"
)

// wallsOf says what holds the commands of an agent.
func wallsOf(w *event.Walls) string {
	line := w.Name + ", network " + w.Network
	if len(w.Holes) > 0 {
		line += "; they do not stop: " + strings.Join(w.Holes, "; ")
	}
	return line
}
