package provider

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// Client returns a client for the chosen model. It does not retry: use model.Retrying with Patience.
func (c Choice) Client() model.Client {
	base, dressed := c.connection()
	return c.api.New(model.Options{
		Base: base, Key: c.credential.key.reveal(), Bearer: c.bearer(), Model: c.Model, HTTP: dressed,
		Proxy: c.options.Proxy, First: c.options.First, Idle: c.options.Idle, Profile: c.Known,
	})
}

// Secrets returns the credentials, so that callers can keep them out of texts. It does not include a token that has to
// be requested first.
func (c Choice) Secrets() []string {
	var all []string
	for _, s := range []Secret{c.credential.key, c.credential.token} {
		if s.text != nil {
			all = append(all, s.reveal())
		}
	}
	return all
}

// Patience returns how often and when to retry: Gemini's limits pass quickly, OpenAI's slowly. The caller's own options
// take precedence.
func (c Choice) Patience() model.RetryOptions {
	o := c.api.Retry
	if again := c.options.Again; again != nil {
		o.Tries, o.First = cmp.Or(again.Tries, o.Tries), cmp.Or(again.First, o.First)
	}
	return o
}

// bearer returns a function that gets a token, or nil if the credential is a key or empty.
func (c Choice) bearer() func(context.Context) (string, error) {
	switch {
	case c.credential.google != nil:
		return c.credential.google.bearer
	case c.credential.token.text != nil:
		return func(context.Context) (string, error) { return c.credential.token.reveal(), nil }
	}
	return nil
}

// connection returns the address without its query, and a client that adds the query and the project to charge. A nil
// client means the wire's own.
func (c Choice) connection() (string, *http.Client) {
	u, err := url.Parse(c.Endpoint.URL)
	if err != nil || u.RawQuery == "" && c.credential.google == nil {
		return c.Endpoint.URL, c.options.HTTP
	}
	client := &http.Client{}
	if c.options.HTTP != nil {
		*client = *c.options.HTTP
	} else if c.options.Proxy != nil {
		client.Transport = wire.Transport(c.options.Proxy)
	}
	client.Transport = &dress{under: client.Transport, query: u.RawQuery, host: u.Host, google: c.credential.google}
	u.RawQuery, u.ForceQuery = "", false
	return u.String(), client
}

// dress completes each request for the endpoint. It adds the query of the address, which comes after the path that a
// wire adds, and the project that Google charges.
type dress struct {
	under  http.RoundTripper
	query  string
	host   string
	google *google
}

func (d *dress) RoundTrip(q *http.Request) (*http.Response, error) {
	under := d.under
	if under == nil {
		under = http.DefaultTransport
	}
	if q.URL.Host != d.host {
		return under.RoundTrip(q)
	}
	q = q.Clone(q.Context())
	q.URL.RawQuery = strings.Trim(d.query+"&"+q.URL.RawQuery, "&")
	if d.google != nil {
		if project := d.google.charged(); project != "" {
			q.Header.Set("X-Goog-User-Project", project)
		}
	}
	return under.RoundTrip(q)
}

// CloseIdleConnections is called by http.Client.
func (d *dress) CloseIdleConnections() {
	if c, ok := d.under.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
