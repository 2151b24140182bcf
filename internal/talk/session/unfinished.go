package session

import (
	"cmp"
	"slices"

	"omniagent/internal/core/event"
)

// Unfinished is a turn with an unknown outcome: the process died after it had accepted the message or begun the turn,
// and before the end.
type Unfinished struct {
	Turn    int64         `json:"turn"`
	Message []event.Block `json:"-"` // nil if no message began it
	Waited  bool          `json:"-"` // its message waited for the end of an earlier turn: no turn began with it
}

// unfinished finds the turns that have a prompt but no end, the unanswered questions in them, and the number of the
// last turn.
func (f *fold) unfinished() {
	j := f.journal
	hasEnded := f.ends()
	hasEnded(-1)
	answered := map[string]bool{}
	began := map[int64]bool{} // turns without an end whose prompt has not been seen
	taken := map[int64]bool{} // turns that began
	defer func() {
		for turn := range began {
			f.state.Unfinished = append(f.state.Unfinished, Unfinished{Turn: turn})
		}
		slices.SortFunc(f.state.Unfinished, func(a, b Unfinished) int { return cmp.Compare(a.Turn, b.Turn) })
		earlier := false
		for i, u := range f.state.Unfinished {
			f.state.Unfinished[i].Waited = earlier && u.Message != nil && !taken[u.Turn]
			earlier = earlier || u.Message != nil
		}
	}()
	for i := len(j.marks) - 1; i >= 0 && len(f.state.Unfinished)+len(began) <= mostOpenTurns; i-- {
		e, err := j.decode(j.marks[i])
		if err != nil {
			continue
		}
		ev := eventOf(e.Record)
		if ev == nil {
			continue
		}
		f.state.LastTurn = max(f.state.LastTurn, ev.Turn)
		switch {
		case ev.Kind == event.Prompted && hasEnded(ev.Turn):
			return // earlier turns have ended too
		case ev.Kind == event.TurnBegan && !hasEnded(ev.Turn):
			began[ev.Turn], taken[ev.Turn] = true, true
		case ev.Kind == event.Prompted:
			delete(began, ev.Turn)
			f.state.Unfinished = append([]Unfinished{{Turn: ev.Turn, Message: ev.Blocks}}, f.state.Unfinished...)
		case ev.Kind == event.Replied && ev.Reply != nil:
			answered[ev.Reply.Question] = true
		case ev.Kind == event.Withdrawn && ev.Ask != nil:
			answered[ev.Ask.ID] = true
		case ev.Kind == event.Question && ev.Ask != nil && !answered[ev.Ask.ID] && !hasEnded(ev.Turn):
			f.state.Questions = append([]event.Ask{*ev.Ask}, f.state.Questions...)
		}
	}
}

// ends returns a function that reports whether a turn has ended. Turns end roughly in the order of their numbers, so it
// reads the ends from the last one on, and stops as soon as it can. Calling it with -1 reads the last end.
func (f *fold) ends() func(turn int64) bool {
	j := f.journal
	ended := map[int64]bool{}
	next := len(j.places) - 1
	return func(turn int64) bool {
		for ; next >= 0 && !ended[turn] && len(ended) < mostOpenTurns; next-- {
			if j.places[next].kind != kindEnd {
				continue
			}
			e, _ := f.entry(next)
			ev := eventOf(e.Record)
			if ev == nil {
				continue
			}
			ended[ev.Turn] = true
			f.state.LastTurn = max(f.state.LastTurn, ev.Turn)
			if turn < 0 {
				next--
				break
			}
		}
		return ended[turn]
	}
}

// mostOpenTurns exceeds the number of turns that may wait in a conversation.
const mostOpenTurns = 128
