package shim

import (
	"context"
	"time"

	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/touch"
)

// beside is how long a built-in driver's agent waits for the snapshot before its run. It cannot act before its model
// has answered, which takes longer than undo.Patience.
const beside = 50 * time.Millisecond

// snapshot is the snapshots before and after a run.
type snapshot struct {
	begun    chan struct{} // closed after the first one
	turn     *undo.Turn    // nil: it failed
	seen     *touch.Window // what the agent writes
	err      error
	reported bool // notCovered was called
	ended    bool
	Undo
}

// Undo is the part of a report about the snapshots of a run.
type Undo struct {
	Turn       *string `json:"turn"`        // for omniagent undo; null: the run changed nothing
	Late       bool    `json:"late"`        // the agent may have acted before the first snapshot was complete
	NotCovered *string `json:"not_covered"` // null: everything is covered
}

// snapshotBefore begins the snapshot before the run, unless it is switched off. If it is complete in time, it prints
// what is not covered before the agent is started.
func (c *shimCall) snapshotBefore() {
	if c.settings.Undo == nil || c.snapshotsItself() || c.args.Undo == "off" ||
		c.args.Undo == "" && c.settings.Set.String("undo.snapshots") == "off" {
		return
	}
	s := &snapshot{begun: make(chan struct{}), seen: c.touched.Open()}
	c.snapshot = s
	began := time.Now()
	go func() {
		defer close(s.begun)
		s.turn, s.err = c.settings.Undo.Begin(context.Background(), undo.Origin{Dir: c.dir, Agent: c.driver.Name()})
		s.Late = time.Since(began) > undo.Patience
	}()
	wait := beside
	if c.driver.Describe().Custom || c.args.Rehearse != nil { // a script answers sooner than a model
		wait = undo.Patience
	}
	select {
	case <-s.begun:
		s.reported = true
		c.notCovered()
	case <-time.After(wait):
	}
}

// snapshotsItself reports whether the agent itself takes snapshots, for each turn. In a rehearsal it does not, because
// its home is removed.
func (c *shimCall) snapshotsItself() bool {
	return c.driver.Describe().BuiltIn && c.args.Rehearse == nil
}

// notCovered prints what the snapshot does not cover.
func (c *shimCall) notCovered() {
	s := c.snapshot
	text := ""
	if s.err != nil {
		text = "undo does not cover this run: " + s.err.Error()
	} else {
		text = undo.Sentence(s.turn.Gaps())
	}
	if text != "" {
		s.NotCovered = &text
		c.note("%s", text)
	}
}

// snapshotAfter takes the snapshot after the run, once. A signal cancels it; the next run or undo then completes it.
func (c *shimCall) snapshotAfter(session string) {
	s := c.snapshot
	if s == nil || s.ended {
		return
	}
	s.ended = true
	at := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-c.host.Signals:
			cancel()
		case <-done:
		}
	}()
	select {
	case <-s.begun:
	case <-ctx.Done():
		return
	}
	if !s.reported {
		c.notCovered()
	}
	if s.turn == nil {
		return
	}
	if s.Late {
		s.turn.Late()
	}
	s.turn.SetSession(session)
	s.seen.Close()
	s.turn.Watch(s.seen)
	record, err := s.turn.End(ctx, at)
	switch {
	case err != nil && ctx.Err() == nil:
		c.note("the snapshot after the run failed: %v", err)
	case err == nil && record.Files+record.Doubtful > 0:
		s.Turn = &record.ID
	}
}
