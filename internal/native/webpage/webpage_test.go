package webpage

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"omniagent/internal/kit/fault"
)

const proxiedVariable = "PAGE_TEST_PROXIED"

// TestMain lets the test binary be a process with a proxy in its environment, which is read once in a process.
func TestMain(m *testing.M) {
	if address := os.Getenv(proxiedVariable); address != "" {
		p, err := New(Options{}).Fetch(context.Background(), address)
		fmt.Printf("%s|%s|%v", p.Proxy, p.Text, err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("got %v (%s), want %s", err, fault.Of(err).Code, code)
	}
}

// serve returns a site, and the address at which it is.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func fetch(t *testing.T, address string) (Page, error) {
	t.Helper()
	return New(Options{AllowPrivate: true}).Fetch(t.Context(), address)
}

// answer sends a body under a content type.
func answer(contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		_, _ = w.Write(body)
	}
}

func TestPagesOfAllKinds(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte("unpacked"))
	check(t, z.Close())
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		text    string
		title   string
	}{
		"html": {answer("text/html; charset=utf-8",
			[]byte("<title>T&eacute;</title><h1>Hi</h1><p>a <b>b</b>\x1b[31m")), "# Hi\n\na b", "Té"},
		"json":      {answer("application/json", []byte(`{"a": "<b>"}`)), `{"a": "<b>"}`, ""},
		"plain":     {answer("text/plain", []byte("<h1>as it is</h1>\r\n")), "<h1>as it is</h1>\n", ""},
		"no type":   {answer("", []byte("<!DOCTYPE html><p>x")), "x", ""},
		"torn type": {answer("text/html; charset=\"utf-8", []byte("<p>x")), "x", ""},
		"latin1": {
			answer("text/html; charset=ISO-8859-1", []byte("<p>caf\xe9 \x80 \x93q\x94")), "café € “q”",
			"",
		},
		"meta": {answer("text/html", []byte("<meta charset=windows-1252><p>caf\xe9")), "café", ""},
		"old meta": {
			answer("text/html",
				[]byte(`<META http-equiv="Content-Type" content="text/html; charset=iso-8859-1"><p>`+"caf\xe9")),
			"café",
			"",
		},
		"header first": {answer("text/html; charset=utf-8", []byte("<meta charset=windows-1252><p>café")), "café", ""},
		"guess":        {answer("text/html", []byte("<p>caf\xe9")), "café", ""},
		"utf-8 bad":    {answer("text/plain; charset=utf-8", []byte("caf\xe9!")), "caf\uFFFD!", ""},
		"mark":         {answer("text/plain; charset=latin1", []byte("\xef\xbb\xbfcafé")), "café", ""},
		"utf-16":       {answer("text/plain", []byte("\xff\xfec\x00a\x00f\x00\xe9\x00")), "café", ""},
		"utf-16be":     {answer("text/plain; charset=utf-16be", []byte("\x00c\x00a\x00f\x00\xe9\x00")), "café", ""},
		"other":        {answer("text/plain; charset=shift_jis", []byte("\x83abc")), "\uFFFDabc", ""},
		"empty":        {answer("text/html", nil), "", ""},
		"gzip": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer("text/plain", zipped.Bytes())(w, r)
		}, "unpacked", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, c.handler)
			p, err := fetch(t, address+"/x?y=1#frag")
			check(t, err)
			if p.Text != c.text || p.Title != c.title || p.Status != 200 || p.URL != address+"/x?y=1" || p.Cut ||
				p.Moved != "" || p.Proxy != "" {
				t.Errorf("got %+v", p)
			}
			if (p.Note != "") != (name == "other") {
				t.Errorf("note %q", p.Note)
			}
		})
	}
}

func TestNothingOfTheUsersIsSent(t *testing.T) {
	t.Parallel()
	var got http.Header
	var method string
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, method = r.Header, r.Method
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/next", http.StatusFound)
		}
	})
	p, err := fetch(t, address)
	check(t, err)
	for name := range got {
		switch name {
		case "Accept", "Accept-Encoding", "Accept-Language", "User-Agent", "Connection":
		default:
			t.Errorf("sent %s: %v", name, got[name])
		}
	}
	if method != http.MethodGet || p.URL != address+"/next" {
		t.Errorf("%s %+v", method, p)
	}
}

