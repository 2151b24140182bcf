// Package provider chooses the model, its API and the credential.
//
//	typed ─▶ the record of the conversation ─▶ configuration ─▶ active profile ─▶ the only key ─▶ an error
//
// The choice never depends on what happens to listen or to be installed, nor on an untrusted file of a repository. A
// credential is only sent to an endpoint that was declared at least as reliably as the credential, never in clear text
// over a network that the user did not choose, and never appears in our texts. An error names what would make the
// choice. The package stores nothing, does not guess between two accounts, and does not invent prices.
package provider

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/anthropic"
	"omniagent/internal/llm/model/gemini"
	"omniagent/internal/llm/model/openai"
	"omniagent/internal/sys/process"
)

// APIs returns the model APIs of this program, in the order of lists. Add new APIs here.
func APIs() []model.API {
	return []model.API{anthropic.API(), openai.Chat(), openai.Responses(), gemini.API()}
}

// Names returns the values of --provider.
func Names(apis []model.API) []string {
	var names []string
	for _, api := range apis {
		names = append(names, api.Name)
	}
	return names
}

// Keys returns the usual variables of keys, one for each account.
func Keys(apis []model.API) []string {
	var keys []string
	for _, api := range apis {
		if api.Account == "" && len(api.Keys) > 0 {
			keys = append(keys, api.Keys[len(api.Keys)-1].Variable)
		}
	}
	return keys
}

// Variables returns the variables of keys and addresses.
func Variables(apis []model.API) []string {
	var all []string
	for _, api := range apis {
		for _, key := range api.Keys {
			all = append(all, key.Variable)
		}
		all = append(all, api.BaseVar)
	}
	return all
}

// Owner returns the name of the first API that reads a variable, or "".
func Owner(apis []model.API, variable string) string {
	i := slices.IndexFunc(apis, func(api model.API) bool {
		return slices.Contains(Variables([]model.API{api}), variable)
	})
	if i < 0 {
		return ""
	}
	return apis[i].Name
}

// list holds the APIs to choose from.
type list []model.API

// find returns the API for a value of --provider.
func (l list) find(word string) (model.API, bool) {
	for _, api := range l {
		if api.Name == word || slices.Contains(api.Aliases, word) {
			return api, true
		}
	}
	return model.API{}, false
}

// account returns the name of the API whose keys, address and models an API shares.
func account(api model.API) string { return cmp.Or(api.Account, api.Name) }

// Options holds everything that the choice depends on.
type Options struct {
	Provider, Model, Base string      // as typed, or empty
	Selections            []Selection // other sources that name a model, the strongest first
	Notes                 []string    // what a person should know of these sources, unless they typed the provider

	APIs   []model.API // nil for APIs
	Agents []string    // programs that a caller may drive instead of a model API; Choose refuses them

	Keys     KeyStore                         // the keys that omniagent login stored; may be nil
	Lookup   func(name string) (string, bool) // the environment; an empty variable counts as not set
	Home     string                           // the home directory, with gcloud's application default credentials
	Programs process.Programs                 // starts gcloud
	HTTP     *http.Client                     // nil for the wire's own
	Proxy    model.Proxy                      // nil for that of the environment
	Again    *model.RetryOptions              // nil for the API's defaults
	First    time.Duration                    // timeout for the headers of an answer; 0 for the wire's own
	Idle     time.Duration                    // timeout between two reads of it; 0 for the wire's own
}

// Choice is the chosen model. It is safe to print: fmt and json do not show its secrets.
type Choice struct {
	Provider string
	Model    string
	Endpoint Endpoint
	How      string   // why this provider, for people
	Login    string   // the credential that is sent, for people
	Unsure   bool     // whether there is such a credential is not known
	Notes    []string // what a person should know about this choice
	Known    model.Profile
	Profile  string // the name of the profile that was used; may be empty
	Vendor   string // the vendor in that profile's words
	Protocol string // how the model calls tools, in the profile's words: xnl, native, or empty

	api        model.API
	wish       *Selection
	credential Credential
	options    Options
}

func (o Options) list() list {
	if o.APIs == nil {
		return APIs()
	}
	return o.APIs
}

