package session

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
)

// recalled is a session as a person would keep it in mind: every record with the way to it.
type recalled struct {
	parent map[int64]int64
	record map[int64]Record
	head   int64
	last   int64
	opened map[int64]bool // the last records when a writer began: what the one before it had not ended is settled
}

func (r *recalled) add(n int64, record Record, parent int64) {
	r.parent[n], r.record[n], r.head, r.last = parent, record, n, n
}

func (r *recalled) way() []int64 {
	var way []int64
	for n := r.head; n > 0; n = r.parent[n] {
		way = append(way, n)
	}
	slices.Reverse(way)
	return way
}

// seen goes the way from its beginning, record by record, which the session never does.
func (r *recalled) seen() (words string, messages, compactions int) {
	type one struct {
		n int64
		m model.Message
	}
	var now []one
	for _, n := range r.way() {
		switch v := r.record[n].(type) {
		case Message:
			now = append(now, one{n, v.Message})
			messages++
		case Compacted:
			kept := []one{{-1, v.Summary}}
			for _, o := range now {
				if v.Keep > 0 && o.n >= v.Keep {
					kept = append(kept, o)
				}
			}
			now = kept
			compactions++
		case Adopted:
			now = nil
		}
	}
	var plain []model.Message
	for _, o := range now {
		plain = append(plain, o.m)
	}
	return said(consistent(plain)), messages, compactions
}

func (r *recalled) compare(t *rapid.T, s *Session) {
	words, messages, compactions := r.seen()
	state := s.State()
	if got := said(s.Messages()); got != words {
		t.Fatalf("\n got %s\nwant %s", got, words)
	}
	if state.Messages != messages || state.Compactions != compactions || state.Head != r.head || state.Damaged != 0 {
		t.Fatalf("got %+v, want %d messages, %d compactions, head %d", state, messages, compactions, r.head)
	}
	var cost float64
	turns, calls, turn := 0, 0, 0.0
	for n := int64(1); n <= r.last; n++ {
		switch v := r.record[n].(type) {
		case Message:
			turn += v.Cost
			for _, b := range v.Blocks {
				if b.Kind == model.Call {
					calls++
				}
			}
		case End:
			cost, turn = cost+*v.Ended().Usage.CostUSD, 0
			turns++
		}
		if r.opened[n] {
			cost, turn = cost+turn, 0
		}
	}
	if d := state.Cost - cost - turn; d > 1e-9 || d < -1e-9 || state.Turns != turns || state.Calls != calls {
		t.Fatalf("got %+v, want %v, %d turns, %d calls", state.Total, cost+turn, turns, calls)
	}
}

// renumber is what a fork does: it has the records of the conversation alone, without gaps in their numbers.
func (r *recalled) renumber() {
	fresh := recalled{parent: map[int64]int64{}, record: map[int64]Record{}, opened: map[int64]bool{}}
	moved := map[int64]int64{}
	for _, n := range r.way() {
		moved[n] = fresh.last + 1
		record := r.record[n]
		if c, is := record.(Compacted); is && c.Keep != 0 {
			c.Keep = moved[c.Keep]
			record = c
		}
		fresh.add(moved[n], record, fresh.last)
	}
	*r = fresh
}

