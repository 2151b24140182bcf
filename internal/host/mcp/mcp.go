// Package mcp lets one agent ask another: it implements a server of the Model Context Protocol on standard input and
// output, with the tools list_agents, ask_agent and undo.
//
// It promises that an agent that is asked gets no more rights or directories than the server was started with; that
// every call ends, at the latest by its time limit, by a cancellation, or because the other side is gone, and that
// nothing that it started is then alive; that it reports only what was observed; and that an invalid message does not
// end the server.
//
// It does not answer for a person: if the agent asks a question, the call returns that question. It limits the depth:
// an agent that is asked may ask another one, which may not. The caller decides which agents may be asked and what they
// see of the environment.
package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/wire/jsonrpc"
)

// Mode is what an agent that is asked may do.
type Mode string

// The modes, from the strictest.
const (
	Read Mode = "read" // it may only use tools that change nothing
	Edit Mode = "edit" // it may change files in its directory
	Yolo Mode = "yolo" // everything
)

// Modes returns the modes, from the strictest.
func Modes() []Mode { return []Mode{Read, Edit, Yolo} }

// Approval returns a mode in the words that all agents share. reads is the meaning of Read: prompt, in which every
// question is denied because nobody can be asked, or a stricter mode.
func (m Mode) Approval(reads setting.Approval) setting.Approval {
	switch m {
	case Edit:
		return setting.AutoEdit
	case Yolo:
		return setting.Yolo
	}
	return reads
}

// Agent is an agent that could be asked.
type Agent struct {
	Name         string   `json:"name"`
	Title        string   `json:"title"`
	Installed    bool     `json:"installed"`
	Version      string   `json:"version,omitempty"`
	Install      string   `json:"install_command,omitempty"` // if it is not installed
	Modes        []Mode   `json:"modes"`                     // in which it can be asked here
	GoesOn       bool     `json:"goes_on"`                   // it can resume a session
	TellsDenials bool     `json:"tells_denials"`             // it reports all its denials
	Aliases      []string `json:"-"`
}

// Options configure a server.
type Options struct {
	Name, Version string
	Agents        func() ([]Agent, error) // starts nothing
	Open          conversation.Opener
	// Undo takes back the last turn of a session that changed its directory, or the last undo, and returns a text about
	// the result; nil: not available.
	Undo    func(ctx context.Context, dir, session string, redo bool) (said string, err error)
	Ceiling Mode
	Sandbox setting.Sandbox  // Off: no walls of ours around agents
	Reads   setting.Approval // what the mode Read means; empty: prompt
	// directories in and below which agents may work, absolute; the first is the default
	Roots   []string
	Env     []string      // of the agents, without the variable that counts the depth
	Depth   int           // how many servers are above this one
	Timeout time.Duration // default for a call
	Most    time.Duration // of any call; 0: MaxTimeout
	Connect time.Duration // from an agent's start to its first output; 0: no limit
}

// The limits.
const (
	MaxTimeout = time.Hour
	MaxDepth   = 2       // nested servers
	maxAtOnce  = 4       // calls
	maxLine    = 8 << 20 // bytes of a message
	maxPrompt  = 1 << 20 // bytes
	maxText    = 256 << 10
	leaving    = time.Second     // for the last lines to be read
	heartbeat  = 5 * time.Second // between two reports of progress
)

func versions() []string { return []string{"2025-06-18", "2025-03-26", "2024-11-05"} }

type server struct {
	o           Options
	slots       chan struct{}
	out         *lines.Writer
	life        context.Context
	initialized bool // a client has sent initialize

	mu       sync.Mutex
	running  map[string]context.CancelCauseFunc // by the id of the request
	sessions map[string]startedSession          // conversations that were begun here, by name

	calls sync.WaitGroup
}

// startedSession is a conversation that was begun here and may be resumed.
type startedSession struct {
	agent, dir string
}

// errCancelled is the cause of a call's end if the client cancelled it.
var errCancelled = errors.New("the call was cancelled")

