package provider

import (
	"net"
	"net/url"
	"strings"

	"omniagent/internal/kit/fault"
)

// Layer says where an address or a credential was declared. Project is trusted less than the others, which are all the
// user's own, because anybody who can write to the repository may have written it.
type Layer int

// The layers.
const (
	Project     Layer = iota // a file of the repository whose content was trusted
	User                     // the user's own files, logins and stored keys
	Environment              // a variable of this process
	Flag                     // typed for this command
	Builtin                  // the vendor's own address, built into this program
)

func (l Layer) String() string {
	return [...]string{"project", "user", "environment", "flag", "vendor"}[l]
}

// LayerOf returns the layer with that name. An unknown name means Project, the least trusted.
func LayerOf(name string) Layer {
	for l := Builtin; l > Project; l-- {
		if l.String() == name {
			return l
		}
	}
	return Project
}

// Endpoint is an address of an API.
type Endpoint struct {
	URL   string // without a slash at the end; it may have a query
	Layer Layer
	From  string // what declared it, such as OPENAI_BASE_URL
}

// loopback reports whether the address is this machine.
func (e Endpoint) loopback() bool { return loopbackURL(e.URL) }

// Secret is a text that neither fmt nor json shows.
type Secret struct{ text *string }

// Hide returns a text as a secret.
func Hide(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{&s}
}

// reveal returns the text.
func (s Secret) reveal() string {
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
	token  Secret // sent as a bearer token instead of a key
	google *google
	unsure bool // whether there is a login shows when gcloud is asked
}

func (c Credential) none() bool { return c.key.text == nil && c.token.text == nil && c.google == nil }

// checkTravel returns why a credential may not be sent to an endpoint, or nil.
//
// An endpoint that a repository declares does not get the user's credentials: trusting a repository's files does not
// give it a key. Over a network a credential needs TLS, unless the address was typed for this command: a variable may
// have been set long ago by somebody else, but typing http:// is deliberate.
func checkTravel(c Credential, e Endpoint) error {
	switch {
	case c.none():
		return nil
	case e.Layer == Project && c.Layer != Project:
		return fault.New(fault.PermissionDenied, "%s is not sent to %s, which %s of this project declares", c.Source,
			e.URL, e.From).With("endpoint", e.URL).With("declared_by", e.From).
			Hint("Type the address with --api-base, or declare it in your own configuration.")
	case strings.HasPrefix(e.URL, "http://") && !e.loopback() && e.Layer != Flag:
		return fault.New(fault.PermissionDenied, "%s is not sent to %s (from %s): anybody on the way could read it",
			c.Source, e.URL, e.From).
			With("endpoint", e.URL).Hint("Use https, or type the address with --api-base if that network is yours.")
	}
	return nil
}

// parse parses an address. It removes slashes at the end of the path.
func parse(given string, layer Layer, from string) (Endpoint, error) {
	wrong := func(why string) (Endpoint, error) {
		return Endpoint{}, fault.New(fault.ArgError, "the address from %s %s", from, why).
			Hint("It looks like https://host/v1.")
	}
	given = strings.TrimSpace(given)
	u, err := url.Parse(given)
	switch {
	case err != nil || strings.ContainsFunc(given, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return wrong("is not a URL") // do not quote it: it may contain a secret
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
