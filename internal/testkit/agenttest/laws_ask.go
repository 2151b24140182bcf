//go:build unix

package agenttest

import (
	"errors"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// answers: a question is answered once; a late answer is refused; one that is taken back is announced.
func answers(t *testing.T, s Subject) {
	t.Run("once", func(t *testing.T) {
		t.Parallel()
		k := s.open(t, wish{mode: setting.Prompt})
		turn := k.say("make made")
		q := k.untilKind(event.Question)
		k.reply(q, event.Allow)
		if err := k.answer(*q.Ask, event.Deny); !errors.Is(err, fault.Conflicting) && !s.Host.soft {
			t.Errorf("a second answer: %v", err)
		}
		unknown := event.Ask{ID: "q99.1"}
		if err := k.answer(unknown, event.Allow); !errors.Is(err, fault.NotFoundCode) && !s.Host.soft {
			t.Errorf("an answer to nothing: %v", err)
		}
		if e := k.endOf(turn); !e.End.OK || !k.p.has("made") {
			t.Errorf("%+v, made: %v", e.End, k.p.has("made"))
		}
		answers := 0 // to this question: in a terminal a late answer is a message, which may lead to another one
		for _, e := range k.events() {
			if e.Kind == event.Replied && e.Reply.Question == q.Ask.ID {
				answers++
			}
		}
		if answers != 1 {
			t.Errorf("%d answers are on record\n%s", answers, told(k.events()))
		}
	})
	t.Run("no", func(t *testing.T) {
		t.Parallel()
		k := s.open(t, wish{mode: setting.Prompt})
		turn := k.say("make made")
		k.reply(k.untilKind(event.Question), event.Deny)
		if k.endOf(turn); k.p.has("made") || k.count(event.ToolResult) != 1 {
			t.Errorf("made: %v\n%s", k.p.has("made"), told(k.events()))
		}
	})
	answersWithdrawn(t, s)
	for name, answered := range map[string]bool{"left and answered": true, "left and passed over": false} {
		t.Run(name, func(t *testing.T) { t.Parallel(); answersLeft(t, s, answered) })
	}
}

// answersLeft is what becomes of a question whose process died: its answer is the next message, or another message
// withdraws it.
func answersLeft(t *testing.T, s Subject, answered bool) {
	if s.Host.Name != Direct().Name || s.installed {
		t.Skip("the process that dies is one of this test's own")
	}
	p := newPlace(t, s)
	h := p.holdElsewhere(t, order{Agent: s.Agent, Mode: setting.Prompt, Messages: []string{task("make made")}})
	for {
		line, err := h.out.ReadString('\n')
		if err != nil {
			t.Fatalf("it asked nothing: %v", err)
		}
		if strings.Contains(line, `"kind":"question"`) {
			break
		}
	}
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
	k := s.open(t, wish{in: p, resume: h.id, mode: setting.Prompt})
	q := k.untilKind(event.Question)
	if !answered {
		k.endOf(k.say("say on"))
		if k.withdrawal(q) < 0 {
			t.Errorf("the question is still open\n%s", told(k.events()))
		}
		if err := k.answer(*q.Ask, event.Allow); err == nil {
			t.Error("an answer to a question that was withdrawn is taken")
		}
		return
	}
	k.reply(q, event.Allow)
	said := k.untilKind(event.Prompted)
	if text := said.Blocks[0].Text; !strings.Contains(text, q.Ask.Text) || !strings.Contains(text, event.Allow) {
		t.Errorf("the answer became the message %q", text)
	}
	k.stopTurn(true)
	k.endOf(said.Turn)
	if err := k.answer(*q.Ask, event.Deny); !errors.Is(err, fault.Conflicting) {
		t.Errorf("a second answer: %v", err)
	}
}

// answersWithdrawn tries questions that nobody answers.
func answersWithdrawn(t *testing.T, s Subject) {
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		k := s.open(t, wish{mode: setting.Prompt})
		turn := k.say("make made")
		q := k.untilKind(event.Question)
		k.stopTurn(true)
		k.endOf(turn)
		if i := k.withdrawal(q); i < 0 || k.p.has("made") {
			t.Errorf("made: %v\n%s", k.p.has("made"), told(k.events()))
		}
		if client, ok := k.side.(interface{ shown(event.Ask) bool }); ok && !client.shown(*q.Ask) {
			return
		}
		if err := k.answer(*q.Ask, event.Allow); err == nil && !s.Host.soft {
			t.Error("an answer behind the end of the turn is taken")
		}
	})
	t.Run("taken back", func(t *testing.T) {
		t.Parallel()
		if s.Agent != "live" {
			t.Skip("the engine takes no question back while its turn goes on")
		}
		k := s.open(t, wish{mode: setting.Prompt})
		turn := k.say("takeback", "say on")
		q := k.untilKind(event.Question)
		if k.endOf(turn); k.withdrawal(q) < 0 || k.text(turn) != "on" {
			t.Errorf("%s", told(k.events()))
		}
	})
	t.Run("end of input", func(t *testing.T) {
		t.Parallel()
		k := s.open(t, wish{mode: setting.Prompt})
		k.say("make made")
		k.untilKind(event.Question)
		if d, ok := k.side.(direct); ok {
			d.NobodyAnswers()
			k.untilKind(event.Ended)
		}
		if h, ok := k.side.(interface{ hangUp() error }); ok {
			if err := h.hangUp(); err != nil {
				t.Error(err)
			}
		}
		k.end()
		if k.p.has("made") {
			t.Errorf("the end of the input was an agreement\n%s", told(k.events()))
		}
		for _, e := range k.events() {
			if e.Kind == event.Replied && e.Reply.Option != event.Deny {
				t.Errorf("%+v", e.Reply)
			}
		}
	})
}

