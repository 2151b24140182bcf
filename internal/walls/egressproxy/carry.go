package egressproxy

import (
	"bufio"
	"io"
	"math"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"time"
)

// idle closes both connections when no byte has passed for a while. Closing ends every wait.
type idle struct {
	timer *time.Timer
	limit time.Duration
}

func (v *visit) idle(server net.Conn) *idle {
	_ = v.client.SetDeadline(time.Time{})
	return &idle{limit: v.g.patience.idle, timer: time.AfterFunc(v.g.patience.idle, func() {
		_ = v.client.Close()
		_ = server.Close()
	})}
}

// moved counts n bytes as a sign of life. It does not restart a timer that has fired, because the connections are
// closed.
func (i *idle) moved(n int) {
	if n > 0 {
		i.timer.Reset(i.limit)
	}
}

// watched is a connection whose bytes count, with reads through from.
type watched struct {
	net.Conn
	from io.Reader
	idle *idle
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	w.idle.moved(n)
	return n, err
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	w.idle.moved(n)
	return n, err
}

// tunnel copies bytes both ways until both sides have ended, or one has failed.
func (v *visit) tunnel(server net.Conn) {
	life := v.idle(server)
	defer life.timer.Stop()
	client, far := &watched{v.client, v.in, life}, &watched{server, server, life}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	carry := func(to, from *watched) {
		if _, err := io.Copy(writerOnly{to}, from); err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
		closeWrite(to.Conn)
	}
	both.Go(func() { carry(far, client) })
	carry(client, far)
	both.Wait()
}

// writerOnly keeps io.Copy from bypassing Write.
type writerOnly struct{ io.Writer }

// forward forwards one plain request and its response. It writes the request again from the parsed one: lengths, the
// host and the end of each header are ours, so that the request cannot mean one thing here and another thing to the
// server.
func (v *visit) forward(r *http.Request, to host, server net.Conn) {
	life := v.idle(server)
	defer life.timer.Stop()
	var others sync.WaitGroup
	defer others.Wait()
	defer v.client.Close() // closing ends the others
	defer server.Close()

	client, far := &watched{v.client, v.in, life}, &watched{server, server, life}
	if r.ProtoAtLeast(1, 1) && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(client, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return
		}
	}
	out := toServer(r, to)
	if r.ContentLength == 0 {
		others.Go(func() { // a client that is gone needs no response
			if _, err := v.in.Peek(1); err != nil {
				_ = server.Close()
			}
		})
	} else {
		out.Body = &upload{r.Body, life, server}
		if r.ContentLength < 0 {
			out.TransferEncoding = []string{"chunked"}
		}
	}
	// a server may respond before it has read everything; readAnswer below finds out
	others.Go(func() { _ = out.Write(far) })

	answer, refused := readAnswer(far, out, to)
	if refused != nil {
		v.answer(refused)
		return
	}
	oneHop(answer.Header)
	answer.Proto, answer.ProtoMajor, answer.ProtoMinor, answer.Request = "HTTP/1.1", 1, 1, r
	answer.Close, answer.Trailer, answer.TransferEncoding = true, nil, nil
	if answer.ContentLength < 0 && r.ProtoAtLeast(1, 1) {
		answer.TransferEncoding = []string{"chunked"} // so that the client notices a premature end
	}
	if answer.Write(client) == nil {
		v.last()
	}
}

// toServer returns the request for the server.
func toServer(r *http.Request, to host) *http.Request {
	out := r.Clone(r.Context())
	out.RequestURI, out.Close, out.Trailer, out.TransferEncoding, out.Body = "", true, nil, nil, nil
	out.Host, out.URL.Host = strings.TrimSuffix(to.String(), ":80"), to.String()
	oneHop(out.Header)
	out.Header.Del("Expect") // the body is sent at once
	if _, given := out.Header["User-Agent"]; !given {
		out.Header["User-Agent"] = nil // and Go adds none
	}
	return out
}

// readAnswer reads the response of a server, and skips the informational ones before it.
func readAnswer(server io.Reader, to *http.Request, h host) (*http.Response, *refusal) {
	limit := &io.LimitedReader{R: server, N: MaxHead}
	in := bufio.NewReader(limit)
	for {
		answer, err := http.ReadResponse(in, to)
		switch {
		case err != nil:
			return nil, refuse(http.StatusBadGateway, "%s is allowed, but did not answer in HTTP", h)
		case answer.StatusCode >= 200:
			limit.N = math.MaxInt64
			return answer, nil
		}
	}
}

// upload is the body of a request. If it fails, it must not look complete to the server.
type upload struct {
	io.Reader
	idle   *idle
	server net.Conn
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	u.idle.moved(n)
	if err != nil && err != io.EOF {
		_ = u.server.Close()
	}
	return n, err
}

func (u *upload) Close() error { return nil }

// oneHop removes hop-by-hop headers. If a response lists further names next to close, Go's parser drops the list, so
// these headers reach the client.
func oneHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range []string{
		"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade",
	} {
		h.Del(name)
	}
}
