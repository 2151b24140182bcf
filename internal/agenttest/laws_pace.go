//go:build unix

package agenttest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"omniagent/internal/modelserver"
)

// Circumstance is what the laws hold in, beside a model that answers at once and a workspace that nobody else touches.
type Circumstance struct {
	Name string
	Pace modelserver.Pace
	Busy bool // somebody else works in the workspace meanwhile
}

// Circumstances are those in which each law holds. Their silences are longer than any of our own clocks that could take
// one for a fault, but for those that are tried with real agents: see test/agents.
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

// Trials are all that can be made: neighbours differ in everything, so that a part of them has some of each.
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
