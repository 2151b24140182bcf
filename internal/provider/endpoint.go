package provider

import (
	"net"
	"net/url"
	"strings"

	"omniagent/internal/fault"
	"omniagent/internal/model"
)

// Layer is where something was declared. A higher one is more trusted.
type Layer int

// The layers.
const (
	Untrusted   Layer = iota // a project's file that is not trusted: it declares nothing
	Project                  // a project's file whose content was trusted
	User                     // the user's own files and logins
	Environment              // a variable of this process
	Flag                     // typed for this call
	Builtin                  // the vendor's own, known to this program
)

func (l Layer) String() string {
	names := [...]string{
		"an untrusted project", "the project", "the user's configuration", "the environment",
		"the command line", "this program",
	}
	if l < 0 || int(l) >= len(names) {
		return "nowhere"
	}
	return names[l]
}

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
	Layer  Layer
	Source string // for people, such as "the key in OPENAI_API_KEY"

	key    Secret
	token  Secret // sent as a bearer token in place of a key
	google *google
}

func (c Credential) none() bool { return c.key.text == nil && c.token.text == nil && c.google == nil }

// Travel returns why a credential may not be sent to an endpoint, or nil.
//
// The endpoint gets the credential, so it must come from the same layer or a more trusted one: a repository must not
// send the user's key to its own server. Over a network it also needs TLS, unless the address was typed for this very
// call: a variable or a file may have been set long ago, and by somebody else, but typing http:// is a deliberate
// decision.
func Travel(c Credential, e Endpoint) error {
	switch {
	case c.none():
		return nil
	case e.Layer < c.Layer:
		return fault.New(fault.PermissionDenied,
			"%s is from %s, and %s, from %s, is not sent to what is declared with less trust than itself",
			c.Source, c.Layer, e.URL, e.Layer).With("endpoint", e.URL).With("declared_by", e.From).
			Hint("Give the address with --api-base, or declare the key where the address is declared.")
	case strings.HasPrefix(e.URL, "http://") && !e.Loopback() && e.Layer != Flag:
		return fault.New(fault.PermissionDenied, "%s is not sent to %s (from %s): everybody on the way could read it",
			c.Source, e.URL, e.From).
			With("endpoint", e.URL).Hint("Use https, or type the address with --api-base if that network is yours.")
	}
	return nil
}

// endpoint returns the address of the API. A profile with its own address or key is a unit: the environment's address
// was not meant for its key.
func (o Options) endpoint(api model.API) (Endpoint, error) {
	if o.Base != "" {
		return parse(o.Base, Flag, "--api-base")
	}
	if p := o.Profile; p != nil && p.Base != "" {
		if p.Layer <= Untrusted {
			return Endpoint{}, fault.New(fault.PermissionDenied, "%s sets an address, and the project is not trusted",
				p.name()).
				Hint("Look at it, then run: omniagent trust")
		}
		return parse(p.Base, p.Layer, p.name())
	}
	if p := o.Profile; p == nil || p.Key.text == nil && p.Variable == "" {
		if value, ok := o.get(api.BaseVar); ok {
			return parse(value, Environment, api.BaseVar)
		}
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
