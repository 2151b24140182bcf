package opening

import (
	"context"
	"sync"

	"omniagent/internal/agent/native"
	"omniagent/internal/conversation"
	"omniagent/internal/undo"
)

// witness returns what takes snapshots before and after the turns of a session; nil: nothing does.
func (p *Plan) witness(session string) conversation.Witness {
	if p.env.Undo == nil || p.request.Forget {
		return nil
	}
	return &witness{
		store: *p.env.Undo, log: p.env.Log, waits: p.agent == native.Name,
		origin: undo.Origin{Dir: p.request.Spec.Dir, Session: session, Agent: p.agent, Run: p.env.Run},
	}
}

// witness takes the snapshots of a session.
type witness struct {
	store  undo.Store
	origin undo.Origin
	waits  bool // the agent calls no tool before the call was told
	log    func(format string, args ...any)

	mu   sync.Mutex
	told bool // what is not covered was said
	last *look
}

// Begin takes the snapshot before a turn, beside the start of the agent.
func (w *witness) Begin(turn int64) conversation.Look {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, before := &look{witness: w, done: make(chan struct{})}, w.last
	w.last = l
	origin := w.origin
	origin.Turn = turn
	go func() {
		defer close(l.done)
		if before != nil { // of the turn before
			before.ended.Lock()
			defer before.ended.Unlock()
		}
		var err error
		if l.turn, err = w.store.Begin(context.Background(), origin); err != nil {
			w.say("undo does not cover this conversation: %v", err)
			return
		}
		if gaps := undo.Sentence(l.turn.Gaps()); gaps != "" {
			w.say("%s", gaps)
		}
	}()
	l.ended.Lock()
	return l
}

// say says once what is not covered.
func (w *witness) say(format string, args ...any) {
	w.mu.Lock()
	told := w.told
	w.told = true
	w.mu.Unlock()
	if !told {
		w.log(format, args...)
	}
}

// look is the snapshots of one turn.
type look struct {
	*witness
	done  chan struct{} // closed after the first one
	turn  *undo.Turn    // nil: it failed
	late  sync.Once
	ended sync.Mutex // held until the second one is taken
}

// Ready waits for the first snapshot. An agent that does not wait for us may have acted before it was complete.
func (l *look) Ready() {
	select {
	case <-l.done:
	default:
		<-l.done
		if l.turn != nil && !l.waits {
			l.late.Do(l.turn.Late)
		}
	}
}

// End takes the second snapshot.
func (l *look) End() {
	<-l.done
	defer l.ended.Unlock()
	if l.turn == nil {
		return
	}
	if _, err := l.turn.End(context.Background()); err != nil {
		l.log("the snapshot after the turn failed: %v", err)
	}
}
