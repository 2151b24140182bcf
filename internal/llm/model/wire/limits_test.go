package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"omniagent/internal/llm/model"
)

// tireless is a server with a very long answer: first a head, then the same piece again and again.
type tireless struct {
	head, piece []byte
	sent        int
}

func (s *tireless) Read(b []byte) (int, error) {
	from := s.piece
	switch {
	case len(s.head) > 0:
		from = s.head
	case s.sent > maxStream+16<<20:
		return 0, io.EOF
	}
	n := copy(b, from)
	if s.sent += n; len(s.head) > 0 {
		s.head = s.head[n:]
	}
	return n, nil
}

func (s *tireless) RoundTrip(q *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(s), Request: q}, nil
}

// TestNoAnswerIsEndless: neither a stream nor an answer in one piece.
func TestNoAnswerIsEndless(t *testing.T) {
	comment := append(bytes.Repeat([]byte(":"), 16<<10-1), '\n')
	for name, tt := range map[string]struct {
		server tireless
		ask    func(*API) error
		most   int
	}{
		"stream": {tireless{head: []byte("data: {}\n\n"), piece: comment}, func(a *API) error {
			return a.Stream(t.Context(), "/", struct{}{}, func(Event) (bool, error) { return false, nil })
		}, maxStream},
		"whole": {tireless{piece: []byte(strings.Repeat(" ", 16<<10))}, func(a *API) error {
			var into any
			return a.Call(t.Context(), "/", struct{}{}, &into)
		}, maxBody},
	} {
		a := &API{
			Base: "http://x.example", HTTP: &http.Client{Transport: &tt.server},
			Header: func(context.Context) (http.Header, error) { return http.Header{}, nil },
		}
		if err := tt.ask(a); failed(t, err).Trouble != model.TooLarge || tt.server.sent > tt.most+1<<20 {
			t.Errorf("%s: %v after %d MiB", name, err, tt.server.sent>>20)
		}
	}
}
