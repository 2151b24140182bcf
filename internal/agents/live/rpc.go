package live

import (
	"strconv"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/event"
	"omniagent/internal/wire/jsonrpc"
)

// RPC is the common part of the protocols that use JSON-RPC: one message a line, with requests in both directions. R is
// the data that a protocol keeps about a request of ours until the response comes, and Q the data about a question to a
// person.
type RPC[R, Q any] struct {
	Step      Step
	Questions Questions[Q]
	NoVersion bool // the lines have no version
	lines     cli.JSONLines
	sent      int64
	requests  map[string]R // without a response
}

// Handle sets the functions that handle the responses, the requests and the notifications of the agent.
func (w *RPC[R, Q]) Handle(answered func(R, jsonrpc.Message) []event.Event,
	requested, notified func(jsonrpc.Message) []event.Event,
) {
	w.requests = map[string]R{}
	w.lines.Parse = func(line []byte) []event.Event {
		m, ok := jsonrpc.Read(line)
		switch {
		case !ok, m.Method == "" && m.ID == nil:
			return cli.Unreadable(line)
		case m.Method != "" && m.ID != nil:
			return requested(m)
		case m.Method != "":
			return notified(m)
		}
		r, known := w.requests[string(m.ID)]
		if !known {
			return nil
		}
		delete(w.requests, string(m.ID))
		return answered(r, m)
	}
}

// Request adds a request.
func (w *RPC[R, Q]) Request(r R, method string, params any) {
	w.sent++
	w.requests[strconv.FormatInt(w.sent, 10)] = r
	w.AddLine(jsonrpc.Request(w.sent, method, params))
}

// AddLine adds a line, unless it is nil.
func (w *RPC[R, Q]) AddLine(line []byte) {
	if w.NoVersion {
		line = jsonrpc.Bare(line)
	}
	if line != nil {
		w.Step.Lines = append(w.Step.Lines, line)
	}
}

// Feed takes the next bytes.
func (w *RPC[R, Q]) Feed(data []byte) Step {
	w.Step.Events = append(w.Step.Events, w.lines.Feed(data)...)
	return w.Step.Take()
}

// Rest reads the rest of the output, and withdraws all questions.
func (w *RPC[R, Q]) Rest() []event.Event {
	return append(w.Questions.WithdrawAll(), w.lines.Flush()...)
}
