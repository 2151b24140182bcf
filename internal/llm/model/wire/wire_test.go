package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/llm/model"
)

const secret = "correct-horse-battery" // nothing that could be told from a word by itself

func keyed(context.Context) (http.Header, error) {
	return http.Header{"x-api-key": {secret + "\n"}, "Authorization": {"Bearer " + secret}}, nil
}

// api asks a server until the test ends.
func api(t *testing.T, base string) *API {
	a := &API{Base: base, Header: keyed}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// serve answers every request with a handler.
func serve(t *testing.T, h http.HandlerFunc) *API {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return api(t, s.URL)
}

// raw answers every connection with these bytes after it has read a request, and closes it, or keeps it open.
func raw(t *testing.T, answer string, stay bool) *API {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				q, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, q.Body)
				_, _ = io.WriteString(c, answer)
				if stay {
					<-ctx.Done()
				}
			})
		}
	})
	t.Cleanup(func() { cancel(); l.Close(); all.Wait() })
	return api(t, "http://"+l.Addr().String())
}

// until stops at an event whose data is stop.
func until(events *[]string) func(Event) (bool, error) {
	return func(e Event) (bool, error) {
		*events = append(*events, string(e.Data))
		return string(e.Data) == "stop", nil
	}
}

// failed is the error, which must have a sort and hide the key.
func failed(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("no error of a model: %v", err)
	}
	for err := err; err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the key is in %q", err)
		}
	}
	if e.Trouble == "" || e.Message == "" || strings.ContainsAny(e.Message, "\n\r\x1b") {
		t.Errorf("%#v", e)
	}
	return e
}

const events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

func TestRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	a := serve(t, func(w http.ResponseWriter, q *http.Request) {
		got = q
		body, _ = io.ReadAll(q.Body)
		fmt.Fprint(w, "data: 1\n\ndata: stop\n\ndata: 3\n\n")
	})
	var seen []string
	err := a.Stream(t.Context(), "/v1/x?y=1", map[string]string{"a": "<&>\xff"}, until(&seen))
	if err != nil || !slices.Equal(seen, []string{"1", "stop"}) {
		t.Fatal(seen, err)
	}
	if got.Method != "POST" || got.URL.String() != "/v1/x?y=1" || string(body) != `{"a":"<&>\ufffd"}` ||
		got.ContentLength != int64(len(body)) {
		t.Errorf("%s %s %s", got.Method, got.URL, body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Accept": "text/event-stream", "X-Api-Key": secret,
		"Accept-Encoding": "gzip", "User-Agent": "omniagent",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s: %q", name, got.Header.Get(name))
		}
	}
}

func TestCall(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, q *http.Request) {
		switch body, _ := io.ReadAll(q.Body); q.URL.Path {
		case "/error":
			fmt.Fprint(w, `{"error":{"message":"no"}}`)
		case "/page":
			fmt.Fprint(w, "<html>\n<b>hello")
		case "/large":
			fmt.Fprintf(w, `{"body":"%01000000d"}`, 7)
		default:
			fmt.Fprintf(w, `{"method":%q,"body":%q,"error":null}`, q.Method, body)
		}
	})
	var got struct{ Method, Body string }
	if err := a.Call(t.Context(), "/", json.RawMessage(`{"x":1}`), &got); err != nil || got.Method != "POST" ||
		got.Body != `{"x":1}` {
		t.Error(got, err)
	}
	if err := a.Call(t.Context(), "/large", struct{}{}, &got); err != nil || len(got.Body) != 1000000 {
		t.Error(len(got.Body), err)
	}
	for path, want := range map[string]model.Trouble{"/error": model.Broken, "/page": model.Garbage} {
		err := a.Call(t.Context(), path, struct{}{}, &got)
		if e := failed(t, err); e.Trouble != want {
			t.Errorf("%s: %#v", path, e)
		}
	}
	if err := a.Call(t.Context(), "/", func() {}, &got); failed(t, err).Trouble != model.Rejected {
		t.Error(err)
	}
}

