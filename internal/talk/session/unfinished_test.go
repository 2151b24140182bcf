package session

import (
	"fmt"
	"slices"
	"testing"

	"omniagent/internal/core/event"
)

// TestWhatADeadProcessLeftIsNamed: turns without an end, whatever began them, and the questions in them that nobody
// answered.
func TestWhatADeadProcessLeftIsNamed(t *testing.T) {
	mark := func(kind event.Kind, turn int64) Logged { return Logged{&event.Event{Kind: kind, Turn: turn}} }
	ask := func(kind event.Kind, turn int64, id string) Logged {
		return Logged{&event.Event{Kind: kind, Turn: turn, Ask: &event.Ask{ID: id}}}
	}
	reply := Logged{&event.Event{Kind: event.Replied, Turn: 2, Reply: &event.Reply{Question: "q1"}}}
	for name, row := range map[string]struct {
		records   []Record
		turns     []int64
		last      int64
		questions string
	}{
		"nothing":        {nil, nil, 0, "[]"},
		"an end":         {[]Record{prompted("a", 1), mark(event.TurnBegan, 1), ended(1)}, nil, 1, "[]"},
		"a prompt alone": {[]Record{prompted("a", 1)}, []int64{1}, 1, "[]"},
		"one runs, two wait": {[]Record{
			prompted("a", 1), ended(1), prompted("b", 2), mark(event.TurnBegan, 2),
			prompted("c", 3), prompted("d", 4),
		}, []int64{2, 3, 4}, 4, "[]"},
		"one was taken back": {
			[]Record{prompted("a", 1), prompted("b", 2), mark(event.TurnBegan, 1), ended(2)},
			[]int64{1},
			2, "[]",
		},
		"nobody asked for it": {
			[]Record{prompted("a", 1), ended(1), mark(event.TurnBegan, 2), told("woken", 2)},
			[]int64{2},
			2, "[]",
		},
		"nobody asked, it ended": {
			[]Record{prompted("a", 1), ended(1), mark(event.TurnBegan, 2), ended(2)},
			nil, 2,
			"[]",
		},
		"questions": {
			[]Record{
				prompted("a", 1), ask(event.Question, 1, "q0"), ended(1), prompted("b", 2), mark(event.TurnBegan,
					2), ask(event.Question, 2, "q1"), ask(event.Question, 2, "q2"),
				ask(event.Question, 2, "q3"), reply, ask(event.Withdrawn, 2, "q2"),
			},
			[]int64{2},
			2, "[q3]",
		},
	} {
		s := store(t)
		own := create(t, s, "x")
		for _, r := range row.records {
			add(t, own, r)
		}
		check(t, own.Close())
		state := resume(t, s, "x").State()
		var turns, waited []int64
		for _, u := range state.Unfinished {
			if turns = append(turns, u.Turn); u.Waited {
				waited = append(waited, u.Turn)
			}
		}
		if name == "one runs, two wait" && !slices.Equal(waited, []int64{3, 4}) ||
			name != "one runs, two wait" && waited != nil {
			t.Errorf("%s: %v waited", name, waited)
		}
		open := []string{}
		for _, q := range state.Questions {
			open = append(open, q.ID)
		}
		if !slices.Equal(turns, row.turns) || state.LastTurn != row.last || fmt.Sprint(open) != row.questions {
			t.Errorf("%s: turns %v, the last is %d, questions %v", name, turns, state.LastTurn, open)
		}
	}
}
