package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"omniagent/internal/event"
	"omniagent/internal/lines"
	"omniagent/internal/proto/claude"
)

// Frame is what a line of the other side wants.
type Frame struct {
	User  []event.Block                                   // a message
	Steer bool                                            // it is for the running turn
	Taken func(turn int64, steered bool) (lines [][]byte) // called when the message was accepted
	// anything else; the Host calls it between events, and it does not block
	Do func(context.Context)

	greeting *claude.Request // what a host says before the conversation
}

// Input is a line of the other side, or the end of its input.
type Input struct {
	Frame Frame
	Err   error // the line is wrong; io.EOF: the input has ended
}

// Ahead is how many frames are read before they are handled. A later line may be an answer that an agent waits for.
const Ahead = 256

// longestFrame is the longest line that is read; an image of a few megabytes fits.
const longestFrame = 64 << 20

// Read reads frames until the input ends. It skips a line that is too long.
func Read(r io.Reader, d Dialect, frames chan<- Input, quit <-chan struct{}) {
	defer close(frames)
	for in := lines.NewReader(r, longestFrame); in.Next(); {
		var said Input
		switch {
		case in.Long:
			said.Err = fmt.Errorf("it is longer than %d MiB", longestFrame>>20)
		case len(bytes.TrimSpace(in.Text)) == 0:
			continue
		default:
			said.Frame, said.Err = d.Read(bytes.Clone(in.Text))
			if said.Err == nil && said.Frame.User == nil && said.Frame.Do == nil {
				continue
			}
		}
		select {
		case frames <- said:
		case <-quit:
			return
		}
	}
}

// IsFrame reports whether a text begins with a frame, rather than with what a person would write.
func IsFrame(line []byte) bool {
	var f struct {
		Type *string `json:"type"`
	}
	return json.Unmarshal(line, &f) == nil && f.Type != nil
}
