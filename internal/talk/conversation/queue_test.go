package conversation_test

import (
	"context"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/testkit/scripted"
)

// stays is a script with a call of a tool that lasts.
const stays = `[{"call":{"name":"Stay","input":{}}},{"say":"heard ${input}"}]`

// working opens a conversation in whose first turn a tool lasts until let is closed.
func working(t *testing.T, let <-chan struct{}, prepare func(*conversation.Options)) *talk {
	t.Helper()
	k := converse(t, stays, prepare, scripted.Stay("Stay", let))
	k.send("one")
	k.until(event.ToolCall)
	return k
}

// TestMessagesWait: a message to a turn that runs is accepted at once, up to a number of them, and its turn begins and
// ends after those before it.
func TestMessagesWait(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	k := working(t, let, nil)
	for i := range conversation.MostWaiting {
		if turn := k.send("more"); turn != int64(i)+2 {
			t.Fatalf("message %d has the turn %d", i+2, turn)
		}
	}
	_, err := k.Send(k.ctx, []event.Block{{Text: "too many"}})
	is(t, "one more", err, fault.TooManyRequests)
	_, err = k.Send(k.ctx, []event.Block{{Text: " \n"}})
	is(t, "an empty one", err, fault.ArgError)
	close(let)
	says(t, k.untilEnds(3), "end 1 success, turn 2, end 2 success, turn 3, end 3 success")
}

// TestInterrupted: an interruption ends the turn that runs; what waits ends after it without a turn, or is answered.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	drop := working(t, nil, nil)
	drop.send("two")
	drop.Interrupt(true)
	says(t, drop.untilEnds(2), "end 1 cancelled, end 2 cancelled")
	let := make(chan struct{})
	keep := working(t, let, nil)
	keep.send("two")
	keep.Interrupt(false)
	says(t, keep.untilEnds(1), "end 1 cancelled")
	close(let)
	says(t, keep.untilEnds(1), "turn 2, end 2 success")
}

// TestTakenBack: a message that waits can be taken back, and ends in its place; one whose turn runs is interrupted by
// Withdraw, and by Unsend left alone.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	k := working(t, nil, nil)
	second := k.send("two")
	if k.Unsend(k.ctx, 1) || !k.Unsend(k.ctx, second) || k.Unsend(k.ctx, second) {
		t.Error("not the second message alone was taken back")
	}
	k.Withdraw(k.send("three"))
	k.Withdraw(1)
	says(t, k.untilEnds(3), "end 1 cancelled, end 2 cancelled, end 3 cancelled")
}

// TestSteered: a message for the turn that runs reaches it, and is a message of its own where none runs.
func TestSteered(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	k := working(t, let, nil)
	turn, reached, err := k.Steer(k.ctx, []event.Block{{Text: "this too"}})
	if turn != 1 || !reached || err != nil {
		t.Errorf("turn %d, reached: %t, %v", turn, reached, err)
	}
	if e := k.until(event.Steered); e.Turn != 1 || e.Blocks[0].Text != "this too" {
		t.Errorf("%+v", e)
	}
	close(let)
	says(t, k.until(event.Ended).End.Text, "heard this too")
	turn, reached, err = k.Steer(k.ctx, []event.Block{{Text: "later"}})
	if turn != 2 || reached || err != nil {
		t.Errorf("turn %d, reached: %t, %v", turn, reached, err)
	}
	says(t, k.untilEnds(1), "turn 2, end 2 success")
}

// TestTurnsHaveALimit: a turn that takes too long is ended, and that is why it failed.
func TestTurnsHaveALimit(t *testing.T) {
	t.Parallel()
	k := converse(t, stays, func(o *conversation.Options) { o.Timeout = time.Millisecond }, scripted.Stay("Stay", nil))
	k.send("one")
	if e := k.until(event.Failed); e.Fault.Code != fault.TimedOut || !e.Terminal {
		t.Errorf("%+v", e.Fault)
	}
	says(t, k.untilEnds(1), "end 1 error_during_execution")
}

// TestClosed: closing ends the turn that runs and each message that waits, and refuses what comes later.
func TestClosed(t *testing.T) {
	t.Parallel()
	k := working(t, nil, nil)
	k.send("two")
	if _, err := k.Close(k.ctx); err != nil {
		t.Error(err)
	}
	says(t, k.untilEnds(2), "end 1 cancelled, end 2 cancelled")
	_, err := k.Send(k.ctx, []event.Block{{Text: "three"}})
	is(t, "a message", err, fault.Conflicting)
	select {
	case <-k.Done():
	default:
		t.Error("it is not over")
	}
}

// TestNothingIsKept: a conversation whose journal cannot be written accepts nothing more, and is over.
func TestNothingIsKept(t *testing.T) {
	t.Parallel()
	var journal interface{ Close() error }
	k := converse(t, stays, func(o *conversation.Options) {
		o.Journal = newJournal(t, newStore(t))
		journal = o.Journal
	})
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Send(k.ctx, []event.Block{{Text: "one"}}); err == nil {
		t.Error("a message that is not on record was accepted")
	}
	<-k.Done()
	if _, err := k.Close(context.Background()); err == nil {
		t.Error("the reason is not told")
	}
}
