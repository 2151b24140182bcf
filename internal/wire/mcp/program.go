package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/redact"
)

// program is a server that is a child process: one message a line on its standard input and output.
type program struct {
	conn  *Conn
	child *process.Child
	input *os.File
	queue chan []byte
	ended chan struct{} // closed when the child and its output have ended
	over  chan struct{} // closed when the writer has stopped
	once  sync.Once
}

func startProgram(c *Conn) error {
	s, o := c.server, c.options
	var env []string
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+s.Env[name])
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return fault.New(fault.Internal, "the MCP server %s cannot be started", s.Name).Because(err)
	}
	p := &program{
		conn: c, input: ours, queue: make(chan []byte, maxAnswers), ended: make(chan struct{}),
		over: make(chan struct{}),
	}
	errs := &process.Tail{Most: maxStderr}
	c.wire = p // the server may write before Start returns
	p.child, err = o.Programs.Start(process.Plan{
		Argv: s.Command, Dir: s.Dir, Env: env, Stdin: theirs, Stdout: &messages{conn: c}, Stderr: errs,
		Grace: o.Rest,
	})
	_ = theirs.Close()
	if errors.Is(err, fault.NotInstalled) {
		_ = ours.Close()
		return fault.New(fault.NotInstalled, "the MCP server %s cannot be started: %s does not exist", s.Name,
			s.Command[0]).
			With("server", s.Name).Because(err)
	}
	if err != nil {
		_ = ours.Close()
		return fault.New(fault.Of(err).Code, "the MCP server %s cannot be started", s.Name).With("server", s.Name).
			Because(err)
	}
	go p.write()
	go func() {
		end := p.child.Wait()
		c.fail(ending(s.Name, end, printed(errs)))
		close(p.ended)
	}()
	return nil
}

// ending describes how a server ended, with its last output.
func ending(name string, e process.Ending, said string) error {
	how := fmt.Sprintf("with code %d", e.ExitCode)
	if e.Signal != "" {
		how = "by " + e.Signal
	}
	f := fault.New(fault.ServiceDown, "the MCP server %s ended %s", name, how).With("server", name)
	if said != "" {
		f.Message += "; it printed: " + said
		f.With("stderr", said)
	}
	return f.Hint("Run its command by hand to see why.")
}

func (p *program) ready(string) {}

// send queues a message, because the server may be slow to read.
func (p *program) send(ctx context.Context, _ int64, m []byte) error {
	select {
	case p.queue <- m:
		return nil
	case <-p.ended:
		return p.conn.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *program) write() {
	defer close(p.over)
	for {
		select {
		case m := <-p.queue:
			if m == nil {
				_ = p.input.Close()
				return
			}
			if _, err := p.input.Write(m); err != nil {
				// If the child has ended, its ending is the better reason.
				select {
				case <-p.ended:
				case <-time.After(closeTakes):
					p.conn.fail(fault.New(fault.ServiceDown,
						"the MCP server %s has stopped reading", p.conn.server.Name).
						Because(err))
				}
				_ = p.input.Close()
				return
			}
		case <-p.ended:
			_ = p.input.Close()
			return
		}
	}
}

// close closes the server's input, which asks it to exit, then sends SIGTERM, then SIGKILL.
func (p *program) close() {
	p.once.Do(func() {
		select {
		case p.queue <- nil:
		default: // it does not read
		}
		timer := time.NewTimer(p.conn.options.Rest)
		defer timer.Stop()
		select {
		case <-p.ended:
		case <-timer.C:
			p.child.End(syscall.SIGTERM)
		}
	})
	<-p.ended
	_ = p.input.Close() // another process may hold the other end without reading
	select {
	case <-p.over:
	case <-time.After(closeTakes):
	}
}

// messages splits a server's output into messages. It skips a line that is too long, but unlike lines.Cutter looks for
// a response's id in its beginning and end.
type messages struct {
	conn *Conn
	part []byte
	last []byte // the end of a line that is too long
	skip bool
}

const peek = 256

func (l *messages) Write(data []byte) (int, error) {
	all := len(data)
	for len(data) > 0 {
		piece, rest, whole := bytes.Cut(data, []byte("\n"))
		data = rest
		switch {
		case l.skip:
			l.last = append(l.last, piece[max(0, len(piece)-peek):]...)
			l.last = l.last[max(0, len(l.last)-peek):]
		case len(l.part)+len(piece) > maxMessage:
			l.skip = true
			l.part = append(l.part, piece[:min(len(piece), peek)]...)
			l.last = append(l.last[:0], piece[max(0, len(piece)-peek):]...)
			l.part = bytes.Clone(l.part[:min(len(l.part), peek)])
		default:
			l.part = append(l.part, piece...)
		}
		if !whole {
			break
		}
		line := l.part
		if l.part = l.part[:0]; cap(line) > 1<<20 {
			l.part = nil
		}
		if !l.skip {
			l.conn.receive(line)
			continue
		}
		l.skip = false
		l.conn.tooLarge(line, l.last)
	}
	return all, nil
}

// tooLarge fails the request that an oversized message answers, if the beginning or end shows its id. Otherwise it
// fails all pending requests, because one of them would wait forever.
func (c *Conn) tooLarge(head, end []byte) {
	c.log(fmt.Sprintf("a message of more than %d MiB is skipped", maxMessage>>20))
	err := fault.New(fault.FieldTooLarge, "the MCP server %s answered with more than %d MiB", c.server.Name,
		maxMessage>>20).
		Hint("Ask for less at once.")
	if id, ok := idIn(head); ok {
		c.failOne(id, err)
	} else if id, ok := idIn(end); ok {
		c.failOne(id, err)
	} else {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, one := range c.pending {
			one.fail(err)
		}
	}
}

// idIn finds the id of a response in a part of it.
func idIn(part []byte) (int64, bool) {
	i := bytes.LastIndex(part, []byte(`"id"`))
	if i < 0 {
		return 0, false
	}
	rest := bytes.TrimLeft(part[i+len(`"id"`):], " :\"")
	n := len(rest) - len(bytes.TrimLeft(rest, "0123456789"))
	return number(rest[:n])
}

// printed returns the end of a server's standard error, cleaned for printing.
func printed(t *process.Tail) string {
	said, _ := text.Clean(strings.ToValidUTF8(string(t.Bytes()), ""))
	return redact.String(strings.TrimSpace(said))
}
