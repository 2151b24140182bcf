//go:build unix

package agenttest

import (
	"os"
	"testing"
)

// built is the built program.
var built Built

func TestMain(m *testing.M) { os.Exit(Main(m, "../..", &built)) }

// subjects are every kind of agent, directly and through every host.
func subjects() (all []Subject) {
	for _, h := range []Host{Direct(), Flat(&built), Nested(&built), Editor(&built), Delegate(&built)} {
		all = append(all, Engine(h), Live(h), PerTurn(h))
	}
	return append(all, Engine(Lines(&built))) // the others have screens of their own
}

// TestLaws tries the laws.
func TestLaws(t *testing.T) {
	t.Logf("what cannot be tried:\n%s", Unsaid(subjects()))
	for _, s := range subjects() {
		t.Run(s.Name(), func(t *testing.T) {
			t.Parallel()
			Laws(t, s)
		})
	}
}

// TestStoppedReader tries the law that measures.
func TestStoppedReader(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.Name(), func(t *testing.T) { Heavy(t, s) })
	}
}
