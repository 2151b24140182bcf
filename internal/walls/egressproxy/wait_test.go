package egressproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// TestEveryWaitEnds: with clocks of a moment each, nobody who is slow or silent keeps anything.
func TestEveryWaitEnds(t *testing.T) {
	t.Parallel()
	silent := farSide(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	g := gateTo(t, silent, "slow.example", "gone.example")
	g.patience = patience{
		head: 100 * time.Millisecond, connect: 100 * time.Millisecond, each: 50 * time.Millisecond,
		idle: 100 * time.Millisecond, answer: 50 * time.Millisecond,
	}
	g.resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
		if name == "gone.example" {
			return []netip.Addr{netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("8.8.8.8")}, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	direct := g.dial
	var tried sync.Map
	g.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		if to.Addr().IsLoopback() {
			return direct(ctx, to)
		}
		if ctx.Err() == nil {
			tried.Store(to.String(), true)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	at := open(t, g)
	for sent, want := range map[string]string{
		"":                                "HTTP/1.1 408 ",
		"CONNECT ":                        "HTTP/1.1 408 ",
		"GET http://x/ HTTP/1.1\r\nHost:": "HTTP/1.1 408 ",
		"CONNECT slow.example:443 HTTP/1.1\r\n\r\n":                                         "HTTP/1.1 502 ",
		"CONNECT gone.example:443 HTTP/1.1\r\n\r\n":                                         "HTTP/1.1 502 ",
		"CONNECT " + silent + " HTTP/1.1\r\n\r\n":                                           "HTTP/1.1 200 ",
		"GET http://" + silent + "/ HTTP/1.1\r\n\r\n":                                       "",
		"POST http://" + silent + "/ HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf":             "",
		"POST http://" + silent + "/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha": "",
	} {
		if got := ask(t, at, sent); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q", sent, got)
		}
	}
	if _, both := tried.Load("8.8.8.8:443"); !both {
		t.Error("the first address used up the time of the second")
	}
	// A byte now and then does not make a complete request.
	c := dial(t, at)
	for _, b := range []byte("GET http://" + strings.Repeat("x", 1000)) {
		if _, err := c.Write([]byte{b}); err != nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if got, _ := io.ReadAll(c); len(got) > 0 && !strings.HasPrefix(string(got), "HTTP/1.1 408 ") {
		t.Errorf("%q", got)
	}
}

// TestLifeKeepsATunnel: what moves in one direction only is not idle.
func TestLifeKeepsATunnel(t *testing.T) {
	t.Parallel()
	far := farSide(t, func(c net.Conn) {
		for range 30 {
			if _, err := io.WriteString(c, "."); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	g := gateTo(t, far)
	g.patience.idle = 300 * time.Millisecond
	at := open(t, g)
	var got []byte
	var err error
	for range 20 { // on a busy machine the far side may be silent for that long; one life is enough
		if got, err = io.ReadAll(tunnelTo(t, at, far)); len(got) == 30 && err == nil {
			return
		}
	}
	t.Errorf("%q %v", got, err)
}

// TestTornAnswers: an answer that ends too early does not look whole.
func TestTornAnswers(t *testing.T) {
	t.Parallel()
	answers := make(chan string, 1)
	far := farSide(t, func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_, _ = io.WriteString(c, <-answers)
	})
	at := open(t, gateTo(t, far))
	proxy := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: at}), DisableKeepAlives: true}
	for answer, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf": "200 half " +
			"unexpected EOF",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n": "200 half " +
			"unexpected EOF",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfull\r\n0\r\nT: x\r\n\r\n": "200 full <nil>",
		"HTTP/1.1 200 OK\r\n\r\nto the end":                                                   "200 to the end <nil>",

		"HTTP/1.1 204 No Content\r\n\r\n": "204  <nil>",
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n": "200 hi <nil>",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nraw":                                      "502",
		"HTTP/1.1 100 Continue\r\n\r\n":                                                                  "502",
		"SSH-2.0-OpenSSH\r\n":                                                                            "502",
		"":                                                                                               "502",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", MaxHead) + "\r\n\r\n": "502",
		strings.Repeat("HTTP/1.1 103 Early\r\n\r\n", MaxHead/10):             "502",
	} {
		answers <- answer
		r, err := proxy.RoundTrip(httptest.NewRequest("GET", "http://"+far+"/", nil))
		if err != nil {
			t.Errorf("%.50q: %v", answer, err)
			continue
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if got := fmt.Sprintln(r.StatusCode, string(body), err); !strings.HasPrefix(got, want) || len(r.Trailer) > 0 {
			t.Errorf("%.50q: %q", answer, got)
		}
	}
}

// TestTornUpload: a body that was not sent whole does not look whole to the server.
func TestTornUpload(t *testing.T) {
	t.Parallel()
	ends := make(chan error, 4)
	far := farSide(t, func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err == nil {
			_, err = io.ReadAll(r.Body)
		}
		ends <- err
	})
	at := open(t, gateTo(t, far))
	for _, sent := range []string{
		"Content-Length: 9\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
	} {
		c := dial(t, at)
		_, _ = io.WriteString(c, "POST http://"+far+"/ HTTP/1.1\r\n"+sent)
		closeWrite(c)
		if err := <-ends; err == nil {
			t.Errorf("%q looked whole", sent)
		}
		_, _ = io.ReadAll(c)
	}
}

// TestAThousand: most are turned away at once, the others are served, and afterwards there is room again.
func TestAThousand(t *testing.T) {
	far := farSide(t, echo)
	at := open(t, gateTo(t, far))
	var served, away atomic.Int32
	var short atomic.Bool
	var ready, done sync.WaitGroup
	release := make(chan struct{})
	for range 1000 {
		ready.Add(1)
		done.Go(func() {
			c, err := net.Dial("tcp", at)
			if err != nil {
				if strings.Contains(err.Error(), "too many open files") {
					short.Store(true)
				} else {
					t.Error(err)
				}
				ready.Done()
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(hermetic.Patience))
			_, _ = io.WriteString(c, "CONNECT "+far+" HTTP/1.1\r\n\r\n")
			head := make([]byte, 12)
			if _, err := io.ReadFull(c, head); string(head) == "HTTP/1.1 200" {
				served.Add(1)
				// the rest of a refusal may be lost with the connection
			} else if string(head) == "HTTP/1.1 503" || err != nil {
				away.Add(1)
			}
			ready.Done()
			<-release
		})
	}
	ready.Wait()
	if short.Load() {
		close(release)
		t.Skip("this process may not open a thousand connections")
	}
	if served.Load() != MaxConnections || away.Load() != 1000-MaxConnections {
		t.Errorf("served %d, turned away %d", served.Load(), away.Load())
	}
	close(release)
	done.Wait()
	for deadline := time.Now().Add(hermetic.Patience); ; runtime.Gosched() {
		if got := askOnce(at, "CONNECT "+far+" HTTP/1.1\r\n\r\n"); strings.HasPrefix(got, "HTTP/1.1 200") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("there is no room again")
		}
	}
}

