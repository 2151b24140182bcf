// Package jsonrpc reads and writes the messages of JSON-RPC 2.0 for both sides of a connection, without I/O.
//
// Ids are kept byte for byte. An invalid message becomes the error that the protocol defines, with the id of the
// message if that is readable. Each written line ends with its only newline. Batches of messages are refused. The
// caller keeps track of requests.
//
// A server uses Parse, which is strict. A client uses Read, because servers may be imprecise.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"omniagent/internal/kit/text"
)

// The error codes.
const (
	ParseError     = -32700
	InvalidRequest = -32600
	MethodNotFound = -32601
	InvalidParams  = -32602
	InternalError  = -32603
)

// Error is why a request failed.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// longest is the limit in bytes of a message, which may repeat what the peer sent.
const longest = 8 << 10

// Errorf returns an error with that code. A message that is too long is cut.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: text.Cut(fmt.Sprintf(format, args...), longest)}
}

// Message is a request, a notification or a response.
type Message struct {
	ID     json.RawMessage `json:"id"`     // unchanged; nil in a notification
	Method string          `json:"method"` // empty in a response
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"` // of a response

	Wrong  *Error `json:"-"` // if not nil, the message is invalid: answer with this error and ID, or null
	Silent bool   `json:"-"` // the invalid message looks like a response, which must not be answered
}

// Parse reads a message. If it is invalid, Wrong is set. The names of members must match exactly.
func Parse(line []byte) Message {
	if !json.Valid(line) {
		return Message{Wrong: Errorf(ParseError, "the line is not JSON")}
	}
	if line = bytes.TrimSpace(line); line[0] == '[' {
		return Message{Wrong: Errorf(InvalidRequest, "batches of messages are not supported")}
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(line, &m) != nil {
		return Message{Wrong: Errorf(InvalidRequest, "the line is not an object")}
	}
	id, has := m["id"]
	known := has && isID(id)
	method, calls := m["method"]
	_, result := m["result"]
	_, failed := m["error"]
	if !calls && (has || result || failed) {
		return response(m, known && result != failed)
	}
	message := Message{Params: m["params"]}
	if known {
		message.ID = id
	}
	switch {
	case has && !known:
		message.Wrong = Errorf(InvalidRequest, "an id must be a string or a whole number")
	case !is(m["jsonrpc"], "2.0"):
		message.Wrong = Errorf(InvalidRequest, `"jsonrpc":"2.0" is missing`)
	case !calls || json.Unmarshal(method, &message.Method) != nil || method[0] != '"':
		message.Wrong = Errorf(InvalidRequest, "method is missing")
	}
	return message
}

func response(m map[string]json.RawMessage, whole bool) Message {
	r := Message{ID: m["id"], Result: m["result"]}
	if raw, failed := m["error"]; failed {
		if json.Unmarshal(raw, &r.Error) != nil || r.Error == nil {
			r.Error = Errorf(InternalError, "unreadable error")
		}
	}
	if !whole || !is(m["jsonrpc"], "2.0") {
		r.Wrong, r.Silent = Errorf(InvalidRequest, "a response needs an id, and a result or an error"), true
	}
	return r
}

func is(raw json.RawMessage, word string) bool {
	var s string
	return json.Unmarshal(raw, &s) == nil && s == word
}

// isID reports whether an id is valid: a string, a whole number, or null. It is repeated as it came, so it must be
// UTF-8.
func isID(raw json.RawMessage) bool {
	switch raw[0] {
	case '"', 'n':
		return utf8.Valid(raw)
	}
	return (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') && !strings.ContainsAny(string(raw), ".eE")
}

// Read reads a message without checking its version. A null id counts as missing. ok is false if the line is not an
// object, or a member has the wrong type.
func Read(line []byte) (m Message, ok bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &m) != nil {
		return Message{}, false
	}
	if string(m.ID) == "null" {
		m.ID = nil
	}
	return m, true
}

// outgoing is a request, or a notification if it has no id.
type outgoing struct {
	Version string `json:"jsonrpc"`
	ID      int64  `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// Request returns the line of a request. id must not be 0.
func Request(id int64, method string, params any) []byte {
	return encode(outgoing{"2.0", id, method, params})
}

// Notification returns the line of a notification. params may be nil.
func Notification(method string, params any) []byte {
	return encode(outgoing{"2.0", 0, method, params})
}

// Result returns the line that answers a request.
func Result(id json.RawMessage, result any) []byte {
	line := encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result})
	if line == nil {
		return Failure(id, Errorf(InternalError, "the result is not JSON"))
	}
	return line
}

// Failure returns the line that answers a failed request. A nil id is written as null.
func Failure(id json.RawMessage, e *Error) []byte {
	return encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *Error          `json:"error"`
	}{"2.0", id, e})
}

// Bare removes the version from a line of this package, for peers that omit it.
func Bare(line []byte) []byte {
	return bytes.Replace(line, []byte(`"jsonrpc":"2.0",`), nil, 1)
}

// encode returns nil if a raw part of v is not JSON.
func encode(v any) []byte {
	line, err := text.JSON(v)
	if err != nil {
		return nil
	}
	return append(line, '\n')
}