// Choose chooses a model. With an error the choice has only the notes.
func Choose(o Options) (Choice, error) {
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	c := Choice{options: o}
	if o.Provider == "" {
		c.Notes = slices.Clone(o.Notes)
	}
	none := Choice{Notes: c.Notes}
	api, w, how, err := o.provider()
	if err != nil {
		return none, err
	}
	c.api, c.wish, c.How, c.Provider = api, w, how, api.Name
	if c.Endpoint, err = o.endpoint(api, w); err != nil {
		return none, err
	}
	if c.Model, err = o.model(c); err != nil {
		return none, err
	}
	if c.credential, err = o.credential(c); err != nil {
		return none, err
	}
	c.Login, c.Unsure = c.credential.Source, c.credential.unsure
	c.Known = o.known(c)
	if w != nil {
		c.Profile, c.Vendor, c.Protocol = w.Profile, w.Vendor, w.Protocol
	}
	if api.Advice != nil && c.Endpoint.Layer == Builtin {
		if note := api.Advice(c.Model); note != "" {
			c.Notes = append(c.Notes, note)
		}
	}
	return c, nil
}

// With returns the choice with another model and the same API, address and credential. The name of one of Anthropic's
// families means its newest model; any other name is used unchanged.
func (c Choice) With(name string) (Choice, error) {
	o := c.options
	o.Model = cmp.Or(c.api.Short[strings.ToLower(name)], name)
	if strings.TrimSpace(name) == "" {
		return Choice{}, fault.New(fault.ArgError, "the name of the model is empty")
	}
	var err error
	if c.Model, err = o.model(c); err != nil {
		return Choice{}, err
	}
	c.options, c.Known, c.Notes = o, o.known(c), nil
	return c, nil
}

// ForeignShortName reports whether a name is a short name only of another API's model.
func (c Choice) ForeignShortName(name string) bool {
	return c.api.Short[name] == "" &&
		slices.ContainsFunc(c.options.list(), func(api model.API) bool { return api.Short[name] != "" })
}

// known returns the profile of the chosen model.
func (o Options) known(c Choice) model.Profile {
	known := o.list().known(c.api, c.Model)
	known.Search = known.Search && c.Endpoint.Layer == Builtin
	if c.wish != nil && c.wish.Output > 0 {
		known.Output, known.Limit = c.wish.Output, c.wish.Output
	}
	return known
}

