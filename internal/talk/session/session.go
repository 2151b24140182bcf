package session

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/sys/redact"
	"omniagent/internal/sys/workspace"
)

// Session is a conversation that this process has open for writing. It is safe for concurrent use.
type Session struct {
	partialTail bool     // an incomplete line follows the last record
	cutOff      *Damaged // the incomplete line that was cut off when the journal was opened
	store       Store
	id          string
	lock        *workspace.FileLock

	mu        sync.Mutex
	file      *os.File    // nil if closed
	handle    *sharedFile // of file, shared with readers
	journal   *journal
	state     State
	buffer    []byte // for lines
	spare     []byte // for their data
	dirSynced bool   // the directory entry of the file is on disk

	fold    *fold // nil once the messages are decoded
	visible []Numbered
	turn    Total // spent since the last end of a turn
	stale   bool  // the projection is out of date
	project error // why the projection could not be written

	mask      func([]byte) []byte // removes secrets from lines; may be nil
	number    int64               // of the running turn; recorded in messages
	recent    recent              // the last records, for readers in this process
	changed   chan struct{}       // closed and replaced when there is more to read
	hasWaiter bool                // a reader is waiting for changed
	over      bool
}

// Mask sets a function that removes secrets from every line before it is written. Its result is used if it is still a
// valid record.
func (s *Session) Mask(mask func([]byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mask = mask
}

// Hide removes further secrets from every line from now on. A nil known changes nothing.
func (s *Session) Hide(known *redact.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.mask
	s.mask = func(line []byte) []byte {
		if before != nil {
			line = before(line)
		}
		return known.Bytes(line)
	}
}

// Turn sets the number of the running turn, which messages appended from now on carry.
func (s *Session) Turn(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number = number
}

// Sync makes appended records survive a crash of the machine.
func (s *Session) Sync() error {
	s.mu.Lock()
	if s.file == nil {
		s.mu.Unlock()
		return closed(s.id)
	}
	handle, entered := s.handle, s.dirSynced || s.lock == nil
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
		s.dirSynced = true
		s.mu.Unlock()
	}
	return nil
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// load sets the state as of a record.
func (s *Session) load(number int64) error {
	f, err := foldAt(s.journal, number)
	if err != nil {
		return unreadable(s.store.file(s.id, journalEnding), err)
	}
	f.state.Begin.ID = cmp.Or(f.state.Begin.ID, s.id)
	s.state, s.fold, s.visible, s.turn = f.state, f, nil, Total{}
	s.damaged()
	return nil
}

// decoded ensures that the messages are in memory.
func (s *Session) decoded() {
	if s.fold == nil {
		return
	}
	s.visible, s.fold = s.fold.messages(), nil
	s.damaged()
}

// damaged copies the known damage into the state. A line that was cut off is reported, but no longer counted.
func (s *Session) damaged() {
	s.state.Damaged, s.state.Damage = s.journal.broken(), s.journal.list()
	if s.cutOff != nil {
		s.state.Damage = append(s.state.Damage, *s.cutOff)
	}
}

// Append writes a record and returns its number. When it returns, the record survives kill -9 of this process; an End,
// and all before it, also survives a crash of the machine. If Append fails, the journal is unchanged.
//
// An End also writes the projection. If that fails, Close reports it.
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
	if c, ok := r.(Compacted); ok && c.Keep != 0 && !s.isVisible(c.Keep) {
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

// put writes consecutive records, all or none, and returns the number of the last one.
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

// write appends the lines in a single write. If only a part could be written, it removes that part.
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
	if s.partialTail { // otherwise a partial line that could not be removed would merge with this one
		if err := s.file.Truncate(s.journal.end); err != nil {
			return unwritable(s.file.Name(), err)
		}
		s.partialTail = false
	}
	if n, err := s.file.Write(text); err != nil {
		s.partialTail = n > 0 && s.file.Truncate(s.journal.end) != nil
		return unwritable(s.file.Name(), err)
	}
	for i, e := range entries {
		line := text[:sizes[i]-1]
		j := s.journal
		j.order.next(e.Number)
		j.add(recordAt{e.Number, e.Parent, j.end, len(line), e.Record.kind()})
		j.marks = nil // only needed while a journal is opened
		s.recent.add(e.Number, j.end, line)
		j.end += int64(sizes[i])
		j.size = j.end
		text = text[sizes[i]:]
		s.updateVisible(e)
	}
	s.wake()
	return nil
}

// body returns the data of a record for its line: without secrets, and not too long.
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

// take adds a record to the state and returns what the running turn has spent so far. An End gets its totals.
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
		used, cost := v.spent()
		s.Usage, s.Cost = subtract(s.Usage, turn.Usage).Add(used), s.Cost-turn.Cost+cost
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

// subtract removes the usage that was added message by message, because the end of a turn has the usage of the whole
// turn.
func subtract(a, b model.Usage) model.Usage {
	return model.Usage{
		Input: a.Input - b.Input, CacheRead: a.CacheRead - b.CacheRead, CacheWrite: a.CacheWrite - b.CacheWrite,
		Output:    a.Output - b.Output,
		Reasoning: a.Reasoning - b.Reasoning, Searches: a.Searches - b.Searches, Estimated: a.Estimated,
	}
}

// updateVisible updates the messages that the model sees.
func (s *Session) updateVisible(e Entry) {
	switch r := e.Record.(type) {
	case Message:
		if s.fold != nil {
			s.fold.visible = append(s.fold.visible, len(s.journal.places)-1)
		} else {
			s.visible = append(s.visible, Numbered{e.Number, r.Message})
		}
	case Compacted:
		s.decoded()
		visible := []Numbered{{e.Number, r.Summary}}
		for _, m := range s.visible {
			if r.Keep > 0 && m.Number >= r.Keep && s.isMessage(m.Number) {
				visible = append(visible, m)
			}
		}
		s.visible = visible
	case Adopted:
		s.fold, s.visible = nil, nil
	}
}

// isVisible reports whether a record is a message that the model sees.
func (s *Session) isVisible(number int64) bool {
	s.decoded()
	return s.isMessage(number) &&
		slices.ContainsFunc(s.visible, func(m Numbered) bool { return m.Number == number })
}

func (s *Session) isMessage(number int64) bool {
	i := s.journal.index(number)
	return i >= 0 && s.journal.places[i].number == number && s.journal.places[i].kind == kindMessage
}

// Messages returns the messages for the model: the summary of the last compaction, and the messages since. The result
// is consistent: the sides alternate, and a call whose result was lost gets one that says so. The caller must not
// change it.
func (s *Session) Messages() []model.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decoded()
	return plain(s.visible)
}