// TestAnySessionFoldsToTheSame: whatever is appended, gone back to, shortened, forked and reopened, the session is what
// was kept in mind.
func TestAnySessionFoldsToTheSame(t *testing.T) {
	base := t.TempDir()
	rounds := 0
	rapid.Check(t, func(t *rapid.T) {
		rounds++
		s := Open(filepath.Join(base, fmt.Sprint(rounds)))
		own, err := s.Create(context.Background(), Begin{ID: "s0", Provider: "p", Model: "m"})
		fatal(t, err)
		defer func() { _ = own.Close() }()
		mind := &recalled{parent: map[int64]int64{}, record: map[int64]Record{}, opened: map[int64]bool{}}
		mind.add(1, Begin{}, 0)
		forks := 0
		put := func(r Record) {
			n, err := own.Append(r)
			fatal(t, err)
			mind.add(n, r, mind.head)
		}
		t.Repeat(map[string]func(*rapid.T){
			"user":   func(t *rapid.T) { put(user(fmt.Sprintf("u%d", mind.last))) },
			"answer": func(t *rapid.T) { put(assistant(fmt.Sprintf("a%d", mind.last))) },
			"call":   func(t *rapid.T) { put(assistant("", fmt.Sprintf("c%d", mind.last))) },
			"result": func(t *rapid.T) {
				put(result(fmt.Sprintf("c%d", rapid.Int64Range(1, mind.last).Draw(t, "of")), "r"))
			},
			"todos":   func(t *rapid.T) { put(Todos{}) },
			"changed": func(t *rapid.T) { put(Changed{Mode: "m"}) },
			"end": func(t *rapid.T) {
				cost := float64(rapid.IntRange(0, 9).Draw(t, "cost"))
				put(End{Event: &event.Event{
					Kind: event.Ended, End: &event.End{Usage: &event.Usage{CostUSD: &cost}},
				}})
			},
			"compact": func(t *rapid.T) {
				keep := int64(0)
				seen := slices.DeleteFunc(own.Visible(), func(m Numbered) bool {
					_, ok := mind.record[m.Number].(Message)
					return !ok
				})
				if len(seen) > 0 && rapid.Bool().Draw(t, "keep") {
					keep = rapid.SampledFrom(seen).Draw(t, "from").Number
				}
				put(Compacted{Summary: user(fmt.Sprintf("sum%d", mind.last)).Message, Keep: keep})
			},
			"adopt": func(t *rapid.T) { put(Adopted{Provider: "q", Model: "n"}) },
			"rewind": func(t *rapid.T) {
				to := rapid.Int64Range(1, mind.last).Draw(t, "to")
				if _, ok := mind.record[to]; !ok {
					t.Skip("a branch that was left when it was forked")
				}
				fatal(t, own.Rewind(to))
				mind.add(mind.last+1, Changed{}, to)
			},
			"reopen": func(t *rapid.T) {
				var err error
				if rapid.Bool().Draw(t, "cleanly") {
					err = own.Close()
				} else {
					err = own.abandon()
				}
				fatal(t, err)
				own, err = s.Resume(context.Background(), own.ID())
				fatal(t, err)
				mind.opened[mind.last] = true
			},
			"fork": func(t *rapid.T) {
				if own.State().Turns > 0 {
					t.Skip("totals of other branches do not come along")
				}
				forks++
				forked, err := s.Fork(context.Background(), own.ID(), fmt.Sprintf("s%d", forks))
				fatal(t, err)
				fatal(t, own.Close())
				own = forked
				mind.renumber()
				mind.opened[mind.last] = true
			},
			"": func(t *rapid.T) { mind.compare(t, own) },
		})
	})
}

func fatal(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzJournal: whatever a file holds, it is read or refused, what was read stays when something is added, and nothing
// panics.
func FuzzJournal(f *testing.F) {
	var whole []byte
	for i, r := range []Record{
		Begin{Version: 1, ID: "x"},
		user("one"), assistant("two", "c"), result("c", "three"), end(),
		Compacted{Summary: user("s").Message, Keep: 4},
		Changed{Model: "m"},
		Todos{},
		Denied{},
		Adopted{},
	} {
		line, err := Entry{Number: int64(i + 1), Parent: int64(i), Record: r}.line()
		check(f, err)
		whole = append(whole, line...)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-20])
	f.Add([]byte(strings.ReplaceAll(string(whole), `"p":3`, `"p":9`)))
	f.Add([]byte("{}\n[]\n\n{\"n\":1,\"p\":1,\"k\":\"message\",\"t\":\"\",\"d\":{}}\n"))
	f.Add([]byte(`{"n":1,"p":0,"k":"message","t":"x","d":null}` + "\n" + `{"n":2,"p":0,"k":"end","t":"x","d":[]}` +
		"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = glance(bytes.NewReader(data), int64(len(data)), "")
		j, err := readJournal(bytes.NewReader(data), "")
		check(t, err)
		if j.size != int64(len(data)) || j.end > j.size || j.end != int64(bytes.LastIndexByte(data, '\n')+1) {
			t.Fatalf("%d bytes, %d read, %d in lines", len(data), j.size, j.end)
		}
		before, err := foldAt(j, j.last())
		if err != nil {
			return
		}
		seen := before.messages()
		v := &View{State: before.state, fold: before, path: j.path(j.last())}
		for _, form := range []Form{JSONL, JSON, Markdown} {
			_ = v.export(form, io.Discard)
		}
		// What is appended follows what was there, and nothing of that is lost.
		line, err := Entry{Number: j.seq() + 1, Parent: before.state.Head, Record: user("added")}.line()
		check(t, err)
		k, err := readJournal(bytes.NewReader(append(bytes.Clone(data[:j.end]), line...)), "")
		check(t, err)
		after, err := foldAt(k, k.last())
		check(t, err)
		again := after.messages()
		if len(again) != len(seen)+1 || again[len(seen)].Number != j.seq()+1 || after.state.Head != j.seq()+1 {
			t.Errorf("%d messages, then %d", len(seen), len(again))
		}
	})
}

// FuzzHistory: whatever a file holds, there are consistent messages or an error.
func FuzzHistory(f *testing.F) {
	f.Add(`[{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"R","input":{}}]}]`)
	f.Add(`{"type":"user","message":{"role":"user","content":"x"}}` + "\n" + `{"history":[]}`)
	f.Add(`{"role":"tool","tool_call_id":"x","content":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		messages, err := parseHistory([]byte(text))
		if (err == nil) != (len(messages) > 0) {
			t.Errorf("%v %v", messages, err)
		}
		if again := consistent(messages); said(again) != said(messages) {
			t.Errorf("not consistent: %s, then %s", said(messages), said(again))
		}
	})
}
