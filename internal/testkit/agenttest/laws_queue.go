//go:build unix

package agenttest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"omniagent/internal/core/event"
)

// queues: a message that is sent while a turn runs is accepted at once, has the next number, and is answered next.
func queues(t *testing.T, s Subject) {
	k := s.open(t, wish{})
	first := k.say("wait " + k.p.file("go1"))
	if s.installed { // some tell of a call when it is over
		k.appears("go1.waits")
	} else {
		k.working(first)
	}
	second := k.say("say b")
	third := k.say("say c")
	if second != first+1 || third != second+1 {
		t.Errorf("turns %d, %d, %d do not follow one another", first, second, third)
	}
	if got := k.ends(); len(got) > 0 {
		t.Errorf("the messages waited for an end: %q", got)
	}
	k.p.touch(t, "go1")
	for turn, text := range map[int64]string{second: "b", third: "c"} {
		if e := k.endOf(turn); !e.End.OK || k.text(turn) != text {
			t.Errorf("turn %d: %+v, said %q, want %q", turn, e.End, k.text(turn), text)
		}
	}
	k.equal("ends", k.ends(), []string{
		fmt.Sprint(first, " success"), fmt.Sprint(second, " success"), fmt.Sprint(third, " success"),
	})
}

// stopTurn interrupts. A host without a word for messages that wait has one meaning of its own.
func (k *talk) stopTurn(drop bool) {
	k.t.Helper()
	if err := k.interrupt(drop); err != nil {
		k.t.Fatal(err)
	}
}

// ends: whatever happens to a turn, each message has one end, and the ends are in the order of the messages.
func ends(t *testing.T, s Subject) {
	k := s.open(t, wish{grace: 300 * time.Millisecond})
	var want []string
	expect := func(reason string, parts ...string) int64 {
		turn := k.say(parts...)
		want = append(want, fmt.Sprint(turn, " ", reason))
		return turn
	}
	first := k.endOf(expect("success", "say a"))
	k.endOf(expect("error_during_execution", "fail"))
	if s.stub() {
		e := k.endOf(expect("error_during_execution", "die"))
		if e.End.OK {
			t.Errorf("a turn whose process died ended well: %+v", e.End)
		}
		turn := expect("success", "finish") // interrupted, it ends well: the agent's word counts
		k.working(turn)
		k.stopTurn(false)
		if e := k.endOf(turn); e.Synthetic || k.text(turn) != "workingfinished anyway" {
			t.Errorf("our end took the place of the agent's: %+v, said %q", e, k.text(turn))
		}
	}
	k.ownUsage(first, k.endOf(expect("success", "say b")))
	if s.installed { // a stub tells the same of every turn
		k.wholeUsage(first, k.endOf(expect("success", "make made")))
	}
	last := "deaf"
	if s.installed {
		last = "work"
	}
	k.working(expect("cancelled", last))
	if s.Host.single == "" {
		expect("cancelled", "say c")
		expect("cancelled", "say d")
	}
	k.end()
	k.equal("ends", k.ends(), want)
}

// ownUsage compares the usage of two turns with answers of the same length: an end tells that of its turn.
func (k *talk) ownUsage(one, other event.Event) {
	k.t.Helper()
	if a, b := one.End.Usage, other.End.Usage; a != nil && b != nil && a.Output != b.Output {
		k.t.Errorf("one answer took %+v, another of the same length %+v", *a, *b)
	}
}

// wholeUsage compares the usage of a turn of one request with that of a later turn of two, which sends all of it twice.
func (k *talk) wholeUsage(one, two event.Event) {
	k.t.Helper()
	read := func(u *event.Usage) int64 { return u.Input + u.Cached + u.Written }
	if a, b := one.End.Usage, two.End.Usage; a != nil && b != nil && 2*read(b) < 3*read(a) {
		k.t.Errorf("one request took %+v, two requests %+v", *a, *b)
	}
}

// interrupts: Interrupt returns at once in every state, the turn ends within the grace period, and a second Interrupt
// kills.
func interrupts(t *testing.T, s Subject) {
	t.Run("polite", func(t *testing.T) {
		t.Parallel()
		k := s.open(t, wish{grace: 20 * time.Second})
		if s.Host.idle == "" {
			k.quickly("idle")
		}
		turn := k.say("stall")
		k.working(turn)
		began := time.Now()
		k.stopTurn(false)
		if e := k.endOf(turn); e.End.Reason != event.Cancelled || time.Since(began) > 10*time.Second {
			t.Errorf("after %v: %+v", time.Since(began), e.End)
		}
	})
	if s.installed {
		return // none of them is deaf when a script tells it to be
	}
	t.Run("grace", func(t *testing.T) {
		t.Parallel()
		k := s.open(t, wish{grace: 500 * time.Millisecond})
		turn := k.deafTurn()
		began := time.Now()
		k.stopTurn(false)
		if e := k.endOf(turn); e.End.Reason != event.Cancelled || time.Since(began) > 10*time.Second {
			t.Errorf("after %v: %+v", time.Since(began), e.End)
		}
		if s.Host.mute {
			return // whose client learns the name of a session with the end of a call
		}
		if e := k.endOf(k.say("say on")); !e.End.OK {
			t.Errorf("the conversation does not go on: %+v", e.End)
		}
	})
	t.Run("kill", func(t *testing.T) {
		t.Parallel()
		if s.Host.mute {
			t.Skip("a call that was cancelled is over for its client: there is no second time")
		}
		k := s.open(t, wish{grace: patience + 10*time.Second})
		turn := k.deafTurn()
		k.quickly("working")
		if e := k.endOf(turn); e.End.Reason != event.Cancelled {
			t.Errorf("%+v", e.End)
		}
	})
}

// deafTurn is a turn that ignores interruptions.
func (k *talk) deafTurn() int64 {
	k.t.Helper()
	turn := k.say("deaf")
	k.working(turn)
	if k.s.Driver == nil { // of the engine, its command
		k.appears("deaf")
	}
	return turn
}

// appears waits for a file of the workspace.
func (k *talk) appears(name string) {
	k.t.Helper()
	for over := time.Now().Add(4 * patience); !k.p.has(name); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(over) {
			k.t.Fatal("the command does not begin")
		}
	}
}

// quickly interrupts several times and measures the time. The second interruption kills the turn.
func (k *talk) quickly(state string) {
	k.t.Helper()
	var took []time.Duration
	for range 5 {
		began := time.Now()
		k.stopTurn(false)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	if took[2] > 50*time.Millisecond {
		k.t.Errorf("%s: Interrupt returns in %v", state, took)
	}
}

// drops: messages in the queue are dropped, each with its end after that of the turn, or answered next.
func drops(t *testing.T, s Subject) {
	for _, drop := range []bool{true, false} {
		t.Run(fmt.Sprint("drop ", drop), func(t *testing.T) {
			t.Parallel()
			if why := s.Host.queue[drop]; why != "" {
				t.Skip(why)
			}
			k := s.open(t, wish{})
			first := k.say("work")
			k.working(first)
			second, third := k.say("say b"), k.say("say c")
			k.stopTurn(drop)
			reason := map[bool]string{true: event.Cancelled, false: event.Success}[drop]
			k.endOf(third)
			k.equal("ends", k.ends(), []string{
				fmt.Sprint(first, " cancelled"), fmt.Sprint(second, " ", reason), fmt.Sprint(third, " ", reason),
			})
			if e := k.endOf(k.say("say on")); !e.End.OK {
				t.Errorf("the conversation does not go on: %+v", e.End)
			}
		})
	}
}
