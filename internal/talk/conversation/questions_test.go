package conversation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/testkit/scripted"
)

// changes is a script with a call that is asked about.
const changes = `[{"call":{"name":"Change","input":{}}},{"say":"ok"}]`

// TestAnsweredOnce: the first answer to a question counts, and is on record before the agent acts; one that was not
// offered, one to no question and a second one are refused.
func TestAnsweredOnce(t *testing.T) {
	t.Parallel()
	k := converse(t, changes, nil, scripted.Done("Change"))
	k.send("one")
	q := k.until(event.Question).Ask
	is(t, "no option", k.reply(q.ID, "perhaps"), fault.ArgError)
	is(t, "no question", k.reply("q9.9", event.Allow), fault.NotFoundCode)
	_, err := k.Answer(k.ctx, event.Reply{Question: q.ID, Option: event.Allow, Mode: setting.Yolo})
	is(t, "a mode that may not come", err, fault.PermissionDenied)
	is(t, "the answer", k.reply(q.ID, event.Allow), nil)
	is(t, "a second one", k.reply(q.ID, event.Deny), fault.Conflicting)
	says(t, k.until(event.Replied).Reply.Option, event.Allow)
	says(t, k.until(event.ToolResult).Result.Output, "done")
}

// TestAnsweredAhead: an answer to a call whose question has not come yet is the answer to that question.
func TestAnsweredAhead(t *testing.T) {
	t.Parallel()
	var k *talk
	opened := make(chan struct{})
	k = converse(t, changes, func(o *conversation.Options) {
		// it comes between a call and its question
		o.Services.Hook = func(_ context.Context, m agent.Moment) agent.HookAnswer {
			if m.Name == agent.BeforeTool {
				<-opened
				is(t, "the answer", k.reply(m.Call.ID, event.Allow), nil)
			}
			return agent.HookAnswer{}
		}
	}, scripted.Done("Change"))
	close(opened)
	k.send("one")
	id := k.until(event.Question).Ask.ID
	says(t, k.until(event.Replied).Reply.Question, id)
	says(t, k.until(event.ToolResult).Result.Output, "done")
}

// TestNobodyAnswered: a question without an answer is denied in time, and the host hears that it is not asked any more.
func TestNobodyAnswered(t *testing.T) {
	t.Parallel()
	k := converse(t, changes, func(o *conversation.Options) { o.Patience = time.Millisecond }, scripted.Done("Change"))
	k.send("one")
	id := k.until(event.Question).Ask.ID
	r := k.until(event.Replied).Reply
	if r.Option != event.Deny || !r.Automatic || !strings.Contains(r.Text, "within 1ms") {
		t.Errorf("%+v", r)
	}
	says(t, k.until(event.Withdrawn).Ask.ID, id)
	if !k.until(event.ToolResult).Result.Failed {
		t.Error("it was done")
	}
	is(t, "a late answer", k.reply(id, event.Allow), fault.Conflicting)
}

// TestNobodyAnswers: once nobody answers any more, an open question is denied, and later ones are not asked.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	k := converse(t, `[{"call":{"name":"Change","input":{}}},{"call":{"name":"Change","input":{}}},{"say":"ok"}]`, nil,
		scripted.Done("Change"))
	k.send("one")
	k.until(event.Question)
	k.NobodyAnswers()
	asked := 0
	for e := k.next(); e.Kind != event.Ended; e = k.next() {
		switch e.Kind {
		case event.Question:
			asked++
		case event.ToolResult:
			if !e.Result.Failed {
				t.Error("it was done")
			}
		}
	}
	if asked > 0 {
		t.Errorf("%d questions more", asked)
	}
}

// TestQuestionsEnd: an open question is taken back with the end of its turn.
func TestQuestionsEnd(t *testing.T) {
	t.Parallel()
	k := converse(t, changes, nil, scripted.Done("Change"))
	k.send("one")
	id := k.until(event.Question).Ask.ID
	k.Interrupt(true)
	says(t, k.until(event.Withdrawn).Ask.ID, id)
	says(t, k.untilEnds(1), "end 1 cancelled")
	is(t, "an answer", k.reply(id, event.Allow), fault.NotFoundCode)
}

