package provider

import (
	"net"
	"net/url"
	"strings"

	"omniagent/internal/fault"
	"omniagent/internal/model"
)

// Layer is where an address was declared.
type Layer int

// The layers.
const (
	Environment Layer = iota // a variable of this process
	Flag                     // typed for this call
	Builtin                  // the vendor's own, known to this program
)

// Endpoint is an address of an API.
type Endpoint struct {
	URL   string // without a slash at its end; a query that belongs to it is kept
	Layer Layer
	From  string // what declared it, such as OPENAI_BASE_URL
}

// Loopback reports whether the address is this machine.
func (e Endpoint) Loopback() bool { return loopbackURL(e.URL) }

// Secret is a text that neither fmt nor json shows.
type Secret struct{ text *string }

// Hide makes a secret of a text.
func Hide(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{&s}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return "[secret]"
}

// Credential authenticates a request.
type Credential struct {
	Source string // for people, such as "the key in OPENAI_API_KEY"

	key    Secret
	token  Secret // sent as a bearer token in place of a key
	google *google
}

func (c Credential) none() bool { return c.key.text == nil && c.token.text == nil && c.google == nil }

// Travel returns why a credential may not be sent to an endpoint, or nil.
//
// Over a network it needs TLS, unless the address was typed for this very call: a variable may have been set long ago,
// and by somebody else, but typing http:// is a deliberate decision. No file can declare an address, so a repository
// cannot send the user's key to its own server.
func Travel(c Credential, e Endpoint) error {
	if c.none() || !strings.HasPrefix(e.URL, "http://") || e.Loopback() || e.Layer == Flag {
		return nil
	}
	return fault.New(fault.PermissionDenied, "%s is not sent to %s (from %s): everybody on the way could read it",
		c.Source, e.URL, e.From).
		With("endpoint", e.URL).Hint("Use https, or type the address with --api-base if that network is yours.")
}

// endpoint returns the address of the API.
func (o Options) endpoint(api model.API) (Endpoint, error) {
	if o.Base != "" {
		return parse(o.Base, Flag, "--api-base")
	}
	if value, ok := o.get(api.BaseVar); ok {
		return parse(value, Environment, api.BaseVar)
	}
	return Endpoint{URL: api.Base, Layer: Builtin, From: "the vendor's own address"}, nil
}

// parse parses an address. It only removes slashes at the end of its path.
func parse(given string, layer Layer, from string) (Endpoint, error) {
	wrong := func(why string) (Endpoint, error) {
		return Endpoint{}, fault.New(fault.ArgError, "the address from %s %s", from,
			why).Hint("It looks like https://host/v1.")
	}
	given = strings.TrimSpace(given)
	u, err := url.Parse(given)
	switch {
	case err != nil || strings.ContainsFunc(given, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return wrong("is not a URL") // not quoted: there may be a secret in it
	case u.Scheme != "http" && u.Scheme != "https":
		return wrong("must begin with https:// or http://")
	case u.Hostname() == "":
		return wrong("has no host")
	case u.User != nil:
		return wrong("has a name or a password in it, which would end up in logs")
	case u.Fragment != "":
		return wrong("has a fragment (#)")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return Endpoint{URL: u.String(), Layer: layer, From: from}, nil
}

func loopbackURL(s string) bool {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