// provider returns the provider, the wish that chose it, if any, and the reason for the choice.
func (o Options) provider() (api model.API, w *Selection, how string, err error) {
	w = o.wish()
	switch {
	case o.Provider != "":
		api, err = o.word(o.Provider, "")
		return api, w, "--provider", err
	case w != nil && w.Provider != "":
		api, err = o.word(w.Provider, w.From)
		return api, w, w.From, err
	}
	found := o.chosen()
	if len(found) == 0 {
		return model.API{}, nil, "", o.nothingChosen()
	}
	if !slices.ContainsFunc(found, func(s sign) bool { return s.account() != found[0].account() }) {
		if found[0].eidolon {
			wish := EidolonDefault()
			w = &wish
		}
		return found[0].api, w, found[0].String(), nil
	}
	var have, variables, flags []string
	for _, s := range found {
		have = append(have, s.String())
		if s.variable != "" {
			variables = append(variables, s.variable)
		}
		if flag := "--provider " + s.api.Name; !s.eidolon && !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	return model.API{}, nil, "", fault.New(fault.MissingArgument, "there is %s, and which one to use was not said",
		strings.Join(have, " and ")).
		Hint("Choose with %s, or once for all: omniagent models use PROVIDER", strings.Join(flags, " or ")).
		With("found", variables).With("choices", Names(o.list()))
}

// Check returns an error if no model API has this name.
func (o Options) Check(name string) error {
	_, err := o.word(name, "")
	return err
}

// word checks the name of a provider, from --provider or another source.
func (o Options) word(given, from string) (model.API, error) {
	word := strings.ToLower(strings.TrimSpace(given))
	if api, ok := o.list().find(word); ok {
		return api, nil
	}
	if slices.Contains(o.Agents, word) {
		return model.API{}, fault.New(fault.ArgError, "%s is a program, not a model API", word).
			Hint("Drive the installed program: omniagent start --agent %s", word)
	}
	names := append(Names(o.list()), o.Agents...)
	if from != "" {
		from = ", which " + from + " names"
	}
	f := fault.New(fault.ArgError, "there is no provider %q%s; there are %s", given, from, strings.Join(names, ", "))
	if near := text.Nearest(word, names); near != "" {
		return model.API{}, f.With("did_you_mean", near).Hint("Did you mean %s?", near)
	}
	return model.API{}, f.Hint("omniagent models list shows which of them can be used here")
}

// sign is evidence that the user has an account with a provider: a variable, or a stored key.
type sign struct {
	api      model.API
	variable string // empty for a key that omniagent login stored
	address  bool   // it is an address, which only counts if no key is needed there
	eidolon  bool   // it belongs to eidolon's own vendor
}

func (s sign) account() string {
	if s.eidolon {
		return eidolonVendor
	}
	return s.api.Name
}

func (s sign) String() string {
	if s.variable == "" {
		return "the stored key for " + s.account()
	}
	return s.variable + " in the environment"
}

// signs returns the possible signs of all accounts, keys before addresses, and eidolon's last.
func (l list) signs() (all []sign) {
	var addresses []sign
	for _, api := range l {
		if api.Account != "" {
			continue
		}
		for _, key := range api.Keys {
			all = append(all, sign{api: api, variable: key.Variable})
		}
		if api.Local {
			addresses = append(addresses, sign{api: api, variable: api.BaseVar, address: true})
		}
	}
	all = append(all, addresses...)
	if speaks, compatible := l.find(openAIKind); compatible {
		for _, name := range []string{eidolonVariable, eidolonSecond} {
			all = append(all, sign{api: speaks, variable: name, eidolon: true})
		}
	}
	return all
}

// chosen returns the signs that exist. A stored key counts if the environment has no sign of its account.
func (o Options) chosen() (found []sign) {
	l := o.list()
	for _, s := range l.signs() {
		if value, ok := o.get(s.variable); ok && (!s.address || loopbackURL(value)) {
			found = append(found, s)
		}
	}
	for _, name := range Accounts(l) {
		s, word := sign{eidolon: name == eidolonVendor}, name
		if s.eidolon {
			word = openAIKind
		}
		var compatible bool
		s.api, compatible = l.find(word)
		known := slices.ContainsFunc(found, func(other sign) bool { return other.account() == s.account() })
		if compatible && !known && o.Keys != nil && o.Keys.Has(name) {
			found = append(found, s)
		}
	}
	return found
}

// nothingChosen returns an error that lists what would make the choice.
func (o Options) nothingChosen() error {
	var variables, words []string
	for _, s := range o.list().signs() {
		if !s.address && !s.eidolon {
			variables = append(variables, s.variable)
		}
	}
	for _, key := range Keys(o.list()) {
		var names []string
		for _, api := range o.list() {
			if len(api.Keys) > 0 && api.Keys[len(api.Keys)-1].Variable == key {
				names = append(names, api.Name)
			}
		}
		words = append(words, key+" ("+strings.Join(names, ", ")+")")
	}
	return fault.New(fault.AuthRequired, "no model was chosen, and no key was found").
		With("auth_methods", variables).With("choices", Names(o.list())).
		Hint("Store a key with omniagent login PROVIDER; or set %s; or use --provider gemini with a login of gcloud; "+
			"or --provider openai --api-base http://127.0.0.1:PORT/v1 --model NAME for a server on this machine.",
			text.Either(words))
}

// model returns the model's name.
func (o Options) model(c Choice) (string, error) {
	name, from := strings.TrimSpace(o.Model), "--model"
	if name == "" && c.wish != nil {
		name, from = strings.TrimSpace(c.wish.Model), c.wish.From
	}
	if name == "" {
		if c.api.Named && c.Endpoint.Layer != Builtin {
			// Asking such a server for the vendor's default would fail later, with a worse error.
			return "", fault.New(fault.MissingArgument, "%s has its own models, and none was named", c.Endpoint.URL).
				Hint("Name one: --model NAME, or the argument model.")
		}
		return c.api.Default, nil
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '?' || r == '#' }) {
		return "", fault.New(fault.ArgError, "%q, from %s, is not the name of a model", name, from).
			Hint("The default is %s.", c.api.Default)
	}
	return name, nil
}

func (o Options) get(name string) (string, bool) {
	value, ok := o.Lookup(name)
	value = strings.TrimSpace(value)
	return value, ok && value != ""
}
