package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/wire/jsonrpc"
)

// slow is the cause of a context that a time limit ended.
type slow struct{ what string }

func (s slow) Error() string { return s.what }

// pendingCall is a pending request.
type pendingCall struct {
	answer   chan jsonrpc.Message // receives one message
	failed   chan error           // receives one error, instead of the message
	progress chan string
}

// call sends a request and waits for the response.
func (c *Conn) call(ctx context.Context, method string, params, into any) error {
	return c.callWith(ctx, method, params, into, nil)
}

func (c *Conn) callWith(ctx context.Context, method string, params, into any, progress func(string)) error {
	one := &pendingCall{
		answer: make(chan jsonrpc.Message, 1), failed: make(chan error, 1), progress: make(chan string, 16),
	}
	c.mu.Lock()
	if c.dead != nil {
		defer c.mu.Unlock()
		return c.dead
	}
	c.next++
	id := c.next
	c.pending[id] = one
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	if m, ok := params.(map[string]any); ok && progress != nil {
		m["_meta"] = map[string]any{"progressToken": id}
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return fault.New(fault.Internal, "the request to the MCP server %s cannot be encoded", c.server.Name).
			Because(err)
	}
	if err := c.wire.send(ctx, id, jsonrpc.Request(id, method, json.RawMessage(raw))); err != nil {
		return err
	}
	for {
		select {
		case m := <-one.answer:
			return decode(m, into)
		case err := <-one.failed:
			select {
			case m := <-one.answer: // the response came before the server ended
				return decode(m, into)
			default:
				return err
			}
		case s := <-one.progress:
			if progress != nil {
				progress(s)
			}
		case <-ctx.Done():
			c.cancel(id, method)
			return context.Cause(ctx)
		}
	}
}

func decode(m jsonrpc.Message, into any) error {
	if m.Error != nil {
		return m.Error
	}
	if err := json.Unmarshal(m.Result, into); err != nil {
		return fmt.Errorf("invalid response: %w", err)
	}
	return nil
}

// cancel tells the server that its response is no longer needed. The protocol does not allow that for initialize.
func (c *Conn) cancel(id int64, method string) {
	if method == "initialize" {
		return
	}
	params := map[string]any{"requestId": id, "reason": "nobody waits for it any more"}
	line := jsonrpc.Notification("notifications/cancelled", params)
	c.background(func(ctx context.Context) { _ = c.wire.send(ctx, 0, line) })
}

// background runs do in the background, with a time limit, until the connection is closed. A server that sends requests
// faster than it reads gets no more responses.
func (c *Conn) background(do func(context.Context)) {
	c.mu.Lock()
	flood := c.busy >= maxAnswers
	if c.life.Err() != nil || flood {
		c.mu.Unlock()
		if flood {
			c.log("it asks faster than it reads the answers")
		}
		return
	}
	c.busy++
	c.group.Go(func() {
		defer func() {
			c.mu.Lock()
			c.busy--
			c.mu.Unlock()
		}()
		ctx, cancel := context.WithTimeout(c.life, openTakes)
		defer cancel()
		do(ctx)
	})
	c.mu.Unlock()
}

// fail ends all pending requests. It keeps the first reason.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead == nil {
		c.dead = err
	}
	for _, one := range c.pending {
		one.fail(c.dead)
	}
}

func (o *pendingCall) fail(err error) {
	select {
	case o.failed <- err:
	default:
	}
}

// failOne ends one request.
func (c *Conn) failOne(id int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.pending[id]; one != nil {
		one.fail(err)
	}
}

// receive handles a message of the server, or a list of messages, which one version of the protocol allows.
func (c *Conn) receive(data []byte) {
	data = bytes.TrimSpace(data)
	var all []json.RawMessage
	if len(data) > 0 && data[0] == '[' && json.Unmarshal(data, &all) == nil {
		for _, one := range all {
			if one = bytes.TrimSpace(one); len(one) > 0 && one[0] == '{' {
				c.receive(one)
			}
		}
		return
	}
	m, ok := jsonrpc.Read(data)
	switch {
	case len(data) == 0:
	case !ok:
		c.log("it sent something other than a message: " + text.OneLine(string(data[:min(len(data), 200)]), 80))
	case m.Method != "" && m.ID != nil:
		c.serverRequest(m)
	case m.Method != "":
		c.notification(m)
	default:
		c.response(m)
	}
}

