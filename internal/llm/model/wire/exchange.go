package wire

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
)

// silent is the cause of a context when a request has waited too long. Its type distinguishes it from other causes.
type silent struct{ what string }

func (s silent) Error() string { return s.what }

// bounded is the error for an answer that is too long.
type bounded struct{}

func (bounded) Error() string { return "the answer is too large" }

// exchange is one request and its response. Reading the response is bounded in time and size.
type exchange struct {
	api       *API
	asked     context.Context // the caller's context
	ctx       context.Context // ends with asked, or at a timeout
	cancel    context.CancelCauseFunc
	resp      *http.Response
	timer     *time.Timer
	idle      time.Duration
	left      int64 // bytes that may still be read
	connected atomic.Bool
	host      string // for messages, with the proxy if there is one
	secrets   []string
}

// begin sends a request and waits for the headers of the response. It returns an error of the API as an error.
func (a *API) begin(ctx context.Context, path, accept string, body any) (*exchange, error) {
	x := &exchange{api: a, asked: ctx, idle: cmp.Or(a.Idle, defaultIdle), left: maxFault}
	first := cmp.Or(a.First, defaultFirst)
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.timer = time.AfterFunc(first, func() { x.cancel(silent{"no answer came within " + first.String()}) })
	q, sent, err := x.request(path, accept, body)
	if err == nil {
		x.resp, err = a.connection().Do(q)
		sent.drop()
	}
	x.timer.Stop()
	if err != nil {
		x.cancel(nil)
		return x, x.failure(err)
	}
	if s := x.resp.StatusCode; s >= 200 && s < 300 {
		return x, nil
	}
	defer x.end()
	head, err := io.ReadAll(x)
	if x.asked.Err() != nil {
		return x, x.failure(err)
	}
	// a truncated body does not change the error
	return x, x.failure(a.Refused(x.resp.StatusCode, x.resp.Header, head))
}

// request creates the request. Until the payload is dropped, its body can be sent again over a new connection.
func (x *exchange) request(path, accept string, body any) (*http.Request, *payload, error) {
	at, err := url.Parse(x.api.Base + path)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, nil, &model.Error{Trouble: model.Unknown, Message: "the API's address is not an http or https URL"}
	}
	x.host = at.Host
	data, err := text.JSON(body)
	if err != nil {
		return nil, nil, &model.Error{Trouble: model.Rejected, Message: "cannot encode the request: " +
			err.Error(), Cause: err}
	}
	sent := &payload{data: data}
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { x.connected.Store(true) }}
	q, err := http.NewRequestWithContext(httptrace.WithClientTrace(x.ctx, trace), http.MethodPost, at.String(), nil)
	if err != nil {
		return nil, nil, &model.Error{Trouble: model.Unknown, Message: "the API's address is invalid", Cause: err}
	}
	if through, _ := x.api.proxy()(q); through != nil {
		x.host += " (through the proxy " + through.Host + ")"
	}
	q.ContentLength, q.GetBody = int64(len(data)), sent.open
	q.Body, _ = sent.open()
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", accept)
	q.Header.Set("User-Agent", "omniagent")
	if x.api.Header == nil {
		return q, sent, nil
	}
	header, err := x.api.Header(x.ctx)
	if err != nil {
		if _, is := errors.AsType[*model.Error](err); !is && x.ctx.Err() == nil {
			err = &model.Error{Trouble: model.NoLogin, Message: "there is no credential: " + err.Error(), Cause: err}
		}
		return nil, nil, err
	}
	x.secrets = secrets(header)
	for name, values := range header {
		q.Header.Del(name)
		for _, v := range values {
			v = strings.TrimSpace(v) // keys from files may end with a line break
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return nil, nil, &model.Error{Trouble: model.NoLogin, Message: "the header " + name +
					" cannot be sent: it has a control character"}
			}
			q.Header.Add(name, v)
		}
	}
	return q, sent, nil
}

// payload is the body of a request. It is dropped when the answer begins, because a conversation with images is large,
// and an answer takes minutes.
type payload struct {
	mu   sync.Mutex
	data []byte
}

func (p *payload) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data = nil
}

func (p *payload) open() (io.ReadCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.data == nil {
		return nil, errors.New("the request is gone")
	}
	return &reading{rest: p.data}, nil
}

type reading struct {
	mu   sync.Mutex
	rest []byte
}

func (r *reading) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *reading) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = nil
	return nil
}

// Read reads the response's body. Only the time spent waiting counts, not the time between calls.
func (x *exchange) Read(b []byte) (int, error) {
	x.timer = time.AfterFunc(x.idle, func() { x.cancel(silent{"nothing came for " + x.idle.String()}) })
	n, err := x.resp.Body.Read(b)
	x.timer.Stop()
	if x.left -= int64(n); x.left < 0 {
		return 0, bounded{}
	}
	return n, err
}

// end releases the response. It reads a small rest without waiting, so that the connection can be reused.
func (x *exchange) end() {
	timer := time.AfterFunc(100*time.Millisecond, func() { x.cancel(nil) })
	_, _ = io.CopyN(io.Discard, x.resp.Body, 4<<10)
	timer.Stop()
	_ = x.resp.Body.Close()
	x.cancel(nil)
}

// connection returns the HTTP client, which sends no credential to another host.
func (a *API) connection() *http.Client {
	a.once.Do(func() {
		c := http.Client{}
		if a.HTTP != nil {
			c = *a.HTTP
		} else {
			c.Transport = Transport(a.proxy())
		}
		c.CheckRedirect = redirect
		a.client = &c
	})
	return a.client
}

func (a *API) proxy() model.Proxy {
	if a.Proxy == nil {
		return http.ProxyFromEnvironment
	}
	return a.Proxy
}

// Transport returns a transport for requests to a model API, without a proxy if proxy is nil.
func Transport(proxy model.Proxy) *http.Transport {
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    15 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    4,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// redirect follows a redirect only to the same host and port, with the same method, and never from TLS to plain text.
// Otherwise the redirect is the response, and an error.
func redirect(next *http.Request, before []*http.Request) error {
	first := before[0]
	if len(before) < 5 && next.Method == first.Method && next.URL.Scheme == first.URL.Scheme &&
		next.URL.Host == first.URL.Host {
		return nil
	}
	return http.ErrUseLastResponse
}
