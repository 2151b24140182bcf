package session

import "omniagent/internal/kit/fault"

// Rewind goes back to a record, to write journals with branches: the next record that is appended follows it. The
// records after it stay in the journal, on an abandoned branch.
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
	if _, err := s.append(Changed{}, number); err != nil { // tells readers
		return err
	}
	if err := s.load(s.journal.last()); err != nil {
		return err
	}
	s.turn = turn
	return nil
}
