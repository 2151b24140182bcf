// Package wire sends requests to a model API: a request in JSON, and an answer in JSON or as server-sent events.
//
// Every failure is a *model.Error with its Trouble, comes within a time limit, and has no credential in its message. A
// stream that ends early is an error. The size of a response is bounded. A credential is only sent to the host that it
// is for. A finished request leaves nothing but a reusable connection. The package never retries, and does not know any
// vendor's protocol: API.Fault interprets errors.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"omniagent/internal/llm/model"
)

// Limits. Today's longest answers are about 50 MB of events.
const (
	maxEvent  = 16 << 20
	maxStream = 256 << 20
	maxBody   = 64 << 20 // of an answer that is not a stream
	maxFault  = 64 << 10 // of the body of an error; the rest is not read
	maxPlain  = 1 << 20  // of a body instead of a stream
)

// Default time limits.
const (
	defaultFirst = 5 * time.Minute
	defaultIdle  = 2 * time.Minute
)

// API is one address of a vendor. It is safe for concurrent use, and must not be copied after its first use.
type API struct {
	Base string // without a slash at the end
	// returns the headers of a request, with the credential; a *model.Error is passed on
	Header func(context.Context) (http.Header, error)
	HTTP   *http.Client  // nil for a new client
	Proxy  model.Proxy   // nil for that of the environment
	First  time.Duration // timeout for the response's headers; 0 for five minutes
	Idle   time.Duration // timeout between reads of the answer; 0 for two minutes
	// parses the body of an error; may be nil; fields that it leaves empty are filled from the status and the headers
	Fault func(int, http.Header, []byte) *model.Error
	// reports whether a body is an answer in one piece, from a server that cannot stream; may be nil
	Whole func([]byte) bool

	once   sync.Once
	client *http.Client
}

// Event is one event of a stream. Data is valid until the callback returns.
type Event struct {
	Name string
	Data []byte
}

// Stream posts body, and calls each for each event of the answer until it reports that the answer is complete.
func (a *API) Stream(ctx context.Context, path string, body any, each func(Event) (done bool, err error)) error {
	x, err := a.begin(ctx, path, "text/event-stream", body)
	if err != nil {
		return err
	}
	defer x.end()
	x.left = maxStream
	return x.failure(x.events(each))
}

// Call posts body, and decodes the answer to into.
func (a *API) Call(ctx context.Context, path string, body, into any) error {
	x, err := a.begin(ctx, path, "application/json", body)
	if err != nil {
		return err
	}
	defer x.end()
	x.left = maxBody
	return x.failure(x.whole(into))
}

// Close closes idle connections.
func (a *API) Close() error {
	a.connection().CloseIdleConnections()
	return nil
}

// events reads a stream.
func (x *exchange) events(each func(Event) (bool, error)) error {
	p := &parser{each: each}
	var head []byte
	sure := false
	buffer := make([]byte, 16<<10)
	for {
		n, err := x.Read(buffer)
		chunk := buffer[:n]
		if !sure && n > 0 {
			head = append(head, chunk...)
			start := bytes.TrimLeft(head, "\ufeff \t\r\n")
			if len(start) == 0 && len(head) < maxFault {
				chunk = nil
			} else if len(start) == 0 || bytes.IndexByte([]byte("<{["), start[0]) >= 0 {
				return x.plain(start, err, each)
			} else {
				sure, chunk = true, head
			}
		}
		done, wrong := p.feed(chunk)
		switch {
		case wrong != nil || done:
			return wrong
		case err == io.EOF:
			return p.end()
		case err != nil:
			return err
		}
		if sure {
			head = nil
		}
	}
}

// plain takes a body that does not begin like a stream. An answer in one piece counts as the only event. All else is an
// error.
func (x *exchange) plain(head []byte, err error, each func(Event) (bool, error)) error {
	x.left = maxPlain
	page := len(head) == 0 || head[0] == '<'
	for buffer := make([]byte, 4<<10); err == nil && (!page || len(head) < 512); {
		var n int
		n, err = x.Read(buffer)
		head = append(head, buffer[:n]...)
	}
	if page {
		return garbage("a web page came instead of an answer", head)
	}
	if refused := x.refusal(head); refused != nil {
		return refused
	}
	if err != io.EOF && !json.Valid(head) {
		return err
	}
	if x.api.Whole != nil && x.api.Whole(head) {
		return (&parser{each: each, data: head, some: true}).end()
	}
	return garbage("the response is not a stream of events", head)
}

// refusal returns the error in a response with status 200, if any.
func (x *exchange) refusal(body []byte) error {
	body = First(body)
	var it struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &it) != nil || Absent(it.Error) {
		return nil
	}
	return x.api.Refused(http.StatusOK, x.resp.Header, body)
}

// whole reads an answer that is not a stream.
func (x *exchange) whole(into any) error {
	body, err := io.ReadAll(x)
	if err != nil {
		return err
	}
	if refused := x.refusal(body); refused != nil {
		return refused
	}
	if err := json.Unmarshal(body, into); err != nil {
		wrong := garbage("what came is not the JSON that was expected", body)
		wrong.Cause = err
		return wrong
	}
	return nil
}
