// Package jsonrpc reads and writes the messages of JSON-RPC 2.0 for both sides of a connection, without I/O.
//
// It promises that ids come back byte for byte, that an invalid message becomes the error that the protocol defines for
// it, under the id of the message if that is readable, and that each line it writes ends with its only newline. It
// refuses lists of messages, and it does not track requests: that is up to the caller.
//
// A server reads with Parse, which is strict. A client, which has to accept imprecise servers, reads with Read.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"omniagent/internal/text"
)

// The codes of errors.
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

// Errorf returns an error with that code.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Message is a request, a notification or a response.
type Message struct {
	ID     json.RawMessage `json:"id"`     // as it was sent; nil: a notification
	Method string          `json:"method"` // empty: a response
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"` // of a response

	Wrong  *Error `json:"-"` // the line is not a valid message; answer with this under ID, or under null
	Silent bool   `json:"-"` // but it looks like a response, which must not be answered
}

// Parse reads a message and sets Wrong if it is invalid. Member names must match exactly.
func Parse(line []byte) Message {
	if !json.Valid(line) {
		return Message{Wrong: Errorf(ParseError, "a line is not JSON")}
	}
	if line = bytes.TrimSpace(line); line[0] == '[' {
		return Message{Wrong: Errorf(InvalidRequest, "a line is one message; lists of messages are not taken")}
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(line, &m) != nil {
		return Message{Wrong: Errorf(InvalidRequest, "a line is not an object")}
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
		message.Wrong = Errorf(InvalidRequest, "an id is a text or a whole number")
	case !is(m["jsonrpc"], "2.0"):
		message.Wrong = Errorf(InvalidRequest, `a message says "jsonrpc":"2.0"`)
	case !calls || json.Unmarshal(method, &message.Method) != nil || method[0] != '"':
		message.Wrong = Errorf(InvalidRequest, "a message names its method")
	}
	return message
}

func response(m map[string]json.RawMessage, whole bool) Message {
	r := Message{ID: m["id"], Result: m["result"]}
	if raw, failed := m["error"]; failed {
		if json.Unmarshal(raw, &r.Error) != nil || r.Error == nil {
			r.Error = Errorf(InternalError, "an error that cannot be read")
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

// isID reports whether an id is valid: a string, a whole number, or null.
func isID(raw json.RawMessage) bool {
	switch raw[0] {
	case '"', 'n':
		return true
	}
	return (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') && !strings.ContainsAny(string(raw), ".eE")
}

// Read reads a message without checking its version. An id of null counts as missing. ok is false if the line is not an
// object with members of these types.
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

// call is a request, or a notification if it has no id.
type call struct {
	Version string `json:"jsonrpc"`
	ID      int64  `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// Request returns the line of a request; id is not 0.
func Request(id int64, method string, params any) []byte {
	return encode(call{"2.0", id, method, params})
}

// Notification returns the line of a notification; params may be nil.
func Notification(method string, params any) []byte { return encode(call{"2.0", 0, method, params}) }

// Result returns the line that answers a request.
func Result(id json.RawMessage, result any) []byte {
	line := encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result})
	if line == nil {
		return Failure(id, Errorf(InternalError, "the answer cannot be written as JSON"))
	}
	return line
}

// Failure returns the line that answers a failed request. An id of nil is written as null.
func Failure(id json.RawMessage, e *Error) []byte {
	return encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *Error          `json:"error"`
	}{"2.0", id, e})
}

// Bare removes the version from a line of this package, for a peer that omits it.
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
