package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
	"omniagent/internal/sys/redact"
)

// failure converts an error to a *model.Error without a credential. nil stays nil.
func (x *exchange) failure(err error) error {
	if err == nil {
		return nil
	}
	e, is := errors.AsType[*model.Error](err)
	if !is || x.asked.Err() != nil && e.Trouble == model.Cut {
		e = x.broken(err)
	}
	if x.resp != nil {
		e.Request = cmp.Or(e.Request, requestID(x.resp.Header))
		if e.After == 0 && e.Status != 0 {
			e.After = retryAfter(x.resp.Header, e.Trouble)
		}
	}
	e.Message = redact.String(redact.Known(x.secrets...).String(e.Message))
	return e
}

// secrets returns the values in a header that must not appear in messages.
func secrets(header http.Header) []string {
	var all []string
	for name, values := range header {
		if name = http.CanonicalHeaderKey(name); name != "Authorization" && name != "Cookie" && !redact.Name(name) {
			continue
		}
		for _, v := range values {
			v = strings.TrimSpace(v)
			_, token, two := strings.Cut(v, " ")
			if !two {
				token = v
			}
			all = append(all, token)
		}
	}
	return all
}

// broken converts a connection error.
func (x *exchange) broken(err error) *model.Error {
	if wrapped, is := errors.AsType[*url.Error](err); is { // its text repeats the whole address
		err = wrapped.Err
	}
	e := &model.Error{Cause: err}
	var quiet silent
	switch {
	case x.asked.Err() != nil:
		e.Trouble, e.Message, e.Cause = model.Stopped, "stopped", context.Cause(x.asked)
	case errors.As(context.Cause(x.ctx), &quiet):
		e.Trouble, e.Message, e.Cause = model.Stalled, x.host+": "+quiet.what, quiet
	case errors.Is(err, bounded{}):
		e.Trouble, e.Message = model.TooLarge, err.Error()
	case x.resp == nil && !x.connected.Load():
		e.Trouble, e.Message = model.Offline, x.offline(err)
	case foreign(err.Error()):
		e.Trouble, e.Message = model.Garbage, x.host+" does not answer as a web server does"
	case strings.Contains(err.Error(), "headers exceeded"):
		e.Trouble, e.Message = model.TooLarge, x.host+" answers with headers beyond every reason"
	case x.resp == nil:
		e.Trouble, e.Message = model.Cut, x.host+" closed the connection without an answer"
	default:
		e.Trouble, e.Message = model.Cut, "the connection to "+x.host+" ended before the answer did"
	}
	return e
}

// foreign reports whether the response was not HTTP, judging by the message of net/http. A truncated line of HTTP does
// not count.
func foreign(said string) bool {
	_, line, ok := strings.Cut(said, `malformed HTTP response "`)
	line = strings.TrimSuffix(line, `"`)
	return ok && !strings.HasPrefix(line, "HTTP/") && !strings.HasPrefix("HTTP/", line)
}

// offline says why there is no connection.
func (x *exchange) offline(err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var wrongHost x509.HostnameError
	var record tls.RecordHeaderError
	to := x.host
	if op, is := errors.AsType[*net.OpError](err); is && op.Op == "proxyconnect" {
		to = "the proxy"
	}
	switch {
	case errors.As(err, &name):
		return "the name " + name.Name + " cannot be resolved: is there a network?"
	case errors.As(err, &wrongHost):
		return "the certificate of " + to + " is for another name"
	case errors.As(err, &certificate):
		return "the certificate of " + to + " is not trusted: " + brief(certificate.Err.Error())
	case errors.As(err, &record), strings.HasSuffix(err.Error(), "HTTP response to HTTPS client"):
		return to + " does not speak TLS: is the address http instead of https?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at " + to
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		return to + " closes the connection at once"
	}
	if wait, is := errors.AsType[net.Error](err); is && wait.Timeout() {
		return "no connection to " + to + " in time"
	}
	return "no connection to " + to + ": " + brief(err.Error())
}

// Refused converts an error of the API. status is 200 if the error came instead of an answer or within one. header may
// be nil.
func (a *API) Refused(status int, header http.Header, body []byte) *model.Error {
	var e *model.Error
	if a.Fault != nil {
		e = a.Fault(status, header, body)
	}
	if e == nil {
		e = &model.Error{}
	}
	if e.Status == 0 && (status < 200 || status >= 300) {
		e.Status = status
	}
	e.Trouble = cmp.Or(e.Trouble, trouble(status, header))
	e.Message = brief(cmp.Or(e.Message, words(status, header, body)))
	if said := e.Message + " " + header.Get("WWW-Authenticate"); e.Trouble == model.NoLogin &&
		fault.Login(said) == fault.CredentialsExpired {
		e.Trouble = model.Expired
	}
	e.Request = cmp.Or(e.Request, requestID(header))
	e.After = cmp.Or(e.After, retryAfter(header, e.Trouble))
	return e
}

