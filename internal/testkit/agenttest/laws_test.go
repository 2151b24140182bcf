//go:build unix

package agenttest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// built is the built program.
var built Built

func TestMain(m *testing.M) { os.Exit(Main(m, "../../..", &built)) }

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
			if s.Host.Name != Direct().Name {
				hermetic.LongAlone(t)
			}
			Laws(t, s)
		})
	}
}

// TestEveryHost tries a few laws through each host, so that one that does not work is found at once. TestLaws tries
// all.
func TestEveryHost(t *testing.T) {
	for _, h := range []Host{Flat(&built), Nested(&built), Editor(&built), Delegate(&built), Lines(&built)} {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			Few(t, Engine(h), 2, 3, 9)
		})
	}
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../../.."); err != nil {
		t.Fatal(err)
	}
}

// TestStoppedReader tries the law that measures.
func TestStoppedReader(t *testing.T) {
	hermetic.Long(t)
	for _, s := range subjects() {
		t.Run(s.Name(), func(t *testing.T) { Heavy(t, s) })
	}
}

// TestFlood has each agent say too much through each host.
func TestFlood(t *testing.T) {
	hermetic.Long(t)
	type flood struct {
		s Subject
		d Deluge
	}
	var all []flood
	for _, d := range Deluges() {
		for _, h := range []Host{Flat(&built), Nested(&built), Editor(&built), Delegate(&built), Lines(&built)} {
			if h.passes == "" {
				all = append(all, flood{Live(h), d})
			}
			if h.Name != Lines(&built).Name { // it talks with that agent in another protocol
				all = append(all, flood{PerTurn(h), d})
			}
		}
	}
	for _, f := range hermetic.InTurn(t, all, 3) {
		t.Run(f.s.Name()+", "+f.d.Name, func(t *testing.T) { Flood(t, f.s, f.d) })
	}
}

// TestLawsInTurn tries the laws with slow models and in workspaces where somebody else works.
func TestLawsInTurn(t *testing.T) {
	hermetic.Long(t)
	for _, trial := range hermetic.InTurn(t, Trials(subjects()), 24) {
		trial.Try(t)
	}
}

// slowToReturn is a Mind whose turns return only when they are let go.
type slowToReturn struct {
	agent.Mind
	letGo <-chan struct{}
}

func (m slowToReturn) Turn(ctx context.Context, message []event.Block) error {
	err := m.Mind.Turn(ctx, message)
	<-m.letGo
	return err
}

// TestChangesAtTheEndOfATurn: a host that has read the end of a turn may make changes that need a restart, although
// Mind.Turn has not returned.
func TestChangesAtTheEndOfATurn(t *testing.T) {
	letGo := make(chan struct{})
	s := PerTurn(Direct())
	s.around = func(m agent.Mind) agent.Mind { return slowToReturn{m, letGo} }
	k := s.open(t, wish{mode: setting.Prompt})
	k.endOf(k.say("say a"))
	replies, left := make(chan error, 2), 2
	for _, mode := range []setting.Approval{setting.AutoEdit, setting.Yolo} {
		go func() { replies <- k.set(agent.Change{Mode: mode}) }()
	}
	select {
	case err := <-replies:
		left--
		t.Errorf("a change did not wait for the return: %v", err)
	case <-time.After(50 * time.Millisecond): // a wrong one answers at once
	}
	close(letGo)
	for range left {
		if err := <-replies; err != nil {
			t.Error(err)
		}
	}
	second := k.say("where")
	k.endOf(second)
	if mode := facts(k.text(second))["mode"]; mode != "auto_edit" && mode != "yolo" {
		t.Errorf("the agent is in mode %q", mode)
	}
}

// TestPace: a stub and a model are as slow as their pace says.
func TestPace(t *testing.T) {
	const pause = 300 * time.Millisecond
	for _, pace := range []modelserver.Pace{{First: pause}, {After: pause}, {Piece: pause}} {
		for _, s := range []Subject{Engine(Direct()), Live(Direct()), PerTurn(Direct())} {
			t.Run(fmt.Sprint(s.Name(), pace), func(t *testing.T) {
				t.Parallel()
				s.Pace = pace
				k := s.open(t, wish{})
				began := time.Now()
				turn := k.say("say slowly")
				if e := k.endOf(turn); !e.End.OK || time.Since(began) < pause || k.text(turn) != "slowly" {
					t.Errorf("%v after %v: %q", e.End, time.Since(began), k.text(turn))
				}
			})
		}
	}
}
