package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"omniagent/internal/fault"
)

// Carry takes a message to a server inside the conversation's host, and returns its answer. The answer to a
// notification is ignored.
type Carry func(ctx context.Context, server string, message []byte) ([]byte, error)

// hosted is a server that is reached through the host, without a connection of our own.
type hosted struct {
	conn  *Conn
	carry Carry
	life  context.Context // ends with Close
	end   context.CancelFunc
	mu    sync.Mutex
	group sync.WaitGroup
}

func newHosted(c *Conn) error {
	if c.options.Carry == nil {
		return fault.New(fault.Unsupported, "the MCP server %s lives in a host, and this one has none", c.server.Name)
	}
	h := &hosted{conn: c, carry: c.options.Carry}
	h.life, h.end = context.WithCancel(context.Background())
	c.wire = h
	return nil
}

func (h *hosted) ready(string) {}

// send passes a message on. The answer to a request is awaited in the background, as long as ctx lasts.
func (h *hosted) send(ctx context.Context, id int64, m []byte) error {
	h.mu.Lock()
	if h.life.Err() != nil {
		h.mu.Unlock()
		return h.conn.Err()
	}
	h.group.Add(1)
	h.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		defer h.group.Done()
		answer, err := h.carryMessage(ctx, m)
		switch {
		case id == 0:
		case err != nil:
			h.conn.failOne(id, err)
		case len(answer) == 0:
			h.conn.failOne(id, errors.New("the host brought no answer"))
		case len(answer) > maxMessage:
			h.conn.failOne(id, fmt.Errorf("its answer has more than %d bytes", maxMessage))
		default:
			h.conn.receive(answer)
			// No other answer will come. If this was the answer, the request is no longer pending.
			h.conn.failOne(id, errors.New("the host brought another answer"))
		}
		done <- err
	}()
	if id != 0 {
		return nil
	}
	select { // the next message may depend on it
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-h.life.Done():
		return h.conn.Err()
	}
}

// carryMessage calls Carry and survives a panic of the host.
func (h *hosted) carryMessage(ctx context.Context, m []byte) (answer []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the host failed inside: %v", r)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()
	return h.carry(ctx, h.conn.server.Name, m)
}

// close waits for the host's calls to end, but not for a host that ignores the cancellation.
func (h *hosted) close() {
	h.mu.Lock()
	h.end()
	h.mu.Unlock()
	over := make(chan struct{})
	go func() { h.group.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(h.conn.options.Rest):
	}
}
