// Package acp hosts conversations for an editor, or any other client of the Agent Client Protocol. Requests of the
// client come from standard input, and updates go to standard output.
//
// Each session of the client is a separate conversation; there may be several at once. A message is answered when its
// turn is over, however it ends. A missing answer, an error and an unknown option are denials. An invalid line affects
// nothing else. When the client goes away, turns end with everything that they started. The package does not depend on
// a particular agent. It runs nothing in a terminal of the client: commands run inside the agent's sandbox.
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/lines"
	"omniagent/internal/talk/conversation"
	wire "omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// Host is our side of a connection to a client.
type Host struct {
	Agent    string     // the agent of the conversations, by name
	About    wire.About // what we declare about ourselves
	Open     conversation.Opener
	Spec     agent.Spec        // the base for each conversation
	Modes    []wire.Choice     // for a client to choose from
	Models   []wire.Choice     // for a client to choose from
	Sessions ResumableSessions // the sessions that can be resumed
	// Undo undoes the last turn of a session that changed its workspace, or with redo the last undo, and describes the
	// result. It is nil if that is not possible.
	Undo    func(ctx context.Context, dir, session string, redo bool) (said string, err error)
	NewID   func() string               // returns an id for a new session
	Ready   func(context.Context) error // returns why a conversation cannot begin; may be nil
	Mask    func(string) string         // removes secrets from what we read ourselves
	In      io.Reader
	Out     io.Writer
	Log     func(format string, args ...any) // for people, on standard error
	Signals <-chan os.Signal

	out    *lines.Writer // writes in its own goroutine, so that signals are handled even if the client does not read
	hurry  chan struct{} // closed to stop all waiting
	ending chan struct{} // closed when the host is ending

	mu            sync.Mutex
	encoder       wire.Encoder
	initialized   bool
	otherMessages bool // a message other than initialize has come
	sessions      map[string]*clientSession
	opening       map[string]bool // sessions that are being opened
	requests      map[string]context.CancelFunc
	questions     map[int64]question
	number        int64
	closed        bool
	beginning     sync.WaitGroup // counts the sessions that are being opened
}

// question is one of our requests to the client.
type question struct {
	from *clientSession
	then func(json.RawMessage, *jsonrpc.Error)
}

const (
	stuck = 2 * time.Second // time to write one line to a client while ending
	// Requests beyond these are refused.
	mostAside    = 64 // requests that open, list or delete something
	mostSessions = 64 // open at once
)

// Run serves the client until it goes away or a signal comes, and returns the exit code.
func (h *Host) Run(ctx context.Context) int {
	h.out, h.hurry, h.ending = lines.NewWriter(h.Out), make(chan struct{}), make(chan struct{})
	h.sessions, h.opening, h.requests, h.questions = map[string]*clientSession{}, map[string]bool{},
		map[string]context.CancelFunc{}, map[int64]question{}
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	end := make(chan struct{})
	go func() {
		defer close(end)
		h.listen(life)
	}()
	var signal os.Signal
	select {
	case <-end:
	case signal = <-h.Signals:
	case <-h.out.Written():
	}
	close(h.ending)
	go h.watch()
	cancel()
	h.closeAll()
	return h.finish(signal)
}

// watch closes hurry at a second signal, if the end takes too long, or if the client does not read the last lines.
func (h *Host) watch() {
	defer close(h.hurry)
	late := time.After(closing)
	look := time.NewTicker(stuck)
	defer look.Stop()
	last := int64(-1)
	for {
		select {
		case <-h.Signals:
			return
		case <-late:
			return
		case <-look.C:
			waiting, written := h.out.State()
			if written == last && waiting > 0 {
				return
			}
			last = written
		case <-h.out.Written():
			return
		}
	}
}

func (h *Host) finish(signal os.Signal) int {
	h.out.Finish()
	select {
	case <-h.out.Written():
	case <-h.hurry:
	}
	if s, ok := signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	select {
	case <-h.out.Written():
		if err := h.out.Err(); err != nil {
			h.Log("standard output cannot be written: %v", err)
			return 1
		}
	default:
	}
	return 0
}

// put writes lines, each as a whole. It waits for a slow client until the host ends.
func (h *Host) put(lines ...[]byte) {
	for _, line := range lines {
		if !h.out.Send(line, h.hurry) {
			return
		}
	}
}

// listen reads messages until the client has gone.
func (h *Host) listen(ctx context.Context) {
	reader, data := &wire.Reader{}, make([]byte, 64<<10)
	for {
		n, err := h.In.Read(data)
		for _, m := range reader.Feed(data[:n]) {
			h.message(ctx, m)
		}
		if err != nil {
			for _, m := range reader.End() {
				h.message(ctx, m)
			}
			if !errors.Is(err, io.EOF) {
				h.Log("standard input cannot be read: %v", err)
			}
			return
		}
		select {
		case <-h.ending:
			return
		default:
		}
	}
}

// closeAll ends every conversation, and waits.
func (h *Host) closeAll() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.beginning.Wait()
	var wait sync.WaitGroup
	for _, s := range h.all() {
		wait.Go(s.shut)
	}
	wait.Wait()
}

// all returns the open sessions.
func (h *Host) all() []*clientSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.sessions))
}

// session returns the open session with an id, or nil.
func (h *Host) session(id string) *clientSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id]
}

// forget removes a session whose conversation has ended.
func (h *Host) forget(s *clientSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[s.id] == s {
		delete(h.sessions, s.id)
	}
	maps.DeleteFunc(h.questions, func(_ int64, q question) bool { return q.from == s })
}

// ask sends a request to the client. It calls then with the response, in a new goroutine.
func (h *Host) ask(s *clientSession, method string, params any, then func(json.RawMessage, *jsonrpc.Error)) int64 {
	h.mu.Lock()
	h.number++
	id := h.number
	h.questions[id] = question{s, then}
	h.mu.Unlock()
	h.put(jsonrpc.Request(id, method, params))
	return id
}

// withdraw cancels a request whose response is no longer needed.
func (h *Host) withdraw(id int64) {
	h.mu.Lock()
	_, open := h.questions[id]
	delete(h.questions, id)
	h.mu.Unlock()
	if open {
		h.put(jsonrpc.Notification("$/cancel_request", map[string]any{"requestId": id}))
	}
}

// response passes the client's response to the waiting request.
func (h *Host) response(m jsonrpc.Message) {
	var id int64
	err := json.Unmarshal(m.ID, &id)
	h.mu.Lock()
	q, open := h.questions[id]
	delete(h.questions, id)
	h.mu.Unlock()
	if err != nil || !open {
		h.Log("an answer was refused: nothing is asked under the id %.40s, or not any more", m.ID)
		return
	}
	if m.Wrong != nil && m.Error == nil {
		m.Error = m.Wrong
	}
	go q.then(m.Result, m.Error)
}