// trouble returns the meaning of a status.
func trouble(status int, header http.Header) model.Trouble {
	switch again := header.Get("X-Should-Retry"); {
	case status == http.StatusUnauthorized:
		return model.NoLogin
	case status == http.StatusPaymentRequired, status == http.StatusTooManyRequests && again == "false":
		return model.Quota
	case status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return model.Forbidden
	case status < 400 && status >= 300, status == http.StatusNotFound, status == http.StatusMethodNotAllowed,
		status == http.StatusGone:
		return model.Unknown
	case status == http.StatusRequestEntityTooLarge:
		return model.Overflow
	case status == http.StatusTooManyRequests:
		return model.Limited
	case status == http.StatusServiceUnavailable, status == 529, status == http.StatusRequestTimeout, again == "true":
		return model.Overloaded
	case status >= 500, status < 300:
		return model.Broken
	}
	return model.Rejected
}

// words returns the API's message, if its error has the usual form.
func words(status int, header http.Header, body []byte) string {
	if status >= 300 && status < 400 {
		to := "another address"
		if at, err := url.Parse(header.Get("Location")); err == nil && at.Host != "" {
			to = at.Scheme + "://" + at.Host
		}
		return "the API is not here: it redirects to " + to
	}
	var it struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
	}
	if json.Unmarshal(body, &it) == nil {
		var inner struct {
			Message string `json:"message"`
		}
		var said string
		_ = json.Unmarshal(it.Error, &inner)
		_ = json.Unmarshal(it.Error, &said)
		if s := cmp.Or(inner.Message, said, it.Message, it.Detail); s != "" {
			return s
		}
	}
	said := quote(body)
	if name := http.StatusText(status); name != "" && (said == "" || strings.HasPrefix(said, "<")) {
		return "the API answers: " + name
	}
	if said == "" {
		return "the API answers with an error and does not say which"
	}
	return "the API answers: " + said
}

// brief cuts a foreign text to one line.
func brief(s string) string { return line(s, 500) }

func quote(b []byte) string { return line(string(b[:min(len(b), 4<<10)]), 100) }

func line(s string, most int) string {
	s = text.Flat(s)
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}

func garbage(what string, body []byte) *model.Error {
	if said := quote(body); said != "" {
		what += ": " + said
	}
	return Garbage(what, nil)
}

func requestID(h http.Header) string {
	for _, name := range []string{
		"Request-Id", "X-Request-Id", "X-Goog-Request-Id", "X-Amzn-Requestid",
		"Apim-Request-Id", "Cf-Ray",
	} {
		if id := h.Get(name); id != "" {
			return line(id, 200)
		}
	}
	return ""
}

// retryAfter returns when to retry, according to the API.
func retryAfter(h http.Header, t model.Trouble) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil && ms >= 0 {
		return span(ms / 1000)
	}
	said := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(said, 64); err == nil && seconds >= 0 {
		return span(seconds)
	}
	if at, err := http.ParseTime(said); err == nil {
		return max(0, time.Until(at))
	}
	if t != model.Limited {
		return 0
	}
	var longest time.Duration
	for _, what := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		for _, names := range [][2]string{
			{"X-Ratelimit-Remaining-" + what, "X-Ratelimit-Reset-" + what},
			{"Anthropic-Ratelimit-" + what + "-Remaining", "Anthropic-Ratelimit-" + what + "-Reset"},
		} {
			if h.Get(names[0]) == "0" {
				longest = max(longest, reset(h.Get(names[1])))
			}
		}
	}
	return longest
}

// reset parses the end of a limit: 6m0s, seconds, or a time.
func reset(said string) time.Duration {
	if d, err := time.ParseDuration(said); err == nil {
		return max(0, d)
	}
	if seconds, err := strconv.ParseFloat(said, 64); err == nil && seconds >= 0 {
		return span(seconds)
	}
	if at, err := time.Parse(time.RFC3339, said); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// span converts seconds to a duration of up to a year.
func span(seconds float64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(min(seconds, year) * float64(time.Second))
}
