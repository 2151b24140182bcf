package provider

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"omniagent/internal/model"
)

// Wish is a model that something other than the command line names: the record of a conversation, the configuration, a
// profile.
type Wish struct {
	Provider string // a word of --provider; empty: that of the only key
	Model    string
	Base     string // empty: the address of the environment, or the vendor's
	Layer    Layer
	From     string // for people, such as native.provider in FILE

	// A profile is a unit: its key is only for its address, and no other key is.
	Profile  string // its name; empty: no profile, or one without a name
	Unit     bool
	Vendor   string // the vendor in the profile's words; omniagent login stores its key under this name
	Key      Secret
	Instead  []string // variables that replace Key
	Output   int64    // tokens of an answer at most; 0: as is known of the model
	Protocol string   // how the model calls tools: xnl or native; empty: not said
	Notes    []string // what a person should know
}

// wish returns the first wish that holds beside what was typed, or nil.
func (o Options) wish() *Wish {
	l := o.list()
	typed, known := l.find(strings.ToLower(strings.TrimSpace(o.Provider)))
	for i := range o.Wishes {
		w := &o.Wishes[i]
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
func (o Options) endpoint(api model.API, w *Wish) (Endpoint, error) {
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

// ofUnit returns the key of a profile: that of a variable, its own, or the stored one of its vendor. It travels to the
// profile's own address only. A profile at the vendor's own address may use the vendor's usual key.
func (o Options) ofUnit(w *Wish, api model.API, e Endpoint) (Credential, error) {
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
	if key := strings.TrimSpace(w.Key.Reveal()); key != "" {
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

// KeyStore is where omniagent login keeps keys, by the name of their account.
type KeyStore interface {
	Has(name string) bool
	// Get returns the key and where it is, for people; "" if there is none.
	Get(name string) (key, from string, err error)
}

// stored returns the key that omniagent login stored, if there is one.
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

// Presence is a key that could be used, without its text.
type Presence struct {
	Account string // the name under which omniagent login stores such a key
	Source  string // the variable
}

// Present lists the keys of the environment.
func Present(o Options) []Presence {
	var all []Presence
	for _, s := range o.list().signs() {
		if _, ok := o.get(s.variable); ok && !s.address {
			all = append(all, Presence{s.api.Name, s.variable})
		}
	}
	for _, name := range []string{eidolonVariable, eidolonSecond} {
		if _, ok := o.get(name); ok {
			all = append(all, Presence{eidolonVendor, name})
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

// AccountOf returns the name under which the key for a word of --provider, or a vendor, is stored; "" if there is none.
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
