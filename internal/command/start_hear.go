package command

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"time"

	"omniagent/internal/contract"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/stream"
)

// listen finds out what is said, and how: a message for one turn, or frames for as long as they come.
func (p *plan) listen(c *contract.Call, d stream.Dialect, quit <-chan struct{}) error {
	in, open := c.Host.Stdin, c.Host.Stdin != nil
	if c.Given("prompt") {
		if strings.TrimSpace(c.String("prompt")) == "" {
			return fault.New(fault.ArgError, "--prompt is empty").Hint("say what is to be done")
		}
		p.prompt = []event.Block{{Text: c.String("prompt")}}
		if c.String("dialect") == nested {
			close(p.frames)
			return p.beside(c)
		}
		p.hear(in, d, open && !c.Host.StdinTerminal, quit)
		return nil
	}
	if c.Host.StdinTerminal || !open {
		return fault.New(fault.ArgError, "there is no message: give --prompt, or a message or frames on standard input").
			Hint("omniagent start -p 'What is in this directory?'")
	}
	if form := c.String("input-format"); form == "stream-json" || form == "auto" && c.Given("session-id") {
		p.stays = true
		p.hear(in, d, open, quit)
		return nil
	}
	silent := time.AfterFunc(2*time.Second, func() { sayLine(c, "the message is read from standard input") })
	defer silent.Stop()
	reader := bufio.NewReaderSize(in, 64<<10)
	line, rest, err := firstLine(reader)
	switch {
	case err != nil:
		return err
	case line != nil && c.String("input-format") == "auto":
		p.stays = true
		p.hear(io.MultiReader(bytes.NewReader(line), reader), d, true, quit)
		return nil
	case len(bytes.TrimSpace(rest)) == 0:
		return fault.New(fault.ArgError, "standard input is empty, and there is no --prompt").Hint("omniagent start -p 'What is in this directory?'")
	}
	p.prompt = []event.Block{{Text: string(rest)}}
	close(p.frames)
	return nil
}

// hear takes frames from now on.
func (p *plan) hear(in io.Reader, d stream.Dialect, open bool, quit <-chan struct{}) {
	if !open {
		close(p.frames)
		return
	}
	go stream.Read(in, d, p.frames, quit)
}

// longestMessage is the longest one that is taken from standard input.
const longestMessage = 64 << 20

// firstLine reads up to the end of the first line that is not blank. If it is no frame, rest is all that there is.
func firstLine(in *bufio.Reader) (line, rest []byte, err error) {
	for {
		part, err := in.ReadBytes('\n')
		rest = append(rest, part...)
		if len(bytes.TrimSpace(part)) > 0 && bytes.HasPrefix(bytes.TrimSpace(part), []byte("{")) && stream.IsFrame(part) {
			return part, rest, nil
		}
		if err != nil || len(bytes.TrimSpace(part)) > 0 {
			break
		}
	}
	more, err := io.ReadAll(io.LimitReader(in, longestMessage+1))
	if err != nil {
		return nil, nil, fault.New(fault.Internal, "standard input cannot be read").Because(err)
	}
	if rest = append(rest, more...); len(rest) > longestMessage {
		return nil, nil, fault.New(fault.PromptTooLong, "the message on standard input has more than %d MiB", longestMessage>>20)
	}
	return nil, rest, nil
}

// beside adds what comes on standard input to a message that was given as an argument, as Claude Code does: what nobody has begun to say within
// three seconds is not waited for.
func (p *plan) beside(c *contract.Call) error {
	if c.Host.StdinTerminal || c.Host.Stdin == nil {
		return nil
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
		data, err := io.ReadAll(io.LimitReader(in, longestMessage+1))
		all <- read{data, err}
	}()
	select {
	case <-begun:
	case <-time.After(3 * time.Second):
		sayLine(c, "nothing has come on standard input within 3 s, so it is not waited for")
		return nil
	}
	got := <-all
	switch {
	case got.err != nil:
		return fault.New(fault.Internal, "standard input cannot be read").Because(got.err)
	case len(got.data) > longestMessage:
		return fault.New(fault.PromptTooLong, "the message on standard input has more than %d MiB", longestMessage>>20)
	case len(bytes.TrimSpace(got.data)) > 0:
		p.prompt = append(p.prompt, event.Block{Text: "\n" + string(got.data)})
	}
	return nil
}
