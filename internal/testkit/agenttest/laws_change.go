//go:build unix

package agenttest

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// index returns the place of an event among others, or -1.
func index(all []event.Event, match func(event.Event) bool) int {
	for i, e := range all {
		if match(e) {
			return i
		}
	}
	return -1
}

func changesMode(mode setting.Approval) func(event.Event) bool {
	return func(e event.Event) bool { return e.Kind == event.Changed && e.Facts != nil && e.Facts.Mode == mode }
}

// announces: a change is an event that precedes the first event that it affects, whatever caused it.
func announces(t *testing.T, s Subject) {
	t.Run("by the host", func(t *testing.T) {
		t.Parallel()
		if s.Host.fixed != "" {
			t.Skip(s.Host.fixed)
		}
		k := s.open(t, wish{mode: setting.Prompt, mute: s.Host.mute})
		k.endOf(k.say("say a"))
		k.change(s.Host.modes(s))
		turn := k.say("make made")
		k.endOf(turn)
		all := k.events()
		changed := index(all, changesMode(s.Host.modes(s)))
		made := index(all, func(e event.Event) bool { return e.Kind == event.ToolCall })
		if changed < 0 || made < changed || !k.p.has("made") {
			t.Errorf("the change is event %d, the call is %d, made: %v\n%s", changed, made, k.p.has("made"), told(all))
		}
	})
	t.Run("by the agent", func(t *testing.T) {
		t.Parallel()
		if !s.live() {
			t.Skip("it changes nothing by itself: each turn begins as it is told")
		}
		if s.Driver == nil && s.Host.mute {
			t.Skip("a plan needs somebody who agrees to it")
		}
		k := s.open(t, wish{mode: setting.Plan, mute: s.Host.mute})
		turn := k.say("mode acceptEdits", "say after")
		if !s.stub() {
			k.reply(k.untilKind(event.Question), event.Allow)
		}
		k.endOf(turn)
		all := k.events()
		changed := index(all, func(e event.Event) bool {
			return e.Kind == event.Changed && e.Facts.Mode != "" && e.Facts.Mode != setting.Plan
		})
		after := index(all, func(e event.Event) bool {
			return e.Kind == event.Text &&
				strings.Contains(e.Text, "after")
		})
		if changed < 0 || after < changed || all[changed].Turn != turn {
			t.Errorf("the change is event %d, what follows it is %d\n%s", changed, after, told(all))
		}
	})
}

// change changes the mode and requires that the change is made.
func (k *talk) change(mode setting.Approval) {
	k.t.Helper()
	if err := k.set(agent.Change{Mode: mode}); err != nil {
		k.t.Fatalf("set %s: %v", mode, err)
	}
	k.when("the change to "+string(mode), func(all []event.Event) bool { return index(all, changesMode(mode)) >= 0 })
}

// reply answers a question.
func (k *talk) reply(q event.Event, option string) {
	k.t.Helper()
	if err := k.answer(*q.Ask, option); err != nil {
		k.t.Fatalf("answer to %s: %v", q.Ask.ID, err)
	}
}

// sets: a change during a turn applies to the next call, even to one that the same answer of the model contains; or it
// fails, and nothing has changed.
func sets(t *testing.T, s Subject) {
	k := s.open(t, wish{mode: setting.Yolo, mute: s.Host.mute})
	go1, made := k.p.file("go1"), k.p.file("made")
	parts := []string{"wait " + go1, "make " + made}
	if s.Driver == nil {
		parts, made = []string{"both go1"}, k.p.file("go1.made")
	}
	turn := k.say(parts...)
	k.untilKind(event.ToolCall)
	if s.Driver == nil {
		k.appears("go1.waits") // it is told before it runs
	}
	stricter := s.Host.strict(s)
	before := len(k.events())
	err := k.set(agent.Change{Mode: stricter})
	if s.live() {
		if err != nil {
			t.Fatalf("set in a turn: %v", err)
		}
		k.when("the change", func(all []event.Event) bool { return index(all, changesMode(stricter)) >= 0 })
	}
	k.p.touch(t, "go1")
	if s.live() && (stricter == setting.Prompt || stricter == setting.Default) && !s.Host.mute {
		k.reply(k.untilKind(event.Question), event.Deny)
	}
	if e := k.endOf(turn); !e.End.OK {
		t.Errorf("%+v", e.End)
	}
	if s.live() {
		if k.p.hasPath(made) {
			t.Errorf("the call ran in spite of the stricter mode\n%s", told(k.events()))
		}
		return
	}
	if !errors.Is(err, fault.Unsupported) && err != nil && !s.Host.soft {
		t.Errorf("set in a turn of an agent that cannot: %v", err)
	}
	if err == nil && !s.Host.soft {
		t.Error("Set during a turn of an agent that cannot do it returned no error")
	}
	repeated := index(k.events()[before:], changesMode(stricter))
	if repeated >= 0 && !s.Host.soft {
		t.Errorf("a change that failed is told\n%s", told(k.events()))
	}
	if !k.p.hasPath(made) {
		t.Error("the change failed and changed the mode of the turn")
	}
}

