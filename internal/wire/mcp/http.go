package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/text"
	"omniagent/internal/wire/jsonrpc"
)

const (
	maxResumes   = 5 // of one interrupted response
	firstPause   = time.Second
	longestPause = time.Minute
)

// remote is a server over Streamable HTTP: each message is a separate request, answered by one message or a stream of
// them.
type remote struct {
	conn   *Conn
	url    string
	host   string
	client *http.Client
	group  sync.WaitGroup

	mu       sync.Mutex
	session  string
	protocol string
	renewing sync.Mutex
}

func newHTTP(c *Conn) error {
	u, err := url.Parse(c.server.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fault.New(fault.ConfigInvalid, "the url of the MCP server %s must begin with http:// or https://",
			c.server.Name)
	}
	r := &remote{conn: c, url: u.String(), host: u.Host}
	r.client = &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 15 * time.Second, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxHeader,
	}}
	// The user's headers may be secret, and are only for this host.
	r.client.CheckRedirect = func(next *http.Request, before []*http.Request) error {
		was := before[0]
		if len(before) < 3 && next.URL.Host == was.URL.Host && next.URL.Scheme == was.URL.Scheme &&
			next.Method == was.Method {
			return nil
		}
		return http.ErrUseLastResponse
	}
	if len(c.server.Header) > 0 && plainHTTP(u) {
		c.log("its headers go to " + u.Host + " without TLS: everybody on the way can read them")
	}
	c.wire = r
	return nil
}

// ready starts to listen for the server's own messages.
func (r *remote) ready(protocol string) {
	r.mu.Lock()
	r.protocol = protocol
	r.mu.Unlock()
	r.group.Go(r.listen)
}

// send posts a message. It reads the response to a request in the background, until ctx ends.
func (r *remote) send(ctx context.Context, id int64, m []byte) error {
	if r.conn.life.Err() != nil {
		return r.conn.Err()
	}
	if id == 0 {
		return r.post(ctx, 0, m, true)
	}
	r.group.Go(func() {
		if err := r.post(ctx, id, m, !bytes.Contains(m, []byte(`"method":"initialize"`))); err != nil {
			r.conn.failOne(id, err)
		}
	})
	return nil
}

// post sends a message and reads the response. If renew is true, it may begin a new session when the server has
// forgotten ours.
func (r *remote) post(ctx context.Context, id int64, m []byte, renew bool) error {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	was := ""
	if renew { // otherwise this request begins a session
		was = r.settled()
	}
	response, err := r.do(ctx, http.MethodPost, m, "")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound && was != "" && renew {
		if err := r.renew(ctx, was); err != nil {
			return err
		}
		return r.post(ctx, id, m, false)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return r.refused(response)
	}
	if s := response.Header.Get("Mcp-Session-Id"); s != "" && !renew { // the response to initialize
		r.mu.Lock()
		r.session = s
		r.mu.Unlock()
	}
	if id == 0 {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode == http.StatusAccepted:
		return errors.New("it accepted the request but sent no response")
	case kind == "text/event-stream":
		return r.answerOf(ctx, id, response)
	case kind == "application/json":
		body, err := io.ReadAll(io.LimitReader(response.Body, maxMessage+1))
		if err != nil {
			return err
		}
		if len(body) > maxMessage {
			r.conn.tooLarge(json.RawMessage(`"id":`+strconv.FormatInt(id, 10)), nil)
			return nil
		}
		r.conn.receive(body)
	default:
		return fmt.Errorf("its response has the content type %q, which MCP does not use", text.OneLine(kind, 60))
	}
	if r.conn.waits(id) {
		return errors.New("its response is to another request")
	}
	return nil
}

// waits reports whether a request is still pending.
func (c *Conn) waits(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.pending[id]
	return one != nil && len(one.answer) == 0 && len(one.failed) == 0
}

// bound returns ctx, cancelled when the connection is closed.
func (r *remote) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(r.conn.life, cancel)
	return ctx, func() { stop(); cancel() }
}

func (r *remote) current() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session
}

// do makes one HTTP request.
func (r *remote) do(ctx context.Context, method string, body []byte, after string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, r.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range r.conn.server.Header {
		q.Header.Set(name, value)
	}
	q.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodGet {
		q.Header.Set("Accept", "text/event-stream")
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if after != "" {
		q.Header.Set("Last-Event-ID", after)
	}
	r.mu.Lock()
	session, protocol := r.session, r.protocol
	r.mu.Unlock()
	if session != "" {
		q.Header.Set("Mcp-Session-Id", session)
	}
	if protocol != "" {
		q.Header.Set("MCP-Protocol-Version", protocol)
	}
	response, err := r.client.Do(q)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if wrapped, is := errors.AsType[*url.Error](err); is {
			err = wrapped.Err // the address may contain a secret
		}
		return nil, fault.New(fault.ServiceDown, "the MCP server %s at %s cannot be reached",
			r.conn.server.Name, r.host).
			Because(err)
	}
	return response, nil
}

