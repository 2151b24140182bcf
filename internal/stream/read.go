package stream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"omniagent/internal/event"
	"omniagent/internal/proto/claude"
)

// Frame is what a line of the other side wants.
type Frame struct {
	User  []event.Block                                   // a message
	Steer bool                                            // it is for the turn that runs
	Taken func(turn int64, steered bool) (lines [][]byte) // called when the message was taken
	// anything else; the Host calls it between events, and it does not wait
	Do func(context.Context)

	greeting *claude.Request // it is what a host says before the conversation
}

// Said is a line of the other side, or that it has ended.
type Said struct {
	Frame Frame
	Err   error // the line is wrong; io.EOF: no more will come
}

// Ahead is how many frames are read before anybody takes them up. What an agent waits for may be among the lines behind
// them.
const Ahead = 256

// longestFrame is the longest line that is read; an image of a few megabytes fits.
const longestFrame = 64 << 20

// Read reads frames until the input ends. A line that is too long is passed over as a whole.
func Read(r io.Reader, d Dialect, frames chan<- Said, quit <-chan struct{}) {
	defer close(frames)
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(in)
		var said Said
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			said.Err = fmt.Errorf("it is longer than %d MiB", longestFrame>>20)
		case len(bytes.TrimSpace(line)) > 0:
			if said.Frame, said.Err = d.Read(line); said.Err == nil && said.Frame.User == nil && said.Frame.Do == nil {
				continue
			}
		case err != nil:
			return
		default:
			continue
		}
		select {
		case frames <- said:
		case <-quit:
			return
		}
	}
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > longestFrame; !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && (err == nil || errors.Is(err, io.EOF)) {
			return nil, bufio.ErrTooLong
		}
		return line, err
	}
}

// IsFrame says whether a text begins with a frame, rather than with what a person would write.
func IsFrame(line []byte) bool {
	var f struct {
		Type *string `json:"type"`
	}
	return json.Unmarshal(line, &f) == nil && f.Type != nil
}