func askOnce(at, sent string) string {
	c, err := net.Dial("tcp", at)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(c, sent)
	closeWrite(c)
	got, _ := io.ReadAll(c)
	return string(got)
}

// TestGarbage: whatever comes, the gate answers or closes, and goes on.
func TestGarbage(t *testing.T) {
	t.Parallel()
	far := farSide(t, echo)
	g := gateTo(t, far)
	g.patience.head, g.patience.answer, g.patience.idle = 50*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond
	at := open(t, g)
	random := rand.New(rand.NewPCG(1, 2))
	whole := "POST http://" + far + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
	var all sync.WaitGroup
	for range 300 {
		sent := []byte(whole)
		switch random.IntN(3) {
		case 0:
			sent = make([]byte, random.IntN(300))
			for i := range sent {
				sent[i] = byte(random.Uint32())
			}
		case 1:
			sent = sent[:random.IntN(len(sent))]
		default:
			for range 3 {
				sent[random.IntN(len(sent))] = byte(random.Uint32())
			}
		}
		all.Go(func() { askOnce(at, string(sent)) })
	}
	all.Wait()
	if got := askOnce(at, "CONNECT "+far+" HTTP/1.1\r\n\r\nstill there"); !strings.HasSuffix(got,
		"\r\n\r\nstill there") {
		t.Errorf("%q", got)
	}
}

// TestStop: in whatever state a connection is, stop ends it and waits for all of it.
func TestStop(t *testing.T) {
	far := farSide(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	before := runtime.NumGoroutine()
	waiting := make(chan struct{}, 1)
	var ended atomic.Bool
	g := gateTo(t, far, "waits.example")
	g.patience = patience{time.Hour, time.Hour, time.Hour, time.Hour, time.Hour} // stop waits for none of them
	g.resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
		waiting <- struct{}{}
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond) // stop has to wait for this
		ended.Store(true)
		return nil, ctx.Err()
	}
	decided := make(chan Request, 20)
	g.o.Log = func(r Request) { decided <- r }
	l, l2 := listen(t), listen(t)
	stop, stop2 := g.Serve(l), g.Serve(l2)
	var clients []net.Conn
	for _, sent := range []string{
		"", "CONNECT ", "CONNECT " + far + " HTTP/1.1\r\n\r\n", "GET http://" + far + "/ HTTP/1.1\r\n\r\n",
		"POST http://" + far + "/ HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf", "CONNECT evil.org:443 HTTP/1.1\r\n\r\n",
		"CONNECT waits.example:443 HTTP/1.1\r\n\r\n",
	} {
		c := dial(t, l.Addr().String())
		_, _ = io.WriteString(c, sent)
		clients = append(clients, c)
	}
	<-waiting
	for range 4 {
		<-decided
	}
	stop()
	if !ended.Load() {
		t.Error("stop did not wait")
	}
	stop2()
	stop() // once more does no harm
	for i, c := range clients {
		if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("client %d is still served", i)
		}
		_ = c.Close()
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it still listens")
	}
	// The far side of the test ends its own after a moment.
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			all := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, before %d\n%s", runtime.NumGoroutine(), before, all[:runtime.Stack(all, true)])
		}
	}
}
