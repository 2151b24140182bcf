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

	"omniagent/internal/lines"
	"omniagent/internal/proto/jsonrpc"
)

// Version is one of the protocol.
type Version int

// The versions.
const (
	V1 Version = 1
	V2 Version = 2
)

// The codes of errors that the protocol adds to those of JSON-RPC.
const (
	RequestCancelled   = -32800
	AuthRequired       = -32000
	NotFound           = -32002
	UnsupportedVersion = -32022
)

// longest is the longest line that is taken; images of a few megabytes fit.
const longest = 64 << 20

// Reader makes messages of bytes that may be cut anywhere. A line that is too long is passed over as a whole, and costs
// no memory.
type Reader struct {
	Most int // bytes of a line; 0: 64 MiB

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

// End returns what stands behind the last line's end.
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
