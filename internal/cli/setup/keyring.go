package setup

import (
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/provider"
	"omniagent/internal/sys/keyring"
)

// PlaceholderKeys answers what a key would say, without asking the system's keyring.
type PlaceholderKeys struct{ keyring.Store }

// Get returns a placeholder in place of the key.
func (m PlaceholderKeys) Get(name string) (key, from string, err error) {
	all, err := m.List()
	for _, e := range all {
		if e.Name == name {
			return "stored", placeOf(m.Store, e.Place), err
		}
	}
	return "", "", err
}

// placeOf names a place for people.
func placeOf(s keyring.Store, p keyring.Place) string {
	if p == keyring.File {
		return s.Path()
	}
	return "the system's keyring"
}

// keyHelpers are the programs of the systems' keyrings.
func keyHelpers() []contract.Subprocess {
	return []contract.Subprocess{
		{Binary: "secret-tool", FixedArgs: []string{"store", "lookup", "clear"}},
		{Binary: "security", FixedArgs: []string{"-i"}},
	}
}

// keyFile is the file that login and logout change.
func keyFile() []contract.FileEffect {
	return []contract.FileEffect{{
		Path: "~/.config/omniagent/keys.json", Type: "credential", ClearableWith: "omniagent logout",
	}}
}

// keysHere lists the keys of the environment and the stored ones, without their texts.
func (p commands) keysHere(c *contract.Call) ([]storedKey, error) {
	var all []storedKey
	for _, one := range provider.Present(provider.Options{APIs: p.APIs, Lookup: parts.OwnPrograms(c)}) {
		all = append(all, storedKey{one.Account, one.Source})
	}
	store := stores.Keys(c)
	entries, err := store.List()
	for _, e := range entries {
		all = append(all, storedKey{e.Name, placeOf(store, e.Place)})
	}
	return all, err
}

// keysCheck is the name of the check for the keys of model APIs. noKeys is its detail if no key is stored.
const (
	keysCheck = "model keys"
	noKeys    = "none; omniagent login stores one"
)

// checkKeys reports which keys the native agent could use.
func (p commands) checkKeys(c *contract.Call) check {
	k := check{Name: keysCheck, OK: true}
	all, err := p.keysHere(c)
	if err != nil {
		return failed(k, err, fault.Of(err).Suggestion)
	}
	var words []string
	for _, one := range all {
		words = append(words, one.Account+" in "+one.Source)
	}
	detail := noKeys
	if len(words) > 0 {
		detail = strings.Join(words, ", ")
	}
	k.Detail = &detail
	return k
}

// storedKey is a key as doctor and status tell of it.
type storedKey struct {
	Account string `json:"account"`
	Source  string `json:"source" doc:"a variable, a file, or the system's keyring"`
}
