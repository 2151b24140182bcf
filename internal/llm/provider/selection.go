package provider

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"omniagent/internal/llm/model"
)

// Selection is a model named by something other than the command line: the record of a conversation, the configuration,
// or a profile.
type Selection struct {
	Provider string // a value of --provider; empty for the provider of the only key
	Model    string
	Base     string // empty for the address in the environment, or the vendor's
	Layer    Layer
	From     string // for people, such as native.provider in FILE

	// A profile is a unit: its key is only for its address, and its address gets no other key.
	Profile  string // its name; empty if there is no profile, or it has no name
	Unit     bool
	Vendor   string // the vendor in the profile's words; omniagent login stores its key under this name
	Key      Secret
	Instead  []string // variables that replace Key
	Output   int64    // most tokens of an answer; 0 for the model's limit
	Protocol string   // how the model calls tools: xnl, native, or empty
}

// wish returns the first wish that is compatible with the command line, or nil.
func (o Options) wish() *Selection {
	l := o.list()
	typed, known := l.find(strings.ToLower(strings.TrimSpace(o.Provider)))
	for i := range o.Selections {
		w := &o.Selections[i]
		if o.Provider == "" {
			return w
		}
		about, found := l.find(strings.ToLower(w.Provider))
		if !w.Unit && known && (w.Provider == "" || found && account(about) == account(typed)) {
			return w
		}
	}
	return nil
}

// endpoint returns the address of the API.
func (o Options) endpoint(api model.API, w *Selection) (Endpoint, error) {
	if o.Base != "" {
		return parse(o.Base, Flag, "--api-base")
	}
	value, set := o.get(api.BaseVar)
	switch {
	case w != nil && w.Base != "" && !(set && w.Layer == Environment):
		return parse(w.Base, w.Layer, w.From)
	case set && (w == nil || !w.Unit):
		return parse(value, Environment, api.BaseVar)
	}
	return Endpoint{URL: api.Base, Layer: Builtin, From: "the vendor's own address"}, nil
}

// ofUnit returns the key of a profile: from a variable, from the profile, or the vendor's stored one. It is only sent
// to the profile's own address. A profile with the vendor's own address may use the vendor's usual key.
func (o Options) ofUnit(w *Selection, api model.API, e Endpoint) (Credential, error) {
	if o.Base != "" && !sameHost(o.Base, w.Base) {
		return Credential{}, nil
	}
	if w.Layer != Project {
		for _, name := range w.Instead {
			if value, ok := o.get(name); ok {
				c := Credential{Layer: Environment, Source: "the key in " + name, key: Hide(value)}
				return c, usable(value, name)
			}
		}
	}
	if key := strings.TrimSpace(w.Key.reveal()); key != "" {
		return Credential{Layer: w.Layer, Source: "the key of " + w.From, key: Hide(key)}, usable(key, w.From)
	}
	if w.Layer == Project && e.Layer == Project {
		return Credential{}, nil
	}
	if c, err := o.stored(cmp.Or(w.Vendor, account(api))); err != nil || !c.none() {
		return c, err
	}
	if w.Base == "" && e.Layer == Builtin {
		return o.find(api)
	}
	return Credential{}, nil
}

func sameHost(a, b string) bool {
	first, err := url.Parse(strings.TrimSpace(a))
	second, err2 := url.Parse(strings.TrimSpace(b))
	return err == nil && err2 == nil && strings.EqualFold(first.Host, second.Host)
}

// KeyStore holds the keys that omniagent login stored, by account.
type KeyStore interface {
	Has(name string) bool
	// Get returns the key, and its place for people, or "".
	Get(name string) (key, from string, err error)
}

// stored returns the key that omniagent login stored, if any.
func (o Options) stored(name string) (Credential, error) {
	if o.Keys == nil || !o.Keys.Has(name) {
		return Credential{}, nil
	}
	key, from, err := o.Keys.Get(name)
	if err != nil || key == "" {
		return Credential{}, err
	}
	return Credential{Layer: User, Source: "the key for " + name + " in " + from, key: Hide(key)}, usable(key, from)
}

// Presence describes a key that could be used, without its text.
type Presence struct {
	Account string // the name under which omniagent login stores such a key
	Source  string // the variable
}

// Present lists the keys in the environment.
func Present(o Options) []Presence {
	var all []Presence
	for _, s := range o.list().signs() {
		if _, ok := o.get(s.variable); ok && !s.address {
			all = append(all, Presence{s.account(), s.variable})
		}
	}
	return all
}

// Accounts returns the names under which keys are stored.
func Accounts(apis []model.API) []string {
	var all []string
	for _, api := range apis {
		if name := account(api); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return append(all, eidolonVendor)
}

// AccountOf returns the name under which the key for a value of --provider, or for a vendor, is stored, or "".
func AccountOf(apis []model.API, word string) string {
	word = strings.ToLower(strings.TrimSpace(word))
	if api, ok := list(apis).find(word); ok {
		return account(api)
	}
	if slices.Contains(Accounts(apis), word) {
		return word
	}
	return ""
}
