package wire

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/internal/llm/model"
)

// A redirect is followed on the same host, and nowhere else: neither the key nor the conversation goes there.
func TestRedirects(t *testing.T) {
	var strangers atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
	defer other.Close()
	var code int
	a := serve(t, func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/here":
			http.Redirect(w, q, "/there", code)
		case "/loop":
			http.Redirect(w, q, "/loop", code)
		case "/away":
			http.Redirect(w, q, other.URL+"/x?key="+secret, code)
		default:
			body, _ := io.ReadAll(q.Body)
			fmt.Fprintf(w, `{"method":%q,"body":%q,"key":%q}`, q.Method, body, q.Header.Get("X-Api-Key"))
		}
	})
	for _, code = range []int{301, 302, 303, 307, 308} {
		var got struct{ Method, Body, Key string }
		err := a.Call(t.Context(), "/here", struct{}{}, &got)
		if code < 307 {
			if e := failed(t, err); e.Trouble != model.Unknown || e.Status != code {
				t.Errorf("%d: %#v", code, e)
			}
		} else if err != nil || got.Method != "POST" || got.Body != "{}" || got.Key != secret {
			t.Errorf("%d: %v %v", code, got, err)
		}
		err = a.Call(t.Context(), "/away", struct{}{}, nil)
		if e := failed(t, err); e.Trouble != model.Unknown || e.Message != "the API is not here: it redirects to "+
			other.URL {
			t.Errorf("%d: %#v", code, e)
		}
		if err = a.Call(t.Context(), "/loop", struct{}{}, nil); failed(t, err).Trouble != model.Unknown {
			t.Error(err)
		}
	}
	if strangers.Load() != 0 {
		t.Error("another host was asked")
	}
}

// Connections serve again, and when they are dropped nothing is left.
func TestNothingIsLeft(t *testing.T) {
	var connections atomic.Int32
	heard := make(chan bool, 100)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/no" {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, "data: stop\n\n")
		_ = http.NewResponseController(w).Flush()
		if q.URL.Path == "/" {
			<-heard // so that the rest comes when the answer was whole already
		}
		fmt.Fprint(w, "data: more\n\n")
		for q.URL.Path == "/long" {
			if _, err := fmt.Fprint(w, strings.Repeat("data: more\n\n", 1000)); err != nil {
				return
			}
		}
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	before := runtime.NumGoroutine()
	a := &API{Base: s.URL}
	for range 5 {
		var seen []string
		if err := a.Stream(t.Context(), "/", struct{}{}, func(Event) (bool, error) {
			heard <- true
			return true,
				nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := a.Stream(t.Context(), "/no", struct{}{}, until(&seen)); failed(t,
			err).Status != http.StatusTeapot {
			t.Error(err)
		}
	}
	if connections.Load() > 3 { // 1, where the machine is not so busy that the rest came late
		t.Errorf("%d connections", connections.Load())
	}
	_ = a.Close()
	settle(t, before)
	b := raw(t, events+"\r\ndata: stop\n\n", true)
	before = runtime.NumGoroutine()
	var seen []string
	b.First, b.Idle = time.Hour, time.Hour // it does not wait for the end of the answer
	if err := b.Stream(t.Context(), "/", struct{}{}, until(&seen)); err != nil {
		t.Error(err)
	}
	settle(t, before+1) // of the server, which holds its connection
	before = runtime.NumGoroutine()
	a = &API{Base: s.URL} // what is much too long is not read to its end, and its connection is closed at once
	if err := a.Stream(t.Context(), "/long", struct{}{}, until(&seen)); err != nil {
		t.Error(err)
	}
	settle(t, before)
}

func settle(t *testing.T, most int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > most; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			all := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, not %d:\n%s", runtime.NumGoroutine(), most, all[:runtime.Stack(all, true)])
		}
	}
}

// The same holds where many requests share a connection, and where the answer is packed.
func TestHTTP2AndGzip(t *testing.T) {
	hold := make(chan bool)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.ProtoMajor != 2 || q.Header.Get("Accept-Encoding") != "gzip" {
			t.Error(q.Proto, q.Header)
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, "data: 1\n\n")
		_ = z.Flush()
		_ = http.NewResponseController(w).Flush()
		switch q.URL.Path {
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/hold":
			<-hold
		}
		fmt.Fprint(z, "data: stop\n\n")
		_ = z.Close()
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	defer s.Close()
	defer close(hold)
	a := api(t, s.URL)
	a.HTTP, a.Idle = s.Client(), 500*time.Millisecond
	for path, want := range map[string]model.Trouble{"/": "", "/cut": model.Cut, "/hold": model.Stalled} {
		var seen []string
		err := a.Stream(t.Context(), path, struct{}{}, until(&seen))
		if want == "" && (err != nil || len(seen) != 2) || want != "" &&
			(failed(t, err).Trouble != want || len(seen) != 1) {
			t.Errorf("%s: %q, %v", path, seen, err)
		}
	}
}

// tap keeps the request that went out.
type tap struct{ q *http.Request }

func (p *tap) RoundTrip(q *http.Request) (*http.Response, error) {
	p.q = q
	return http.DefaultTransport.RoundTrip(q)
}

// While an answer comes, the request is not kept.
func TestRequestIsDropped(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		fmt.Fprint(w, "data: stop\n\n")
	})
	p := &tap{}
	a.HTTP = &http.Client{Transport: p}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := a.Stream(t.Context(), "/", strings.Repeat("x", 1000), func(Event) (bool, error) {
		if _, err := p.q.GetBody(); err == nil {
			t.Error("it can still be read")
		}
		return true, nil
	}); err != nil {
		t.Error(err)
	}
}

// Of an event of 100 MB no more is read than an event may have.
func TestHundredMegabytes(t *testing.T) {
	var sent atomic.Int64
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "data: ")
		for piece := bytes.Repeat([]byte("x"), 1<<20); ; {
			if _, err := w.Write(piece); err != nil {
				return
			}
			sent.Add(int64(len(piece)))
		}
	})
	err := a.Stream(t.Context(), "/", struct{}{}, func(Event) (bool, error) { return false, nil })
	if failed(t, err).Trouble != model.TooLarge || sent.Load() > 2*maxEvent {
		t.Error(err, sent.Load())
	}
}

// What has no end ends, and what is only long does not.
func TestEndless(t *testing.T) {
	piece := endless(strings.Repeat("data: {}\n\n", 1<<10))
	begin := func(left int64) *exchange {
		return &exchange{
			api: &API{}, asked: t.Context(), ctx: t.Context(), cancel: func(error) {}, idle: time.Minute, left: left,
			resp: &http.Response{Body: io.NopCloser(piece)},
		}
	}
	n := 0
	x := begin(1 << 20)
	err := x.failure(x.events(func(Event) (bool, error) { n++; return false, nil }))
	if failed(t, err).Trouble != model.TooLarge || n < 1<<20/10-1<<12 {
		t.Error(n, err)
	}
	x = begin(1 << 20)
	if err = x.failure(x.whole(nil)); failed(t, err).Trouble != model.TooLarge {
		t.Error(err)
	}
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Repeat("data: {}\n\n", 1<<18), "data: stop\n\n")
	})
	n = 0
	if err := a.Stream(t.Context(), "/", struct{}{},
		func(e Event) (bool, error) { n++; return string(e.Data) == "stop", nil }); err != nil || n != 1<<18+1 {
		t.Error(n, err)
	}
}

type endless []byte

func (e endless) Read(b []byte) (int, error) { return copy(b, e[:len(e)/10*10]), nil }
