package model

import (
	"cmp"
	"context"
	"net/http"
	"time"
)

// API is all that is known of one model API, and its wire. It is data: code that chooses an API takes a list
// of these and knows none by name.
type API struct {
	Name    string   // the word of --provider
	Aliases []string // further words
	// Account is the name of the API whose keys, address and models these are; empty: they are its own.
	Account string
	Keys    []Key  // the variables that may hold the credential, first come first served; the last is the usual one
	Google  bool   // where there is no key, a login with Google will do
	Base    string // the vendor's address
	BaseVar string // the variable that holds another address
	// Local: servers on this machine speak it and need no key, so an address of one in BaseVar chooses it.
	Local   bool
	Named   bool   // servers of others have models of their own, so one has to be named there
	Default string // the model where none was named
	// Models are what is known of the vendor's models, in no order: the longest prefix counts.
	Models func() []Family
	Short  map[string]string         // short names of models: the newest of a family
	Advice func(model string) string // what a person should know of a model behind this API; nil: nothing
	Search bool                      // the API searches the web itself
	Retry  RetryOptions
	New    func(Options) Client
}

// Key is a variable that may hold a credential.
type Key struct {
	Variable string
	Token    bool // it goes as a bearer where a key would go otherwise
}

// Options say where a model is and who asks it.
type Options struct {
	Base    string                                // empty: the vendor's. A query in it stays
	Key     string                                // empty: none is sent
	Bearer  func(context.Context) (string, error) // instead of Key: a token that may be another one at each request
	Model   string
	HTTP    *http.Client // nil: one of its own
	First   time.Duration
	Idle    time.Duration
	Profile Profile
}

// Known returns the profile, with the names of the provider and the model if it lacks them.
func (o Options) Known(provider string) Profile {
	p := o.Profile
	p.Provider, p.Model = cmp.Or(p.Provider, provider), cmp.Or(p.Model, o.Model)
	return p
}

// Family is what is known of the models whose names begin with a prefix. Without prices its new members may cost
// anything.
type Family struct {
	Prefix  string
	Window  int64
	Output  int64
	Compact float64 // 0: as usual
	Prices  *Prices
	Open    bool // the name may go on with a point or a figure: gpt-6.2 is of gpt-6, gpt-5.9 is not of gpt-5
}

// Cost makes the prices of a family: of input, output, what is read from the cache and what is written to it. Where a
// vendor has no price of its own for the cache, it is the price of input.
func Cost(input, output float64, cache ...float64) *Prices {
	for len(cache) < 2 {
		cache = append(cache, input)
	}
	return &Prices{input, output, cache[0], cache[1]}
}
