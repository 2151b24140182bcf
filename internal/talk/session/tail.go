package session

import (
	"bytes"

	"omniagent/internal/kit/fault"
)

// writable returns an error if this version must not write the journal.
func (j *journal) writable() error {
	if len(j.places) == 0 {
		return errEmpty
	}
	e, err := j.decode(j.places[0])
	if b, is := e.Record.(Begin); err == nil && is && b.Version > version {
		return newer(b)
	}
	return nil
}

// newer returns the error for a session of a newer version, which is read-only here.
func newer(b Begin) error {
	return fault.New(fault.Unsupported,
		"the session %s was written by a newer version (records of version %d; this program writes version %d), so "+
			"it can be read, but not continued",
		b.ID, b.Version, version).With("session_id",
		b.ID).Hint("update this program; to look at it: omniagent session show %s", b.ID)
}

// heal ensures that the next write begins a line. It cuts off an incomplete last line only if it is the beginning of an
// unfinished record. It uses a complete record that only lacks its newline, and leaves everything else in place.
func (s *Session) heal() error {
	j := s.journal
	rest := j.size - j.end
	switch {
	case rest == 0:
		return nil
	case j.partialHistory:
		return s.cut(Damaged{j.end, int(rest), cutAway})
	case rest > longestLine:
		return s.endLine(nil)
	}
	line := make([]byte, rest)
	if _, err := s.file.ReadAt(line, j.end); err != nil {
		return err
	}
	used := false
	for _, p := range pieces(line) {
		used = used || p.reason == "" && p.head.number > j.seq()
	}
	if e, err := j.blobs.decode(line); err == nil && used {
		if a, is := e.Record.(Adopted); is && a.Messages > 0 { // its messages are missing
			used = false
		}
	}
	if !used && isUnfinishedRecord(line, j.seq()+1) {
		if len(bytes.TrimRight(line, "\x00")) == 0 {
			return s.cut(Damaged{j.end, int(rest), zeroedTail + "; it was cut off"})
		}
		return s.cut(Damaged{j.end, int(rest), cutAway})
	}
	return s.endLine(line)
}

// cut removes a torn line, and reports it in the state.
func (s *Session) cut(d Damaged) error {
	if err := s.file.Truncate(d.At); err != nil {
		return err
	}
	s.journal.size = d.At
	s.cutOff = &d
	return nil
}

// endLine completes the last line and adds it to the journal.
func (s *Session) endLine(line []byte) error {
	if _, err := s.file.Write([]byte{'\n'}); err != nil {
		return err
	}
	j := s.journal
	if line == nil {
		j.noteDamage(j.end, int(j.size-j.end), notARecord)
	} else {
		j.line(line)
	}
	j.size++
	j.end = j.size
	return nil
}
