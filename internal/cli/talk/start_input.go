package talk

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/parts"
	"omniagent/internal/core/event"
	"omniagent/internal/host/stream"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
)

// input is what the host sends: one message, or frames.
type input struct {
	prompt []event.Block       // a message for one turn
	stays  bool                // the messages are frames, until the input ends
	frames <-chan stream.Input // closed at the end of the input
}

// readInput determines the form of the input, and reads it if it is a single message.
func readInput(c *contract.Call, d stream.Dialect, quit <-chan struct{}) (input, error) {
	in, open := c.Host.Stdin, c.Host.Stdin != nil
	if c.Given("prompt") {
		if strings.TrimSpace(c.String("prompt")) == "" {
			return input{}, fault.New(fault.ArgError, "--prompt is empty").Hint("say what is to be done")
		}
		prompt := []event.Block{{Text: c.String("prompt")}}
		if c.String("dialect") == claudeDialect {
			more, err := stdinBlocks(c)
			return input{prompt: append(prompt, more...), frames: noFrames()}, err
		}
		if c.Host.StdinTerminal {
			open = false
		}
		return input{prompt: prompt, frames: readFrames(in, d, open, quit)}, nil
	}
	if c.Host.StdinTerminal || !open {
		return input{}, noMessage(c)
	}
	if form := c.String("input-format"); form == "stream-json" || form == "auto" && c.Given("session-id") {
		return input{stays: true, frames: readFrames(in, d, open, quit)}, nil
	}
	reader := bufio.NewReaderSize(lines.Awaited(in, "the message", lines.EndsWait, func(words string) {
		parts.LogLine(c, "%s", words)
	}), 64<<10)
	line, rest, err := firstLine(reader)
	switch {
	case err != nil:
		return input{}, err
	case line != nil && c.String("input-format") == "auto":
		return input{stays: true, frames: readFrames(io.MultiReader(bytes.NewReader(line), reader), d, true, quit)}, nil
	case len(bytes.TrimSpace(rest)) == 0:
		return input{}, withPrompt(c, fault.New(fault.ArgError, "standard input is empty, and there is no --prompt"))
	}
	return input{prompt: []event.Block{{Text: string(rest)}}, frames: noFrames()}, nil
}

func noMessage(c *contract.Call) error {
	return withPrompt(c, fault.New(fault.ArgError,
		"there is no message: give --prompt, or a message or frames on standard input"))
}

// withPrompt adds a hint: an example of a call with a message.
func withPrompt(c *contract.Call, f *fault.Fault) error {
	if c.Bool("rehearse") {
		return f.Hint("omniagent start --rehearse -p hi")
	}
	return f.Hint("omniagent start -p 'What is in this directory?'")
}

// noFrames returns a channel without frames.
func noFrames() <-chan stream.Input {
	frames := make(chan stream.Input)
	close(frames)
	return frames
}

// readFrames returns a channel of the frames of in, which are read in a goroutine.
func readFrames(in io.Reader, d stream.Dialect, open bool, quit <-chan struct{}) <-chan stream.Input {
	if !open {
		return noFrames()
	}
	frames := make(chan stream.Input)
	go stream.Read(in, d, frames, quit)
	return frames
}

// firstLine reads the first line that is not blank. If that is a frame, it returns the line, and the frames after it
// are still in in. Otherwise line is nil, and rest is the whole input. It checks the limit while it reads, so that an
// endless line does not fill the memory. It cannot use lines.Reader, which would read beyond the line.
func firstLine(in *bufio.Reader) (line, rest []byte, err error) {
	for {
		from := len(rest)
		for err = bufio.ErrBufferFull; err == bufio.ErrBufferFull && len(rest) <= flags.LongestMessage; {
			var part []byte
			part, err = in.ReadSlice('\n')
			rest = append(rest, part...)
		}
		part := bytes.TrimSpace(rest[from:])
		switch {
		case len(rest) > flags.LongestMessage:
			return nil, nil, flags.MessageTooLong()
		case bytes.HasPrefix(part, []byte("{")) && stream.IsFrame(rest[from:]):
			return rest[from:], rest, nil
		case err == nil && len(part) == 0:
			continue
		}
		break
	}
	more, err := io.ReadAll(io.LimitReader(in, int64(flags.LongestMessage-len(rest)+1)))
	if err != nil {
		return nil, nil, fault.New(fault.Internal, "standard input cannot be read").Because(err)
	}
	if rest = append(rest, more...); len(rest) > flags.LongestMessage {
		return nil, nil, flags.MessageTooLong()
	}
	return nil, rest, nil
}

// stdinBlocks returns standard input as a further block of a message that was given as an argument, as Claude Code
// does. It waits at most three seconds for the input to begin.
func stdinBlocks(c *contract.Call) ([]event.Block, error) {
	if c.Host.StdinTerminal || c.Host.Stdin == nil {
		return nil, nil
	}
	begun := make(chan struct{})
	type read struct {
		data []byte
		err  error
	}
	all := make(chan read, 1)
	go func() {
		in := bufio.NewReader(c.Host.Stdin)
		_, _ = in.Peek(1)
		close(begun)
		data, err := io.ReadAll(io.LimitReader(in, flags.LongestMessage+1))
		all <- read{data, err}
	}()
	select {
	case <-begun:
	case <-time.After(3 * time.Second):
		parts.LogLine(c, "nothing has come on standard input within 3 s, so it is not waited for")
		return nil, nil
	}
	got := <-all
	switch {
	case got.err != nil:
		return nil, fault.New(fault.Internal, "standard input cannot be read").Because(got.err)
	case len(got.data) > flags.LongestMessage:
		return nil, flags.MessageTooLong()
	case len(bytes.TrimSpace(got.data)) > 0:
		return []event.Block{{Text: "\n" + string(got.data)}}, nil
	}
	return nil, nil
}