// How an answer may end, each within its clock.
func TestEnds(t *testing.T) {
	const json200 = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for name, c := range map[string]struct {
		answer string
		stay   bool
		want   model.Trouble
		says   string
	}{
		"closed at once":           {"", false, model.Cut, "without an answer"},
		"silent":                   {"", true, model.Stalled, "no answer came within"},
		"half a status":            {"HTTP/1.1 2", false, model.Cut, ""},
		"half a protocol":          {"HTT", false, model.Cut, ""},
		"half the headers":         {"HTTP/1.1 200 OK\r\nContent-", false, model.Cut, ""},
		"half the headers, silent": {"HTTP/1.1 200 OK\r\nContent-", true, model.Stalled, ""},
		"headers":                  {events + "\r\n", false, model.Cut, ""},
		"headers, silent":          {events + "\r\n", true, model.Stalled, "nothing came for"},
		"half":                     {events + "\r\ndata: 1\n\ndata: 2", false, model.Cut, ""},
		"half, silent":             {events + "\r\ndata: 1\n\ndata: 2", true, model.Stalled, ""},
		"half a length": {
			events + "Content-Length: 100\r\n\r\ndata: 1\n\n", false, model.Cut,
			"ended before the answer did",
		},
		"half a chunk": {
			events + "Transfer-Encoding: chunked\r\n\r\n20\r\ndata: 1\n\n", false, model.Cut,
			"",
		},
		"no last chunk": {
			events + "Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n", false,
			model.Cut, "",
		},
		"broken chunks": {events + "Transfer-Encoding: chunked\r\n\r\nhello\r\n", false, model.Cut, ""},
		"not HTTP": {
			"SSH-2.0-OpenSSH_9.9\r\n", false, model.Garbage,
			"does not answer as a web server does",
		},
		"endless headers": {
			"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n", true,
			model.TooLarge, "",
		},
		"page": {"HTTP/1.1 200 OK\r\n\r\n <!doctype html>\n<p>\x1b[31mSign in" +
			strings.Repeat(" x", 200), false, model.Garbage, "<!doctype html> <p>Sign in x x"},
		"page, silent":      {"HTTP/1.1 200 OK\r\n\r\n<!doctype html>", true, model.Garbage, "<!doctype html>"},
		"page as events":    {events + "\r\n<html>", false, model.Garbage, ""},
		"JSON":              {json200 + "\r\n{\"id\":1}", false, model.Garbage, `{"id":1}`},
		"half JSON":         {json200 + "Content-Length: 100\r\n\r\n{\"id\":", false, model.Cut, ""},
		"half JSON, silent": {json200 + "\r\n{\"id\":", true, model.Stalled, ""},
		"an error": {
			json200 + "\r\n\n{\"error\":{\"message\":\"out of order " + secret + "\"}}", false,
			model.Broken, "out of order [REDACTED]",
		},
		"an error in a list": {
			json200 + "\r\n[{\"error\":{\"message\":\"out of order\"}}]", false, model.Broken,
			"out of order",
		},
		"an empty list":      {json200 + "\r\n[]", false, model.Garbage, ""},
		"words":              {events + "\r\nupstream error\n", true, model.Garbage, "upstream error"},
		"nothing but blanks": {events + "\r\n" + strings.Repeat("\n", 1<<17), true, model.Garbage, ""},
		"no content":         {"HTTP/1.1 204 No Content\r\n\r\n", false, model.Cut, ""},
		"not gzip":           {events + "Content-Encoding: gzip\r\n\r\ndata: stop\n\n", false, model.Cut, ""},
		"endless JSON":       {json200 + "\r\n[" + strings.Repeat("1,", 1<<20), true, model.TooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := raw(t, c.answer, c.stay)
			if c.stay {
				a.First, a.Idle = time.Second, 500*time.Millisecond
			}
			var seen []string
			err := a.Stream(t.Context(), "/", struct{}{}, until(&seen))
			e := failed(t, err)
			if e.Trouble != c.want || !strings.Contains(e.Message, c.says) || e.Status != 0 ||
				len([]rune(e.Message)) > 600 {
				t.Errorf("%s: %s (%v)", e.Trouble, e.Message, e.Cause)
			}
			if strings.Contains(c.answer, "data: 1\n\n") != slices.Equal(seen, []string{"1"}) {
				t.Errorf("seen: %q", seen)
			}
		})
	}
}

