package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/tool"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/scripted"
)

// talk is a conversation with the engine, and a reader of it.
type talk struct {
	*conversation.Conversation
	t      *testing.T
	ctx    context.Context
	events *conversation.Events
}

// converse opens a conversation in which somebody answers. prepare may change what it begins with.
func converse(t *testing.T, script string, prepare func(*conversation.Options), tools ...tool.Tool) *talk {
	t.Helper()
	o := conversation.Options{Services: agent.Services{CanAsk: true, Grace: time.Hour}}
	o.Spec.Terms.Mode = setting.Prompt
	if prepare != nil {
		prepare(&o)
	}
	if o.Journal == nil {
		o.Journal = newJournal(t, newStore(t))
	}
	c, err := scripted.New(t, script, tools...).Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), hermetic.Patience)
	k := &talk{Conversation: c, t: t, ctx: ctx, events: c.Events(c.Opened() + 1)}
	t.Cleanup(func() {
		_, _ = c.Close(ctx)
		k.events.Close()
		cancel()
	})
	return k
}

func newStore(t *testing.T) session.Store {
	t.Helper()
	return session.Open(t.TempDir())
}

func newJournal(t *testing.T, store session.Store) *session.Session {
	t.Helper()
	journal, err := store.Create(t.Context(), session.Begin{ID: "s", Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return journal
}

// send sends a message and returns the number of its turn.
func (k *talk) send(text string) int64 {
	k.t.Helper()
	turn, err := k.Send(k.ctx, []event.Block{{Text: text}})
	if err != nil {
		k.t.Fatal(err)
	}
	return turn
}

// next is the next event.
func (k *talk) next() event.Event {
	k.t.Helper()
	e, err := k.events.Next(k.ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	return e
}

// until reads up to the next event of a kind. It comes before the end of the turn, or is that.
func (k *talk) until(kind event.Kind) event.Event {
	k.t.Helper()
	var before strings.Builder
	for {
		e, err := k.events.Next(k.ctx)
		if err != nil {
			k.t.Fatalf("no %s: %v%s", kind, err, before.String())
		}
		if e.Kind == kind {
			return e
		}
		fmt.Fprintf(&before, "\n%d %s %s", e.Turn, e.Kind, e.Text)
		if e.Kind == event.Ended {
			k.t.Fatalf("no %s:%s", kind, before.String())
		}
	}
}

// untilEnds reads up to that many ends of turns, and returns them and the beginnings before them.
func (k *talk) untilEnds(n int) string {
	k.t.Helper()
	var all []string
	for n > 0 {
		e, err := k.events.Next(k.ctx)
		if err != nil {
			k.t.Fatalf("%v after %q", err, all)
		}
		switch e.Kind {
		case event.TurnBegan:
			all = append(all, fmt.Sprint("turn ", e.Turn))
		case event.Ended:
			n--
			all = append(all, fmt.Sprintf("end %d %s", e.Turn, e.End.Reason))
		}
	}
	return strings.Join(all, ", ")
}

// reply answers a question.
func (k *talk) reply(question, option string) error {
	_, err := k.Answer(k.ctx, event.Reply{Question: question, Option: option})
	return err
}

// is requires an error of a kind.
func is(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, not %v", what, err, want)
	}
}

// says compares what was said with what was to be.
func says(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
