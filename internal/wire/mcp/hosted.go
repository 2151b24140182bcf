package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
)

// Carry passes a message to a server inside the conversation's host, and returns the response. The response to a
// notification is ignored.
type Carry func(ctx context.Context, server string, message []byte) ([]byte, error)

// hosted is a server that is reached through the host, without a connection of our own.
type hosted struct {
	conn  *Conn
	carry Carry
	group sync.WaitGroup
}

func newHosted(c *Conn) error {
	if c.options.Carry == nil {
		return fault.New(fault.Unsupported, "the MCP server %s lives in the host, which cannot reach it", c.server.Name)
	}
	c.wire = &hosted{conn: c, carry: c.options.Carry}
	return nil
}

func (h *hosted) ready(string) {}

// send passes on a message. It awaits the response to a request in the background, until ctx ends.
func (h *hosted) send(ctx context.Context, id int64, m []byte) error {
	done := make(chan error, 1)
	h.conn.mu.Lock()
	if h.conn.life.Err() != nil {
		defer h.conn.mu.Unlock()
		return h.conn.dead
	}
	h.group.Go(func() {
		answer, err := h.carryMessage(ctx, m)
		switch {
		case id == 0:
		case err != nil:
			h.conn.failOne(id, err)
		case len(answer) == 0:
			h.conn.failOne(id, errors.New("the host returned no response"))
		case len(answer) > maxMessage:
			h.conn.failOne(id, fmt.Errorf("its response has more than %d bytes", maxMessage))
		default:
			h.conn.receive(answer)
			// There will be no other response. If this was the right one, the request is no longer pending.
			h.conn.failOne(id, errors.New("the host returned no matching response"))
		}
		done <- err
	})
	h.conn.mu.Unlock()
	if id != 0 {
		return nil
	}
	select { // wait, because the next message may depend on this one
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-h.conn.life.Done():
		return h.conn.Err()
	}
}

// carryMessage calls Carry, and recovers from a panic.
func (h *hosted) carryMessage(ctx context.Context, m []byte) (answer []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the host panicked: %v", r)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.conn.life, cancel)()
	return h.carry(ctx, h.conn.server.Name, m)
}

// close waits for the calls of the host to end, unless the host ignores the cancellation.
func (h *hosted) close() {
	over := make(chan struct{})
	go func() { h.group.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(h.conn.options.Rest):
	}
}
