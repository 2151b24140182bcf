package session

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/model"
	"omniagent/internal/workspace"
)

// Session is a conversation that is open for writing, by us alone. Its methods may be called from several goroutines.
type Session struct {
	torn   bool     // behind the last record stands a part of a line
	cutOff *Damaged // the part of a line that was cut off when the journal was opened
	store  Store
	id     string
	lock   *workspace.Held

	mu      sync.Mutex
	file    *os.File // nil: it is closed
	handle  *shared  // of file, which readers use as well
	journal *journal
	state   State
	buffer  []byte // for lines
	spare   []byte // for their data
	entered bool   // the directory's entry of the file is on the disk

	fold    *fold // until the messages are decoded
	seen    []Numbered
	turn    Total // what was spent since the last end of a turn
	stale   bool  // the projection
	project error // why it could not be written

	mask    func([]byte) []byte // takes secrets out of lines; nil: nothing does
	number  int64               // of the turn that runs, which messages are marked with
	recent  recent              // the last records, for readers in this process
	changed chan struct{}       // closed, and replaced, when there is more to read
	awaited bool                // somebody waits for that
	over    bool
}

// Mask has secrets taken out of every line before it is written. What mask returns is kept if it is still a record.
func (s *Session) Mask(mask func([]byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mask = mask
}

// Turn says which turn runs. Messages that are appended from now on carry its number.
func (s *Session) Turn(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number = number
}

// Sync makes what was appended survive the machine.
func (s *Session) Sync() error {
	s.mu.Lock()
	if s.file == nil {
		s.mu.Unlock()
		return closed(s.id)
	}
	handle, entered := s.handle, s.entered || s.lock == nil
	handle.use()
	s.mu.Unlock()
	defer func() { _ = handle.leave() }()
	err := handle.Sync()
	if err == nil && !entered {
		err = workspace.SyncDir(s.store.dir)
	}
	if err != nil {
		return unwritable(handle.Name(), err)
	}
	if !entered {
		s.mu.Lock()
		s.entered = true
		s.mu.Unlock()
	}
	return nil
}

// ID is the session's name.
func (s *Session) ID() string { return s.id }

// load makes the state as it is after a record.
func (s *Session) load(number int64) error {
	f, err := foldAt(s.journal, number)
	if err != nil {
		return unreadable(s.store.file(s.id, journalEnding), err)
	}
	if f.state.Begin.ID == "" {
		f.state.Begin.ID = s.id
	}
	s.state, s.fold, s.seen, s.turn = f.state, f, nil, Total{}
	s.damaged()
	return nil
}

// decoded makes sure that the messages are in memory.
func (s *Session) decoded() {
	if s.fold == nil {
		return
	}
	s.seen, s.fold = s.fold.messages(), nil
	s.damaged()
}

// damaged takes into the state what is damaged, as far as it is known by now. What was cut off is damage no more, but
// told.
func (s *Session) damaged() {
	s.state.Damaged, s.state.Damage = s.journal.broken(), s.journal.list()
	if s.cutOff != nil {
		s.state.Damage = append(s.state.Damage, *s.cutOff)
	}
}

// Append writes a record and returns its number. When it returns, the record survives kill -9 of this process; that of
// an End, and all before it, survives the machine too. Where it fails, the journal is as it was.
//
// An End also writes the projection. That this failed is told by Close: the journal has everything.
func (s *Session) Append(r Record) (int64, error) {
	number, err := s.appendHere(r)
	if err == nil && r.kind() == kindEnd {
		if err := s.Sync(); err != nil {
			return number, err
		}
	}
	return number, err
}

func (s *Session) appendHere(r Record) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.append(r, s.state.Head)
}

func (s *Session) append(r Record, parent int64) (int64, error) {
	if s.file == nil {
		return 0, closed(s.id)
	}
	if r.kind() == kindBegin {
		return 0, fault.New(fault.Internal, "a session begins once, with its first record")
	}
	r = fit(r)
	if c, ok := r.(Compacted); ok && c.Keep != 0 && !s.sees(c.Keep) {
		return 0, fault.New(fault.Internal, "a compaction keeps messages from record %d on, which is not among them",
			c.Keep)
	}
	if l, is := r.(Logged); is {
		if err := loggable(l.Event); err != nil {
			return 0, err
		}
	}
	number, err := s.put(parent, r)
	if err == nil && r.kind() == kindEnd {
		s.project = s.writeProjection()
	}
	return number, err
}

