//go:build unix

package agenttest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"omniagent/internal/llm/modelserver"
)

// Circumstance is a condition under which the laws must hold, such as a slow model or other work in the workspace.
type Circumstance struct {
	Name string
	Pace modelserver.Pace
	Busy bool // somebody else works in the workspace meanwhile
}

// Circumstances returns all of them. Their silences are longer than each of our clocks that could mistake one for a
// fault, except for the clocks that test/agents tries with real agents.
func Circumstances() []Circumstance {
	return []Circumstance{
		{Name: "late", Pace: modelserver.Pace{First: 3 * time.Second}},
		{Name: "halting", Pace: modelserver.Pace{After: 3 * time.Second}},
		{Name: "dribbling", Pace: modelserver.Pace{Piece: time.Millisecond, Byte: 50 * time.Microsecond}},
		{Name: "crowded", Busy: true},
		{Name: "late and crowded", Pace: modelserver.Pace{First: time.Second, After: time.Second}, Busy: true},
	}
}

// Trial is a law, tried on a subject in a circumstance.
type Trial struct {
	subject Subject
	law     law
	in      Circumstance
}

// Trials returns all combinations, in an order in which neighbours differ, so that any part of them is a good sample.
func Trials(subjects []Subject) []Trial {
	var all []Trial
	circumstances := Circumstances()
	for k := range circumstances {
		for i, s := range subjects {
			for j, l := range laws() {
				in := circumstances[(i+j+k)%len(circumstances)]
				if s.Unsaid(l.number) == "" && l.number != heavy {
					s.Pace, s.Busy = in.Pace, in.Busy
					all = append(all, Trial{s, l, in})
				}
			}
		}
	}
	// With a stride that has no divisor in common with the length each comes once.
	stride := 211
	for len(all)%stride == 0 {
		stride += 2
	}
	mixed := make([]Trial, len(all))
	for i := range all {
		mixed[i] = all[i*stride%len(all)]
	}
	return slices.Clip(mixed)
}

// Try tries it as a subtest.
func (l Trial) Try(t *testing.T) {
	t.Run(fmt.Sprintf("%s, law%02d, %s", l.subject.Name(), l.law.number, l.in.Name), func(t *testing.T) {
		t.Parallel()
		l.law.try(t, l.subject)
	})
}