func plain(visible []Numbered) []model.Message {
	all := make([]model.Message, len(visible))
	for i, m := range visible {
		all[i] = m.Message
	}
	return consistent(all)
}

// Visible returns the messages as they were recorded, with their numbers, for a compaction to choose from. The first
// one may be a summary, with the number of its compaction.
func (s *Session) Visible() []Numbered {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decoded()
	return slices.Clone(s.visible)
}

// State returns the current state.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// CheckProvider returns an error if the session belongs to another provider. A model's thinking and its API's
// signatures are useless to another provider, so switching takes an explicit Adopt.
func (s *Session) CheckProvider(provider string) error {
	now := s.State().Provider
	if provider == "" || now == "" || provider == now {
		return nil
	}
	return fault.New(fault.ArgError, "the session %s belongs to %s and cannot continue with %s", s.id, now, provider).
		With("session_id", s.id).With("provider", now).
		Hint("take its history along: --history-file %s", s.store.file(s.id, projectionEnding))
}

// Adopt continues the session with a provider and a history from elsewhere, as ReadHistory returns it, instead of its
// own messages. The history is recorded completely or not at all, even if the process dies.
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

// Close writes the projection if records were added since, and releases the session. Calling it again does nothing.
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
	s.decoded() // later calls need the messages
	s.over = true
	s.wake()
	return errors.Join(err, s.abandon())
}

// abandon releases the file and the lock.
func (s *Session) abandon() error {
	var err error
	if s.file != nil {
		err = s.handle.leave()
		s.file = nil
	}
	if s.lock == nil { // a session without a name has no lock
		return err
	}
	return errors.Join(err, s.lock.Unlock())
}

func closed(id string) error { return fault.New(fault.Internal, "the session %s is closed", id) }