// put writes records that follow one another, all or none, and returns the number of the last.
func (s *Session) put(parent int64, records ...Record) (int64, error) {
	next, turn, now := s.state, s.turn, time.Now().UTC().Truncate(time.Millisecond)
	entries := make([]Entry, len(records))
	for i, r := range records {
		turn = next.take(&r, turn)
		if m, is := r.(Message); is && m.Turn == 0 {
			m.Turn = s.number
			r = m
		}
		entries[i] = Entry{Number: s.journal.seq() + 1 + int64(i), Parent: parent, Time: now, Record: r}
		if ev := eventOf(r); ev != nil {
			ev.Seq, ev.Time = entries[i].Number, now
		}
		if r.kind().inTree() {
			parent = entries[i].Number
		}
	}
	if err := s.write(entries); err != nil {
		return 0, err
	}
	next.Head, next.Updated, next.Damaged, next.Damage = parent, now, s.state.Damaged, s.state.Damage
	s.state, s.turn, s.stale = next, turn, true
	return entries[len(entries)-1].Number, nil
}

// write adds the lines, in one write. A part of them that a full disk left is taken away again.
func (s *Session) write(entries []Entry) error {
	text := s.buffer[:0]
	sizes := make([]int, len(entries))
	for i, e := range entries {
		body, err := s.body(e.Record)
		if err != nil {
			return err
		}
		before := len(text)
		text = e.append(text, body)
		sizes[i] = len(text) - before
	}
	if s.buffer = text; cap(text) > largestBody {
		s.buffer = nil
	}
	if s.torn { // a part of a line that could not be taken away would be glued to this one
		if err := s.file.Truncate(s.journal.end); err != nil {
			return unwritable(s.file.Name(), err)
		}
		s.torn = false
	}
	if n, err := s.file.Write(text); err != nil {
		s.torn = n > 0 && s.file.Truncate(s.journal.end) != nil
		return unwritable(s.file.Name(), err)
	}
	for i, e := range entries {
		line := text[:sizes[i]-1]
		j := s.journal
		j.order.next(e.Number)
		j.add(place{e.Number, e.Parent, j.end, len(line), e.Record.kind()})
		j.marks = nil // they matter when a journal is opened
		s.recent.add(e.Number, j.end, line)
		j.end += int64(sizes[i])
		j.size = j.end
		text = text[sizes[i]:]
		s.see(e)
	}
	s.wake()
	return nil
}

// body is the data of a record as it stands in its line: without secrets, and not too long.
func (s *Session) body(r Record) ([]byte, error) {
	body, err := bodyOf(s.spare[:0], r)
	if err != nil {
		return nil, fault.New(fault.Internal, "a record of the kind %s cannot be written", nameOf(r)).Because(err)
	}
	if s.spare = body; cap(body) > largestBody {
		s.spare = nil
	}
	if s.mask != nil {
		if body, err = masked(s.mask, r, body); err != nil {
			return nil, err
		}
	}
	switch {
	case len(body) <= largestBody:
		return body, nil
	case s.lock != nil:
		return s.journal.blobs.put(body)
	case len(body) > longestLine-peek:
		return nil, fault.New(fault.FieldTooLarge,
			"a record of %d bytes is too large for a conversation that is not kept",
			len(body)).Hint("keep it: session.keep = true")
	}
	return body, nil
}

// take is the state with a record in it, and what the running turn has spent by then. An End gets its totals.
func (s *State) take(r *Record, turn Total) Total {
	switch v := (*r).(type) {
	case Message:
		s.Messages++
		if s.Title == "" {
			s.Title = TitleOf(v.Message)
		}
		s.spend(v)
		turn.spend(v)
	case Denied:
		s.spend(v)
		turn.spend(v)
	case End:
		s.Usage, s.Cost = subtract(s.Usage, turn.Usage).Add(v.Usage), s.Cost-turn.Cost+v.Cost
		s.Denials += max(0, len(v.Denials)-turn.Denials)
		s.Turns++
		v.Total = s.Total
		*r = v
		return Total{}
	case Compacted:
		s.Compactions++
	case Adopted:
		s.change(Changed{Provider: v.Provider, Model: v.Model})
	case Changed:
		s.change(v)
	case Todos:
		s.Todos = v.Items
	}
	return turn
}

