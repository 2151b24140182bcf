// Package modelserver implements the server side of model APIs on loopback: Anthropic Messages, OpenAI Responses,
// OpenAI Chat Completions and Gemini. A Backend decides what the model says; Script is one, for rehearsals.
//
// It promises: an agent that speaks one of these APIs can use it, because streams and whole answers, parallel calls,
// thinking, usage and errors have the vendor's form; an answer can be slow, stall or break at a chosen place; no
// request makes it panic; what it stores is bounded; and Close leaves no goroutine and no connection.
//
// It never listens beyond loopback, refuses a page in a browser (a Host that is not loopback, or an Origin) and, if a
// key is set, any client without it. It depends on no agent: only the script knows the names of their tools.
package modelserver

import (
	"compress/gzip"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
)

const (
	maxBody  = 64 << 20 // of a request
	maxKept  = 1000     // requests that Requests returns
	maxBytes = 64 << 20 // of their bodies together
)

// Options configure a server.
type Options struct {
	Key string // what the client must give as its API key; empty: any
	// an error without a RetryAfter tells clients to retry at once
	Hurry bool
	Pace  Pace // of every answer, where the backend says nothing else

	name func(prefix string) string // fixed ids, for tests
	now  func() time.Time
}

// Server is listening until it is closed.
type Server struct {
	backend Backend
	o       Options
	url     string
	http    *http.Server
	stop    context.CancelFunc
	running sync.WaitGroup // the loop and every connection

	mu     sync.Mutex
	number int
	kept   []Request
	bytes  int
}

// Start listens on a free port of 127.0.0.1.
func Start(b Backend, o Options) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fault.New(fault.Internal, "no port of 127.0.0.1 can be listened on").Because(err)
	}
	if o.name == nil {
		o.name = randomName
	}
	if o.now == nil {
		o.now = time.Now
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{backend: b, o: o, url: "http://" + listener.Addr().String(), stop: stop}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState:         s.count,
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	s.running.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// URL returns the address, without a slash at its end.
func (s *Server) URL() string { return s.url }

// Requests returns the last thousand requests that could be read.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kept)
}

// Close ends every connection, and returns when all that ran has ended.
func (s *Server) Close() error {
	s.stop()
	err := s.http.Close()
	s.running.Wait()
	return err
}

// count makes Close wait for connections, which http.Server.Close does not.
func (s *Server) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.running.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.running.Done()
	}
}

func (s *Server) serve(w http.ResponseWriter, q *http.Request) {
	where := route(q)
	enc := where.wire.encoder(&Request{}, s.o)
	if f := s.guard(q, where); f != nil {
		refuse(w, q, enc, *f)
		return
	}
	if where.call == models {
		listModels(w, where)
		return
	}
	body, f := readBody(w, q)
	if f != nil {
		refuse(w, q, enc, *f)
		return
	}
	r, err := where.wire.parse(body, where)
	if err != nil {
		refuse(w, q, enc, Failure{Status: http.StatusBadRequest, Message: "the body cannot be read: " + err.Error()})
		return
	}
	r.Wire, r.Path, r.Header, r.Raw = where.wire, q.URL.Path, q.Header.Clone(), body
	if where.call == count {
		countTokens(w, where, len(body))
		return
	}
	s.keep(r)
	a := &answer{ctx: q.Context(), w: w, r: r, enc: where.wire.encoder(r, s.o), name: s.o.name, hurry: s.o.Hurry}
	a.usual, a.pace = s.o.Pace, s.o.Pace
	if err := s.ask(q.Context(), r, a); err != nil {
		panic(http.ErrAbortHandler) // the way to drop a connection; nothing is logged
	}
}

// ask lets the backend answer. The error is errGone, or another that means the connection is of no more use.
func (s *Server) ask(ctx context.Context, r *Request, a *answer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = a.Fail(Failure{
				Status:  http.StatusInternalServerError,
				Message: fmt.Sprint("the backend failed: ", p),
			})
		}
	}()
	switch err := s.backend.Answer(ctx, r, a); {
	case err == nil:
		return a.finish()
	case errors.Is(err, errGone) || ctx.Err() != nil:
		return errGone
	default:
		return a.Fail(Failure{Status: http.StatusInternalServerError, Message: err.Error()})
	}
}

// guard refuses clients that must not use this server, and unknown paths.
func (s *Server) guard(q *http.Request, where target) *Failure {
	host := q.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return &Failure{Status: http.StatusForbidden, Message: "only loopback is served, not the host " + q.Host}
	}
	if q.Header.Get("Origin") != "" {
		return &Failure{Status: http.StatusForbidden, Message: "pages in a browser are not served"}
	}
	if s.o.Key != "" && subtle.ConstantTimeCompare([]byte(key(q)), []byte(s.o.Key)) != 1 {
		return &Failure{Status: http.StatusUnauthorized}
	}
	if where.call == unknown {
		return &Failure{Status: http.StatusNotFound, Message: "no such path: " + q.Method + " " + q.URL.Path}
	}
	return nil
}

// key returns the API key, from any place where clients put it.
func key(q *http.Request) string {
	if bearer, ok := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer "); ok {
		return bearer
	}
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
		if v := q.Header.Get(name); v != "" {
			return v
		}
	}
	return q.URL.Query().Get("key")
}

func readBody(w http.ResponseWriter, q *http.Request) ([]byte, *Failure) {
	var in io.Reader = http.MaxBytesReader(w, q.Body, maxBody)
	switch encoding := q.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, &Failure{Status: http.StatusBadRequest, Message: "the body is not gzip: " + err.Error()}
		}
		in = z
	default:
		return nil, &Failure{Status: http.StatusUnsupportedMediaType, Message: "the body's encoding " + encoding +
			" is not known"}
	}
	body, err := io.ReadAll(io.LimitReader(in, maxBody+1))
	if _, large := errors.AsType[*http.MaxBytesError](err); large || len(body) > maxBody {
		return nil, &Failure{Status: http.StatusRequestEntityTooLarge, Message: "the body is larger than 64 MiB"}
	}
	if err != nil {
		return nil, &Failure{Status: http.StatusBadRequest, Message: "the body cannot be read: " + err.Error()}
	}
	return body, nil
}

// keep numbers a request and remembers it, within bounds.
func (s *Server) keep(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	r.Number = s.number
	s.kept = append(s.kept, *r)
	s.bytes += len(r.Raw)
	if len(s.kept) > maxKept {
		s.bytes -= len(s.kept[0].Raw)
		s.kept = slices.Clone(s.kept[1:])
	}
	for i := 0; s.bytes > maxBytes && i < len(s.kept)-1; i++ {
		s.bytes -= len(s.kept[i].Raw)
		s.kept[i].Raw, s.kept[i].Messages, s.kept[i].Tools = nil, nil, nil
	}
}

// refuse answers without a backend.
func refuse(w http.ResponseWriter, q *http.Request, enc encoder, f Failure) {
	a := &answer{ctx: q.Context(), w: w, enc: enc, r: &Request{}}
	_ = a.Fail(f)
}

func respond(w http.ResponseWriter, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}
