package egressproxy

import (
	"fmt"
	"net/http"
	"strconv"

	"omniagent/internal/kit/text"
)

// refusal is a response of the gate itself.
type refusal struct {
	status int
	line   string
}

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

func tooMany() *refusal {
	return refuse(http.StatusServiceUnavailable, "more than %d connections at one time: close some", MaxConnections)
}

// answer returns the complete response. The reason is in its body, which programs print, and not in the status line,
// which they may not expect to vary.
func (r *refusal) answer() []byte {
	body := "omniagent: " + r.line + "\n"
	return []byte("HTTP/1.1 " + strconv.Itoa(r.status) + " " + http.StatusText(r.status) +
		"\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nConnection: " +
		"close\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// quote makes a text from elsewhere fit for a line.
func quote(s string) string {
	s, _ = text.Clean(s)
	return strconv.Quote(text.Cut(s, 100))
}