// Serve serves one client until its input or ctx ends. When it returns, no call is running. The error means that
// standard output could not be written.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	s := &server{
		o: o, slots: make(chan struct{}, maxAtOnce),
		running: map[string]context.CancelCauseFunc{}, sessions: map[string]startedSession{},
	}
	s.o.Reads = cmp.Or(s.o.Reads, setting.Prompt)
	if s.o.Most <= 0 || s.o.Most > MaxTimeout {
		s.o.Most = MaxTimeout
	}
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.life = life
	s.out = lines.NewWriter(out)
	heard, quit := make(chan lines.Line), make(chan struct{})
	defer close(quit)
	go listen(in, heard, quit)
	over := false
	for !over {
		select {
		case line, more := <-heard:
			if over = !more; more {
				s.message(life, line)
			}
		case <-life.Done():
			over = true
		case <-s.out.Written():
			over = true
		}
	}
	end(errors.New("the other side is gone"))
	s.calls.Wait()
	s.out.Finish()
	select {
	case <-s.out.Written():
		return s.out.Err()
	case <-time.After(leaving):
		return nil
	}
}

// listen reads lines, until the input ends.
func listen(in io.Reader, to chan<- lines.Line, quit <-chan struct{}) {
	defer close(to)
	for r := lines.NewReader(in, maxLine); r.Next(); {
		line := r.Line
		line.Text = bytes.Clone(line.Text)
		select {
		case to <- line:
		case <-quit:
			return
		}
	}
}

// say sends a line. It waits for a slow reader until the server ends.
func (s *server) say(line []byte) {
	s.out.Send(line, s.life.Done()) // when the server ends, a line is sent only if there is room
}

func (s *server) refuse(id json.RawMessage, code int, format string, args ...any) {
	s.say(jsonrpc.Failure(id, jsonrpc.Errorf(code, format, args...)))
}

// message handles a line.
func (s *server) message(ctx context.Context, line lines.Line) {
	if line.Long {
		s.refuse(nil, jsonrpc.InvalidRequest, "a message has at most %d bytes", maxLine)
		return
	}
	if len(bytes.TrimSpace(line.Text)) == 0 {
		return
	}
	m := jsonrpc.Parse(line.Text)
	switch {
	case m.Method == "" && (m.Result != nil || m.Error != nil): // a response, but we ask nothing
	case m.Wrong != nil:
		s.refuse(usable(m.ID), m.Wrong.Code, "%s", m.Wrong.Message)
	case m.ID == nil:
		s.notification(m.Method, m.Params)
	case usable(m.ID) == nil:
		s.refuse(nil, jsonrpc.InvalidRequest, "an id is a text or a number")
	default:
		s.request(ctx, m.ID, m.Method, m.Params)
	}
}

// usable returns a valid id, or nil.
func usable(id json.RawMessage) json.RawMessage {
	if len(id) == 0 || len(id) > 1000 || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		return nil
	}
	return id
}

func (s *server) notification(method string, params json.RawMessage) {
	if method != "notifications/cancelled" {
		return
	}
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	cancel := s.running[string(p.ID)]
	s.mu.Unlock()
	if cancel != nil {
		cancel(errCancelled)
	}
}

func (s *server) request(ctx context.Context, id json.RawMessage, method string, params json.RawMessage) {
	switch {
	case method == "ping":
		s.say(jsonrpc.Result(id, struct{}{}))
	case method == "initialize":
		s.greet(id, params)
	case !s.initialized:
		s.refuse(id, jsonrpc.InvalidRequest, "the first request is initialize")
	case method == "tools/list":
		s.say(jsonrpc.Result(id, map[string]any{"tools": s.tools()}))
	case method == "tools/call":
		s.call(ctx, id, params)
	default:
		s.refuse(id, jsonrpc.MethodNotFound, "there is no method %.100q", method)
	}
}

func (s *server) greet(id, params json.RawMessage) {
	var p struct {
		Version string `json:"protocolVersion"`
	}
	if json.Unmarshal(params, &p) != nil || p.Version == "" {
		s.refuse(id, jsonrpc.InvalidParams, "initialize needs a protocolVersion")
		return
	}
	version := versions()[0]
	if slices.Contains(versions(), p.Version) {
		version = p.Version
	}
	s.initialized = true
	s.say(jsonrpc.Result(id, map[string]any{
		"protocolVersion": version,
		"capabilities":    map[string]any{"tools": struct{}{}},
		"serverInfo":      map[string]any{"name": s.o.Name, "title": "Other coding agents", "version": s.o.Version},
		"instructions": "list_agents tells which coding agents can be asked here; ask_agent asks one and waits " +
			"for its answer.",
	}))
}
