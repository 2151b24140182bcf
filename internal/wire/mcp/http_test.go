package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/wire/jsonrpc"
)

// web is a server of Streamable HTTP in front of a scripted one.
type web struct {
	how     string // how it answers
	mu      sync.Mutex
	behind  *scripted
	out     bytes.Buffer
	session atomic.Int64
	deleted atomic.Bool
	seen    []http.Header // of POST
	resumed atomic.Int64
	unasked chan string   // events of the GET stream
	listens atomic.Int64  // how often it was asked for
	release chan struct{} // closed at the end of the test
}

func newWeb(t *testing.T, how string) (*web, *httptest.Server) {
	t.Helper()
	w := &web{how: how, unasked: make(chan string, 4), release: make(chan struct{})}
	w.behind = newScripted("good", &w.out)
	s := httptest.NewServer(w)
	t.Cleanup(func() { close(w.release); s.Close() })
	return w, s
}

func (w *web) ServeHTTP(out http.ResponseWriter, q *http.Request) {
	id := fmt.Sprintf("s%d", w.session.Load())
	given := q.Header.Get("Mcp-Session-Id")
	switch q.Method {
	case http.MethodDelete:
		w.deleted.Store(given == id)
		return
	case http.MethodGet:
		w.listens.Add(1)
		if given != id || w.how == "deaf" {
			http.NotFound(out, q)
			return
		}
		w.stream(out, q)
		return
	}
	body, _ := io.ReadAll(q.Body)
	w.mu.Lock()
	w.seen = append(w.seen, q.Header.Clone())
	w.mu.Unlock()
	first := bytes.Contains(body, []byte(`"initialize"`))
	switch {
	case first:
		out.Header().Set("Mcp-Session-Id", fmt.Sprintf("s%d", w.session.Add(1)))
	case given != id:
		http.Error(out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`,
			http.StatusNotFound)
		return
	}
	switch w.how {
	case "moved":
		http.Redirect(out, q, "http://elsewhere.example/mcp", http.StatusTemporaryRedirect)
		return
	case "slash":
		if !strings.HasSuffix(q.URL.Path, "/") {
			http.Redirect(out, q, "/mcp/", http.StatusTemporaryRedirect)
			return
		}
	case "login":
		out.WriteHeader(http.StatusUnauthorized)
		return
	case "old":
		out.WriteHeader(http.StatusMethodNotAllowed)
		return
	case "page":
		out.Header().Set("Content-Type", "text/html")
		fmt.Fprint(out, "<html>")
		return
	case "accepted":
		out.WriteHeader(http.StatusAccepted)
		return
	case "hangs":
		<-q.Context().Done()
		return
	}
	w.answer(out, q, body)
}

func (w *web) answer(out http.ResponseWriter, q *http.Request, body []byte) {
	w.mu.Lock()
	w.out.Reset()
	w.behind.handle(body)
	said := w.out.String()
	w.mu.Unlock()
	if !bytes.Contains(body, []byte(`"id"`)) || !bytes.Contains(body, []byte(`"method"`)) {
		out.WriteHeader(http.StatusAccepted)
		return
	}
	call := bytes.Contains(body, []byte(`"tools/call"`))
	if w.how == "json" {
		out.Header().Set("Content-Type", "application/json; charset=utf-8")
		if call && strings.Contains(string(body), `"huge"`) {
			said = `{"x":"` + strings.Repeat("y", maxMessage) + `"}`
		}
		fmt.Fprint(out, said)
		return
	}
	out.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(out, ": a comment\n\n")
	out.(http.Flusher).Flush()
	if call && strings.Contains(string(body), `"silent"`) {
		<-q.Context().Done()
		return
	}
	if call && w.how == "broken" {
		return
	}
	if call && (w.how == "resumes" || w.how == "drops") {
		fmt.Fprint(out, "id: e1\nretry: 1\ndata:\n\n")
		w.unasked <- said
		return
	}
	for line := range strings.Lines(said) {
		fmt.Fprintf(out, "event: message\r\ndata: %s\r\n\r\n", strings.TrimSpace(line))
	}
}

func (w *web) stream(out http.ResponseWriter, q *http.Request) {
	if w.how == "json" {
		out.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	out.Header().Set("Content-Type", "text/event-stream")
	out.(http.Flusher).Flush()
	if w.how == "resumes" && q.Header.Get("Last-Event-ID") == "e1" {
		w.resumed.Add(1)
		fmt.Fprintf(out, "id: e2\ndata: %s\n\n", strings.TrimSpace(<-w.unasked))
		return
	}
	if w.how == "drops" && q.Header.Get("Last-Event-ID") != "" {
		w.resumed.Add(1)
		fmt.Fprint(out, "id: e2\ndata:\n\n")
		return
	}
	if w.how == "resumes" || w.how == "drops" {
		<-q.Context().Done()
		return
	}
	for {
		select {
		case line := <-w.unasked:
			if line == "" {
				return
			}
			fmt.Fprintf(out, "data: %s\n\n", line)
			out.(http.Flusher).Flush()
		case <-q.Context().Done():
			return
		case <-w.release:
			return
		}
	}
}

func at(s *httptest.Server) Server {
	return Server{Name: "test", URL: s.URL + "/mcp", Header: map[string]string{"Authorization": "Bearer canary"}}
}

// TestStreamThatAlwaysEnds: an answer that never comes is not waited for without end.
func TestStreamThatAlwaysEnds(t *testing.T) {
	t.Parallel()
	w, s := newWeb(t, "drops")
	c := open(t, at(s), Options{})
	if _, err := c.Call(t.Context(), "echo", nil, nil); err == nil || w.resumed.Load() != maxResumes {
		t.Errorf("resumed %d times: %v", w.resumed.Load(), err)
	}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"json", "events", "slash", "resumes"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w, s := newWeb(t, how)
			var log logged
			c := open(t, at(s), Options{Log: log.add})
			if len(c.Tools()) != 1 || c.Protocol != "2025-06-18" {
				t.Errorf("got %+v", c.Tools())
			}
			if got := callText(t, c, "echo", `{"a":1}`); got != `{"a":1}` {
				t.Errorf("got %q", got)
			}
			if how == "resumes" && w.resumed.Load() != 1 {
				t.Errorf("resumed %d times", w.resumed.Load())
			}
			if how == "json" {
				if _, err := c.Call(t.Context(), "huge", nil, nil); !errors.Is(err, fault.FieldTooLarge) {
					t.Errorf("a huge answer: %v", err)
				}
			}
			if how == "events" {
				r, err := c.Call(t.Context(), "progress", nil, nil)
				if err != nil || r.Text != "done" {
					t.Errorf("got %+v, %v", r, err)
				}
			}
			w.mu.Lock()
			for i, h := range w.seen {
				versioned := h.Get("MCP-Protocol-Version") == "2025-06-18" && h.Get("Mcp-Session-Id") == "s1"
				if h.Get("Authorization") != "Bearer canary" || versioned == (i == 0) && how != "slash" ||
					h.Get("Accept") != "application/json, text/event-stream" {
					t.Errorf("request %d: %v", i, h)
				}
			}
			w.mu.Unlock()
			within(t, 10*time.Second, "Close", c.Close)
			if !w.deleted.Load() {
				t.Error("the session is not ended")
			}
			if len(log.all) > 0 && how != "json" {
				t.Errorf("told %q", log.all)
			}
		})
	}
}

func TestHTTPServersThatDoNotOpen(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]struct {
		code fault.Code
		says string
	}{
		"moved": {fault.ServiceDown, "http://elsewhere.example/mcp"}, "login": {fault.AuthRequired, "401"}, "old": {
			fault.ServiceDown,
			"405",
		},
		"page": {fault.ServiceDown, "text/html"}, "accepted": {fault.ServiceDown, "no response"}, "hangs": {
			fault.TimedOut,
			"within 300ms",
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			_, s := newWeb(t, how)
			within(t, 20*time.Second, "to give up", func() {
				_, err := Open(t.Context(), at(s),
					Options{Open: map[bool]time.Duration{true: 300 * time.Millisecond}[how == "hangs"]})
				if !errors.Is(err, want.code) || !strings.Contains(err.Error(), want.says) ||
					strings.Contains(err.Error(), "canary") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	server := at(s)
	server.URL += "?token=canary"
	if _, err := Open(t.Context(), server, Options{}); !errors.Is(err, fault.ServiceDown) ||
		strings.Contains(err.Error(), "canary") {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := Open(t.Context(), Server{Name: "x", URL: "ftp://h"}, Options{}); !errors.Is(err, fault.ConfigInvalid) {
		t.Errorf("ftp: %v", err)
	}
}

func TestHTTPSessionThatIsForgotten(t *testing.T) {
	t.Parallel()
	w, s := newWeb(t, "events")
	var log logged
	c := open(t, at(s), Options{Log: log.add})
	w.session.Add(1)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if r, err := c.Call(t.Context(), "echo", json.RawMessage(`{"b":2}`), nil); err != nil ||
				r.Text != `{"b":2}` {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	all.Wait()
	if w.session.Load() != 3 || !log.has("forgotten") {
		t.Errorf("%d sessions, told %q", w.session.Load(), log.all)
	}
}

func TestHTTPStreamThatBreaksOff(t *testing.T) {
	t.Parallel()
	_, s := newWeb(t, "broken")
	c := open(t, at(s), Options{})
	_, err := c.Call(t.Context(), "echo", nil, nil)
	if !errors.Is(err, fault.ServiceDown) || !strings.Contains(err.Error(), "ended before the response") {
		t.Errorf("got %v", err)
	}
}

const unasked = `{"jsonrpc":"2.0","id":"r1","method":"sampling/createMessage","params":{}}`

// refused waits until a server has the answer to what it asked.
func refused(t *testing.T, w *web) {
	t.Helper()
	for end := time.Now().Add(hermetic.Patience); ; time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		answer := w.behind.asked[`"r1"`]
		w.mu.Unlock()
		if strings.Contains(answer, "-32601") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("got %q", answer)
		}
	}
}

func TestHTTPUnasked(t *testing.T) {
	t.Parallel()
	w, s := newWeb(t, "listening")
	open(t, at(s), Options{})
	w.unasked <- unasked
	refused(t, w)
}

// TestHTTPUnaskedOfAForgottenSession: who listens begins the session again where nobody else does, and goes on
// listening.
func TestHTTPUnaskedOfAForgottenSession(t *testing.T) {
	t.Parallel()
	w, s := newWeb(t, "listening")
	open(t, at(s), Options{})
	w.session.Add(1)
	w.unasked <- "" // the stream ends
	w.unasked <- unasked
	if refused(t, w); w.session.Load() != 3 {
		t.Errorf("%d sessions", w.session.Load())
	}
}

// TestHTTPServerThatOffersNothingToListenTo: one that says so with 404 is believed after one new session.
func TestHTTPServerThatOffersNothingToListenTo(t *testing.T) {
	t.Parallel()
	w, s := newWeb(t, "deaf")
	c := open(t, at(s), Options{})
	ended := make(chan struct{})
	go func() { c.wire.(*remote).group.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(hermetic.Patience):
		t.Error("it is asked again and again")
	}
	if w.session.Load() != 2 || w.listens.Load() != 2 {
		t.Errorf("%d sessions, asked %d times", w.session.Load(), w.listens.Load())
	}
}

func TestHTTPCancelledAndClosed(t *testing.T) {
	t.Parallel()
	_, s := newWeb(t, "events")
	c := open(t, at(s), Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, "silent", nil, nil); !errors.Is(err, fault.TimedOut) {
		t.Errorf("got %v", err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), "silent", nil, nil)
		waiting <- err
	}()
	within(t, 10*time.Second, "Close", c.Close)
	if err := <-waiting; !errors.Is(err, fault.Interrupted) {
		t.Errorf("the call that waited: %v", err)
	}
}

func TestReadEvents(t *testing.T) {
	t.Parallel()
	var log logged
	c := &Conn{
		server: Server{Name: "test"}, options: Options{Log: log.add}, pending: map[int64]*pendingCall{},
		life: t.Context(),
	}
	one := &pendingCall{answer: make(chan jsonrpc.Message, 1), failed: make(chan error, 1)}
	c.pending[1] = one
	r := &remote{conn: c}
	text := "\ufeffid: 7\nretry: 5\nretry: x\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: " +
		"\"id\":1,\"result\":{}}\n\ndata: rest\n\n"
	var last string
	pause := time.Second
	if err := r.stream(strings.NewReader(text), &last, &pause, func() bool { return !c.waits(1) }); err != nil {
		t.Fatal(err)
	}
	if len(one.answer) != 1 || pause != 5*time.Millisecond {
		t.Errorf("%d answers, pause %v, last %q", len(one.answer), pause, last)
	}
	huge := "data: " + strings.Repeat("x", maxMessage+1000) + "\n\n"
	for _, text := range []string{huge, strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 12) + "\n"} {
		if err := r.stream(strings.NewReader(text), &last, &pause, func() bool { return false }); !errors.Is(err,
			fault.FieldTooLarge) {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
}