// restarts: a change that an agent takes only when it starts is made between turns, by a restart that continues the
// conversation.
func restarts(t *testing.T, s Subject) {
	k := s.open(t, wish{mode: setting.Prompt, mute: s.Host.mute})
	first := k.say("where")
	k.endOf(first)
	mode := setting.Yolo
	switch {
	case s.live():
		mode = setting.DenyAll // kept by a hook, which the agent takes when it is started
	case s.stub():
		mode = setting.AutoEdit
	}
	if err := k.set(agent.Change{Mode: mode}); err != nil {
		if s.Host.soft {
			t.Skip(s.Host.Name + " has no such mode")
		}
		t.Fatal(err)
	}
	second := k.say("where")
	k.endOf(second)
	if s.stub() {
		before, after := facts(k.text(first)), facts(k.text(second))
		if before["session"] != after["session"] || before["pid"] == after["pid"] {
			t.Errorf("%v, then %v", before, after)
		}
		if s.Agent == "per turn" && after["mode"] != "auto_edit" {
			t.Errorf("the restarted agent is in mode %q", after["mode"])
		}
	}
	all := k.events()
	changed := index(all, changesMode(mode))
	text := index(all, func(e event.Event) bool { return e.Turn == second && e.Kind == event.Text })
	if changed < 0 || text < changed {
		t.Errorf("the change is event %d, the first text behind it %d\n%s", changed, text, told(all))
	}
	k.equal("ends", k.ends(), []string{"1 success", "2 success"})
	own := func(turn int64) (id string) {
		for _, e := range all {
			if e.Turn == turn && e.Session != "" {
				id = e.Session
			}
		}
		return id
	}
	if own(first) != own(second) {
		t.Errorf("the agent's own session is %q, then %q", own(first), own(second))
	}
}

// facts reads the reply to the step where.
func facts(text string) map[string]string {
	all := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		if name, value, ok := strings.Cut(word, "="); ok {
			all[name] = value
		}
	}
	return all
}

// pixel is the smallest image that every agent accepts.
func pixel() event.Block {
	data, _ := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42m" +
		"NkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
	return event.Block{Media: "image/png", Data: data}
}

// abilities: each ability works, and each missing one is refused by name.
func abilities(t *testing.T, s Subject) {
	k := s.open(t, wish{})
	d, ok := k.side.(direct)
	if !ok {
		t.Skip("abilities are asked for directly; through a host the laws that need them try them")
	}
	able := d.Abilities()
	ctx, cancel := soon()
	defer cancel()
	refused := func(what string, err error, can bool) {
		t.Helper()
		if can != (err == nil) {
			t.Errorf("%s is an ability: %v, but: %v", what, can, err)
		}
		if err != nil && (!errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), d.Facts().Agent)) {
			t.Errorf("%s is refused by: %v", what, err)
		}
	}
	turn, err := d.Send(ctx, []event.Block{{Text: task("say seen")}, pixel()})
	if refused("an image", err, able.Images); err == nil {
		k.endOf(turn)
	}
	turn = k.say("work")
	k.working(turn)
	_, reached, err := d.Steer(ctx, []event.Block{{Text: task("say more")}})
	if err != nil || able.Steer != reached && s.stub() {
		t.Errorf("steering is an ability: %v, it reached the turn: %v, %v", able.Steer, reached, err)
	}
	refused("a mode in a turn", d.Set(ctx, agent.Change{Mode: setting.AutoEdit}), able.Mode)
	refused("a model in a turn", d.Set(ctx, agent.Change{Model: "claude-other-1"}), able.Model)
	if able.Model && d.Facts().Model != "claude-other-1" {
		t.Errorf("the model is %q", d.Facts().Model)
	}
	k.stopTurn(true)
	k.endOf(turn)
	if err := d.Set(ctx, agent.Change{Mode: "odd"}); !errors.Is(err, fault.ArgError) {
		t.Errorf("a mode that nobody knows: %v", err)
	}
}