// The clock counts the silence of the server only.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 8 {
			fmt.Fprint(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Millisecond) // a model that is slow, but not silent
		}
		fmt.Fprint(w, "data: stop\n\n")
	})
	a.Idle, a.First = 600*time.Millisecond, 10*time.Second
	n := 0
	if err := a.Stream(t.Context(), "/", struct{}{}, func(e Event) (bool, error) {
		if n++; n == 1 {
			time.Sleep(800 * time.Millisecond) // the reader itself may be slow, for longer than the clock
		}
		return string(e.Data) == "stop", nil
	}); err != nil || n != 9 {
		t.Error(n, err)
	}
}

func TestStatuses(t *testing.T) {
	for status, want := range map[int]model.Trouble{
		300: model.Unknown, 400: model.Rejected, 401: model.NoLogin, 402: model.Quota, 403: model.Forbidden,
		404: model.Unknown, 405: model.Unknown,
		408: model.Overloaded, 409: model.Rejected, 413: model.Overflow, 422: model.Rejected, 429: model.Limited,
		500: model.Broken, 502: model.Broken,
		503: model.Overloaded, 504: model.Broken, 524: model.Broken, 529: model.Overloaded, 599: model.Broken,
	} {
		a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Request-Id", "r1")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"the key %s\nis bad\u001b[31m"}}`, secret)
		})
		err := a.Stream(t.Context(), "/", struct{}{}, nil)
		e := failed(t, err)
		if e.Trouble != want || e.Status != status || e.After != 7*time.Second || e.Request != "r1" {
			t.Errorf("%d: %#v", status, e)
		}
		if status >= 400 && e.Message != "the key [REDACTED] is bad" {
			t.Errorf("%d: %q", status, e.Message)
		}
	}
}

func TestWordsOfErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":"plain"}`:                      "plain",
		`{"message":"outside"}`:                  "outside",
		`{"detail":"detail"}`:                    "detail",
		`{"error":{"code":1}}`:                   `the API answers: {"error":{"code":1}}`,
		"":                                       "the API answers: Bad Gateway",
		"<html><h1>502</h1>":                     "the API answers: Bad Gateway",
		"upstream\nis gone":                      "the API answers: upstream is gone",
		strings.Repeat("é", 300):                 "the API answers: " + strings.Repeat("é", 100) + "…",
		`{"error":"` + strings.Repeat("y", 1000): "the API answers: " + `{"error":"` + strings.Repeat("y", 90) + "…",
	} {
		a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, body)
		})
		err := a.Call(t.Context(), "/", struct{}{}, nil)
		if e := failed(t, err); e.Message != want {
			t.Errorf("%q: %q", body, e.Message)
		}
	}
}

// An error whose body never ends is still that error.
func TestErrorWithoutEnd(t *testing.T) {
	for _, size := range []int{10, 1 << 20} {
		a := raw(t, "HTTP/1.1 429 Too Many\r\nRetry-After-Ms: 1500\r\nRetry-After: 9\r\n\r\n"+strings.Repeat("x", size),
			true)
		a.Idle = 100 * time.Millisecond
		err := a.Stream(t.Context(), "/", struct{}{}, nil)
		if e := failed(t, err); e.Trouble != model.Limited || e.After != 1500*time.Millisecond {
			t.Errorf("%#v", e)
		}
	}
}

