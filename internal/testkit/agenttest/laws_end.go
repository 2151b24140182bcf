//go:build unix

package agenttest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/testkit/hermetic"
)

// limits: 64 messages wait, and the next one is refused with a reason that has a type. Of calls that only read
// eight run side by side, of which the engine has a test of its own: from outside it cannot be seen how many
// reads overlap.
func limits(t *testing.T, s Subject) {
	k := s.open(t, wish{})
	first := k.say("work")
	k.working(first)
	for i := range conversation.MostWaiting {
		if err := k.send(task(fmt.Sprint("say ", i))); err != nil {
			t.Fatalf("message %d: %v", i+1, err)
		}
	}
	err := k.send(task("say too many"))
	if !s.Host.soft && !errors.Is(err, fault.TooManyRequests) {
		t.Errorf("message %d: %v", conversation.MostWaiting+1, err)
	}
	k.when("64 messages", func([]event.Event) bool { return len(k.prompts("say")) >= conversation.MostWaiting })
	k.stopTurn(true)
	k.endOf(first)
	if !s.Host.holds && len(k.prompts("too many")) != 0 {
		t.Error("a message too many was accepted")
	}
	if s.Host.queue[true] == "" {
		if e := k.endOf(k.say("say on")); !e.End.OK {
			t.Errorf("the conversation does not go on: %+v", e.End)
		}
	}
}

// closes: Close returns within the grace period and a second, and leaves nothing alive.
func closes(t *testing.T, s Subject) {
	const grace = 300 * time.Millisecond
	states := map[string][]string{
		"fresh": nil, "idle": {"say a"}, "working": {"work"}, "silent": {"stall"}, "deaf": {"deaf"},
		"left behind": {"family"},
		"flooding":    {"flood 20"},
	}
	for state, parts := range states {
		if s.installed && (state == "deaf" || state == "flooding") {
			continue // what only a stub does
		}
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			k := s.open(t, wish{grace: grace})
			if parts != nil {
				turn := k.say(parts...)
				switch state {
				case "idle", "left behind":
					k.endOf(turn)
				case "deaf":
					k.deafOf(turn)
				default:
					k.working(turn)
				}
			}
			began := time.Now()
			k.end()
			took := time.Since(began)
			if limit := grace + time.Second + slack; took > limit {
				t.Errorf("Close took %v, more than %v", took, limit)
			}
			if left := k.p.waitGone(time.Second); left != "" {
				t.Errorf("left alive:\n%s", left)
			}
			if ends, prompts := k.count(event.Ended), k.count(event.Prompted); ends != prompts {
				t.Errorf("%d messages, %d ends\n%s", prompts, ends, told(k.events()))
			}
		})
	}
}

// slack is how much longer a busy machine may take.
const slack = 3 * time.Second

// deafOf waits until the turn ignores interruptions.
func (k *talk) deafOf(turn int64) {
	k.t.Helper()
	k.working(turn)
	if k.s.Driver != nil {
		return
	}
	k.appears("deaf")
}

// resumes: a conversation that is opened again has the same ids and the same facts.
func resumes(t *testing.T, s Subject) {
	t.Run("the same", func(t *testing.T) { t.Parallel(); resumesSame(t, s) })
	t.Run("the stricter", func(t *testing.T) { t.Parallel(); resumesStricter(t, s) })
}

// resumesStricter asks for more than the conversation was allowed.
func resumesStricter(t *testing.T, s Subject) {
	switch {
	case s.Host.Name == Direct().Name:
		t.Skip("who opens the conversation compares the modes, and directly that is this test")
	case s.Host.mute:
		t.Skip(s.Host.Name + ": its client names the mode with each call")
	}
	w := wish{mode: s.Host.strict(s)}
	k := s.open(t, w)
	k.endOf(k.say("say a"))
	k.end()
	w.in, w.resume, w.mode = k.p, k.id(), setting.Yolo
	again := s.open(t, w)
	turn := again.say("make made")
	if s.live() {
		again.reply(again.untilKind(event.Question), event.Deny)
	}
	again.endOf(turn)
	if k.p.has("made") {
		t.Errorf("a conversation that was opened as %s writes unasked as %s\n%s", s.Host.strict(s), w.mode,
			told(again.events()))
	}
}

func resumesSame(t *testing.T, s Subject) {
	w := wish{mode: "auto-edit"}
	if s.installed {
		w.mode = "" // not each has every mode without a sandbox
	}
	k := s.open(t, w)
	first := k.say("where")
	firstEnd := k.endOf(first)
	k.end()
	w.in, w.resume = k.p, k.id()
	again := s.open(t, w)
	if again.id() != k.id() {
		t.Errorf("the id is %s, then %s", k.id(), again.id())
	}
	second := again.say("where")
	again.ownUsage(firstEnd, again.endOf(second))
	if second != first+1 {
		t.Errorf("turn %d is followed by turn %d", first, second)
	}
	if !s.stub() {
		return
	}
	before, after := facts(k.text(first)), facts(again.text(second))
	if before["session"] != after["session"] || before["mode"] != after["mode"] || before["pid"] == after["pid"] {
		t.Errorf("%v, then %v", before, after)
	}
}

// kills is how often a host is killed.
func kills(t *testing.T) int { return hermetic.Often(t, "OMNIAGENT_KILLS", 3) }
