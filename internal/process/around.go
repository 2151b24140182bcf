package process

import (
	"os"
	"strings"
)

// Around returns the notes of the children in the registers of dir to which this process belongs: it is such a child,
// or was started by one, however it has changed its environment. Of a child in a PID namespace of its own that is seen
// by the namespace, else by the processes above us. Beneath a further PID namespace, such as that of another sandbox,
// neither can be seen.
func Around(dir string) (notes []string) {
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
