// Package webpage fetches a web page for a model and converts it to text.
//
// It promises that it only connects to public addresses, checked on the address that is dialled, so that a name cannot
// be rebound in between; that a page takes limited time, memory and redirects; that it never follows a redirect to
// another host; and that the result is valid text, with its origin and whether it is complete. It sends no credentials,
// cookies or referrer.
//
// It only supports GET, and refuses addresses with credentials, and binary content. It does not run scripts or judge
// content. If the environment sets a proxy, the proxy resolves names: then only the written address is checked, and
// Page.Proxy says so.
package webpage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
)

// The limits of a page.
const (
	MaxBody = 5 << 20 // bytes read
	MaxText = 100_000 // bytes returned
	MaxTime = 30 * time.Second
	MaxHops = 5 // redirects on one host
)

// Options configure a Fetcher.
type Options struct {
	AllowPrivate bool   // allows addresses of this machine and of private networks
	UserAgent    string // empty: omniagent
}

// Fetcher fetches pages.
type Fetcher struct{ o Options }

// New returns a Fetcher.
func New(o Options) *Fetcher {
	o.UserAgent = cmp.Or(o.UserAgent, "omniagent")
	return &Fetcher{o}
}

// Page is a fetched page.
type Page struct {
	URL    string // the final address
	Status int    // HTTP status
	Media  string // such as text/html
	Title  string
	Text   string // HTML as a kind of Markdown, other text as it is; at most MaxText bytes
	Cut    bool   // Text is incomplete
	Note   string // a remark for the reader
	Moved  string // the address at another host that it redirects to, which was not read
	Proxy  string // the proxy that was used, or empty
}

// Fetch fetches a page. A response with an error status is a page too.
func (f *Fetcher) Fetch(ctx context.Context, address string) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	at, err := f.read(address)
	if err != nil {
		return Page{}, err
	}
	for hops := 0; ; hops++ {
		p, next, err := f.once(ctx, at)
		if err != nil || next == "" {
			return p, explain(ctx, at, err)
		}
		to, err := at.Parse(next)
		if err != nil {
			return Page{}, fault.New(fault.ServiceDown, "%s redirects to %q, which is not a valid address", at, next)
		}
		if to, err = f.read(to.String()); err != nil {
			refused := fault.Of(err)
			refused.Message = fmt.Sprintf("%s redirects to where it must not: %s", at, refused.Message)
			return Page{}, refused
		}
		if !sameHost(at, to) {
			p.Moved = to.String()
			return p, nil
		}
		if hops == MaxHops {
			return Page{}, fault.New(fault.ServiceDown, "%s redirects more than %d times", address, MaxHops)
		}
		at = to
	}
}

// read parses an address, and refuses those that are never fetched.
func (f *Fetcher) read(address string) (*url.URL, error) {
	address = strings.TrimSpace(address)
	u, err := url.Parse(address)
	if err != nil {
		return nil, fault.New(fault.ArgError, "%q is not the address of a page", shorten(address)).
			Hint("Give one such as https://example.com/page.")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fault.New(fault.ArgError, "%q must begin with http:// or https://",
			shorten(u.Redacted())).
			Hint("Give one such as https://example.com/page.")
	case u.User != nil:
		return nil, fault.New(fault.ArgError, "the address of %s has credentials in it", u.Hostname()).
			Hint("Give it without them.")
	case u.Hostname() == "" || u.Opaque != "":
		return nil, fault.New(fault.ArgError, "%q names no host", shorten(address)).
			Hint("Give one such as https://example.com/page.")
	}
	u.Fragment, u.RawFragment = "", ""
	if err := f.judgeHost(u.Hostname()); err != nil {
		return nil, err
	}
	return u, nil
}

// sameHost reports whether a redirect may be followed. An upgrade from http to https may be, a downgrade may not.
func sameHost(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	return from.Scheme == to.Scheme && portOf(from) == portOf(to) || portOf(from) == "80" && to.Scheme == "https" &&
		portOf(to) == "443"
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// once sends one request. next is the target if the response is a redirect.
func (f *Fetcher) once(ctx context.Context, at *url.URL) (p Page, next string, err error) {
	request := (&http.Request{
		Method: http.MethodGet, URL: at, Host: at.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"User-Agent":      {f.o.UserAgent},
			"Accept":          {"text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.1"},
			"Accept-Language": {"en, *;q=0.5"},
		},
	}).WithContext(ctx)
	transport, proxy, err := f.transport(request)
	if err != nil {
		return p, "", err
	}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return p, "", err
	}
	defer response.Body.Close()
	p = Page{URL: at.String(), Status: response.StatusCode, Proxy: proxy}
	switch response.StatusCode {
	case 301, 302, 303, 307, 308:
		if next = response.Header.Get("Location"); next != "" {
			return p, next, nil
		}
	}
	return p, "", p.fill(response)
}

// fill converts a response to text.
func (p *Page) fill(r *http.Response) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return fault.New(fault.Unsafe, "%s is compressed as %q, which was not asked for", p.URL, shorten(encoding))
	}
	media, charset := mediaOf(r.Header.Get("Content-Type"))
	if p.Media = media; binaryMedia(media) {
		return p.binary(r.ContentLength)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return err
	}
	if len(body) > MaxBody {
		body, p.Cut = body[:MaxBody], true
	}
	if p.Media == "" {
		p.Media, _ = mediaOf(http.DetectContentType(body))
	}
	if looksBinary(body, charset) {
		return p.binary(int64(len(body)))
	}
	decoded, unknown := decode(body, charset, p.Cut)
	if unknown != "" {
		p.Note = fmt.Sprintf("It is written in %s, an unknown encoding: bytes that are not UTF-8 were replaced.",
			shorten(unknown))
	}
	if isHTML(p.Media, decoded) {
		cut := false
		base, _ := url.Parse(p.URL)
		p.Title, decoded, cut = toText(decoded, base, MaxText)
		p.Cut = p.Cut || cut
	}
	p.Title, _ = text.Clean(p.Title)
	p.Text, _ = text.Clean(decoded)
	if len(p.Text) > MaxText {
		p.Text, p.Cut = cutAt(p.Text, MaxText), true
	}
	return nil
}

// binary returns the refusal of binary content.
func (p *Page) binary(size int64) error {
	what := cmp.Or(p.Media, "binary data")
	if size >= 0 {
		what += fmt.Sprintf(" of %d bytes", size)
		if p.Cut {
			what += " and more"
		}
	}
	return fault.New(fault.Unsafe, "%s is %s, not text", p.URL, what).Hint("Fetch only pages with text.")
}

// explain turns an error into one that helps the reader.
func explain(ctx context.Context, at *url.URL, err error) error {
	var known *fault.Fault
	var refused *refusedAddress
	var dns *net.DNSError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return refused.fault(at.Hostname())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.New(fault.TimedOut, "%s did not answer in full within %s", at.Host, MaxTime).Because(err)
	case ctx.Err() != nil:
		return fault.New(fault.Interrupted, "fetching %s was given up", at).Because(ctx.Err())
	case errors.As(err, &dns) && dns.IsNotFound:
		return fault.New(fault.NotFoundCode, "there is no host %s", at.Hostname()).Because(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fault.New(fault.ServiceDown, "nobody answers at %s", at.Host).Because(err)
	}
	return fault.New(fault.ServiceDown, "%s could not be fetched", at).Because(err)
}

// shorten makes a text from elsewhere fit for a message.
func shorten(s string) string {
	s, _ = text.Clean(s)
	return text.Cut(s, 200)
}
