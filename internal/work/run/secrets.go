package run

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/redact"
	"omniagent/internal/talk/session"
)

// secrets holds the answers that an agent gets and that are never written. The goroutines that serve other processes
// add to it.
type secrets struct {
	mu    sync.Mutex
	given map[string]string // by question
	known *redact.Values
}

func (s *secrets) add(question, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given == nil {
		s.given = map[string]string{}
	}
	s.given[question] = value
	s.known = redact.Known(slices.Collect(maps.Values(s.given))...)
}

// of returns the secret with which a question was answered, or "".
func (s *secrets) of(question string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given[question]
}

// values returns the secrets, which must not be written anywhere.
func (s *secrets) values() *redact.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// hide returns a JSON text without the secrets.
func (s *secrets) hide(body []byte) ([]byte, error) {
	known := s.values()
	if known == nil {
		return body, nil
	}
	return session.MaskedJSON(known.Bytes, body, json.Valid)
}

// plain returns a value without the secrets, or its zero value if they cannot be removed.
func plain[T any](s *secrets, v T) T {
	if s.values() == nil {
		return v
	}
	var clean T
	body, err := json.Marshal(v)
	if err == nil {
		body, err = s.hide(body)
	}
	if err == nil {
		err = json.Unmarshal(body, &clean)
	}
	if err != nil {
		return *new(T)
	}
	return clean
}

// in reports whether a content contains one of the secrets.
func (s *secrets) in(content []byte) bool {
	known := s.values()
	if known == nil {
		return false
	}
	_, n := known.Count(string(content))
	return n > 0
}

// CheckSecret refuses a secret that is too short to be told from other text, and so to be kept out of the records.
func CheckSecret(run, value string) error {
	if redact.Known(value) != nil {
		return nil
	}
	return fault.New(fault.ArgError, "a secret of less than 8 bytes cannot be told from other text, so it cannot be "+
		"kept out of the records").Hint("to give it as a text that is kept: omniagent answer %s 'TEXT'", run)
}