// died is the journal of a process that died in its first turn, while a question was open and a message waited.
func died(t *testing.T) *session.Session {
	t.Helper()
	store := newStore(t)
	journal := newJournal(t, store)
	for _, e := range []event.Event{
		{Kind: event.Prompted, Turn: 1, Blocks: []event.Block{{Text: "one"}}},
		{Kind: event.TurnBegan, Turn: 1},
		{Kind: event.Question, Turn: 1, Ask: &event.Ask{ID: "q1.1", Text: "Really?", Options: []string{"yes", "no"}}},
		{Kind: event.Prompted, Turn: 2, Blocks: []event.Block{{Text: "two"}}},
	} {
		if _, err := journal.Append(session.Logged{Event: &e}); err != nil {
			t.Fatal(err)
		}
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := store.Resume(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// TestProcessDied: what a process left open is ended when the conversation goes on: a turn that ran as one of which
// nobody knows what it did, a message that waited as one that never began.
func TestProcessDied(t *testing.T) {
	t.Parallel()
	k := converse(t, stays, func(o *conversation.Options) { o.Journal = died(t) })
	first, second := k.until(event.Ended), k.until(event.Ended)
	if first.Turn != 1 || first.End.AgentReason != conversation.UnknownOutcome || second.Turn != 2 ||
		second.End.AgentReason != conversation.NeverBegan || !conversation.Abandoned(second.End) {
		t.Errorf("%+v %+v", first.End, second.End)
	}
	if turn := k.send("three"); turn != 3 {
		t.Errorf("the next turn is %d", turn)
	}
}

// TestAnsweredLater: the answer to a question of a process that died is the next message; another message takes the
// question back.
func TestAnsweredLater(t *testing.T) {
	t.Parallel()
	k := converse(t, `[{"say":"heard ${input}"}]`, func(o *conversation.Options) { o.Journal = died(t) },
		scripted.Done("Change"))
	turn, err := k.Answer(k.ctx, event.Reply{Question: "q1.1", Option: "yes", Text: "by all means"})
	if turn != 3 || err != nil {
		t.Errorf("turn %d, %v", turn, err)
	}
	k.untilEnds(2)
	says(t, k.until(event.Ended).End.Text, "heard You asked before the conversation was interrupted: Really?\n"+
		"The answer is: yes\nby all means")
	other := converse(t, stays, func(o *conversation.Options) { o.Journal = died(t) })
	other.untilEnds(2)
	other.send("three")
	says(t, other.until(event.Withdrawn).Ask.ID, "q1.1")
	is(t, "an answer", other.reply("q1.1", "yes"), fault.NotFoundCode)
}

// TestModeChanges: a change of the mode is an event before what it affects, and holds for the next call; a mode that
// there is not, and one that may not come, change nothing.
func TestModeChanges(t *testing.T) {
	t.Parallel()
	k := converse(t, `[{"call":{"name":"Change","input":{}}},{"call":{"name":"Change","input":{}}},{"say":"ok"}]`, nil,
		scripted.Done("Change"))
	k.send("one")
	q := k.until(event.Question).Ask
	is(t, "no mode", k.Set(k.ctx, agent.Change{Mode: "odd"}), fault.ArgError)
	is(t, "yolo", k.Set(k.ctx, agent.Change{Mode: setting.Yolo}), fault.PermissionDenied)
	says(t, string(k.Facts().Mode), string(setting.Prompt))
	is(t, "deny", k.Set(k.ctx, agent.Change{Mode: setting.DenyAll}), nil)
	is(t, "the answer", k.reply(q.ID, event.Allow), nil)
	says(t, string(k.until(event.Changed).Facts.Mode), string(setting.DenyAll))
	says(t, k.until(event.ToolResult).Result.Output, "done")
	if !k.until(event.ToolResult).Result.Failed {
		t.Error("the second call was not denied")
	}
	says(t, string(k.Facts().Mode), string(setting.DenyAll))
}

// TestRestarts: a change that the agent takes only at its start is refused in a turn, and else made by a restart, after
// which the next message is answered.
func TestRestarts(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	k := working(t, let, nil)
	is(t, "in a turn", k.Set(k.ctx, agent.Change{Dir: "/more"}), fault.Unsupported)
	if len(k.Dirs()) > 0 {
		t.Errorf("it works in %v", k.Dirs())
	}
	close(let)
	k.until(event.Ended)
	is(t, "between turns", k.Set(k.ctx, agent.Change{Dir: "/more"}), nil)
	says(t, strings.Join(k.Dirs(), " "), "/more")
	k.send("two")
	says(t, k.until(event.Ended).End.Text, "heard two")
}