func TestBinariesAreRefused(t *testing.T) {
	t.Parallel()
	for contentType, body := range map[string]string{
		"image/png": "\x89PNG", "application/pdf": "%PDF", "application/octet-stream": "a\x00b", "text/plain": "a\x00b",
		"": "\x7fELF\x00\x01",
	} {
		_, err := fetch(t, serve(t, answer(contentType, []byte(body))))
		wantCode(t, err, fault.Unsafe)
		if message := err.Error(); !strings.Contains(message, fmt.Sprintf("of %d bytes", len(body))) ||
			!strings.Contains(message, contentType) {
			t.Error(message)
		}
	}
	_, err := fetch(t,
		serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") }))
	wantCode(t, err, fault.Unsafe)
}

func TestSizeIsLimited(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for ; sent.Load() < 40<<20; sent.Add(1 << 20) {
			if _, err := w.Write(bytes.Repeat([]byte("語"), 1<<20/3)); err != nil {
				return
			}
		}
	})
	p, err := fetch(t, address)
	check(t, err)
	if len(p.Text) > MaxText || len(p.Text) < MaxText-4 || !p.Cut || !utf8.ValidString(p.Text) ||
		strings.Contains(p.Text, "\uFFFD") {
		t.Errorf("%d bytes, cut %v", len(p.Text), p.Cut)
	}
	if sent.Load() > 30<<20 {
		t.Errorf("%d bytes were taken", sent.Load())
	}
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/html")
		z := gzip.NewWriter(w)
		for range 12 {
			_, _ = z.Write(bytes.Repeat([]byte("<p>x"), 1<<18))
		}
		_ = z.Close()
	}
	p, err = fetch(t, serve(t, bomb))
	check(t, err)
	if !p.Cut || len(p.Text) > MaxText {
		t.Errorf("%d bytes, cut %v", len(p.Text), p.Cut)
	}
}

func TestStatusIsToldWithThePage(t *testing.T) {
	t.Parallel()
	p, err := fetch(t,
		serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not here", http.StatusNotFound) }))
	check(t, err)
	if p.Status != 404 || p.Text != "not here\n" {
		t.Errorf("%+v", p)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") })
	var hops atomic.Int64
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{
			"/a": "b", "/b": "/c?d=1", "/other": other + "/x#y", "/file": "file:///etc/passwd",
			"/script": "javascript:alert(1)",
			"/user":   "http://u:secret@127.0.0.1/", "/torn": "http://[::1", "/loop": "/loop",
		}[r.URL.Path]
		if r.URL.Path == "/loop" {
			hops.Add(1)
		}
		if to == "" {
			fmt.Fprint(w, r.URL.Path)
			return
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusMovedPermanently)
	})
	p, err := fetch(t, address+"/a")
	check(t, err)
	if p.Text != "/c" || p.URL != address+"/c?d=1" || p.Moved != "" {
		t.Errorf("%+v", p)
	}
	p, err = fetch(t, address+"/other")
	check(t, err)
	if p.Moved != other+"/x" || p.Text != "" || p.Status != 301 {
		t.Errorf("%+v", p)
	}
	for path, code := range map[string]fault.Code{
		"/file": fault.ArgError, "/script": fault.ArgError,
		"/user": fault.ArgError, "/torn": fault.ServiceDown, "/loop": fault.ServiceDown,
	} {
		_, err = fetch(t, address+path)
		wantCode(t, err, code)
		if strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
	if hops.Load() != MaxHops+1 {
		t.Errorf("%d hops", hops.Load())
	}
}

func TestSameHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		same     bool
	}{
		{"http://a.b/", "http://A.B/x", true},
		{"http://a.b/", "http://a.b:80/x", true},
		{"http://a.b/", "https://a.b/x", true},
		{"https://a.b/", "http://a.b/x", false},
		{"http://a.b:8080/", "https://a.b/x", false},
		{"https://a.b/", "https://www.a.b/", false},
		{"https://a.b/", "https://a.b:444/", false},
		{"https://a.b/", "https://a.b.c/", false},
	} {
		from, err := url.Parse(c.from)
		check(t, err)
		to, err := url.Parse(c.to)
		check(t, err)
		if sameHost(from, to) != c.same {
			t.Errorf("%s to %s", c.from, c.to)
		}
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	asked := false
	site := serve(t, func(http.ResponseWriter, *http.Request) { asked = true })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(site, "http://"))
	check(t, err)
	f := New(Options{})
	for _, address := range []string{
		site, "http://localhost:" + port, "http://127.0.0.1:" + port, "http://[::ffff:127.0.0.1]:" +
			port, "http://[::1]:" + port, "http://0.0.0.0:" + port,
		"http://127.1:" + port, "http://2130706433:" + port, "http://0x7f000001:" + port, "http://0x7f.1:" +
			port, "http://127.0.0.1.:" + port,
		"http://169.254.169.254/latest/meta-data", "http://[fe80::1%25lo]:" +
			port, "http://10.0.0.1", "http://u:p@example.com/", "file:///etc/passwd",
		"ftp://example.com", "example.com", "", "https://", "http:///x", "gopher://x", "http://[::",
		"javascript:alert(1)", "https:example.com",
	} {
		if _, err := f.Fetch(t.Context(), address); !errors.Is(err, fault.PermissionDenied) &&
			!errors.Is(err, fault.ArgError) && !errors.Is(err, fault.NotFoundCode) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if asked {
		t.Error("it was asked")
	}
	// A name that leads here is refused where it is dialled.
	if _, err := f.Fetch(t.Context(), "http://localhost:"+port); !errors.Is(err, fault.PermissionDenied) ||
		!strings.Contains(err.Error(), "this machine") {
		t.Error(err)
	}
}