func TestVendorsReading(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "r2")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"too long"}}`)
	})
	a.Fault = func(status int, h http.Header, body []byte) *model.Error {
		if status != 400 || h.Get("X-Request-Id") != "r2" || !json.Valid(body) {
			t.Error(status, h, string(body))
		}
		return &model.Error{Trouble: model.Overflow, Code: "c"}
	}
	err := a.Stream(t.Context(), "/", struct{}{}, nil)
	if e := failed(t, err); e.Trouble != model.Overflow || e.Code != "c" || e.Status != 400 ||
		e.Message != "too long" || e.Request != "r2" {
		t.Errorf("%#v", e)
	}
}

func TestErrorsOfTheCaller(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Request-Id", "r3")
		fmt.Fprint(w, "data: 1\n\n")
	})
	mine := &model.Error{Trouble: model.Quota, Message: "mine"}
	err := a.Stream(t.Context(), "/", struct{}{}, func(Event) (bool, error) { return false, mine })
	if failed(t, err) != mine || mine.Request != "r3" {
		t.Errorf("%#v", err)
	}
	a.Header = func(context.Context) (http.Header, error) { return nil, mine }
	if err = a.Stream(t.Context(), "/", struct{}{}, nil); failed(t, err) != mine {
		t.Error(err)
	}
	a.Header = func(context.Context) (http.Header, error) { return nil, errors.New("no file") }
	if err = a.Stream(t.Context(), "/", struct{}{}, nil); failed(t, err).Trouble != model.NoLogin ||
		!strings.Contains(err.Error(), "no file") {
		t.Error(err)
	}
	a.First = 20 * time.Millisecond
	a.Header = func(ctx context.Context) (http.Header, error) { <-ctx.Done(); return nil, ctx.Err() }
	if err = a.Stream(t.Context(), "/", struct{}{}, nil); failed(t, err).Trouble != model.Stalled {
		t.Error(err)
	}
	a.Header = func(context.Context) (http.Header, error) { return http.Header{"X-Api-Key": {"a\nb" + secret}}, nil }
	if err = a.Stream(t.Context(), "/", struct{}{}, nil); failed(t, err).Trouble != model.NoLogin {
		t.Error(err)
	}
	for _, base := range []string{"", "://", "api.example.com", "ftp://x", "http://", "http://\x00"} {
		a := &API{Base: base}
		if err := a.Stream(t.Context(), "/", struct{}{}, nil); failed(t, err).Trouble != model.Unknown {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestStopped(t *testing.T) {
	for name, answer := range map[string]string{
		"headers": "", "stream": events + "\r\n",
		"middle": events + "\r\ndata: 1\n\n", "error": "HTTP/1.1 500 X\r\n\r\n",
	} {
		a := raw(t, answer, true)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		timer := time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
		err := a.Stream(ctx, "/", struct{}{}, func(Event) (bool, error) { cancel(why); return false, nil })
		if e := failed(t, err); e.Trouble != model.Stopped || !errors.Is(err, why) {
			t.Errorf("%s: %#v", name, e)
		}
		timer.Stop()
		if err = a.Call(ctx, "/", struct{}{}, nil); failed(t, err).Trouble != model.Stopped {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOffline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	l.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = quiet()
	tls.StartTLS()
	defer tls.Close()
	nowhere := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn,
		error,
	) {
		return nil, &net.DNSError{Err: "no such host", Name: "api.example.com", IsNotFound: true}
	}}}
	slow := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn,
		error,
	) {
		return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	}}}
	for name, c := range map[string]struct {
		base string
		http *http.Client
		says string
	}{
		"refused":      {"http://" + gone, nil, "nothing listens at " + gone},
		"unknown name": {"https://api.example.com", nowhere, "the name api.example.com cannot be resolved"},
		"no answer":    {"https://api.example.com", slow, "no connection to api.example.com in time"},
		"no TLS":       {strings.Replace(plain.URL, "http", "https", 1), nil, "does not speak TLS"},
		"not trusted":  {tls.URL, nil, "is not trusted: x509"},
	} {
		a := api(t, c.base)
		a.HTTP = c.http
		err := a.Stream(t.Context(), "/?key="+secret, struct{}{}, nil)
		if e := failed(t, err); e.Trouble != model.Offline || !strings.Contains(e.Message, c.says) || !e.Again() {
			t.Errorf("%s: %s: %s", name, e.Trouble, e.Message)
		}
	}
}