// subtract takes back what was added message by message: the end of a turn says what the whole of it took.
func subtract(a, b model.Usage) model.Usage {
	return model.Usage{
		Input: a.Input - b.Input, CacheRead: a.CacheRead - b.CacheRead, CacheWrite: a.CacheWrite - b.CacheWrite,
		Output:    a.Output - b.Output,
		Reasoning: a.Reasoning - b.Reasoning, Searches: a.Searches - b.Searches, Estimated: a.Estimated,
	}
}

// see keeps what the model sees up to date.
func (s *Session) see(e Entry) {
	switch r := e.Record.(type) {
	case Message:
		if s.fold != nil {
			s.fold.seen = append(s.fold.seen, len(s.journal.places)-1)
		} else {
			s.seen = append(s.seen, Numbered{e.Number, r.Message})
		}
	case Compacted:
		s.decoded()
		seen := []Numbered{{e.Number, r.Summary}}
		for _, m := range s.seen {
			if r.Keep > 0 && m.Number >= r.Keep && s.isMessage(m.Number) {
				seen = append(seen, m)
			}
		}
		s.seen = seen
	case Adopted:
		s.fold, s.seen = nil, nil
	}
}

// sees says whether a record is a message that the model sees.
func (s *Session) sees(number int64) bool {
	s.decoded()
	for _, m := range s.seen {
		if m.Number == number {
			return s.isMessage(number)
		}
	}
	return false
}

func (s *Session) isMessage(number int64) bool {
	i := s.journal.index(number)
	return i >= 0 && s.journal.places[i].number == number && s.journal.places[i].kind == kindMessage
}

// Rewind goes back to a record: what is appended next follows that one. What came after it stays in the journal, on a
// branch that was left.
func (s *Session) Rewind(number int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return closed(s.id)
	}
	i := s.journal.index(number)
	if i < 0 || s.journal.places[i].number != number {
		return fault.New(fault.NotFoundCode, "the session %s has no record %d", s.id, number).With("session_id",
			s.id).Hint("omniagent session show %s", s.id)
	}
	turn := s.turn
	if _, err := s.append(Changed{}, number); err != nil { // so that a reader knows it, too
		return err
	}
	if err := s.load(s.journal.last()); err != nil {
		return err
	}
	s.turn = turn
	return nil
}

// Messages is what the model has to see now: what was said since the last compaction, after its summary. It is
// consistent: the sides take turns, and a call whose result was lost has one that says so. What it returns is not to be
// changed.
func (s *Session) Messages() []model.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decoded()
	return plain(s.seen)
}

func plain(seen []Numbered) []model.Message {
	all := make([]model.Message, len(seen))
	for i, m := range seen {
		all[i] = m.Message
	}
	return consistent(all)
}

// Seen are the messages as they were recorded, with their numbers: what a compaction chooses from. The first one may be
// a summary, under the number of its compaction.
func (s *Session) Seen() []Numbered {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decoded()
	return append([]Numbered(nil), s.seen...)
}

// State is how the session stands.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// CheckProvider says why the session cannot go on under a provider: it is another one's. What a model thought, and how
// its API signs and names things, is worth nothing to another, so nobody gets there unasked; Adopt is the way.
func (s *Session) CheckProvider(provider string) error {
	now := s.State().Provider
	if provider == "" || now == "" || provider == now {
		return nil
	}
	return fault.New(fault.ArgError, "the session %s belongs to %s and cannot go on with %s", s.id, now,
		provider).With("session_id", s.id).With("provider", now).
		Hint("take its history along: --history-file %s", s.store.file(s.id, projectionEnding))
}

// Adopt makes the session go on under a provider with a history from elsewhere, as ReadHistory reads it, in place of
// its own messages. It is there as a whole or not at all, whenever the process dies.
func (s *Session) Adopt(a Adopted, messages []model.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return closed(s.id)
	}
	a.Messages = len(messages)
	records := []Record{a}
	for _, m := range messages {
		records = append(records, fit(Message{Message: m}))
	}
	_, err := s.put(s.state.Head, records...)
	return err
}

// Close writes the projection if something was added since, and gives the session free. Calling it again does nothing.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.project
	if s.stale {
		err = s.writeProjection()
	}
	s.decoded() // what is asked for later
	s.over = true
	s.wake()
	return errors.Join(err, s.abandon())
}

// abandon gives everything back.
func (s *Session) abandon() error {
	var err error
	if s.file != nil {
		err = s.handle.leave()
		s.file = nil
	}
	if s.lock == nil { // it has no name that another process could open it by
		return err
	}
	return errors.Join(err, s.lock.Unlock())
}

func closed(id string) error { return fault.New(fault.Internal, "the session %s is closed", id) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
