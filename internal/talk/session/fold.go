package session

import (
	"cmp"
	"errors"
	"strings"
	"time"
	"unicode"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
)

// State is the state of a session.
type State struct {
	Begin   Begin // the first record
	Total         // with the current Provider, Model, Mode and Title
	Todos   []Todo
	Updated time.Time
	Head    int64     // the parent of the next record
	Damaged int       // damaged places, and records that could not be decoded
	Damage  []Damaged // the first of them, and a line that was cut off when the session was opened for writing

	// As of the opening of the journal.
	LastTurn   int64
	Unfinished []Unfinished
	Questions  []event.Ask // unanswered, in unfinished turns
}

// Numbered is a message with the number of its record. A summary has the number of the compaction.
type Numbered struct {
	Number int64
	model.Message
}

// fold is the view of a journal at one of its records: the state, and the messages that the model sees.
type fold struct {
	journal *journal
	state   State
	visible []int // indexes of messages in the journal's places
	summary *Numbered
}

// foldAt follows the path to a record. It only decodes the first record, changes, everything after the last end of a
// turn, and the compaction that applies.
func foldAt(j *journal, number int64) (*fold, error) {
	if len(j.places) == 0 {
		return nil, errEmpty
	}
	f := &fold{journal: j}
	way := j.path(number)
	f.state.Head = j.places[way[len(way)-1]].number
	f.state.Updated = j.time(j.latest)
	if e, ok := f.entry(0); ok {
		if b, ok := e.Record.(Begin); ok {
			f.state.Begin = b
			f.state.Total = Total{
				Title: b.Title, Provider: b.Provider, Model: b.Model, Mode: b.Mode,
				Address: b.Address, Confinement: b.Confinement,
			}
		}
	}
	f.sumTotals()
	f.branch(way)
	f.unfinished()
	f.state.Damaged, f.state.Damage = j.broken(), j.list()
	if torn := j.size - j.end; torn > 0 { // it may still be written
		f.state.Damage = append(f.state.Damage, Damaged{j.end, int(torn), tornEnd})
	}
	return f, nil
}

var errEmpty = errors.New("it has no records")

// entry decodes a record; the journal counts failures.
func (f *fold) entry(i int) (Entry, bool) {
	e, err := f.journal.entry(i)
	return e, err == nil
}

// sumTotals adds the totals that never decrease: those of the last end of a turn, and those of a turn after it that
// never ended.
func (f *fold) sumTotals() {
	places := f.journal.places
	end, total := len(places)-1, Total{}
	for ; end >= 0; end-- {
		if places[end].kind != kindEnd {
			continue
		}
		if e, ok := f.entry(end); ok {
			total = e.Record.(End).Total
			break
		}
	}
	for i := end + 1; i < len(places); i++ {
		if places[i].kind != kindMessage && places[i].kind != kindDenied {
			continue
		}
		if e, ok := f.entry(i); ok {
			total.spend(e.Record)
		}
	}
	t := &f.state.Total
	t.Usage, t.Cost, t.Turns, t.Calls, t.Denials = total.Usage, total.Cost, total.Turns, total.Calls, total.Denials
	t.Title = cmp.Or(t.Title, total.Title)
}

// spend adds the usage of a record other than an End.
func (t *Total) spend(r Record) {
	switch r := r.(type) {
	case Message:
		if r.Usage != nil {
			t.Usage = t.Usage.Add(*r.Usage)
		}
		t.Cost += r.Cost
		t.Calls += calls(r.Message)
	case Denied:
		t.Denials++
	}
}

func calls(m model.Message) (n int) {
	for _, b := range m.Blocks {
		if b.Kind == model.Call {
			n++
		}
	}
	return n
}

// branch applies the records on the path.
func (f *fold) branch(way []int) {
	places := f.journal.places
	from, todos, shortened := 0, -1, -1
	for at, i := range way {
		switch places[i].kind {
		case kindMessage:
			f.state.Messages++
		case kindCompacted:
			f.state.Compactions++
			from, shortened = at+1, i
		case kindAdopted:
			from, shortened = at+1, -1
			if e, ok := f.entry(i); ok {
				a := e.Record.(Adopted)
				f.state.change(Changed{Provider: a.Provider, Model: a.Model})
			}
		case kindChanged:
			if e, ok := f.entry(i); ok {
				f.state.change(e.Record.(Changed))
			}
		case kindTodos:
			todos = i
		}
	}
	if todos >= 0 {
		if e, ok := f.entry(todos); ok {
			f.state.Todos = e.Record.(Todos).Items
		}
	}
	keep := int64(0)
	if shortened >= 0 {
		if e, ok := f.entry(shortened); ok {
			c := e.Record.(Compacted)
			keep, f.summary = c.Keep, &Numbered{e.Number, c.Summary}
		} else {
			from = 0 // show all rather than nothing
		}
	}
	for at, i := range way {
		if places[i].kind == kindMessage && (at >= from || keep > 0 && places[i].number >= keep) {
			f.visible = append(f.visible, i)
		}
	}
	if f.state.Title == "" {
		f.state.Title = f.title(way)
	}
}

// title returns the first line of the first prompt.
func (f *fold) title(way []int) string {
	for _, i := range way {
		if f.journal.places[i].kind == kindMessage {
			if e, ok := f.entry(i); ok {
				if t := TitleOf(e.Record.(Message).Message); t != "" {
					return t
				}
			}
		}
	}
	return ""
}

func (s *State) change(c Changed) {
	s.Address = cmp.Or(c.Address, s.Address)
	s.Provider = cmp.Or(c.Provider, s.Provider)
	s.Model = cmp.Or(c.Model, s.Model)
	s.Mode = cmp.Or(c.Mode, s.Mode)
	s.Title = cmp.Or(c.Title, s.Title)
	s.Session = cmp.Or(c.Session, s.Session)
	s.Sandbox = cmp.Or(c.Sandbox, s.Sandbox)
	s.Network = cmp.Or(c.Network, s.Network)
	if c.Walls != "" {
		s.Walls, s.Planned, s.Holes = c.Walls, c.Planned, c.Holes // these walls may have no holes
	}
	s.Wanted = cmp.Or(c.Wanted, s.Wanted)
}

// messages decodes the messages that the model sees.
func (f *fold) messages() []Numbered {
	var all []Numbered
	if f.summary != nil {
		all = append(all, *f.summary)
	}
	for _, i := range f.visible {
		if e, ok := f.entry(i); ok {
			all = append(all, Numbered{e.Number, e.Record.(Message).Message})
		}
	}
	return all
}

const titleLength = 80

// addedByHost reports whether a host has added a text to a person's message, such as a reminder.
func addedByHost(b model.Block) bool { return b.Kind == model.Text && b.Name != "" }

// TitleOf returns a title for a prompt: its first line, shortened.
func TitleOf(m model.Message) string {
	if m.Role != model.User {
		return ""
	}
	for _, b := range m.Blocks {
		if b.Kind != model.Text || addedByHost(b) {
			continue
		}
		for line := range strings.Lines(b.Text) {
			clean, _ := text.Clean(strings.Join(strings.Fields(line), " "))
			if clean = strings.TrimFunc(clean, unicode.IsSpace); clean == "" {
				continue
			}
			if runes := []rune(clean); len(runes) > titleLength {
				clean = strings.TrimSpace(string(runes[:titleLength-1])) + "…"
			}
			return clean
		}
	}
	return ""
}