// refused returns the error for an unexpected HTTP status.
func (r *remote) refused(response *http.Response) error {
	name, status := r.conn.server.Name, response.StatusCode
	if status >= 300 && status < 400 {
		to := "elsewhere"
		if at, err := response.Location(); err == nil {
			to = at.Scheme + "://" + at.Host + at.Path
		}
		return fault.New(fault.ServiceDown, "the MCP server %s has moved to %s", name, text.OneLine(to, 300)).
			Hint("If you trust that address, put it into the configuration.")
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return fault.New(fault.AuthRequired, "the MCP server %s needs a login (HTTP %d)", name, status).With("server",
			name).
			Hint(`Put a token into its configuration: "headers": {"Authorization": "Bearer ${VARIABLE}"}.`)
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxStderr))
	if m, ok := jsonrpc.Read(body); ok && m.Error != nil {
		return m.Error
	}
	f := fault.New(fault.ServiceDown, "the MCP server %s answered with HTTP %d", name, status).With("server", name).
		With("status", status)
	if status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
		f = f.Hint("Check the url. Servers of the older type sse are not supported.")
	}
	return f
}

// renew begins a new session, once for all requests that need one.
func (r *remote) renew(ctx context.Context, was string) error {
	r.renewing.Lock()
	defer r.renewing.Unlock()
	if r.current() != was {
		return nil
	}
	r.mu.Lock()
	protocol := r.protocol
	r.session, r.protocol = "", ""
	r.mu.Unlock()
	r.conn.log("it has forgotten the session, which is begun anew")
	ctx, cancel := context.WithTimeout(ctx, r.conn.options.Open) // other requests wait for this
	defer cancel()
	hello, err := r.conn.hello(ctx)
	if err != nil {
		r.mu.Lock()
		r.session, r.protocol = was, protocol // so that the next request retries
		r.mu.Unlock()
		return err
	}
	r.mu.Lock()
	r.protocol = hello.ProtocolVersion
	r.mu.Unlock()
	return r.post(ctx, 0, jsonrpc.Notification("notifications/initialized", nil), false)
}

// answerOf reads a stream up to the response. It resumes an interrupted stream if the server numbers its events.
func (r *remote) answerOf(ctx context.Context, id int64, response *http.Response) error {
	at, pause := "", firstPause
	for try := 0; ; try++ {
		err := r.stream(response.Body, &at, &pause, func() bool { return !r.conn.waits(id) })
		_ = response.Body.Close()
		if !r.conn.waits(id) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if at == "" || try >= maxResumes {
			if err == nil {
				err = errors.New("its stream ended before the response")
			}
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		if response, err = r.do(ctx, http.MethodGet, nil, at); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			_ = response.Body.Close()
			return fmt.Errorf("its stream ended before the response, and cannot be resumed (HTTP %d)",
				response.StatusCode)
		}
	}
}

// listen reads the server's own messages until the connection is closed. Servers need not offer that.
func (r *remote) listen() {
	at, pause := "", firstPause
	session, fresh := "", "" // the session that we listen to, and a new one that was begun for that
	for r.conn.life.Err() == nil {
		began := time.Now()
		if now := r.settled(); now != session {
			session, at = now, "" // event numbers belong to a session
		}
		told := time.Duration(0)
		status, err := r.hear(&at, &told)
		switch {
		case err != nil: // unreachable for now
		case status == http.StatusOK:
			if fresh = ""; time.Since(began) > longestPause {
				pause = firstPause
			}
			pause = max(pause, min(told, longestPause))
		case r.current() != session: // a new session was begun meanwhile
		case status == http.StatusNotFound && session != "" && session != fresh:
			if r.renew(r.conn.life, session) == nil {
				fresh = r.current()
			}
		default:
			return
		}
		select {
		case <-r.conn.life.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// hear reads one stream to its end. A status other than OK means that there was no stream.
func (r *remote) hear(at *string, told *time.Duration) (status int, err error) {
	response, err := r.do(r.conn.life, http.MethodGet, nil, *at)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode == http.StatusOK && kind != "text/event-stream" {
		return http.StatusNotAcceptable, nil
	}
	if response.StatusCode == http.StatusOK {
		_ = r.stream(response.Body, at, told, func() bool { return false })
	}
	return response.StatusCode, nil
}

// settled returns the session after any renewal.
func (r *remote) settled() string {
	r.renewing.Lock()
	defer r.renewing.Unlock()
	return r.current()
}

// stream reads server-sent events until enough reports true, or they end.
func (r *remote) stream(body io.Reader, at *string, pause *time.Duration, enough func() bool) error {
	in := lines.NewReader(body, maxMessage+peek)
	var data []byte
	large := false
	for in.Next() && !in.Torn {
		line := bytes.TrimRight(in.Text, "\r")
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case in.Long:
			large = true
			r.conn.log(fmt.Sprintf("an event of more than %d MiB is skipped", maxMessage>>20))
		case len(line) == 0:
			if large {
				return fault.New(fault.FieldTooLarge, "the MCP server %s answered with more than %d MiB",
					r.conn.server.Name, maxMessage>>20)
			}
			if len(data) > 0 {
				r.conn.receive(data)
			}
			data = nil
			if enough() {
				return nil
			}
		case string(name) == "data" && len(data)+len(value) > maxMessage:
			large = true
		case string(name) == "data":
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
		case string(name) == "id" && len(value) <= peek:
			*at = string(value)
		case string(name) == "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
				*pause = min(time.Duration(ms)*time.Millisecond, longestPause)
			}
		}
	}
	return in.Err()
}

// close ends the session and all pending requests.
func (r *remote) close() {
	if session := r.current(); session != "" {
		ctx, cancel := context.WithTimeout(context.Background(), closeTakes)
		if response, err := r.do(ctx, http.MethodDelete, nil, ""); err == nil {
			_ = response.Body.Close()
		}
		cancel()
	}
	r.group.Wait()
	r.client.CloseIdleConnections()
}

func plainHTTP(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}
