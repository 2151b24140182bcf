package process

import (
	"os"
	"strings"
)

// OwnNotes returns the notes of the registered children in dir that this process is, or descends from, whatever its
// environment says. It recognises a child with its own PID namespace by the namespace, and any other among the
// ancestors of this process. Inside a further PID namespace, such as that of another sandbox, it sees neither.
func OwnNotes(dir string) (notes []string) {
	children, err := Registers(dir)
	if err != nil || len(children) == 0 {
		return nil
	}
	here, above := numberSpace("self"), ancestors()
	self, _ := identity(os.Getpid())
	boot, _, _ := strings.Cut(self, ":")
	for _, c := range children {
		e := c.entry
		theirs, _, _ := strings.Cut(e.Identity, ":")
		within := e.Inside != "" && e.Inside == here && theirs == boot
		if within || e.Space == here && above[e.PID] && is(e.PID, e.Identity) {
			notes = append(notes, e.Note)
		}
	}
	return notes
}
