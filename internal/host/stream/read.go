package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/lines"
	"omniagent/internal/wire/claude"
)

// Frame is a parsed line of the other side.
type Frame struct {
	User  []event.Block                                   // a message
	Steer bool                                            // it is for the running turn
	Taken func(turn int64, steered bool) (lines [][]byte) // called when the message was accepted
	// carries out any other line; the Host calls it between events, and it does not block
	Do func(context.Context)

	greeting *claude.Request // the initialize request
}

// Input is a line of the other side, or the end of its input.
type Input struct {
	Frame Frame
	Err   error // why the line is invalid; io.EOF: the input has ended
}

// The limits of what Read reads ahead: frames, and bytes of their lines. It reads ahead because a later line may be an
// answer that an agent waits for.
const (
	mostAhead = 256
	mostBytes = longestFrame
)

// longestFrame is the longest line that is read; an image of a few megabytes fits.
const longestFrame = 64 << 20

// Read reads frames until the input ends, and sends them. It skips a line that is too long.
func Read(r io.Reader, d Dialect, frames chan<- Input, quit <-chan struct{}) {
	readAhead(r, d, mostBytes, frames, quit)
}

func readAhead(r io.Reader, d Dialect, most int, frames chan<- Input, quit <-chan struct{}) {
	defer close(frames)
	parsed := make(chan parsedLine)
	go parse(r, d, parsed, quit)
	var queue []parsedLine
	held := 0
	for parsed != nil || len(queue) > 0 {
		from := parsed
		if len(queue) >= mostAhead || held >= most {
			from = nil
		}
		var to chan<- Input
		var first parsedLine
		if len(queue) > 0 {
			to, first = frames, queue[0]
		}
		select {
		case line, more := <-from:
			if !more {
				parsed = nil
				continue
			}
			queue = append(queue, line)
			held += line.size
		case to <- first.said:
			queue[0] = parsedLine{}
			queue = queue[1:]
			held -= first.size
		case <-quit:
			return
		}
	}
}

// parsedLine is a parsed line and its size.
type parsedLine struct {
	said Input
	size int
}

// parse parses lines and sends those that are not empty.
func parse(r io.Reader, d Dialect, parsed chan<- parsedLine, quit <-chan struct{}) {
	defer close(parsed)
	for in := lines.NewReader(r, longestFrame); in.Next(); {
		line := parsedLine{size: len(in.Text)}
		switch {
		case in.Long:
			line = parsedLine{said: Input{Err: fmt.Errorf("it is longer than %d MiB", longestFrame>>20)}}
		case len(bytes.TrimSpace(in.Text)) == 0:
			continue
		default:
			line.said.Frame, line.said.Err = d.Read(bytes.Clone(in.Text))
			if line.said.Err == nil && line.said.Frame.User == nil && line.said.Frame.Do == nil {
				continue
			}
		}
		select {
		case parsed <- line:
		case <-quit:
			return
		}
	}
}

// IsFrame reports whether a line is a frame, and not a text of a person.
func IsFrame(line []byte) bool {
	var f struct {
		Type *string `json:"type"`
	}
	return json.Unmarshal(line, &f) == nil && f.Type != nil
}

// input carries out a line of the other side.
func (h *Host) input(ctx context.Context, said Input) {
	f := said.Frame
	switch {
	case said.Err != nil:
		h.refused = true
		h.Log("ignored a line on standard input: %v", said.Err)
		h.write(h.Dialect.Unreadable(said.Err))
	case f.User != nil && h.signal != nil:
		h.Log("a message was ignored: the conversation is being ended")
	case f.User != nil && !h.UntilEOF:
		h.Log("a message on standard input was ignored: this process answers one, and that came with --prompt")
	case f.User != nil:
		h.send(ctx, f)
	case f.Do != nil:
		f.Do(ctx)
	}
}
