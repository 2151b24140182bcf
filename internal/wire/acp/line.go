// Package acp is the agent side of the Agent Client Protocol, versions 1 and 2, without I/O: it decodes a client's
// messages and encodes updates.
//
// Every line becomes one message or one JSON-RPC error, however the input is split. Updates fit the schema of the
// agreed version. Unknown members are ignored. The package has no state of a conversation, and does not know agents or
// files.
package acp

import (
	"bytes"
	"cmp"

	"omniagent/internal/kit/lines"
	"omniagent/internal/wire/jsonrpc"
)

// Version is a version of the protocol.
type Version int

// The versions.
const (
	V1 Version = 1
	V2 Version = 2
)

// The error codes that the protocol adds to JSON-RPC.
const (
	RequestCancelled   = -32800
	AuthRequired       = -32000
	NotFound           = -32002
	unsupportedVersion = -32022
)

// longest is the longest accepted line. It leaves room for images of a few megabytes.
const longest = 64 << 20

// Reader splits input into messages. It skips a line that is too long without buffering it.
type Reader struct {
	Most int // bytes of a line; 0 means 64 MiB

	cut lines.Cutter
}

// Feed returns the messages whose lines end in p.
func (r *Reader) Feed(p []byte) []jsonrpc.Message {
	r.cut.Most = cmp.Or(r.Most, longest)
	var messages []jsonrpc.Message
	for {
		line, rest, ok := r.cut.Cut(p)
		if !ok {
			return messages
		}
		messages = append(messages, r.message(line)...)
		p = rest
	}
}

// End returns the message after the last newline, if any.
func (r *Reader) End() []jsonrpc.Message {
	line, _ := r.cut.Last()
	return r.message(line)
}

func (r *Reader) message(l lines.Line) []jsonrpc.Message {
	line := bytes.TrimSpace(l.Text)
	switch {
	case l.Long:
		wrong := jsonrpc.Errorf(jsonrpc.ParseError, "a line is longer than %d MiB", r.cut.Most>>20)
		return []jsonrpc.Message{{Wrong: wrong}}
	case len(line) == 0:
		return nil
	}
	return []jsonrpc.Message{jsonrpc.Parse(line)}
}
