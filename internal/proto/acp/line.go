// Package acp is the Agent Client Protocol from the agent's side, in its versions 1 and 2, without I/O: bytes of a
// client in, messages out; what a conversation tells in, lines out.
//
// It promises that a line is one message or one error that JSON-RPC has a number for, wherever the bytes were cut; that
// what is told to a client fits the schema of the version that was agreed on; and that a member which the protocol does
// not know is passed over. It refuses to hold a conversation: it knows no agent, no session that lives, and no file.
package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"omniagent/internal/lines"
)

// Version is one of the protocol.
type Version int

// The versions.
const (
	V1 Version = 1
	V2 Version = 2
)

// The numbers of errors.
const (
	ParseError         = -32700
	InvalidRequest     = -32600
	MethodNotFound     = -32601
	InvalidParams      = -32602
	InternalError      = -32603
	RequestCancelled   = -32800
	AuthRequired       = -32000
	NotFound           = -32002
	UnsupportedVersion = -32022
)

// Error is one of JSON-RPC.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Wrong is an error with that number.
func Wrong(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Message is a line of the client: a request, a notification, an answer to a request of ours, or something that is none
// of them.
type Message struct {
	ID     json.RawMessage // as it was sent; nil: a notification
	Method string          // empty: an answer
	Params json.RawMessage
	Result json.RawMessage
	Error  *Error // of an answer

	Wrong  *Error // the line is no message. It is answered with this under ID, or under null
	Silent bool   // but it looks like an answer, to which there is none
}

// longest is the longest line that is taken; images of a few megabytes fit.
const longest = 64 << 20

// Reader makes messages of bytes that may be cut anywhere. A line that is too long is passed over as a whole, and costs
// no memory.
type Reader struct {
	Most int // bytes of a line; 0: 64 MiB

	cut lines.Cutter
}

// Feed returns the messages whose lines end in p. They are the reader's until the next Feed.
func (r *Reader) Feed(p []byte) []Message {
	r.cut.Most = cmp.Or(r.Most, longest)
	var messages []Message
	for {
		line, rest, ok := r.cut.Cut(p)
		if !ok {
			return messages
		}
		messages = append(messages, r.message(line)...)
		p = rest
	}
}

// End returns what stands behind the last line's end.
func (r *Reader) End() []Message {
	line, _ := r.cut.Last()
	return r.message(line)
}

func (r *Reader) message(l lines.Line) []Message {
	line := bytes.TrimSpace(l.Text)
	switch {
	case l.Long:
		return []Message{{Wrong: Wrong(ParseError, "a line is longer than %d MiB", r.cut.Most>>20)}}
	case len(line) == 0:
		return nil
	}
	return []Message{parse(bytes.Clone(line))}
}

func parse(line []byte) Message {
	if !json.Valid(line) {
		return Message{Wrong: Wrong(ParseError, "a line is no JSON")}
	}
	if line[0] == '[' {
		return Message{Wrong: Wrong(InvalidRequest, "a line is one message; lists of messages are not taken")}
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(line, &m) != nil {
		return Message{Wrong: Wrong(InvalidRequest, "a line is no object")}
	}
	id, has := m["id"]
	known := has && isID(id)
	method, calls := m["method"]
	_, result := m["result"]
	_, failed := m["error"]
	if !calls && (has || result || failed) {
		return answer(m, known && result != failed)
	}
	message := Message{Params: m["params"]}
	if known {
		message.ID = id
	}
	switch {
	case has && !known:
		message.Wrong = Wrong(InvalidRequest, "an id is a text or a whole number")
	case !is(m["jsonrpc"], "2.0"):
		message.Wrong = Wrong(InvalidRequest, `a message says "jsonrpc":"2.0"`)
	case !calls || json.Unmarshal(method, &message.Method) != nil || method[0] != '"':
		message.Wrong = Wrong(InvalidRequest, "a message names its method")
	}
	return message
}

func answer(m map[string]json.RawMessage, whole bool) Message {
	a := Message{ID: m["id"], Result: m["result"]}
	if raw, failed := m["error"]; failed {
		if json.Unmarshal(raw, &a.Error) != nil || a.Error == nil {
			a.Error = Wrong(InternalError, "an error that cannot be read")
		}
	}
	if !whole || !is(m["jsonrpc"], "2.0") {
		a.Wrong, a.Silent = Wrong(InvalidRequest, "an answer that has no id, or not one of result and error"), true
	}
	return a
}

func is(raw json.RawMessage, word string) bool {
	var s string
	return json.Unmarshal(raw, &s) == nil && s == word
}

// isID says whether a request can be answered under it: a text, a whole number, or null.
func isID(raw json.RawMessage) bool {
	switch raw[0] {
	case '"', 'n':
		return true
	}
	return (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') && !strings.ContainsAny(string(raw), ".eE")
}

// Reply is the answer to a request.
func Reply(id json.RawMessage, result any) []byte {
	return encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result})
}

// Fail is the answer to a request that failed. A nil id is null.
func Fail(id json.RawMessage, e *Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	return encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *Error          `json:"error"`
	}{"2.0", id, e})
}

// Request asks the client.
func Request(id int64, method string, params any) []byte {
	return encode(struct {
		Version string `json:"jsonrpc"`
		ID      int64  `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", id, method, params})
}

// Notify tells the client.
func Notify(method string, params any) []byte {
	return encode(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
}

// encode writes a line, with its end.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // our own values; what came from elsewhere was valid JSON
		b.Reset()
		_ = e.Encode(struct {
			Version string `json:"jsonrpc"`
			ID      any    `json:"id"`
			Error   *Error `json:"error"`
		}{"2.0", nil, Wrong(InternalError, "a message could not be written: %v", err)})
	}
	return b.Bytes()
}
