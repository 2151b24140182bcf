package model

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// API describes one model API, and creates its clients. It is data: code that chooses an API takes a list of these, and
// does not know any by name.
type API struct {
	Name    string   // the value of --provider
	Aliases []string // other values for it
	// Account is the name of the API whose keys, address and models this one shares, or empty.
	Account string
	Keys    []Key  // variables of the credential; the first one set counts, the last one is the usual one
	Google  bool   // use a login with Google if there is no key
	Base    string // the vendor's address
	BaseVar string // the variable that overrides the address
	// Local is set if servers on this machine speak it without a key, so that an address on this machine in BaseVar is
	// enough to choose it.
	Local   bool
	Named   bool   // other servers have other models, so the user must name one
	Default string // the default model
	// Models returns the vendor's models, in any order. The longest prefix counts.
	Models func() []Family
	Short  map[string]string         // short names, each for the newest model of a family
	Advice func(model string) string // what a person should know about using a model with this API; may be nil
	Search bool                      // the API searches the web itself
	Retry  RetryOptions
	New    func(Options) Client
}

// Key is a variable that may hold a credential.
type Key struct {
	Variable string
	Token    bool // send it as a bearer token, not as a key
}

// Options configure a client.
type Options struct {
	Base    string                                // empty for the vendor's; may have a query
	Key     string                                // may be empty
	Bearer  func(context.Context) (string, error) // returns the token for a request, instead of Key; may be nil
	Model   string
	HTTP    *http.Client // nil for a new client
	Proxy   Proxy        // nil for that of the environment
	First   time.Duration
	Idle    time.Duration
	Profile Profile
}

// Proxy returns the proxy for a request, or nil if there is none.
type Proxy func(*http.Request) (*url.URL, error)

// Known returns the profile, and fills in the names of the provider and the model.
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
	Compact float64 // 0 for the default
	Prices  *Prices
	Open    bool // a point or a digit may follow the prefix, as in gpt-6.2 for gpt-6
}

// ReadFamilies reads a table of families, with a line for each: the prefix, the window and the longest answer; then, as
// far as they apply, the word open, compact=SHARE, and the prices of a million tokens in USD: of input, of output, of
// reading from the cache and of writing to it.
func ReadFamilies(table string) (all []Family) {
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		f := Family{Prefix: words[0]}
		f.Window, _ = strconv.ParseInt(words[1], 0, 64)
		f.Output, _ = strconv.ParseInt(words[2], 0, 64)
		var prices []float64
		for _, word := range words[3:] {
			number, compact := strings.CutPrefix(word, "compact=")
			switch n, _ := strconv.ParseFloat(number, 64); {
			case compact:
				f.Compact = n
			case word == "open":
				f.Open = true
			default:
				prices = append(prices, n)
			}
		}
		if len(prices) > 1 {
			f.Prices = Cost(prices[0], prices[1], prices[2:]...)
		}
		all = append(all, f)
	}
	return all
}

// Cost returns the prices of input, output, reading from the cache and writing to it. The price of input is the default
// for the cache.
func Cost(input, output float64, cache ...float64) *Prices {
	for len(cache) < 2 {
		cache = append(cache, input)
	}
	return &Prices{input, output, cache[0], cache[1]}
}
