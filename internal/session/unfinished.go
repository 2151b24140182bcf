package session

import "omniagent/internal/event"

// Unfinished is a turn whose outcome is unknown: its message was accepted, and the process that had the conversation died before the turn ended.
type Unfinished struct {
	Turn    int64         `json:"turn"`
	Message []event.Block `json:"-"`
}

// unfinished finds the turns that have a prompt and no end, the questions in them that nobody answered, and the number of the last turn.
//
// Turns end in about the order in which they are numbered, so it reads the ends from the back, as many as there may be open turns beside them.
func (f *fold) unfinished() {
	j := f.journal
	ended := map[int64]bool{}
	for i, seen := len(j.places)-1, 0; i >= 0 && seen < 2*mostOpenTurns; i-- {
		if j.places[i].kind != kindEnd {
			continue
		}
		seen++
		e, ok := f.entry(i)
		if !ok {
			continue
		}
		if ev := e.Record.(End).Event; ev != nil {
			ended[ev.Turn] = true
			f.state.LastTurn = max(f.state.LastTurn, ev.Turn)
		}
	}
	answered := map[string]bool{}
	for i := len(j.marks) - 1; i >= 0 && len(f.state.Unfinished) <= mostOpenTurns; i-- {
		e, err := decodeAtPlace(j, j.marks[i])
		if err != nil {
			continue
		}
		ev := eventOf(e.Record)
		if ev == nil {
			continue
		}
		f.state.LastTurn = max(f.state.LastTurn, ev.Turn)
		switch {
		case ev.Kind == event.Prompted && ended[ev.Turn]:
			return // those before it ended too
		case ev.Kind == event.Prompted:
			f.state.Unfinished = append([]Unfinished{{Turn: ev.Turn, Message: ev.Blocks}}, f.state.Unfinished...)
		case ev.Kind == event.Replied && ev.Reply != nil:
			answered[ev.Reply.Question] = true
		case ev.Kind == event.Withdrawn && ev.Ask != nil:
			answered[ev.Ask.ID] = true
		case ev.Kind == event.Question && ev.Ask != nil && !answered[ev.Ask.ID] && !ended[ev.Turn]:
			f.state.Questions = append([]event.Ask{*ev.Ask}, f.state.Questions...)
		}
	}
}

// mostOpenTurns is more turns than a conversation lets wait.
const mostOpenTurns = 128
