package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"omniagent/internal/core/event"
)

// TestTail: a reader that is far behind when the session is closed still gets every record.
func TestTail(t *testing.T) {
	s, err := Open(t.TempDir()).Create(t.Context(), Begin{ID: "x"})
	check(t, err)
	const records = 3000
	slow, idle := s.Reader(1), s.Reader(1)
	for i := range records {
		_, err := s.Append(Logged{&event.Event{Kind: event.Text, Text: fmt.Sprint(i), Delta: true}})
		check(t, err)
	}
	check(t, s.Close())
	n := 0
	for {
		_, err := slow.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		check(t, err)
		n++
	}
	if n != records+1 {
		t.Errorf("%d records of %d", n, records+1)
	}
	check(t, slow.Close())
	check(t, idle.Close())
	if err := s.journal.file.(io.Closer).Close(); err == nil {
		t.Error("the file is open when its last reader has gone")
	}
}
