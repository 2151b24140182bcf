package model

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"
)

// API is all that is known of one model API, and its wire. It is data: code that chooses an API takes a list
// of these and knows none by name.
type API struct {
	Name    string   // the word of --provider
	Aliases []string // other words for it
	// Account is the name of the API that has the keys, the address and the models; empty: this one has them.
	Account string
	Keys    []Key  // the variables of the credential: the first one that is set counts, the last one is the usual one
	Google  bool   // without a key, a login with Google is used
	Base    string // the vendor's address
	BaseVar string // the variable of another address
	// Local: servers on this machine speak it without a key, so an address on this machine in BaseVar chooses it.
	Local   bool
	Named   bool   // other servers have other models, so the user has to name one
	Default string // the default model
	// Models returns the vendor's models, in any order: the longest prefix counts.
	Models func() []Family
	Short  map[string]string         // short names of models: each for the newest model of a family
	Advice func(model string) string // what a person should know about using a model with this API; nil: nothing
	Search bool                      // the API searches the web itself
	Retry  RetryOptions
	New    func(Options) Client
}

// Key is a variable that may hold a credential.
type Key struct {
	Variable string
	Token    bool // it is sent as a bearer token, not as a key
}

// Options configure a client.
type Options struct {
	Base    string                                // empty: the vendor's; a query in it is kept
	Key     string                                // empty: no key is sent
	Bearer  func(context.Context) (string, error) // replaces Key: returns the token for a request
	Model   string
	HTTP    *http.Client // nil: a new client
	Proxy   Proxy        // nil: that of the environment
	First   time.Duration
	Idle    time.Duration
	Profile Profile
}

// Proxy returns the proxy for a request, or nil if there is none.
type Proxy func(*http.Request) (*url.URL, error)

// Known returns the profile, with the names of the provider and the model if it lacks them.
func (o Options) Known(provider string) Profile {
	p := o.Profile
	p.Provider, p.Model = cmp.Or(p.Provider, provider), cmp.Or(p.Model, o.Model)
	return p
}

// Family describes the models whose names begin with a prefix. Prices is nil if they are unknown.
type Family struct {
	Prefix  string
	Window  int64
	Output  int64
	Compact float64 // 0: the default
	Prices  *Prices
	Open    bool // a point or a digit may follow the prefix: gpt-6.2 belongs to gpt-6, but gpt-5.9 not to gpt-5
}

// Cost returns the prices of input, output, reading from the cache and writing to it. The price of input is the default
// for the cache.
func Cost(input, output float64, cache ...float64) *Prices {
	for len(cache) < 2 {
		cache = append(cache, input)
	}
	return &Prices{input, output, cache[0], cache[1]}
}