func TestDialledAddresses(t *testing.T) {
	t.Parallel()
	for dialled, public := range map[string]bool{
		"1.1.1.1:80": true, "[::ffff:10.0.0.1]:80": false,
		"somewhere": false,
	} {
		if err := judgeDialled(dialled); (err == nil) != public {
			t.Errorf("%s: %v", dialled, err)
		}
	}
}

func TestTimeAndTroubleAreTold(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	silent := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte("some"))
		w.(http.Flusher).Flush()
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(stop) })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := New(Options{AllowPrivate: true}).Fetch(ctx, silent)
	wantCode(t, err, fault.TimedOut)
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = New(Options{AllowPrivate: true}).Fetch(ctx, silent)
	wantCode(t, err, fault.Interrupted)

	torn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		check(t, err)
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhalf"))
		_ = conn.Close()
	})
	_, err = fetch(t, torn)
	wantCode(t, err, fault.ServiceDown)
	rubbish, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	go func() {
		for {
			conn, err := rubbish.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("no HTTP\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	_, err = fetch(t, "http://"+rubbish.Addr().String())
	wantCode(t, err, fault.ServiceDown)
	check(t, rubbish.Close())
	_, err = fetch(t, "http://"+rubbish.Addr().String())
	wantCode(t, err, fault.ServiceDown)
}

func TestProxyIsAsked(t *testing.T) {
	t.Parallel()
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "proxy has %s", r.URL) })
	exe, err := os.Executable()
	check(t, err)
	for address, want := range map[string]string{
		"http://example.invalid/x": strings.TrimPrefix(proxy, "http://") +
			"|proxy has http://example.invalid/x|<nil>",
		"http://metadata.internal/x":    "||metadata.internal is",
		"http://169.254.169.254/x":      "||169.254.169.254 is",
		"http://0xa9fea9fe/x":           "||0xa9fea9fe is",
		"http://[::ffff:169.254.1.1]/x": "||::ffff:169.254.1.1 is",
	} {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), proxiedVariable+"="+address, "HTTP_PROXY="+proxy, "http_proxy="+proxy,
			"NO_PROXY=", "no_proxy=", "GORACE=atexit_sleep_ms=0")
		out, err := cmd.Output()
		if err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %q %v", address, out, err)
		}
	}
}
