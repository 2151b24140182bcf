package launch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/native"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/touch"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/walls/autorun"
)

// witness returns the Witness of a session, or nil if no snapshots are taken.
func (p *Plan) witness(session string) conversation.Witness {
	if len(p.env.Fork) > 0 {
		return fork{p.env.Fork}
	}
	if p.env.Undo == nil || p.request.Forget {
		return nil
	}
	store := *p.env.Undo
	store.Private = p.request.Services.Private
	return &witness{
		store: store, log: p.env.Log, touched: p.request.Services.Touched, later: p.laterOf(),
		waits:  p.agent == native.Name,
		silent: p.driver != nil && p.driver.Describe().Custom,
		origin: undo.Origin{Dir: p.request.Spec.Dir, Session: session, Agent: p.agent, Run: p.env.Run},
	}
}

// fork is the Witness of a session in a fork. It takes no snapshots, because the fork can be removed as a whole.
type fork struct{ roots []string }

// Begin implements conversation.Witness.
func (f fork) Begin(int64) conversation.Snapshots { return f }

// Start does nothing.
func (f fork) Start(context.Context) {}

// Ready does nothing.
func (f fork) Ready() {}

// Cover returns the whole fork.
func (f fork) Cover() event.Cover { return event.Cover{Roots: f.roots} }

// End does nothing.
func (f fork) End(time.Time) {}

// witness takes the snapshots of a session.
type witness struct {
	store   undo.Store
	origin  undo.Origin
	waits   bool // the agent calls no tool before the call is published
	silent  bool // the agent may not report its calls at all
	log     func(format string, args ...any)
	later   func(dir string) autorun.Policy // see sayLater; nil: nothing is logged
	touched *touch.Log                      // nil: what the agent writes is not recorded

	last *snapshots // of the turn before; turns begin one after another

	mu       sync.Mutex
	reported bool // say has logged
}

// slowSnapshot is how long a turn waits for a snapshot before that is logged.
const slowSnapshot = 3 * time.Second

// Begin begins the snapshot before a turn, while the agent starts, and after the snapshots of the turn before. No
// context ends it: an agent that does not wait for it may have acted before its turn was interrupted, and without it
// nothing of that could be taken back.
func (w *witness) Begin(turn int64) conversation.Snapshots {
	before := w.last
	l := &snapshots{witness: w, begun: make(chan struct{}), ended: make(chan struct{})}
	w.last = l
	origin := w.origin
	origin.Turn = turn
	go func() {
		defer close(l.begun)
		slow := time.AfterFunc(slowSnapshot, func() {
			w.log("the snapshot for undo takes long; what the agent wants to do waits for it: %s", origin.Dir)
		})
		defer slow.Stop()
		if before != nil {
			<-before.ended
		}
		var err error
		if w.touched != nil {
			l.seen = w.touched.Open()
		}
		if l.turn, err = w.store.Begin(context.Background(), origin); err != nil {
			w.say("undo does not cover this conversation: %v", err)
			return
		}
		if gaps := undo.Sentence(l.turn.Gaps()); gaps != "" {
			w.say("%s", gaps)
		}
		if top, err := w.store.Root(origin.Dir); err == nil && w.later != nil {
			l.top, l.policy = top, w.later(top)
		}
	}()
	return l
}

// say logs the first message about what is not covered, and ignores others.
func (w *witness) say(format string, args ...any) {
	w.mu.Lock()
	before := w.reported
	w.reported = true
	w.mu.Unlock()
	if !before {
		w.log(format, args...)
	}
}

// snapshots are the snapshots of one turn.
type snapshots struct {
	*witness
	begun chan struct{} // closed after the first one
	turn  *undo.Turn    // nil: it failed
	// which files of the workspace run later by themselves
	policy autorun.Policy
	top    string        // "": sayLater is not called
	late   atomic.Bool   // the agent may have acted before the first one was complete
	ended  chan struct{} // closed after the second one
	seen   *touch.Window // what the agent writes
}

// Start waits for the first snapshot if the agent may not report its calls, but at most undo.Patience.
func (l *snapshots) Start(ctx context.Context) {
	if !l.silent {
		return
	}
	select {
	case <-l.begun:
	case <-ctx.Done():
	case <-time.After(undo.Patience):
		l.late.Store(true)
	}
}

// Ready waits for the first snapshot. An agent that does not wait for us may have acted before it was complete.
func (l *snapshots) Ready() {
	select {
	case <-l.begun:
	default:
		l.late.Store(!l.waits)
		<-l.begun
	}
}

// Cover waits for the first snapshot and returns what it covers.
func (l *snapshots) Cover() event.Cover {
	if <-l.begun; l.turn == nil {
		return event.Cover{}
	}
	return l.turn.Cover()
}

// End takes the second snapshot. No context ends it, because it is what tells what an interrupted turn has changed.
func (l *snapshots) End(at time.Time) {
	defer close(l.ended)
	<-l.begun
	if l.seen != nil {
		l.seen.Close()
	}
	if l.turn == nil {
		return
	}
	l.turn.Watch(l.seen)
	if l.late.Load() {
		l.turn.Late()
	}
	record, err := l.turn.End(context.Background(), at)
	if err != nil {
		l.log("the snapshot after the turn failed: %v", err)
	}
	if l.top != "" {
		l.sayLater(l.policy, l.top, slices.Concat(record.Changed, record.Possible))
	}
}