func (c *Conn) response(m jsonrpc.Message) {
	id, ok := number(m.ID)
	if m.Result == nil && m.Error == nil {
		m.Error = jsonrpc.Errorf(0, "the response has neither a result nor an error")
	}
	c.mu.Lock()
	one := c.pending[id]
	c.mu.Unlock()
	if !ok || one == nil {
		c.log("it answered what was not asked: " + text.OneLine(string(m.ID), 40))
		return
	}
	select {
	case one.answer <- m:
	default:
		c.log("it answered twice")
	}
}

// number parses one of our ids, which servers may return as a string.
func number(raw json.RawMessage) (int64, bool) {
	s := strings.Trim(string(raw), `"`)
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// serverRequest answers a request of the server.
func (c *Conn) serverRequest(m jsonrpc.Message) {
	var result any
	refusal := ""
	switch m.Method {
	case "ping":
		result = map[string]any{}
	case "roots/list":
		if result = c.roots(); c.options.Roots == nil {
			refusal = "roots are not offered by this client"
		}
	case "sampling/createMessage":
		refusal = "sampling is not offered by this client"
	case "elicitation/create":
		refusal = "elicitation is not offered by this client"
	default:
		refusal = "there is no such method"
	}
	line := jsonrpc.Result(m.ID, result)
	if refusal != "" {
		line = jsonrpc.Failure(m.ID, jsonrpc.Errorf(jsonrpc.MethodNotFound, "%s", refusal))
		c.log("it asked for " + text.OneLine(m.Method, 60) + ", which was refused")
	}
	c.background(func(ctx context.Context) { _ = c.wire.send(ctx, 0, line) })
}

func (c *Conn) roots() any {
	roots := []map[string]string{}
	for _, dir := range c.options.Roots {
		u := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
		if !strings.HasPrefix(u.Path, "/") {
			u.Path = "/" + u.Path
		}
		roots = append(roots, map[string]string{"uri": u.String(), "name": filepath.Base(dir)})
	}
	return map[string]any{"roots": roots}
}

// notification handles a notification of the server. Unknown ones are ignored.
func (c *Conn) notification(m jsonrpc.Message) {
	if m.Method != "notifications/progress" {
		return
	}
	var p struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Total    float64         `json:"total"`
		Message  string          `json:"message"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	id, _ := number(p.Token)
	said := text.OneLine(p.Message, maxProgress)
	if p.Total > 0 {
		said = strings.TrimSpace(fmt.Sprintf("%s (%g of %g)", said, p.Progress, p.Total))
	} else if said == "" {
		said = fmt.Sprintf("%g", p.Progress)
	}
	c.mu.Lock()
	one := c.pending[id]
	c.mu.Unlock()
	if one != nil {
		select {
		case one.progress <- said:
		default: // drop progress if the listener is slow
		}
	}
}

// faultOf returns the fault for an error that ended a request.
func (c *Conn) faultOf(err error) error {
	var f *fault.Fault
	var s slow
	var refused *jsonrpc.Error
	name := c.server.Name
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.As(err, &s):
		return fault.New(fault.TimedOut, "the MCP server %s %s", name, s.what).With("server", name)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.TimedOut, "the MCP server %s did not answer in time", name).With("server", name)
	case errors.Is(err, context.Canceled):
		return fault.New(fault.Interrupted, "the call to the MCP server %s was cancelled", name).With("server", name)
	case errors.As(err, &refused):
		return fault.New(fault.AgentRefused, "the MCP server %s refused: %s (%d)", name,
			text.OneLine(refused.Message, 500),
			refused.Code).With("server", name)
	}
	return fault.New(fault.ServiceDown, "the MCP server %s failed: %s", name, text.OneLine(err.Error(), 500)).
		With("server",
			name)
}
