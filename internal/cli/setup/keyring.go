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

// PlaceholderKeys is a store that says which keys there are, but returns a placeholder for each key. It does not open
// the system's keyring, which might ask a person to unlock it.
type PlaceholderKeys struct{ keyring.Store }

// Get returns a placeholder for a stored key, and the place of the key.
func (m PlaceholderKeys) Get(name string) (key, from string, err error) {
	all, err := m.List()
	for _, e := range all {
		if e.Name == name {
			return "stored", placeOf(m.Store, e.Place), err
		}
	}
	return "", "", err
}

// placeOf describes a place for people.
func placeOf(s keyring.Store, p keyring.Place) string {
	if p == keyring.File {
		return s.Path()
	}
	return "the system's keyring"
}

// keyHelpers declares the programs that reach the keyring of the system.
func keyHelpers() []contract.Subprocess {
	return []contract.Subprocess{
		{Binary: "secret-tool", FixedArgs: []string{"store", "lookup", "clear"}},
		{Binary: "security", FixedArgs: []string{"-i"}},
	}
}

// keyFile declares the file that login and logout change.
func keyFile() []contract.FileEffect {
	return []contract.FileEffect{{
		Path: "~/.config/omniagent/keys.json", Type: "credential", ClearableWith: "omniagent logout",
	}}
}

// keysHere lists the keys in the environment and the stored ones, without their values.
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

// keysCheck is the name of the check for the keys of model APIs. noKeys is its detail if there is no key.
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

// storedKey describes a key in the results of doctor and status.
type storedKey struct {
	Account string `json:"account"`
	Source  string `json:"source" doc:"a variable, a file, or the system's keyring"`
}