// withdrawal returns where a question was taken back, or -1.
func (k *talk) withdrawal(q event.Event) int {
	return index(k.events(), func(e event.Event) bool { return e.Kind == event.Withdrawn && e.Ask.ID == q.Ask.ID })
}

// count returns how many events of a kind there are.
func (k *talk) count(kind event.Kind) (n int) {
	for _, e := range k.events() {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// asksAtOnce: several sub-agents ask at once, and are answered in any order, each with its own answer.
func asksAtOnce(t *testing.T, s Subject) {
	k := s.open(t, wish{mode: setting.Prompt})
	turn := k.say("asks 3", "say on")
	var asked []event.Event
	for range 3 {
		asked = append(asked, k.untilKind(event.Question))
	}
	options := []string{event.Deny, event.Allow, event.Deny}
	want := map[string]string{}
	for _, i := range []int{2, 0, 1} {
		k.reply(asked[i], options[i])
		want[asked[i].Ask.Tool.ID] = options[i]
	}
	if e := k.endOf(turn); !e.End.OK {
		t.Errorf("%+v", e.End)
	}
	for _, e := range k.events() {
		if e.Kind != event.ToolResult || want[e.Result.ID] == "" {
			continue
		}
		if !strings.Contains(e.Result.Output, "answered "+want[e.Result.ID]) {
			t.Errorf("%s got %q, want %q", e.Result.ID, e.Result.Output, want[e.Result.ID])
		}
		delete(want, e.Result.ID)
	}
	if len(want) > 0 {
		t.Errorf("without an answer: %v\n%s", want, told(k.events()))
	}
}

// steers: a message for a running turn reaches it, or becomes a message, and the host learns which.
func steers(t *testing.T, s Subject) {
	if s.Agent == "live" {
		t.Run("too late", func(t *testing.T) {
			k := s.open(t, wish{})
			turn := k.say("busy")
			k.working(turn)
			if reached, err := k.steer(task("say over")); err != nil || reached {
				t.Fatalf("what came too late reached the turn: %v, %v", reached, err)
			}
			k.when("the message", func([]event.Event) bool { return len(k.prompts("say over")) == 1 })
			k.stopTurn(false)
			if e := k.endOf(turn + 1); !e.End.OK || k.text(turn+1) != "over" {
				t.Errorf("%+v, said %q", e.End, k.text(turn+1))
			}
		})
	}
	k := s.open(t, wish{})
	turn := k.say("work")
	k.working(turn)
	reached, err := k.steer(task("say over"))
	if err != nil {
		t.Fatal(err)
	}
	if !reached {
		k.when("the message", func([]event.Event) bool { return len(k.prompts("say over")) > 0 })
		k.stopTurn(false)
		next := k.prompts("say over")
		if len(next) != 1 || next[0].Turn != turn+1 {
			t.Fatalf("it reached nothing, and did not become a message\n%s", told(k.events()))
		}
		if e := k.endOf(next[0].Turn); !e.End.OK || k.text(next[0].Turn) != "over" {
			t.Errorf("%+v, said %q", e.End, k.text(next[0].Turn))
		}
		return
	}
	if !s.stub() {
		k.stopTurn(false)
	}
	k.endOf(turn)
	steered := k.when("what was said", func(all []event.Event) bool {
		return index(all, func(e event.Event) bool { return e.Kind == event.Steered }) >= 0
	})
	if e := steered[index(steered, func(e event.Event) bool { return e.Kind == event.Steered })]; e.Turn != turn {
		t.Errorf("it reached turn %d, not %d", e.Turn, turn)
	}
	if len(k.prompts("say over")) != 0 {
		t.Error("it reached the turn and became a message as well")
	}
	if s.stub() && !strings.Contains(k.text(turn), "steered over") {
		t.Errorf("the agent did not hear it: %q", k.text(turn))
	}
}

// wakes: a turn that no message began has its own number, and an end of its own.
func wakes(t *testing.T, s Subject) {
	k := s.open(t, wish{})
	turn := k.say("say a", "wake")
	k.endOf(turn)
	woken := k.until("end of a turn that nobody asked for", func(e event.Event) bool {
		return e.Kind == event.Ended && e.Unprompted
	})
	if woken.Turn != turn+1 || k.text(woken.Turn) != "woken" || k.text(turn) != "a" {
		t.Errorf("turn %d said %q, turn %d said %q", turn, k.text(turn), woken.Turn, k.text(woken.Turn))
	}
	began := index(k.events(), func(e event.Event) bool { return e.Kind == event.TurnBegan && e.Turn == woken.Turn })
	if began < 0 {
		t.Errorf("it has no beginning\n%s", told(k.events()))
	}
	next := k.say("say b")
	if e := k.endOf(next); next <= woken.Turn || !e.End.OK || e.Unprompted {
		t.Errorf("turn %d behind %d: %+v", next, woken.Turn, e)
	}
}
