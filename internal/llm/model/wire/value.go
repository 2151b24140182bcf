package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/llm/model"
)

// Word is a string, or empty if a server sends something else: a minor member must not spoil an answer.
type Word string

// UnmarshalJSON reads a string, or a number, which some servers use for codes.
func (w *Word) UnmarshalJSON(data []byte) error {
	*w = ""
	var s string
	if json.Unmarshal(data, &s) == nil {
		*w = Word(s)
	} else if c := data[0]; c == '-' || c >= '0' && c <= '9' {
		*w = Word(data)
	}
	return nil
}

// Count is a number of tokens, or 0 if a server sends something else.
type Count int64

// UnmarshalJSON reads a number, or a string, which Gemini uses for large numbers.
func (c *Count) UnmarshalJSON(data []byte) error {
	*c = 0
	if n, err := strconv.ParseFloat(string(bytes.Trim(data, `"`)), 64); err == nil && n > 0 && n < 1e15 {
		*c = Count(n)
	}
	return nil
}

// Absent reports whether a member is missing or null.
func Absent(data json.RawMessage) bool { return len(data) == 0 || string(data) == "null" }

// First returns a body without blanks around it, or its first element if it is a list. Gemini sends a list for a stream
// that was not requested as events.
func First(body []byte) []byte {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if len(body) > 0 && body[0] == '[' && json.Unmarshal(body, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return body
}

// Mentions reports whether a message contains one of several lower-case phrases.
func Mentions(message string, phrases ...string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc(phrases, func(s string) bool { return strings.Contains(message, s) })
}

// Garbage returns the error for a response that does not follow the protocol.
func Garbage(what string, cause error) *model.Error {
	return &model.Error{Trouble: model.Garbage, Message: what, Cause: cause}
}

// New returns the API at base, which must not end with a slash. A key is sent in keyHeader, or as a bearer token if
// that is empty.
func New(o model.Options, base, keyHeader string, fault func(int, http.Header, []byte) *model.Error) *API {
	header := func(ctx context.Context) (http.Header, error) {
		h, key := http.Header{}, strings.TrimSpace(o.Key)
		if o.Bearer != nil {
			token, err := o.Bearer(ctx)
			if err != nil {
				return nil, err
			}
			h.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		} else if key != "" && keyHeader == "" {
			h.Set("Authorization", "Bearer "+key)
		} else if key != "" {
			h.Set(keyHeader, key)
		}
		return h, nil
	}
	return &API{
		Base: strings.TrimRight(base, "/"), HTTP: o.HTTP, Proxy: o.Proxy, First: o.First, Idle: o.Idle, Fault: fault,
		Header: header,
	}
}

// Identifier converts a text to a name or an id of up to most bytes: letters, digits, _ and -, which all APIs accept.
func Identifier(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	s = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
	return cmp.Or(s, "unknown")
}
